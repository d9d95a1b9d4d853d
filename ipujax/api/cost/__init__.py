"""The cost of programs, whether they fit, and changes that make them fit."""
