"""What each op becomes where it is simpler than it looks: the rules of the pass `simplify`."""

from ipujax.compiler.simplifiers import arithmetic, index, shapes

RULES = {**arithmetic.RULES, **index.RULES, **shapes.RULES}
