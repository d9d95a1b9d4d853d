"""The options: sections with their help and bounds, files, names of other frameworks, pages."""
