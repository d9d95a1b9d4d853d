"""The built extension's modules, imported when the first program is lowered.

Stages before lowering, and their tests, therefore need no built extension. The names of classes
are for annotations. `capabilities` says what differs between the builds.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipujax._poplar._poplar import capabilities as capabilities
    from ipujax._poplar._poplar import engine as engine
    from ipujax._poplar._poplar import gcl as gcl
    from ipujax._poplar._poplar import poplar as poplar
    from ipujax._poplar._poplar import poplin as poplin
    from ipujax._poplar._poplar import popnn as popnn
    from ipujax._poplar._poplar import popops as popops
    from ipujax._poplar._poplar import poprand as poprand
    from ipujax._poplar._poplar import popx as popx
    from ipujax._poplar._poplar.poplar import DataStream as DataStream
    from ipujax._poplar._poplar.poplar import DebugContext as DebugContext
    from ipujax._poplar._poplar.poplar import FieldRef as FieldRef
    from ipujax._poplar._poplar.poplar import Graph as Graph
    from ipujax._poplar._poplar.poplar import RemoteBuffer as RemoteBuffer
    from ipujax._poplar._poplar.poplar import Tensor as Tensor
    from ipujax._poplar._poplar.poplar import Type as Type
    from ipujax._poplar._poplar.poplar.program import Program as Program
    from ipujax._poplar._poplar.poplar.program import Sequence as Sequence
    from ipujax._poplar._poplar.poplin import PlanningCache as PlanningCache
    from ipujax._poplar._poplar.popops.expr import Expr as Expr
else:
    _LIBRARIES = ("poplar", "popops", "poplin", "popnn", "poprand", "popx", "gcl")
    _NAMES = (*_LIBRARIES, "engine", "capabilities")

    def __getattr__(name: str) -> object:
        if name not in _NAMES:
            raise AttributeError(name)
        module = getattr(importlib.import_module("ipujax._poplar._poplar"), name)
        return globals().setdefault(name, module)
