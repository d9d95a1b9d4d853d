"""Feeds: data that programs fetch from the host, and results that they hand out, while they run."""
