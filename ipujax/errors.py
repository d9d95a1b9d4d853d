"""The errors that ipujax raises, with the PJRT status codes that they become in JAX.

Messages read `[where] needs X; got Y. <what to do>.`: the place, what it expected, what it got, and
a plain imperative.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


class PjrtCode:
    """The status codes of the PJRT C API (absl's numbering) that ipujax uses."""

    CANCELLED = 1
    INVALID_ARGUMENT = 3
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    UNIMPLEMENTED = 12
    INTERNAL = 13


class IpuError(Exception):
    """Base of all errors of ipujax. `pjrt_code` is the status that JAX users see."""

    pjrt_code: int = PjrtCode.INTERNAL


class ConfigError(IpuError, ValueError):
    """An option has an unknown name or a value that is not allowed."""

    pjrt_code = PjrtCode.INVALID_ARGUMENT


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


class PipelineError(IpuError, ValueError):
    """A pipeline cannot be made of these stages and arguments."""

    pjrt_code = PjrtCode.INVALID_ARGUMENT


class UnsupportedDtypeError(IpuError):
    """The program computes in a dtype that IPUs do not have, such as float64."""

    pjrt_code = PjrtCode.UNIMPLEMENTED


class NestingError(IpuError):
    """Calls, loops and branches of the program are nested too deeply."""

    pjrt_code = PjrtCode.UNIMPLEMENTED


def too_deep(got: str) -> NestingError:
    """The error for a program that has `got`."""
    return NestingError(
        f"[compile] needs less deeply nested calls, loops and branches; got {got}. "
        "Replace the recursion that builds them with lax.scan or lax.fori_loop, or jit the parts "
        "separately."
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
        cost: the `ipujax.Cost` of the program; None where unknown.
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
    """A host callback is unknown, or returned something else than it promised."""


class FeedError(IpuError, RuntimeError):
    """A feed cannot be made of this data, or has none where it is asked for some."""

    pjrt_code = PjrtCode.FAILED_PRECONDITION


class ArrayFileError(IpuError, ValueError):
    """A checkpoint or a file of inputs is damaged, or does not fit what it is loaded into."""


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
        op: the first op that differs, such as "stablehlo.add"; empty where no single op does.
        source: its line in the user's code, such as "train.py:31"; empty where unknown.
        values: the results by name: "ipu", "cpu", "interpreter".
        max_error: the largest difference from the oracle; NaN where shapes differ.
        reproducer: path of a file that reproduces the mismatch; empty where none was written.
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
    if value not in choices:
        raise error(
            f"[{where}] needs {name} to be one of {', '.join(choices)}; got {value!r}. "
            "Use one of these."
        )
