"""`Session`: a saved program on devices of its own, without JAX."""

from __future__ import annotations

import atexit
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ipujax import errors
from ipujax._poplar._poplar import embedded
from ipujax.errors import ConfigError, IpuError
from ipujax.runtime import structure
from ipujax.runtime.description import Description, Leaf, checked

#: The kinds of ipujax_status (cpp/embedded/ipujax_runtime.h).
_KINDS: dict[int, type[IpuError]] = {
    1: errors.SessionError,
    2: errors.ExecutableError,
    3: errors.ExecutableError,
    4: errors.SessionTimeoutError,
    5: errors.SessionError,
    6: errors.RecoverableError,
    7: errors.UnrecoverableError,
    8: errors.OutOfMemoryError,
}
#: How long Python's exit waits for threads to leave the extension; closing has woken them.
_EXIT_SECONDS = 10.0

#: Ended when Python exits: a run must not outlive the libraries it uses.
_open: weakref.WeakSet[Session | Batcher] = weakref.WeakSet()
#: An entry for each thread that is in the extension, and whether Python exits. A thread that came
#: back from there after Python has ended would end the process.
_inside: list[None] = []
_exiting = False


@atexit.register
def _close_all() -> None:
    for batcher in [x for x in _open if isinstance(x, Batcher)]:
        batcher.close()
    for session in list(_open):
        session.close()
    global _exiting
    _exiting = True
    end = time.monotonic() + _EXIT_SECONDS
    while _inside and time.monotonic() < end:
        time.sleep(0.001)


class typed:  # noqa: N801 (a context manager; as a generator it takes three times as long)
    """Raises errors of the extension as those of ipujax."""

    __slots__ = ()

    def __enter__(self) -> None:
        _inside.append(None)
        if _exiting:
            _inside.pop()
            raise errors.SessionError(
                "[runtime] needs Python to run; got a call while it exits. End threads before."
            )

    def __exit__(self, kind: Any, error: BaseException | None, where: Any) -> None:
        _inside.pop()
        if isinstance(error, embedded.Error):
            message, status, _ = error.args
            raise _KINDS.get(status, IpuError)(message) from None


def _microseconds(timeout: float | None) -> int:
    if timeout is None:
        return 0
    is_number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if not is_number or not timeout > 0:
        raise ConfigError(
            f"[runtime] needs a time-out in seconds above 0, or None; got {timeout!r}. Pass one."
        )
    return max(1, round(min(timeout, 1e9) * 1e6))


def _arrays(about: Description) -> embedded.ProgramArrays:
    passed = about.passed_leaves
    return embedded.ProgramArrays(
        [(leaf.numpy_dtype, leaf.shape) for leaf in passed],
        [(leaf.numpy_dtype, leaf.shape) for leaf in about.results],
        lambda i, value, samples: checked(passed[i], value, samples),
    )


class Run:
    """A run that `Session.submit` or `Batcher.submit` began."""

    def __init__(self, run: embedded.Run, result: structure.Node):
        self._run, self._result = run, result

    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._run.is_done()

    def result(self, timeout: float | None = None) -> Any:
        """What the program returned.

        Args:
            timeout: in seconds; None waits without end.
        Raises:
            SessionTimeoutError: it goes on; call again to wait longer.
            IpuError: what ended it.
        """
        with typed():
            self._run.wait(_microseconds(timeout))
        return structure.unflatten(self._result, self._run.outputs)


