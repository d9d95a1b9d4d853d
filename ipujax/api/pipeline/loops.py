"""The loop over micro-batches of a pipeline, in JAX operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from ipujax import jax_compat
from ipujax.annotations.placement import OFFLOAD, PIPELINE
from ipujax.api.pipeline import offload
from ipujax.api.replicate.weight_shards import Partition

#: The schedule in which one stage runs at a time.
SEQUENTIAL: Final = "sequential"
#: What becomes of a result of each micro-batch.
ALL: Final = "all"
LAST: Final = "last"
SUM: Final = "sum"
MEAN: Final = "mean"
RUNNING_MEAN: Final = "running_mean"
ACCUMULATED = (SUM, MEAN, RUNNING_MEAN)


@dataclass(frozen=True)
class Output:
    """What becomes of one result."""

    kind: str
    dtype: Any = None  #: of an accumulator; None: the result's own

    def dtype_for(self, aval: Any) -> Any:
        return aval.dtype if self.dtype is None or self.kind not in ACCUMULATED else self.dtype


@dataclass(frozen=True)
class Loop:
    """The loop of a pipeline. Hashable: the primitive's parameter besides the jaxpr.

    The micro-batch's function takes `num_shared` values that all micro-batches share, `num_carried`
    that go from one to the next, and slices of the rest; it returns the carried ones, then one
    value for each of `outputs`.
    """

    micro_batches: int
    num_shared: int
    num_carried: int
    outputs: tuple[Output, ...]
    schedule: str
    accumulate_dtype: Any  #: None, a dtype, or a function of a parameter's ShapeDtypeStruct
    offload: offload.Offload
    serial: int = 1  #: micro-batches that a stage runs before the next stage begins
    #: Partitions of shared operands that are parts; () if there are none. The function gets whole
    #: weights.
    partitions: tuple[Partition | None, ...] = ()

    @property
    def overlaps(self) -> bool:
        return self.schedule != SEQUENTIAL

    @property
    def num_unbatched(self) -> int:
        return self.num_shared + self.num_carried

    def sharing(self, count: int, **changed: Any) -> Loop:
        """The loop with `count` more shared operands, before the others."""
        partitions = (*[None] * count, *self.partitions) if self.partitions else ()
        num_shared = self.num_shared + count
        return replace(self, num_shared=num_shared, partitions=partitions, **changed)

    # The label of a call, see jax_compat.call_primitive.

    def attributes(self) -> dict[str, str]:
        least = self.offload.attribute()
        waiting = {} if least is None else {OFFLOAD: str(least)}
        return {PIPELINE: self.schedule, **waiting}

    def transposed(self) -> Loop:
        return self

    def split(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """The shared, carried and batched operands."""
        first, second = self.num_shared, self.num_unbatched
        return list(operands[:first]), list(operands[first:second]), list(operands[second:])

    # Shared values, which may be elsewhere between two uses.

    @property
    def fetches(self) -> bool:
        return self.offload.weights or bool(self.partitions)

    def put_away(self, shared: Any) -> Any:
        return self.offload.store(shared) if self.offload.weights else shared

    def fetched(self, index: int, shared: Any) -> Any:
        return self.whole(index, self.offload.load(shared) if self.offload.weights else shared)

    def whole(self, index: int, operand: Any) -> Any:
        """The operand at this place, gathered if it is a part."""
        partition = self.partitions[index] if index < len(self.partitions) else None
        return operand if partition is None else partition.gathered(operand)

    # Values held from micro-batch to micro-batch for an output that is not stacked.

    def initial(self, output: Output, aval: Any) -> Any:
        zeros = jax_compat.zeros_of(aval, output.dtype_for(aval))
        return self.offload.store(zeros) if self.offload.accumulators else zeros

    def updated(self, output: Output, index: Any, held: Any, new: Any) -> Any:
        """The next held value; `index` is that of the micro-batch that gave `new`."""
        made = _update(output, index, self.micro_batches, self.final(held), new)
        return self.offload.store(made) if self.offload.accumulators else made

    def final(self, held: Any) -> Any:
        return self.offload.load(held) if self.offload.accumulators else held


def _update(output: Output, index: Any, count: int, old: Any, new: Any) -> Any:
    if output.kind == LAST:
        return new
    new = new.astype(old.dtype)
    if output.kind == SUM:
        return old + new
    if output.kind == MEAN:
        return old + new / count
    number = index.astype(old.dtype)
    return old * (number / (number + 1)) + new / (number + 1)


def accumulator_dtype(choice: Any, of: Any) -> Any:
    """The dtype that `accumulate_dtype` chooses for one array; None: the array's own."""
    if not callable(choice) or isinstance(choice, type):
        return choice
    return choice(jax.ShapeDtypeStruct(of.shape, of.dtype))


def run(jaxpr: ClosedJaxpr, loop: Loop, *operands: Any) -> list[Any]:
    """Runs one micro-batch after the other. Returns the carried values, then the outputs."""
    fun = jaxpr_as_fun(jaxpr)
    shared, carried, batched = loop.split(operands)
    shared = [loop.put_away(x) for x in shared]
    outputs, first = loop.outputs, loop.num_carried
    kept = [output.kind != ALL for output in outputs]
    avals = jaxpr.out_avals[first:]
    initial = [loop.initial(*pair) for pair in compress(zip(outputs, avals, strict=True), kept)]

    def body(state: Any, micro_batch: Any) -> Any:
        index, carried, held = state
        made = fun(*map(loop.fetched, range(len(shared)), shared), *carried, *micro_batch)
        results = made[first:]
        pairs = zip(compress(outputs, kept), held, compress(results, kept), strict=True)
        updated = [loop.updated(output, index, old, new) for output, old, new in pairs]
        stacked = [result for result, is_kept in zip(results, kept, strict=True) if not is_kept]
        return (index + 1, made[:first], updated), stacked

    state = (jnp.int32(0), carried, initial)
    (_, carried, held), stacked = lax.scan(body, state, batched, length=loop.micro_batches)
    of_all, of_others = iter(stacked), map(loop.final, held)
    return [*carried, *(next(of_others) if is_kept else next(of_all) for is_kept in kept)]
