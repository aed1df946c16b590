"""Where token embeddings come from, what shape they have, and what that does to generation."""

__version__ = "0.1.0"
