"""The errors that ipujax raises, with the PJRT status codes that they become in JAX.

Messages read `[where] needs X; got Y. <what to do>.`: the place, what it expected, what it got, and
a plain imperative.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ipujax.types import ResetAction


class PjrtCode:
    """The status codes of the PJRT C API (absl's numbering) that ipujax uses."""

    CANCELLED = 1
    INVALID_ARGUMENT = 3
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


def printable(text: str) -> str:
    """Text of a file for a terminal: control characters, which could steer it, are escaped."""
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)


class IpuError(Exception):
    """Base of all errors of ipujax; `ipujax.Error` is another name for it.

    Attributes:
        message: the text without its location.
        type: what kind of error it is, such as "recoverable_runtime_error" or "ConfigError".
        location: the place that raised it, such as "ipu device" or "compile"; empty if unknown.
        pjrt_code: the status that JAX users see.

    Example:
        >>> error = ipu.ConfigError("[configure] needs a number; got 'a'. Use a number.")
        >>> error.location, error.type, error.message
        ('configure', 'ConfigError', "needs a number; got 'a'. Use a number.")
    """

    pjrt_code: int = PjrtCode.INTERNAL

    def __str__(self) -> str:
        return printable(super().__str__())

    @property
    def message(self) -> str:
        return _LOCATION.sub("", str(self), count=1)

    @property
    def location(self) -> str:
        found = _LOCATION.match(str(self))
        return found[1] if found else ""

    @property
    def type(self) -> str:
        found = _DEVICE_ERROR.search(str(self))
        return found[1] if found else type(self).__name__

    @staticmethod
    def from_exception(error: BaseException) -> IpuError:
        """Returns the ipujax error that an exception represents.

        JAX raises its own `jax.errors.JaxRuntimeError` with the text of the error that ended a
        compilation or a run; `ipujax.typed_errors` uses this to raise the error itself.

        Args:
            error: any exception.
        Returns:
            The error that the compiler raised, if it did so in this process; a RecoverableError or
            an UnrecoverableError if a device failed; otherwise an IpuError with the text.

        Example:
            >>> text = "UNAVAILABLE: [ipu device] got an error (recoverable_runtime_error, " + (
            ...     "recovery_action=ipu_reset).")
            >>> ipu.Error.from_exception(RuntimeError(text)).recovery_action
            'ipu_reset'
        """
        if isinstance(error, IpuError):
            return error
        text = str(error)
        for message, known in reversed(_raised.items()):
            if message in text:
                return known
        begin = text.find("[")
        text = text if begin < 0 else text[begin:]
        found = _DEVICE_ERROR.search(text)
        if found is None:
            return IpuError(text)
        return RecoverableError(text) if found[2] else UnrecoverableError(text)


Error = IpuError

#: "[where] " at the beginning of a text.
_LOCATION = re.compile(r"\[([^\]]*)\] ")
#: What cpp/runtime/DeviceError.cpp writes.
_DEVICE_ERROR = re.compile(
    r"\((recoverable_runtime_error|unrecoverable_runtime_error)(?:, recovery_action=(\w+))?\)"
)
#: Errors that JAX received only as text, by that text.
_raised: OrderedDict[str, IpuError] = OrderedDict()


def remember(error: IpuError) -> None:
    """Remembers an error of the compiler for `from_exception`; only the latest ones are kept."""
    _raised[str(error)] = error
    while len(_raised) > 32:
        _raised.popitem(last=False)


class RecoverableError(IpuError):
    """A device failed and works again after a reset; the program is not at fault.

    Attributes:
        recovery_action: "ipu_reset" (reset the IPU and load its memory again), "partition_reset"
            (reset the partition with the links between its IPUs) or "full_reset" (switch the
            machine off and on).

    Source: `poptorch.RecoverableError`; `poplar::recoverable_runtime_error`.
    """

    pjrt_code = PjrtCode.UNAVAILABLE

    @property
    def recovery_action(self) -> ResetAction:
        found = _DEVICE_ERROR.search(str(self))
        return cast(ResetAction, (found[2] if found else None) or "ipu_reset")


class UnrecoverableError(IpuError):
    """A device failed, and will again: the machine needs repair.

    Source: `poptorch.UnrecoverableError`; `poplar::unrecoverable_runtime_error`.
    """


class ExecutableError(IpuError, ValueError):
    """A file is not a saved program, is damaged, or does not fit where it is loaded."""

    pjrt_code = PjrtCode.FAILED_PRECONDITION


class SessionError(IpuError):
    """A session of `ipujax.runtime` was used wrongly, or after it was closed."""


class SessionTimeoutError(SessionError, TimeoutError):
    """A run of `ipujax.runtime` timed out."""


class ConfigError(IpuError, ValueError):
    """An option has an unknown name or a value that is not allowed."""

    pjrt_code = PjrtCode.INVALID_ARGUMENT


class AttachError(IpuError):
    """The IPUs that a process needs are in use by another process, or there are too few."""

    pjrt_code = PjrtCode.RESOURCE_EXHAUSTED


class VersionError(IpuError):
    """The installed jax or jaxlib is of a series that this ipujax was not tested with."""

    pjrt_code = PjrtCode.FAILED_PRECONDITION


class InvalidProgramError(IpuError):
    """The compiler was given a malformed program, which users of JAX cannot write."""

    pjrt_code = PjrtCode.INVALID_ARGUMENT


