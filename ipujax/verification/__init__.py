"""Runs one StableHLO program on several oracles, compares, and finds the op that differs."""
