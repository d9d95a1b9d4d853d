"""The costs of a function's parts on one IPU; each distinct part is compiled once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal

from ipujax.planner.fingerprint import fingerprint
from ipujax.planner.operations import Value
from ipujax.planner.parts import Divided
from ipujax.planner.pieces import Piece, source_of

#: FIFOs are costed with this many entries.
FIFO_ENTRIES = 2
#: Indices of the arguments that costed programs update in place.
ACCUMULATORS, FIFOS = 2, 3


@dataclass(frozen=True)
class PartCost:
    """The cost of one micro-batch, forward and, if the function is trained, backward."""

    cycles: float
    fifo_cycles: float  #: for values that wait for the backward pass
    tile_bytes: float  #: of the fullest tile, without weights, their accumulators and temporaries
    temporary_bytes: float  #: of the IPU
    stash_bytes: float  #: values that wait for the backward pass, of the IPU


@dataclass(slots=True)
class Pricing:
    """Finds the costs of parts by compiling them for the device."""

    divided: Divided
    device: Any
    training: bool
    remat: Any  #: as in `ipu.stage`
    known: dict[str, PartCost] = field(default_factory=dict)
    active: set[Value] = field(default_factory=set)  #: values that gradients flow through

    def __post_init__(self) -> None:
        if self.training:
            self.active = active_values(self.divided)

    def cost(self, piece: Piece) -> PartCost:
        program = _Program(self, piece)
        key = fingerprint(jax.make_jaxpr(program.whole)(*program.arguments))
        if key not in self.known:
            self.known[key] = self._compiled(program)
        return self.known[key]

    @property
    def tiles(self) -> int:
        return int(self.device.num_tiles // self.device.num_ipus)

    def _compiled(self, program: _Program) -> PartCost:
        cycles, tile_bytes, temporary = self._measure(program.whole, program.arguments)
        weight_bytes = sum(map(bytes_of, compress(program.avals, program.is_weight)))
        if self.training:
            weight_bytes += sum(map(bytes_of, program.accumulated))
        stash = program.stash()
        with_fifo = cycles
        if stash:
            fifos = [
                jax.ShapeDtypeStruct((FIFO_ENTRIES, *x.shape), x.dtype) for x in stash.values()
            ]
            entry = jax.ShapeDtypeStruct((), jnp.int32)
            arguments = (*program.arguments, fifos, entry)
            with_fifo, _, _ = self._measure(program.through_fifos, arguments)
        return PartCost(
            cycles,
            max(0.0, with_fifo - cycles),
            max(0.0, tile_bytes - (weight_bytes + temporary) / self.tiles),
            temporary,
            sum(map(bytes_of, stash.values())),
        )

    def _measure(self, program: Any, arguments: Sequence[Any]) -> tuple[float, float, float]:
        """Cycles, bytes of the fullest tile, and temporary bytes, on one IPU."""
        with jax.default_device(self.device):
            changed = [i for i in (ACCUMULATORS, FIFOS) if i < len(arguments)]
            compiled = jax.jit(program, donate_argnums=changed).lower(*arguments).compile()
        cost: Mapping[str, float] = compiled.cost_analysis()
        temporary = float(compiled.memory_analysis().temp_size_in_bytes)
        return cost["cycles"], cost["worst tile bytes"], temporary


class _Program:
    """A piece as it is costed: forward, or forward, backward and accumulation."""

    def __init__(self, pricing: Pricing, piece: Piece):
        self.piece = piece
        self.training = pricing.training
        divided = pricing.divided
        names = piece.inputs
        sources = [source_of(name) for name in names]
        self.avals = [jax.ShapeDtypeStruct(n.aval.shape, n.aval.dtype) for n in names]
        self.is_weight = [v in divided.shared or v in divided.free for v in sources]
        self.is_active = [v in pricing.active for v in sources]
        self.is_output_active = [v in pricing.active for v in piece.outputs]
        self.fun = piece
        if pricing.remat and self.training:
            policy = pricing.remat if callable(pricing.remat) else None
            self.fun = jax.checkpoint(piece.__call__, policy=policy)
        weights = compress(zip(self.avals, self.is_weight, strict=True), self.is_active)
        self.accumulated = [aval for aval, is_weight in weights if is_weight]
        outputs = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in piece.outputs]
        self.cotangents = list(compress(outputs, self.is_output_active))
        self.arguments = (self.avals, self.cotangents, self.accumulated)

    def whole(self, inputs: Any, cotangents: Any, accumulators: Any) -> Any:
        if not self.training:
            return self.fun(*inputs)
        outputs, pull = self._forward(inputs)
        return outputs, self._accumulated(pull(cotangents), accumulators)

    def through_fifos(
        self, inputs: Any, cotangents: Any, accumulators: Any, fifos: Any, entry: Any
    ) -> Any:
        """As `whole`, with the backward pass of an earlier micro-batch."""
        outputs, pull = self._forward(inputs)
        leaves, tree = jax.tree.flatten(pull)
        filled = []
        for index, fifo in zip(self.stash(), fifos, strict=True):
            newest = leaves[index]
            leaves[index] = jax.lax.dynamic_index_in_dim(fifo, entry, keepdims=False)
            filled.append(jax.lax.dynamic_update_index_in_dim(fifo, newest, entry, 0))
        gradients = jax.tree.unflatten(tree, leaves)(cotangents)
        return outputs, self._accumulated(gradients, accumulators), filled

    def stash(self) -> dict[int, Any]:
        """The values that wait between the forward and the backward pass.

        Residuals of `jax.vjp` by index, each value once; values that depend only on weights are
        kept anyway.
        """
        if not self.training:
            return {}
        traced = jax.make_jaxpr(lambda inputs: jax.tree.leaves(self._forward(inputs)[1]))(
            self.avals
        )
        inputs = zip(traced.jaxpr.invars, self.is_weight, strict=True)
        of_data = {variable for variable, is_weight in inputs if not is_weight}
        for eqn in traced.jaxpr.eqns:
            if not of_data.isdisjoint(v for v in eqn.invars if not isinstance(v, Literal)):
                of_data.update(eqn.outvars)
        found: dict[Any, int] = {}
        for index, variable in enumerate(traced.jaxpr.outvars):
            if not isinstance(variable, Literal) and variable in of_data:
                found.setdefault(variable, index)
        return {
            index: jax.ShapeDtypeStruct(variable.aval.shape, variable.aval.dtype)
            for variable, index in found.items()
        }

    def _forward(self, inputs: Any) -> tuple[Any, Any]:
        def of_active(*active: Any) -> tuple[list[Any], list[Any]]:
            rest = iter(active)
            whole = [
                next(rest) if is_active else x
                for x, is_active in zip(inputs, self.is_active, strict=True)
            ]
            outputs = self.fun(*whole)
            return list(compress(outputs, self.is_output_active)), outputs

        _, pull, outputs = jax.vjp(of_active, *compress(inputs, self.is_active), has_aux=True)
        return outputs, pull

    def _accumulated(self, gradients: Sequence[Any], accumulators: Sequence[Any]) -> list[Any]:
        """Adds gradients of weights to their accumulators; returns those of data unchanged."""
        old = iter(accumulators)
        is_weight = compress(self.is_weight, self.is_active)
        return [
            next(old) + gradient if weight else gradient
            for gradient, weight in zip(gradients, is_weight, strict=True)
        ]


def active_values(divided: Divided) -> set[Value]:
    """Floating-point values that depend on weights."""
    found = {v for v in divided.shared if _is_float(v)}
    for operation in divided.listing.operations:
        if not found.isdisjoint(operation.operands):
            found.update(v for v in operation.results if _is_float(v))
    return found


def _is_float(value: Value) -> bool:
    return bool(jnp.issubdtype(value.aval.dtype, jnp.inexact))


def bytes_of(aval: Any) -> float:
    return float(math.prod(aval.shape) * jnp.dtype(aval.dtype).itemsize)
