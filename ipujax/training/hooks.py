"""Hooks, which run between the device calls of a training."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from ipujax.errors import ConfigError, check_choice
from ipujax.types import BestMode

if TYPE_CHECKING:
    from ipujax.training.run import Run


class Hook:
    """Work that a training does besides its steps. Override the methods that you need.

    Example:
        >>> class Halve(ipu.training.Hook):
        ...     def after_call(self, run):
        ...         if run.metrics["loss"] < 0.5:
        ...             run.stop("good enough")
        >>> loop = ipu.training.Loop(
        ...     lambda w, b: (w / 2, w), steps_per_call=1, hooks=[Halve()])
        >>> w = loop.train(4.0, [np.float32(0)] * 10)
        >>> print(loop.last_run.step, loop.last_run.stop_reason)
        5 good enough
    """

    runs_last = False  #: whether it runs after all other hooks

    def begin(self, run: Run) -> None:
        """Runs before a training."""

    def restore(self, run: Run) -> None:
        """Runs before the first call, after `begin` of all hooks."""

    def after_call(self, run: Run) -> None:
        """Runs after each device call, with `run.step`, `run.metrics`, `run.state`."""

    def end(self, run: Run) -> None:
        """Runs after the training, even if it failed: see `run.error`."""

    def memory(self) -> Any:
        """What a checkpoint saves of this hook, as JSON values."""
        return None

    def remember(self, memory: Any) -> None:
        """The inverse of `memory`."""


def _due(run: Run, every: int) -> bool:
    """Whether a multiple of `every` was reached in the last call."""
    return run.call_steps > 0 and run.step // every > (run.step - run.call_steps) // every


class Log(Hook):
    """Writes one line after a call: the step, the metrics and the speed.

    Args:
        every: steps between lines.
        write: function of a line.

    Example:
        >>> hook = ipu.training.Log(write=lambda line: print(line.split(",")[0]))
        >>> w = ipu.training.Loop(lambda w, b: (w, b), hooks=[hook]).train(0.0, [np.float32(3)] * 4)
        step 4: loss 3
    """

    def __init__(self, every: int = 1, write: Callable[[str], Any] = print):
        self._every, self._write = every, write

    def after_call(self, run: Run) -> None:
        if _due(run, self._every):
            values = " ".join(f"{name} {value:.6g}" for name, value in run.metrics.items())
            speed = run.call_steps / run.call_seconds
            self._write(f"step {run.step}: {values}, {speed:.4g} steps/s")


class Evaluate(Hook):
    """Runs `Loop.evaluate` every `every` steps; its metrics are added to those of the call.

    Args:
        data: as for `Loop.train`.
        every: steps between evaluations; runs at the end of the first call at or after a multiple.
        steps: steps of an evaluation; None: all data.
        prefix: prefix of the names of its metrics.

    Example:
        >>> hook = ipu.training.Evaluate([np.float32(1)] * 3, every=2)
        >>> loop = ipu.training.Loop(
        ...     lambda w, b: (w + b, w), evaluate=lambda w, b: w - b, steps_per_call=2,
        ...     hooks=[hook])
        >>> w = loop.train(0.0, [np.float32(1)] * 4)
        >>> print([metrics["eval_loss"] for _, metrics in loop.last_run.history])
        [1.0, 3.0]
    """

    def __init__(self, data: Any, every: int, steps: int | None = None, prefix: str = "eval_"):
        self._data, self._every, self._steps, self._prefix = data, every, steps, prefix

    def after_call(self, run: Run) -> None:
        if not _due(run, self._every):
            return
        found = run.loop.evaluate(run.state, self._data, steps=self._steps)
        run.metrics.update({self._prefix + name: value for name, value in found.items()})


class EarlyStop(Hook):
    """Ends the training when a metric has stopped improving.

    Args:
        metric: its name; calls without it do not count.
        patience: number of calls that may pass without an improvement.
        least: the least improvement that counts.
        mode: "min": smaller is better; "max": larger is.

    Example:
        >>> stop = ipu.training.EarlyStop("loss", patience=2)
        >>> loop = ipu.training.Loop(lambda w, b: (w, b), steps_per_call=1, hooks=[stop])
        >>> w = loop.train(0.0, np.float32([3, 2, 4, 5, 1]))
        >>> print(loop.last_run.stop_reason)
        loss was not better than 2 for 2 calls
    """

    def __init__(self, metric: str, patience: int, least: float = 0.0, mode: BestMode = "min"):
        check_choice("early stop", "mode", mode, ("min", "max"), ConfigError)
        self._metric, self._patience, self._least = metric, patience, least
        self._sign = 1 if mode == "min" else -1
        self._best, self._waited = math.inf, 0

    def begin(self, run: Run) -> None:
        self._best, self._waited = math.inf, 0

    def after_call(self, run: Run) -> None:
        if run.call_steps == 0 or self._metric not in run.metrics:
            return
        value = self._sign * run.metrics[self._metric]
        if value < self._best - self._least:
            self._best, self._waited = value, 0
            return
        self._waited += 1
        if self._waited >= self._patience:
            best = self._sign * self._best
            run.stop(f"{self._metric} was not better than {best:g} for {self._patience} calls")

    def memory(self) -> Any:
        return [self._best if self._best < math.inf else None, self._waited]

    def remember(self, memory: Any) -> None:
        best, waited = memory
        self._best, self._waited = math.inf if best is None else float(best), int(waited)


class Profile(Hook):
    """Records one call with `jax.profiler`: what ran on the devices, and on the host.

    Args:
        folder: folder of the trace, which TensorBoard and xprof read.
        call: number of the call; 0 is the first, which includes compilation.

    Example:
        >>> hook = ipu.training.Profile("trace")
        >>> w = ipu.training.Loop(
        ...     lambda w, b: (w, w), steps_per_call=1, hooks=[hook]).train(0.0, np.zeros(3))
        >>> import pathlib
        >>> print(len(list(pathlib.Path("trace").rglob("*.xplane.pb"))))
        1
    """

    def __init__(self, folder: str | Path, call: int = 1):
        self._folder, self._call = str(folder), call
        self._number, self._is_on = 0, False

    def begin(self, run: Run) -> None:
        self._number = 0
        self._start()

    def after_call(self, run: Run) -> None:
        self._finish()
        self._number += 1
        self._start()

    def end(self, run: Run) -> None:
        self._finish()

    def _start(self) -> None:
        if self._number == self._call:
            jax.profiler.start_trace(self._folder)
            self._is_on = True

    def _finish(self) -> None:
        if self._is_on:
            jax.profiler.stop_trace()
            self._is_on = False


class Summaries(Hook):
    """Writes metrics for TensorBoard.

    Args:
        writer: a folder, for which tensorboardX is needed (the extra `ipujax[training]`), and in
            which each training writes a file; or any object with `add_scalar(name, value, step)`,
            such as the `SummaryWriter` of torch.
        every: steps between values.

    Example:
        >>> class Printer:
        ...     def add_scalar(self, name, value, step):
        ...         print(name, value, step)
        >>> hook = ipu.training.Summaries(Printer())
        >>> w = ipu.training.Loop(lambda w, b: (w, b), hooks=[hook]).train(0.0, [np.float32(3)] * 4)
        loss 3.0 4
    """

    def __init__(self, writer: Any, every: int = 1):
        self._every = every
        self._folder = writer if isinstance(writer, (str, Path)) else None
        self._make = _tensorboard() if self._folder is not None else None
        self._writer = writer

    def begin(self, run: Run) -> None:
        if self._make is not None:
            # tensorboardX's own names differ only by the second.
            self._writer = self._make(str(self._folder), filename_suffix=f".{time.time_ns()}")

    def after_call(self, run: Run) -> None:
        if _due(run, self._every):
            for name, value in run.metrics.items():
                self._writer.add_scalar(name, value, run.step)

    def end(self, run: Run) -> None:
        # tensorboardX writes in a thread, for which its flush does not wait.
        finish = getattr(self._writer, "flush" if self._make is None else "close", None)
        if finish is not None:
            finish()


def _tensorboard() -> Callable[..., Any]:
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise ConfigError(
            f"[summaries] needs tensorboardX to write to a folder; got {error}. Install "
            "ipujax[training], or pass an object with add_scalar."
        ) from error
    return SummaryWriter


class ProgressBar(Hook):
    """Shows a progress bar of steps, with the metrics, on standard error.

    Args:
        bar: makes the bar: a function like `tqdm.tqdm`, which is the default (the extra
            `ipujax[training]`), called with `total`, `initial` and `unit`.

    Example:
        >>> class Bar:
        ...     def __init__(self, total, initial, unit): self.total = total
        ...     def update(self, n): print(f"{n} of {self.total}")
        ...     def set_postfix(self, metrics): print(metrics)
        ...     def close(self): pass
        >>> hook = ipu.training.ProgressBar(Bar)
        >>> w = ipu.training.Loop(
        ...     lambda w, b: (w, b), hooks=[hook]).train(0.0, [np.float32(3)] * 4, steps=4)
        {'loss': 3.0}
        4 of 4
    """

    def __init__(self, bar: Callable[..., Any] | None = None):
        self._make = _tqdm() if bar is None else bar
        self._bar: Any = None

    def after_call(self, run: Run) -> None:
        if self._bar is None:
            before = run.step - run.call_steps
            self._bar = self._make(total=run.steps, initial=before, unit="step")
        shown: Mapping[str, float] = run.metrics
        self._bar.set_postfix(shown)
        self._bar.update(run.call_steps)

    def end(self, run: Run) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _tqdm() -> Callable[..., Any]:
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ConfigError(
            f"[progress bar] needs tqdm; got {error}. Install ipujax[training], or pass a bar."
        ) from error
    return tqdm
