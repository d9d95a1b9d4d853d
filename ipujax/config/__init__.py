"""The options: sections with help and bounds, files, names of other frameworks, pages."""
