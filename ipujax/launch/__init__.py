"""Starts the processes of a job, as `ipujax launch` does."""
