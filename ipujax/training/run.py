"""`Run`: the progress of one training, as hooks see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax

from ipujax.training.states import Structure

if TYPE_CHECKING:
    from ipujax.training.loop import Loop


@dataclass
class Run:
    """One training, between two device calls."""

    loop: Loop
    arrays: list[jax.Array]
    structure: Structure
    key: jax.Array | None
    steps: int | None  #: steps after which it ends; None: it ends with the epochs
    step: int = 0  #: steps done
    epoch: int = 0  #: passes over the data done
    position: int = 0  #: batches of this epoch used
    metrics: dict[str, float] = field(default_factory=dict)  #: of the last call, by name
    history: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    call_steps: int = 0  #: steps of the last call
    call_seconds: float = 0.0
    error: BaseException | None = None  #: the exception that ended it
    stop_reason: str = ""  #: why it ends early; "" if it does not

    @property
    def state(self) -> Any:
        """The current state, on the device. The next call may reuse its memory: copy to keep it."""
        return self.structure.join(self.arrays)

    def stop(self, reason: str) -> None:
        """Ends the training after this call."""
        self.stop_reason = reason

    def progress(self) -> dict[str, Any]:
        """Everything but the arrays, as JSON values."""
        return {
            "step": self.step,
            "epoch": self.epoch,
            "position": self.position,
            "history": self.history,
            "stop_reason": self.stop_reason,
        }

    def resume(self, progress: dict[str, Any]) -> None:
        """The inverse of `progress`. Raises KeyError, TypeError or ValueError."""
        self.step = int(progress["step"])
        self.epoch = int(progress["epoch"])
        self.position = int(progress["position"])
        self.history = [
            (int(step), {str(k): float(v) for k, v in metrics.items()})
            for step, metrics in progress["history"]
        ]
        self.metrics = self.history[-1][1] if self.history else {}
        self.stop_reason = str(progress["stop_reason"])
