"""Small user programs of libraries built on JAX, run on the IPU and on the CPU backend.

`make libraries` installs the libraries and runs the programs. `make test` has none of these
libraries; there the tests of this folder keep the runner and the list of programs honest.
"""
