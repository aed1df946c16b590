"""What a teacher hands out: editions with and without solutions, slides, and the PDF."""
