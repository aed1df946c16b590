"""Time and memory against named peers, as ratios in one run: `make bench`. Nothing is asserted."""
