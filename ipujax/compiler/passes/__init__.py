"""Passes: program -> program, one file each. `normalise.PASSES` is their order."""

import ipujax.compiler.rules  # noqa: F401  (fills the table of traits, which passes ask)
