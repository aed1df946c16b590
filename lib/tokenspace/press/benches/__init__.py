"""The page of the bench: ratios, curves, and the exponents fitted to them."""
