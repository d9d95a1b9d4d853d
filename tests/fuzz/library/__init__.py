"""Random calls of every function of `ipu.nn` and `ipu.ops`, run in every way that JAX has.

`case` says what a generator returns, `modes` the ways to run it, `compare` what may differ. The
other modules hold the generators, with a reference for each function that shares no code with it.
"""
