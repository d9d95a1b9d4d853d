"""Altered executables: none may bring down, or stop, the process that loads and runs it."""