class Session:
    """A saved program on devices of its own. Usable from any thread; runs come one at a time.

    Arrays are whole, also those of which each device has a part.

    Arguments that the file stores are not passed. One that was donated is state: the result that
    takes over its memory is its value in the next run. A run that fails leaves it as it was.

    Args:
        file: that `ipujax.precompile(...).save` wrote.
        timeout: seconds that a run may take, with the wait for the device; None: any time. A run
            that takes longer is cancelled at its next step.
        weights: values of stored parameters, by name, in place of those in the file.
        queue_depth: submitted runs that may wait.
    Raises:
        ExecutableError: the file cannot be read, is damaged, is of another version of ipujax, or
            has a program that calls Python.

    Source: Poplar's `model_runtime` (sessions, time-outs, queues).

    Example:
        >>> x = jax.ShapeDtypeStruct((4,), jnp.float32)
        >>> ipu.precompile(lambda w, x: {"y": w * x}, x, x).save(
        ...     "scale.ipu", weights={"w": np.full(4, 2, np.float32)})
        >>> with ipu.runtime.Session("scale.ipu", timeout=1.0) as session:
        ...     session.run(np.arange(4, dtype=np.float32))["y"].tolist()
        [0.0, 2.0, 4.0, 6.0]
    """

    def __init__(
        self,
        file: str | Path,
        *,
        timeout: float | None = None,
        weights: Mapping[str, Any] | None = None,
        queue_depth: int = 64,
    ):
        if isinstance(queue_depth, bool) or not isinstance(queue_depth, int) or queue_depth < 1:
            raise ConfigError(
                f"[runtime] needs a queue of 1 run or more; got {queue_depth!r}. Pass a number."
            )
        with typed():
            self._session = embedded.Session(str(file), _microseconds(timeout), queue_depth)
        _open.add(self)
        self.description = Description.of(self._session.describe())
        self._arrays = _arrays(self.description)
        if weights:
            self.set_weights(weights)

    def run(self, *args: Any, timeout: float | None = None) -> Any:
        """Runs the program.

        Args:
            args: the arguments that are not stored: pytrees of NumPy arrays, or of what
                `numpy.asarray` takes, of the shapes and dtypes that the program was compiled for.
            timeout: in place of the session's.
        Returns:
            A pytree of NumPy arrays.
        Raises:
            SessionError: an argument is of another type, or the session was closed.
            SessionTimeoutError: it took too long.
            RecoverableError, UnrecoverableError: the device failed.
        """
        values = self.description.passed(args)
        with typed():
            outputs = self._session.run(self._arrays, values, _microseconds(timeout))
        return structure.unflatten(self.description.result_node, outputs)

    __call__ = run

    def submit(self, *args: Any, timeout: float | None = None) -> Run:
        """Begins a run, after those submitted before, and returns at once.

        Waits only where `queue_depth` runs wait already. Do not write to the arguments before the
        run is done.
        """
        values = self.description.passed(args)
        with typed():
            run = self._session.submit(self._arrays, values, _microseconds(timeout))
        return Run(run, self.description.result_node)

    def batcher(self, delay: float = 1e-3) -> Batcher:
        """Runs requests of few samples together: see `Batcher`.

        Args:
            delay: seconds that the first request of a batch waits for others.
        """
        return Batcher(self, delay)

    @property
    def weights(self) -> dict[str, Any]:
        """Copies of the stored parameters as they are now, by name."""
        about = self.description
        return {
            name: structure.unflatten(node, {n: self._read(about.arguments[n]) for n in numbers})
            for name, node, numbers in about.stored_parameters()
        }

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Puts other values in place of stored parameters, from the next run on, all at once.

        Args:
            weights: pytrees by parameter's name; parameters that are not named stay as they are.
        Raises:
            SessionError: a name, shape or dtype is another one; nothing changes then.
        """
        values = [
            (leaf.name, checked(leaf, x)) for leaf, x in self.description.stored_leaves(weights)
        ]
        with typed():
            self._session.set_stored(values)

    def reset_seed(self, seed: int, identical_replicas: bool = False) -> None:
        """Sets the seed of stochastic rounding, for runs that begin from now on; it is 0 at first.

        Args:
            seed: 0 to 2**64 - 1. The n-th run after it rounds as the n-th after the same seed does.
            identical_replicas: replicas round with the same random bits; else each has its own.
        Raises:
            SessionError: another seed.
        """
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
            raise errors.SessionError(
                f"[runtime.reset_seed] needs a seed from 0 to 2**64 - 1; got {seed!r}. "
                "Pass an integer."
            )
        with typed():
            self._session.reset_seed(seed, identical_replicas)

    def close(self) -> None:
        """Cancels the run in progress, ends those that wait with an error, and waits for both."""
        with typed():
            self._session.close()
        _open.discard(self)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, leaf: Leaf) -> np.ndarray:
        array = np.zeros(leaf.shape, leaf.numpy_dtype)
        if leaf.slot >= 0:  # the file has elements of what the program uses
            with typed():
                self._session.read_stored(leaf.name, array)
        return array


class Batcher:
    """Requests of few samples from many threads, run together: `Session.batcher` makes one.

    All arguments and results have samples along their first axis, as many as the batch the program
    was compiled for. A batch runs when it is full, or `delay` after its first request; places
    without a request are zeros.

    Raises:
        SessionError: an argument or a result has no such axis.

    Example:
        >>> x = jax.ShapeDtypeStruct((8, 3), jnp.float32)
        >>> ipu.precompile(lambda x: x.sum(1), x).save("sums.ipu")
        >>> with ipu.runtime.Session("sums.ipu") as session:
        ...     session.batcher().run(np.ones((2, 3), np.float32)).tolist()
        [3.0, 3.0]
    """

    def __init__(self, session: Session, delay: float = 1e-3):
        self._about, self._arrays = session.description, session._arrays
        with typed():
            self._batcher = embedded.Batcher(session._session, _microseconds(delay))
        _open.add(self)

    @property
    def batch_size(self) -> int:
        return int(self._batcher.batch_size)

    def run(self, *args: Any, timeout: float | None = None) -> Any:
        """Runs from 1 to `batch_size` samples.

        Args:
            args: as `Session.run` takes them, with so many samples.
            timeout: seconds in which the batch must begin.
        Returns:
            The results for these samples.
        """
        values = self._about.passed(args)
        with typed():
            outputs = self._batcher.run(self._arrays, values, _microseconds(timeout))
        return structure.unflatten(self._about.result_node, outputs)

    __call__ = run

    def submit(self, *args: Any, timeout: float | None = None) -> Run:
        """Begins a request and returns at once, so that one thread can make many.

        Waits only where as many batches of requests wait as the session queues runs. Do not write
        to the arguments before the run is done.

        Args:
            args: as `run` takes them.
            timeout: seconds in which the batch must begin; a request that is late ends with
                `SessionTimeoutError`.
        """
        values = self._about.passed(args)
        with typed():
            run = self._batcher.submit(self._arrays, values, _microseconds(timeout))
        return Run(run, self._about.result_node)

    def close(self) -> None:
        """Ends requests that wait with an error."""
        with typed():
            self._batcher.close()
        _open.discard(self)
