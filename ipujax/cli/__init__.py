"""The command line: one file for each word, with `add_arguments(parser)` and `run(arguments)`."""
