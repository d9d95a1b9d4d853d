"""Which precision operations have: options of a scope, and `ipu.autocast`."""
