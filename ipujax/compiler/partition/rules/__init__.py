"""How each op is made local: one table of all rooms."""

from __future__ import annotations

from ipujax.compiler.partition.rules.control import RULES as CONTROL
from ipujax.compiler.partition.rules.devices import RULES as DEVICES
from ipujax.compiler.partition.rules.dynamic import RULES as DYNAMIC
from ipujax.compiler.partition.rules.elementwise import RULES as ELEMENTWISE
from ipujax.compiler.partition.rules.gather import RULES as GATHER
from ipujax.compiler.partition.rules.products import RULES as PRODUCTS
from ipujax.compiler.partition.rules.scatter import RULES as SCATTER
from ipujax.compiler.partition.rules.shapes import RULES as SHAPES
from ipujax.compiler.partition.rules.windows import RULES as WINDOWS

RULES = {
    **CONTROL,
    **DEVICES,
    **DYNAMIC,
    **ELEMENTWISE,
    **GATHER,
    **PRODUCTS,
    **SCATTER,
    **SHAPES,
    **WINDOWS,
}
