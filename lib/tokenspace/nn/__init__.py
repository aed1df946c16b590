"""What all parts train with: one loop, one checkpoint, one transformer, one rule for seeds."""
