"""What `ipu.report` gives: where a program's time and memory go, and ways to look at it."""
