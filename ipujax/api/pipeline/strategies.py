"""Strategies: the stage of each block of a function, and how the stages run."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from ipujax.annotations.placement import LeavingPhase
from ipujax.api.pipeline.blocks import Assigned, Block, call_in_stages
from ipujax.api.pipeline.pipeline import GROUPED, SCHEDULES, pipeline
from ipujax.api.pipeline.stages import StagedFunction, stage
from ipujax.errors import PipelineError, PlacementError, check_choice
from ipujax.types import Recomputation, ScheduleName

P = ParamSpec("P")
R = TypeVar("R")


class AutoStage(enum.Enum):
    """How blocks become stages if a strategy does not name them.

    Attributes:
        SAME_AS_IPU: a block's stage is the number of its IPU.
        INCREMENT: each block is a stage, in the order of the program; its IPU is the block's own,
            or else the stage's number.
    """

    SAME_AS_IPU = "same_as_ipu"
    INCREMENT = "increment"


class Stage:
    """Blocks that form one stage of a strategy.

    Args:
        blocks: names of `ipu.block`; at least one.
        ipu: number of the IPU in the JAX device, from 0. None: the strategy chooses.
        remat, options: as in `ipu.stage`.
    Raises:
        PlacementError: a name is missing or not a string, or `ipu` is not the number of an IPU.
        ConfigError: an option has an unknown name or a value that is not allowed.

    Example:
        >>> ipu.Stage("embed", "layer0", ipu=0)
        ipu.Stage('embed', 'layer0', ipu=0)
    """

    def __init__(
        self,
        *blocks: str,
        ipu: int | None = None,
        remat: bool | Recomputation | Callable[..., Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ):
        if not blocks or not all(isinstance(name, str) and name for name in blocks):
            raise PlacementError(
                f"[ipu.Stage] needs names of blocks; got {blocks!r}. "
                'Pass them one by one: ipu.Stage("embed", "layer0").'
            )
        self.blocks = blocks
        self.ipu = ipu
        self._make = functools.partial(stage, name="+".join(blocks), remat=remat, options=options)
        self.of(lambda: None, ipu)  # refuses bad arguments at the call

    def of(self, fun: Callable[..., Any], ipu: int | None) -> StagedFunction[..., Any]:
        """A function as this stage."""
        return self._make(fun, ipu)

    def __repr__(self) -> str:
        return f"ipu.Stage({', '.join(map(repr, self.blocks))}, ipu={self.ipu})"


class Strategy:
    """Assigns the blocks of a function to stages; a strategy says when they run."""

    name = "strategy"

    def apply(self, fun: Callable[P, R]) -> Callable[P, R]:
        """The function, in stages.

        Args:
            fun: pure function of arrays and pytrees, with parts that `ipu.block` names.
        Returns:
            A function of the same arguments and results, which composes with `jit`, `grad`, `vmap`
            and `ipu.pmap`.
        Raises:
            PlacementError: a block and the strategy's stages do not match.
            PipelineError: a stage needs a result of a later one.
        """

        @functools.wraps(fun)
        def in_stages(*args: Any, **kwargs: Any) -> Any:
            return call_in_stages(f"ipu.{self.name}", fun, self.assign, args, kwargs)

        return in_stages

    def assign(self, blocks: Sequence[Block]) -> dict[str, Assigned]:
        """The stage of each block, by name."""
        raise NotImplementedError

    def _phase(self, place: int | None) -> LeavingPhase | None:
        """The phase at this place, if values leave the tiles after it."""
        return None

    def _by_name(
        self, blocks: Sequence[Block], stages: Iterable[tuple[Stage, int, int | None]]
    ) -> dict[str, Assigned]:
        """Assigns blocks, all of which stages name, each with its IPU and its place in time."""
        found: dict[str, Assigned] = {}
        for given, ipu, place in stages:
            assigned = Assigned(functools.partial(given.of, ipu=ipu), place, self._phase(place))
            for name in given.blocks:
                if name in found:
                    raise PlacementError(
                        f"[ipu.{self.name}] needs each block in one stage; got {name!r} in two. "
                        "Remove one."
                    )
                found[name] = assigned
        known = {block.name for block in blocks}
        unknown = [name for name in found if name not in known]
        if unknown:
            raise PlacementError(
                f"[ipu.{self.name}] needs names of blocks that the function has: "
                f"{', '.join(map(str, blocks)) or 'none'}; got {', '.join(map(repr, unknown))}. "
                "Correct the name, or put the operations in `with ipu.block(name):`."
            )
        missing = [block for block in blocks if block.name not in found]
        if missing:
            raise PlacementError(
                f"[ipu.{self.name}] needs a stage for each block; got none for "
                f"{', '.join(map(str, missing))}. Add the name to one of the strategy's stages."
            )
        return found


class ShardedExecution(Strategy):
    """Stages that run one after the other, each on an IPU of its own.

    Args:
        stages: `ipu.Stage`s or names of blocks, in order; or one `ipu.AutoStage`, which is
            `AutoStage.SAME_AS_IPU` by default. A stage without an IPU runs on that of its blocks,
            or else on the one numbered as its place, from 0.
    Raises:
        PlacementError: a stage is neither a stage nor a name.

    Example:
        >>> def model(x):
        ...     with ipu.block("first"):
        ...         x = x + 1
        ...     with ipu.block("second"):
        ...         return x * 2
        >>> sharded = ipu.ShardedExecution(ipu.Stage("first", ipu=0), ipu.Stage("second", ipu=0))
        >>> print(sharded.apply(model)(1.0))
        4.0
    """

    name = "ShardedExecution"
    is_ordered = False  #: whether stages have places in time

    def __init__(self, *stages: Stage | str | AutoStage):
        self.auto: AutoStage | None = None
        self.stages: list[Stage] = []
        given = stages or (AutoStage.SAME_AS_IPU,)
        if len(given) == 1 and isinstance(given[0], AutoStage):
            self.auto = given[0]
        else:
            self.stages = [as_stage(f"ipu.{self.name}", one) for one in given]

    def assign(self, blocks: Sequence[Block]) -> dict[str, Assigned]:
        if not blocks:
            raise PlacementError(
                f"[ipu.{self.name}] needs a function with blocks; got one without. "
                "Put its parts in `with ipu.block(name):`."
            )
        return self._by_name(
            blocks,
            [
                (given, ipu, place if self.is_ordered else None)
                for given, ipu, place in self._stages(blocks)
            ],
        )

    def _stages(self, blocks: Sequence[Block]) -> list[tuple[Stage, int, int]]:
        """Stages with their IPUs and places."""
        if self.auto is AutoStage.INCREMENT:
            return [
                (Stage(block.name), i if block.ipu is None else block.ipu, i)
                for i, block in enumerate(blocks)
            ]
        if self.auto is AutoStage.SAME_AS_IPU:
            named = self._names_by_ipu(blocks)
            return [(Stage(*names), ipu, ipu) for ipu, names in named.items()]
        ipus = {block.name: block.ipu for block in blocks}
        return [(one, self._ipu(one, i, ipus), i) for i, one in enumerate(self.stages)]

    def _ipu(self, given: Stage, place: int, ipus: Mapping[str, int | None]) -> int:
        if given.ipu is not None:
            return given.ipu
        own = {ipus.get(name) for name in given.blocks} - {None}
        if len(own) > 1:
            raise PlacementError(
                f"[ipu.{self.name}] needs one IPU for each stage; got the IPUs "
                f"{sorted(own, key=str)} for the blocks of {given!r}. Pass ipu to the stage."
            )
        found = next(iter(own), None)
        return place if found is None else found

    def _names_by_ipu(self, blocks: Sequence[Block]) -> dict[int, list[str]]:
        homeless = [block for block in blocks if block.ipu is None]
        if homeless:
            raise PlacementError(
                f"[ipu.{self.name}] needs blocks with an IPU for AutoStage.SAME_AS_IPU; got "
                f"{', '.join(map(str, homeless))} without. Pass ipu to ipu.block, name the "
                "strategy's stages, or use AutoStage.INCREMENT."
            )
        named: dict[int, list[str]] = {}
        for block in blocks:
            assert block.ipu is not None, "checked above"
            named.setdefault(block.ipu, []).append(block.name)
        return named


class PipelinedExecution(ShardedExecution):
    """Stages that work at the same time, each on another micro-batch, as in `ipu.pipeline`.

    Args:
        stages: as in `ipu.ShardedExecution`.
        schedule: "grouped", "interleaved" or "sequential".
    Raises:
        PipelineError: the schedule is unknown.
        PlacementError: a stage is neither a stage nor a name.

    Example:
        >>> def loss(w, x):
        ...     with ipu.block("layer"):
        ...         x = jnp.tanh(x @ w)
        ...     with ipu.block("loss"):
        ...         return jnp.mean(x)
        >>> strategy = ipu.PipelinedExecution(ipu.Stage("layer", ipu=0), ipu.Stage("loss", ipu=0))
        >>> pipelined = strategy.apply(loss, micro_batches=4, reduction="mean")
        >>> print(jax.grad(pipelined)(jnp.zeros((2, 1)), jnp.ones((4, 3, 2))))
        [[1.]
         [1.]]
    """

    name = "PipelinedExecution"
    is_ordered = True

    def __init__(self, *stages: Stage | str | AutoStage, schedule: ScheduleName = GROUPED):
        super().__init__(*stages)
        check_choice(f"ipu.{self.name}", "schedule", schedule, SCHEDULES, PipelineError)
        self.schedule = schedule

    def apply(self, fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        """The function as a pipeline.

        Args:
            fun: pure function of one micro-batch, with parts that `ipu.block` names.
            options: `micro_batches` and the others of `ipu.pipeline`.
        """
        return pipeline(super().apply(fun), schedule=self.schedule, **options)


def as_stage(where: str, given: object) -> Stage:
    """A stage, given as one or as the name of a block."""
    if isinstance(given, Stage):
        return given
    if isinstance(given, str):
        return Stage(given)
    raise PlacementError(
        f"[{where}] needs stages or names of blocks; got {given!r}. "
        'Pass ipu.Stage("name", ...) for each stage.'
    )
