"""Stages: parts of a program, each with an IPU of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Generic, ParamSpec, TypeVar

import jax

from ipujax import jax_compat
from ipujax.annotations import placement
from ipujax.annotations.placement import DIRECTION, IPU, PHASE, STAGE, STAGE_NAME, LeavingPhase
from ipujax.api.pipeline.remat import AUTO, THEN, Remat, Rematerialised, as_remat
from ipujax.api.precision.scopes import check_scoped
from ipujax.errors import PipelineError, PlacementError
from ipujax.types import Recomputation

FORWARD, BACKWARD = "forward", "backward"
DIRECTIONS = (FORWARD, BACKWARD)
WEIGHT_UPDATE = "weight_update"

#: The name of the primitive that calls a stage.
STAGE_CALL = "ipu_stage"

Options = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


@dataclass(frozen=True)
class StageLabel:
    """Tells the compiler about one call of a stage."""

    name: str
    ipu: int | None = None
    index: int | None = None  #: its place in a pipeline
    options: Options = ()  #: for each direction, and for the weight update
    transpositions: int = 0
    phase: LeavingPhase | None = None
    is_assigned: bool = False  #: by a strategy: blocks inside belong to no other

    @property
    def direction(self) -> str:
        return DIRECTIONS[self.transpositions % 2]

    def transposed(self) -> StageLabel:
        return replace(self, transpositions=self.transpositions + 1)

    def attributes(self) -> dict[str, str]:
        found = {STAGE_NAME: self.name, DIRECTION: self.direction}
        if self.ipu is not None:
            found[IPU] = str(self.ipu)
        if self.index is not None:
            found[STAGE] = str(self.index)
        if self.phase is not None:
            found[PHASE] = self.phase.attribute()
        options = dict(self.options)
        if WEIGHT_UPDATE in options:
            found[placement.WEIGHT_UPDATE] = placement.options_attribute(options[WEIGHT_UPDATE])
        return found | dict(options.get(self.direction, ()))


@dataclass
class PipelineTrace:
    """Counts the stages of the pipeline that is being traced."""

    device_mapping: tuple[int, ...] | None
    balances: bool = False  #: whether stages that say "auto" are recomputed "then"
    remat: Remat | None = None  #: for stages without their own
    num_stages: int = 0
    is_parallel: bool = False
    is_in_stage: bool = False  #: stages called now are parts of the stage around them

    def next_stage(self, ipu: int | None, place: int | None) -> tuple[int, int]:
        """The next stage's place in the pipeline, by default after the last one, and its IPU."""
        index = self.num_stages if place is None else place
        self.num_stages = index + (not self.is_parallel)
        if self.device_mapping is not None and index < len(self.device_mapping):
            return index, self.device_mapping[index]
        return index, index if ipu is None else ipu

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Stages called inside share one place."""
        self.is_parallel = True
        yield
        self.is_parallel = False
        self.num_stages += 1

    @contextmanager
    def in_stage(self) -> Iterator[None]:
        """Stages called inside have no place of their own."""
        around, self.is_in_stage = self.is_in_stage, True
        try:
            yield
        finally:
            self.is_in_stage = around


#: The pipeline that is being traced.
traced_pipeline: ContextVar[PipelineTrace | None] = ContextVar("traced_pipeline", default=None)


P = ParamSpec("P")
R = TypeVar("R")


class StagedFunction(Generic[P, R]):
    """A pure function with an IPU of its own; see `ipu.stage`."""

    def __init__(
        self,
        fun: Callable[P, R],
        ipu: int | None,
        name: str,
        remat: Any,
        options: Options,
        place: int | None = None,
        phase: LeavingPhase | None = None,
        is_assigned: bool = False,
    ):
        functools.update_wrapper(self, fun)
        if isinstance(fun, Rematerialised) and remat is None:
            remat, fun = fun.remat, fun.fun
        self.fun = fun
        self.ipu = ipu
        self.name = name
        self._options = options
        self._place = place  #: in a pipeline; None: after the stage called before
        self._phase = phase  #: outside pipelines; None: no value leaves the tiles after it
        self._is_assigned = is_assigned
        self._given = remat
        self._remat = as_remat("ipu.stage", remat)

    def assigned(
        self, place: int | None, phase: LeavingPhase | None = None
    ) -> StagedFunction[P, R]:
        """The stage as part of a strategy, at this place in a pipeline or in this phase."""
        given = (self.fun, self.ipu, self.name, self._given, self._options)
        return StagedFunction(*given, place, phase, is_assigned=True)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        jax_compat.hide_frames(__file__)
        leaves, tree = jax.tree.flatten((args, kwargs))
        made: list[Any] = []
        pipeline = traced_pipeline.get()
        index, ipu, remat = None, self.ipu, self._remat
        if pipeline is not None:
            self._check_phase()
            if pipeline.is_in_stage:
                ipu = None
            else:
                index, ipu = pipeline.next_stage(ipu, self._place)
                remat = pipeline.remat if self._given is None else remat
        runs_before = remat is not None and _runs_before(remat, pipeline)
        called = self.fun if remat is None or runs_before else remat.apply(self.fun)

        def flat(*leaves: Any) -> list[Any]:
            args, kwargs = jax.tree.unflatten(tree, leaves)
            results, out_tree = jax.tree.flatten(called(*args, **kwargs))
            made.append(out_tree)
            return results

        def call(*leaves: Any) -> list[Any]:
            with nullcontext() if pipeline is None else pipeline.in_stage():
                jaxpr, captured = jax_compat.trace_call(flat, leaves)
            stage_p = jax_compat.call_primitive(STAGE_CALL)
            return list(
                stage_p.bind(*captured, *leaves, jaxpr=jaxpr, label=self._label(ipu, index))
            )

        results = remat.apply(call)(*leaves) if remat and runs_before else call(*leaves)
        return jax.tree.unflatten(made[-1], results)

    def _label(self, ipu: int | None, index: int | None) -> StageLabel:
        return StageLabel(
            self.name,
            ipu,
            index,
            self._options,
            phase=self._phase,
            is_assigned=self._is_assigned,
        )

    def _check_phase(self) -> None:
        if self._phase is not None:
            raise PipelineError(
                f"[ipu.stage] needs phases whose values stay on the IPU inside of a pipeline; got "
                f"stage {self.name!r} of a strategy whose values leave it. Use "
                "ipu.Liveness.ALWAYS_LIVE, and offload_activations of the pipeline."
            )

    def __repr__(self) -> str:
        return f"ipu.stage({self.name}, ipu={self.ipu})"


def stage(
    fun: Callable[P, R],
    ipu: int | None = None,
    *,
    name: str | None = None,
    remat: bool | Recomputation | Callable[..., Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> StagedFunction[P, R]:
    """Gives a pure function an IPU of its own, alone or as a stage of `ipu.pipeline`.

    The result is called like `fun` and composes with `jit`, `grad`, `vmap` and `ipu.pmap`.
    Functions that JAX derives from it, such as its gradient, run on the same IPU. A program of such
    calls, outside a pipeline, is *sharded execution*: one IPU works at a time. A stage that is
    called inside a pipeline's stage is a part of that stage. On other platforms a stage is a plain
    call.

    Args:
        fun: pure function of arrays and pytrees.
        ipu: number of the IPU in the JAX device, from 0. None: in a pipeline the stage's place,
            elsewhere the IPU of its operands.
        name: name in reports; by default the function's name.
        remat: True: the backward pass recomputes the stage's inner values instead of keeping them;
            or a policy of `jax.checkpoint_policies` that says which are kept, a mode of
            `ipu.remat`, or an `ipu.remat` without a function.
        options: options of `ipu.precision` for the stage's operations; under the keys "forward" and
            "backward" for one direction, and under "weight_update" for the operations outside all
            stages that turn the stage's gradients into new parameters.
    Raises:
        PlacementError: `fun` is not a function, or `ipu` is not the number of an IPU.
        ConfigError: an option has an unknown name or a value that is not allowed.

    Example:
        >>> layer = ipu.stage(lambda w, x: jnp.tanh(x @ w), ipu=0)
        >>> gradient = jax.grad(lambda w: layer(w, jnp.ones((1, 2))).sum())(jnp.zeros((2, 2)))
        >>> print(gradient)
        [[1. 1.]
         [1. 1.]]
    """
    if not callable(fun):
        raise PlacementError(
            f"[ipu.stage] needs a function; got {fun!r}. Pass the stage's function first."
        )
    check_ipu("ipu.stage", ipu)
    label = name if name is not None else getattr(fun, "__name__", type(fun).__name__)
    return StagedFunction(fun, ipu, label, remat, _by_group(options or {}))


@contextmanager
def shard(ipu: int) -> Iterator[None]:
    """Places the operations traced inside, and their derivatives, on one IPU of the device.

    Args:
        ipu: number of the IPU in the JAX device, from 0.
    Raises:
        PlacementError: it is not the number of an IPU.

    Example:
        >>> @jax.jit
        ... def f(x):
        ...     with ipu.shard(0):
        ...         x = x * 2
        ...     return x + 1
        >>> print(f(3.0))
        7.0
    """
    # Imported here, because JAX imports this package while it looks for plugins.
    from jax.experimental.xla_metadata import set_xla_metadata

    check_ipu("ipu.shard", ipu)
    with set_xla_metadata(**{IPU: str(ipu)}):
        yield


def check_ipu(where: str, ipu: object) -> None:
    """Refuses anything but the number of an IPU or None."""
    is_number = isinstance(ipu, int) and not isinstance(ipu, bool) and ipu >= 0
    if ipu is not None and not is_number:
        raise PlacementError(
            f"[{where}] needs ipu to be a number of an IPU in the device, from 0; got {ipu!r}. "
            "Pass a whole number."
        )


def _runs_before(remat: Remat, pipeline: PipelineTrace | None) -> bool:
    """Whether the recomputed stage is a stage of its own, which runs before the backward one."""
    if remat.mode != AUTO:
        return remat.mode == THEN
    return pipeline is not None and pipeline.balances


def _by_group(options: Mapping[str, Any]) -> Options:
    groups = (*DIRECTIONS, WEIGHT_UPDATE)
    both = {name: value for name, value in options.items() if name not in groups}
    found = []
    for group in groups:
        own = options.get(group, {})
        if not isinstance(own, Mapping):
            raise PlacementError(
                f"[ipu.stage] needs options[{group!r}] to be a dict of options; got {own!r}. "
                'Pass for example {"partials_type": "half"}.'
            )
        shared = both if group in DIRECTIONS else {}
        named = check_scoped("ipu.stage", shared | dict(own))
        if named:
            found.append((group, tuple(sorted(named.items()))))
    return tuple(found)
