"""Cuts a function into pipeline stages: its parts, their costs, and the search for the best cut."""
