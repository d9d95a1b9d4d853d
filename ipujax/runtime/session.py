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
#: Seconds that Python's exit waits for threads to leave the extension; closing wakes them.
_EXIT_SECONDS = 10.0

#: Closed when Python exits: a run must not outlive the libraries that it uses.
_open: weakref.WeakSet[Session | Batcher] = weakref.WeakSet()
#: An entry for each thread in the extension, and whether Python is exiting. A thread that returned
#: from there after Python's end would end the process.
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
    """Raises the extension's errors as those of ipujax."""

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
    """A run that `Session.submit` or `Batcher.submit` started."""

    def __init__(self, run: embedded.Run, result: structure.Node):
        self._run, self._result = run, result

    def done(self) -> bool:
        """Whether it has ended, successfully or not."""
        return self._run.is_done()

    def result(self, timeout: float | None = None) -> Any:
        """The program's results.

        Args:
            timeout: in seconds; None: no limit.
        Raises:
            SessionTimeoutError: it is still running; call again to wait longer.
            IpuError: the error that ended it.
        """
        with typed():
            self._run.wait(_microseconds(timeout))
        return structure.unflatten(self._result, self._run.outputs)


class Session:
    """A saved program on devices of its own. Usable from any thread; runs come one at a time.

    Arrays are whole, even if each device has only a part of them.

    Arguments that the file stores are not passed. A donated one is state: the result that reuses
    its memory is its value in the next run. A run that fails leaves it as it was.

    Args:
        file: file that `ipujax.precompile(...).save` wrote.
        timeout: seconds that a run may take, including the wait for the device; None: no limit. A
            run that takes longer is cancelled at its next step.
        weights: values of stored parameters, by name, instead of those in the file.
        queue_depth: number of submitted runs that may wait.
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
            args: the arguments that are not stored: pytrees of NumPy arrays, or of anything that
                `numpy.asarray` takes, of the shapes and dtypes that the program was compiled for.
            timeout: instead of the session's.
        Returns:
            A pytree of NumPy arrays.
        Raises:
            SessionError: an argument has a wrong type, or the session was closed.
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

        Waits only if `queue_depth` runs are waiting already. Do not write to the arguments before
        the run is done.
        """
        values = self.description.passed(args)
        with typed():
            run = self._session.submit(self._arrays, values, _microseconds(timeout))
        return Run(run, self.description.result_node)

    def batcher(self, delay: float = 1e-3) -> Batcher:
        """Makes a `Batcher`, which runs requests of few samples together.

        Args:
            delay: seconds that the first request of a batch waits for others.
        """
        return Batcher(self, delay)

    @property
    def weights(self) -> dict[str, Any]:
        """Copies of the current stored parameters, by name."""
        about = self.description
        return {
            name: structure.unflatten(node, {n: self._read(about.arguments[n]) for n in numbers})
            for name, node, numbers in about.stored_parameters()
        }

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Replaces the values of stored parameters, from the next run on, all at once.

        Args:
            weights: pytrees by parameter's name; parameters that are not named stay as they are.
        Raises:
            SessionError: a name, shape or dtype does not match; then nothing changes.
        """
        values = [
            (leaf.name, checked(leaf, x)) for leaf, x in self.description.stored_leaves(weights)
        ]
        with typed():
            self._session.set_stored(values)

    def reset_seed(self, seed: int, identical_replicas: bool = False) -> None:
        """Sets the seed of stochastic rounding, for runs that begin from now on; it is 0 at first.

        Args:
            seed: 0 to 2**64 - 1. The n-th run after setting a seed always rounds in the same way.
            identical_replicas: replicas round with the same random bits; otherwise each has its
                own.
        Raises:
            SessionError: an invalid seed.
        """
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
            raise errors.SessionError(
                f"[runtime.reset_seed] needs a seed from 0 to 2**64 - 1; got {seed!r}. "
                "Pass an integer."
            )
        with typed():
            self._session.reset_seed(seed, identical_replicas)

    def close(self) -> None:
        """Cancels the run in progress, ends waiting runs with an error, and waits for both."""
        with typed():
            self._session.close()
        _open.discard(self)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, leaf: Leaf) -> np.ndarray:
        array = np.zeros(leaf.shape, leaf.numpy_dtype)
        if leaf.slot >= 0:  # the file has only elements that the program uses
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
            args: as for `Session.run`, with this many samples.
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

        Waits only if as many batches of requests are waiting as the session queues runs. Do not
        write to the arguments before the run is done.

        Args:
            args: as for `run`.
            timeout: seconds in which the batch must begin; a request that is late ends with
                `SessionTimeoutError`.
        """
        values = self._about.passed(args)
        with typed():
            run = self._batcher.submit(self._arrays, values, _microseconds(timeout))
        return Run(run, self._about.result_node)

    def close(self) -> None:
        """Ends waiting requests with an error."""
        with typed():
            self._batcher.close()
        _open.discard(self)
