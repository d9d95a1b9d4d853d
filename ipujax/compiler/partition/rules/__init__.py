"""How each op is made local: one table of all rooms."""

from __future__ import annotations

from ipujax.compiler.partition.rules.control import RULES as CONTROL
from ipujax.compiler.partition.rules.devices import RULES as DEVICES
from ipujax.compiler.partition.rules.elementwise import RULES as ELEMENTWISE
from ipujax.compiler.partition.rules.indexing import RULES as INDEXING
from ipujax.compiler.partition.rules.products import RULES as PRODUCTS
from ipujax.compiler.partition.rules.shapes import RULES as SHAPES
from ipujax.compiler.partition.rules.windows import RULES as WINDOWS

RULES = {**CONTROL, **DEVICES, **ELEMENTWISE, **INDEXING, **PRODUCTS, **SHAPES, **WINDOWS}
