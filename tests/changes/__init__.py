"""What one change may touch: each test makes it in a copy of the source tree, and runs it."""
