"""Values that loops carry and branches return: each is one variable with several names."""

from __future__ import annotations

from dataclasses import dataclass

from ipujax.compiler.ir import Op, Value


@dataclass(slots=True)
class Slot:
    """One value that a loop carries, that branches return, or that a barrier passes on."""

    names: list[Value]  #: of its variable, inside and outside
    sources: list[tuple[list[Value], int]]  #: (list, index) of the values copied to it


def slots_of(op: Op) -> list[Slot]:
    """The slots of an op with control flow, one for each result."""
    if op.name == "while":
        cond, body = op.regions
        return [
            Slot([body.args[i], cond.args[i], result], [(body.results, i), (op.operands, i)])
            for i, result in enumerate(op.results)
        ]
    if op.name in ("pipeline", "optimization_barrier"):
        return [Slot([result], [(op.operands, i)]) for i, result in enumerate(op.results)]
    return [
        Slot([result], [(region.results, i) for region in op.regions])
        for i, result in enumerate(op.results)
    ]
