"""Rules of the pass `simplify`: ops that can be replaced by simpler ones."""

from ipujax.compiler.simplifiers import arithmetic, index, shapes

RULES = {**arithmetic.RULES, **index.RULES, **shapes.RULES}
