"""What a run would cost before it starts: terms, a machine, and the change that would fit."""
