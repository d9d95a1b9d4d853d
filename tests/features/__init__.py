"""Each row of docs/features.md: what the old tool's documents say, run under our names."""
