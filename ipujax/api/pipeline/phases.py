"""Phases: groups of stages that run one after the other.

A phase says where its blocks run, and that no earlier phase needs their results. The strategy's
`Liveness` says whether values for later phases wait on the IPUs or in streaming memory.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from ipujax.annotations.placement import AFTER_EACH_PHASE, AFTER_FORWARD, LeavingPhase
from ipujax.api.pipeline.blocks import Assigned, Block
from ipujax.api.pipeline.offload import check_minimum
from ipujax.api.pipeline.stages import check_ipu
from ipujax.api.pipeline.strategies import Stage, Strategy, as_stage
from ipujax.errors import PlacementError


class Liveness(enum.Enum):
    """Where values of a phase wait until another phase reads them.

    Gradients of parameters, and values that operations outside all phases read, stay on the IPUs.

    Attributes:
        ALWAYS_LIVE: on the IPUs.
        OFF_CHIP_AFTER_FORWARD: values for backward phases wait in streaming memory; but those of
            the last phase stay on the IPUs, as its backward pass follows its forward pass.
        OFF_CHIP_AFTER_FORWARD_NO_OVERLAP: the same without that exception.
        OFF_CHIP_AFTER_EACH_PHASE: values for any other phase wait in streaming memory.
    """

    ALWAYS_LIVE = "always_live"
    OFF_CHIP_AFTER_FORWARD = "off_chip_after_forward"
    OFF_CHIP_AFTER_FORWARD_NO_OVERLAP = "off_chip_after_forward_no_overlap"
    OFF_CHIP_AFTER_EACH_PHASE = "off_chip_after_each_phase"


_LEAVING = {
    Liveness.OFF_CHIP_AFTER_FORWARD: AFTER_FORWARD,
    Liveness.OFF_CHIP_AFTER_FORWARD_NO_OVERLAP: AFTER_FORWARD,
    Liveness.OFF_CHIP_AFTER_EACH_PHASE: AFTER_EACH_PHASE,
}


class Phase:
    """Stages that may run at the same time, as one phase of a phased strategy.

    Args:
        stages: `ipu.Stage`s or names of blocks; each on an IPU of its own.
        ipus: the IPU of each stage that has none. None: the strategy chooses.
    Raises:
        PlacementError: there is no stage, or not one IPU for each stage.

    Example:
        >>> ipu.Phase("left", "right", ipus=(0, 1))
        ipu.Phase(ipu.Stage('left', ipu=None), ipu.Stage('right', ipu=None), ipus=(0, 1))
    """

    def __init__(self, *stages: Stage | str, ipus: Sequence[int] | None = None):
        self.stages = [as_stage("ipu.Phase", given) for given in stages]
        self.ipus = None if ipus is None else tuple(ipus)
        for ipu in self.ipus or ():
            check_ipu("ipu.Phase", ipu)
        if not stages or (self.ipus is not None and len(self.ipus) != len(stages)):
            raise PlacementError(
                f"[ipu.Phase] needs at least one stage, and one IPU for each; got {len(stages)} "
                f"stages and the IPUs {self.ipus}. Pass ipus=None or as many as stages."
            )

    def __repr__(self) -> str:
        return f"ipu.Phase({', '.join(map(repr, self.stages))}, ipus={self.ipus})"


class _PhasedExecution(Strategy):
    def __init__(
        self,
        *phases: Phase | Stage | str,
        liveness: Liveness = Liveness.ALWAYS_LIVE,
        minimum_remote_tensor_size: int = 128,
    ):
        if not phases:
            raise PlacementError(
                f"[ipu.{self.name}] needs at least one phase; got none. Pass ipu.Phase objects."
            )
        if not isinstance(liveness, Liveness):
            raise PlacementError(
                f"[ipu.{self.name}] needs liveness to be an ipu.Liveness; got {liveness!r}. "
                f"Use one of {', '.join(map(str, Liveness))}."
            )
        self.liveness = liveness
        self.minimum_bytes = check_minimum(f"ipu.{self.name}", minimum_remote_tensor_size)
        self.phases = [one if isinstance(one, Phase) else Phase(one) for one in phases]
        self.groups = [self._ipus_of(i, phase) for i, phase in enumerate(self.phases)]
        for i, group in enumerate(self.groups):
            self._check_group(i, group)

    def assign(self, blocks: Sequence[Block]) -> dict[str, Assigned]:
        stages = [
            (stage, ipu, place)
            for place, (phase, group) in enumerate(zip(self.phases, self.groups, strict=True))
            for stage, ipu in zip(phase.stages, group, strict=True)
        ]
        return self._by_name(blocks, stages)

    def _phase(self, place: int | None) -> LeavingPhase | None:
        leaving = _LEAVING.get(self.liveness)
        overlaps = self.liveness is Liveness.OFF_CHIP_AFTER_FORWARD
        if place is None or leaving is None or (overlaps and place == len(self.phases) - 1):
            return None
        return LeavingPhase(place, leaving, self.minimum_bytes)

    def _ipus_of(self, index: int, phase: Phase) -> list[int]:
        chosen = phase.ipus or [self._default(index, i) for i in range(len(phase.stages))]
        return [
            ipu if stage.ipu is None else stage.ipu
            for stage, ipu in zip(phase.stages, chosen, strict=True)
        ]

    def _default(self, phase: int, stage: int) -> int:
        raise NotImplementedError

    def _check_group(self, index: int, group: Sequence[int]) -> None:
        raise NotImplementedError


class SerialPhasedExecution(_PhasedExecution):
    """Phases that run one after the other on one group of IPUs.

    Phases that do not need each other's results may overlap if their IPUs are free.

    Args:
        phases: `ipu.Phase`s in order; a stage or a name alone is a phase of one stage. By default
            the first stage of each runs on IPU 0, the second on IPU 1, and so on.
        liveness: where values wait until another phase reads them.
        minimum_remote_tensor_size: bytes; smaller arrays stay on the IPU.
    Raises:
        PlacementError: a phase uses IPUs outside the group, which is that of the largest phase; or
            `liveness` is invalid.
        PipelineError: `minimum_remote_tensor_size` is not a number of bytes.

    Example:
        >>> def model(x):
        ...     with ipu.block("first"):
        ...         x = x + 1
        ...     with ipu.block("second"):
        ...         return x * 2
        >>> print(ipu.SerialPhasedExecution("first", "second").apply(model)(1.0))
        4.0
    """

    name = "SerialPhasedExecution"

    def _default(self, phase: int, stage: int) -> int:
        return stage

    def _check_group(self, index: int, group: Sequence[int]) -> None:
        largest = max(self.groups, key=len)
        if not set(group) <= set(largest):
            raise PlacementError(
                f"[ipu.{self.name}] needs all phases on one group of IPUs, {sorted(largest)}; got "
                f"{sorted(group)} for phase {index}. Use the same IPUs in all phases, or "
                "ipu.ParallelPhasedExecution."
            )


class ParallelPhasedExecution(_PhasedExecution):
    """Phases that alternate between two groups of IPUs: even phases on even ones, odd on odd.

    Args:
        phases: `ipu.Phase`s in order; a stage or a name alone is a phase of one stage. By default
            even phases run on the IPUs 0, 2, 4..., odd ones on 1, 3, 5...
        liveness: where values wait until another phase reads them.
        minimum_remote_tensor_size: bytes; smaller arrays stay on the IPU.
    Raises:
        PlacementError: an even phase uses an odd IPU, or an odd phase an even one, or `liveness` is
            invalid.
        PipelineError: `minimum_remote_tensor_size` is not a number of bytes.

    Example:
        >>> def model(x):
        ...     with ipu.block("first"):
        ...         x = x + 1
        ...     return x * 2
        >>> print(ipu.ParallelPhasedExecution("first").apply(model)(1.0))
        4.0
    """

    name = "ParallelPhasedExecution"

    def _default(self, phase: int, stage: int) -> int:
        return 2 * stage + phase % 2

    def _check_group(self, index: int, group: Sequence[int]) -> None:
        if any(ipu % 2 != index % 2 for ipu in group):
            kind = "odd" if index % 2 else "even"
            raise PlacementError(
                f"[ipu.{self.name}] needs {kind} phases on {kind} IPUs; got {sorted(group)} for "
                f"phase {index}. Use IPUs with {kind} numbers, or ipu.SerialPhasedExecution."
            )
