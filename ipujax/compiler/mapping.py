"""Where arguments lie on the tiles: as the planner of their first consumer wants them.

Only the mapping is taken over: memory stays row-major, so that callers' arrays are bound without a
copy.
"""

from __future__ import annotations

from typing import Any

from ipujax.compiler.ir import Program, Value
from ipujax.compiler.rules.builder import Builder


def map_parameters(builder: Builder, program: Program) -> dict[Value, Any]:
    """Variables for arguments that a planner allocates; the others are spread linearly."""
    return {}
