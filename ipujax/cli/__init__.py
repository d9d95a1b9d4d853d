"""The command line: one module for each command, with `run`, and `add_arguments` if it has any."""
