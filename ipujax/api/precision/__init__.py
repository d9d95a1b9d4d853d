"""The precision of operations: options of a scope, and `ipu.autocast`."""
