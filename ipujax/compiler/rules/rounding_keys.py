"""Keys of stochastic rounding while a program is lowered: see `compiler/rounding_streams.py`.

Before each op that rounds at random, the graph gets the key and the stream of the op. The key of a
run comes from the host; the key of an iteration is computed from the loop's key and a counter. Ops
whose values are equal on some replicas have a key that is equal on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ipujax.compiler.ir import Block, Op, walk_ops
from ipujax.compiler.replica_classes import Replicas
from ipujax.compiler.rounding_streams import OWN, ROUNDING, SALT, Rounding, Turn
from ipujax.compiler.rules import poplar as ipu

if TYPE_CHECKING:
    from ipujax.compiler.rules.builder import Builder

#: Custom calls that run users' code.
USERS_CODE = frozenset({"ipu_custom_op", "ipu_tile_vertex"})
#: Bits for the streams of an op's own steps.
_STEPS_BITS = 20

Kind = tuple[Turn | None, Replicas]


def stream_of(op: Op) -> int | None:
    """The first stream of the op; None if it does not round at random."""
    rounding: Rounding | None = op.attrs.get(ROUNDING)
    return None if rounding is None else rounding.stream << _STEPS_BITS


class RoundingKeys:
    """The keys of the block that is being lowered, by turn and by replicas with equal keys."""

    def __init__(self, builder: Builder):
        self._builder = builder
        self._keys: dict[Kind, ipu.Tensor] = {}
        self._debug = ipu.poplar.DebugContext("stochastic rounding")

    def begin(self, main: Block) -> None:
        """Takes the keys of a run, before anything else in the program."""
        kinds = _kinds([main])
        replicas = [replicas for _, replicas in kinds]
        builder = self._builder
        keys = ipu.popx.runKeys(builder.graph, replicas, builder.program, self._debug)
        self._keys = dict(zip(kinds, keys, strict=True))
        for op in walk_ops(main):  # codelets of users draw from the workers' generators
            rounding: Rounding | None = op.attrs.get(ROUNDING)
            if rounding is not None and op.attrs.get("call_target_name") in USERS_CODE:
                key = self._keys[None, rounding.replicas]
                ipu.poprand.setSeed(builder.graph, key, 0, builder.program, self._debug)
                return

    @property
    def are_taken(self) -> bool:
        """Whether the program needs the seed of a run."""
        return bool(self._keys)

    def apply(self, op: Op) -> None:
        """Sets the key and stream of the op's steps; loops and branches leave it to their ops."""
        rounding: Rounding | None = op.attrs.get(ROUNDING)
        if rounding is not None and not op.traits.control_flow:
            key = self._keys[rounding.turn, rounding.replicas]
            ipu.popx.setRoundingKey(self._builder.graph, key, rounding.stream << _STEPS_BITS | 1)

    @contextmanager
    def iterations(
        self, loop: Op, blocks: Sequence[Block], first: ipu.Sequence, outer: ipu.Sequence
    ) -> Iterator[None]:
        """Inside, keys are those of an iteration of the blocks.

        Args:
            first: a program that each iteration begins with.
            outer: one that runs before the loop.
        """
        rounding: Rounding | None = loop.attrs.get(ROUNDING)
        if rounding is None:
            yield
            return
        popx, graph, debug = ipu.popx, self._builder.graph, self._debug
        around = self._keys
        number = popx.startCount(graph, outer, debug)
        popx.count(graph, number, first, debug)
        self._keys = {}
        for turn, replicas in _kinds(blocks):
            offset, factor = turn or OWN
            key = self._keys[turn, replicas] = popx.makeKey(graph, debug)
            of_loop = around[rounding.turn, replicas]
            popx.foldKey(graph, of_loop, number, offset, factor, key, first, debug)
        try:
            yield
        finally:
            self._keys = around

    # Functions -----------------------------------------------------------------------------------

    def of_function(self, function: Block) -> dict[Kind, ipu.Tensor]:
        """Variables for the keys of a function, which each call sets."""
        graph = self._builder.graph
        return {kind: ipu.popx.makeKey(graph, self._debug) for kind in _kinds([function])}

    @contextmanager
    def inside(self, keys: dict[Kind, ipu.Tensor]) -> Iterator[None]:
        """Inside, keys are those of a function."""
        around, self._keys = self._keys, keys
        try:
            yield
        finally:
            self._keys = around

    def call(self, op: Op, keys: dict[Kind, ipu.Tensor]) -> None:
        """Sets the keys of a function for a call."""
        builder, popx = self._builder, ipu.popx
        if not keys:
            return
        salt = op.attrs[SALT]
        number = popx.startCount(builder.graph, builder.program, self._debug)
        for kind, key in keys.items():
            popx.foldKey(
                builder.graph, self._keys[kind], number, salt, 0, key, builder.program, self._debug
            )


def _kinds(blocks: Sequence[Block]) -> list[Kind]:
    """The keys that ops of the blocks, and of branches in them, need; each once."""
    found: dict[Kind, None] = {}
    for op in (op for block in blocks for op in block.ops):
        rounding: Rounding | None = op.attrs.get(ROUNDING)
        if op.name == "call":
            found.update(dict.fromkeys(_kinds([op.attrs["function"]])))
        elif rounding is None:
            continue
        elif op.name in ("while", "pipeline"):
            found.update({(rounding.turn, replicas): None for _, replicas in _kinds(op.regions)})
        elif op.traits.control_flow:
            found.update(dict.fromkeys(_kinds(op.regions)))
        else:
            found[rounding.turn, rounding.replicas] = None
    return list(found)
