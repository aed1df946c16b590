"""Many runs at once: what a sweep asks for, running it, and the page of what it found."""