class InternalError(IpuError):
    """The compiler failed unexpectedly: a bug in ipujax. Names the op at fault."""


class VerifyError(IpuError):
    """A compiler stage broke an invariant of the next one: a bug in ipujax."""


class UnsupportedOpError(IpuError):
    """The program uses ops that ipujax cannot lower; lists all of them.

    Args:
        found: `(op, reason, source)` for each such op; `source` may be empty.
    """

    pjrt_code = PjrtCode.UNIMPLEMENTED

    def __init__(self, found: Iterable[tuple[str, str, str]]):
        self.found = tuple(found)
        lines = [
            f"  {op}: {reason}" + (f" (at {source})" if source else "")
            for op, reason, source in self.found
        ]
        super().__init__(
            f"[compile] needs ops that have a rule; got {len(self.found)} that have none:\n"
            + "\n".join(lines)
            + "\nRewrite these lines with supported ops, or compute them on the CPU: outside the"
            ' program with arrays on jax.devices("cpu")[0], inside it with jax.pure_callback.'
        )


class ConvertError(IpuError, ValueError):
    """A program cannot be converted as requested, or its file or a setting is invalid."""

    pjrt_code = PjrtCode.INVALID_ARGUMENT


class PipelineError(IpuError, ValueError):
    """A pipeline cannot be made from these stages and arguments."""

    pjrt_code = PjrtCode.INVALID_ARGUMENT


class UnsupportedDtypeError(IpuError):
    """The program computes in a dtype that IPUs do not have, such as float64."""

    pjrt_code = PjrtCode.UNIMPLEMENTED


class NestingError(IpuError):
    """Calls, loops and branches of the program are nested too deeply."""

    pjrt_code = PjrtCode.UNIMPLEMENTED


class RankError(IpuError, ValueError):
    """An array has more dimensions than IPUs support."""

    pjrt_code = PjrtCode.UNIMPLEMENTED


def too_deep(got: str) -> NestingError:
    """The error for a program that is nested too deeply, as `got` describes."""
    return NestingError(
        f"[compile] needs less deeply nested calls, loops and branches; got {got}. "
        "Replace the recursion that builds them with lax.scan or lax.fori_loop, or jit the parts "
        "separately."
    )


def missing_extension(error: ImportError) -> IpuError:
    """The error for a package whose built extension cannot be imported."""
    return IpuError(
        f"[plugin] needs its built extension; got: {error}. In the source tree, run make build; "
        "to use an installed ipujax instead, start Python in another folder. If ipujax is "
        "installed without its extension, install its wheel again."
    )


class OutOfMemoryError(IpuError, MemoryError):
    """The program needs more memory on a tile than a tile has (`out_of_memory="error"`)."""

    pjrt_code = PjrtCode.RESOURCE_EXHAUSTED


class ReportError(IpuError):
    """A report cannot be saved, read or drawn."""


class FitError(IpuError, AssertionError):
    """A program exceeds a limit of `ipujax.assert_fits`.

    Args:
        message: which limits, and what the program costs.
        cost: the `ipujax.Cost` of the program; None if unknown.
    """

    def __init__(self, message: str, cost: Any = None):
        super().__init__(message)
        self.cost = cost


class PlacementError(IpuError, ValueError):
    """An array was requested in a memory or a layout that IPUs do not offer."""

    pjrt_code = PjrtCode.UNIMPLEMENTED


class CompileCancelledError(IpuError):
    """Python is exiting while a compilation is still running."""

    pjrt_code = PjrtCode.CANCELLED


class CallbackError(IpuError):
    """A host callback is unknown, or returned something other than it declared."""


class FeedError(IpuError, RuntimeError):
    """A feed cannot be made from this data, or has no data when some is requested."""

    pjrt_code = PjrtCode.FAILED_PRECONDITION


class ArrayFileError(IpuError, ValueError):
    """A checkpoint or a file of inputs is damaged, or does not match what it is loaded into."""


class ReplicationError(IpuError, ValueError):
    """Replicas, groups of replicas or mapped axes do not match."""

    pjrt_code = PjrtCode.INVALID_ARGUMENT


class OracleError(IpuError):
    """An oracle of `ipujax.verify()` refused a program, took too long, or crashed."""

    pjrt_code = PjrtCode.UNIMPLEMENTED


class MismatchError(IpuError, AssertionError):
    """A program's result on the IPU differs from those of the oracles of `ipujax.verify()`.

    Args:
        message: the whole report.
        op: the first op that differs, such as "stablehlo.add"; empty if no single op does.
        source: its line in the user's code, such as "train.py:31"; empty if unknown.
        values: the results by name: "ipu", "cpu", "interpreter".
        max_error: the largest difference from the oracle; NaN if shapes differ.
        reproducer: path of a file that reproduces the mismatch; empty if none was written.
    """

    def __init__(
        self,
        message: str,
        op: str = "",
        source: str = "",
        values: Mapping[str, Any] | None = None,
        max_error: float = float("nan"),
        reproducer: str = "",
    ):
        super().__init__(message)
        self.op = op
        self.source = source
        self.values = dict(values or {})
        self.max_error = max_error
        self.reproducer = reproducer


def check_choice(
    where: str, name: str, value: object, choices: Sequence[str], error: type[IpuError]
) -> None:
    """Refuses a value that is not one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise error(
            f"[{where}] needs {name} to be one of {', '.join(choices)}; got {value!r}. "
            "Use one of these."
        )
