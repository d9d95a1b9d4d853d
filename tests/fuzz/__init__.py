"""Random programs: made from a seed, run on the IPU and on the oracles, compared without guessing.

Every value knows how exactly it is known: floats are mostly small multiples of a power of two, of
which sums and products are exact in every order, and what is not exact carries a bound of its error
that the ops after it enlarge. Ops that jump (compare, floor, sort keys) take exact values only. So
a difference beyond the bound is a bug, not noise.
"""
