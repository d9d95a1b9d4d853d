"""Every error ipujax raises on purpose, with the PJRT status code that it becomes in JAX.

Messages read `[where] needs X; got Y. <what to do>.`: where in the pipeline, what was expected,
what came, and a plain imperative.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class PjrtCode:
    """Status codes of the PJRT C API (absl's numbering), as far as ipujax uses them."""

    CANCELLED = 1
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
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
    """The installed jax or jaxlib is not of a series that this ipujax was tested with."""

    pjrt_code = PjrtCode.FAILED_PRECONDITION


class InvalidProgramError(IpuError):
    """The program handed to the compiler is malformed: not something a user of JAX can write."""

    pjrt_code = PjrtCode.INVALID_ARGUMENT


class InternalError(IpuError):
    """The compiler failed in a way that nobody meant: a bug in ipujax. Names the op at fault."""

    pjrt_code = PjrtCode.INTERNAL


class VerifyError(IpuError):
    """A compiler stage left something that the next one may not receive: a bug in ipujax."""

    pjrt_code = PjrtCode.INTERNAL


class UnsupportedOpError(IpuError):
    """The program uses ops that ipujax cannot lower. Lists all of them at once.

    Args:
        found: one `(op, reason, source)` for each such op; `source` may be empty.
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
            + "\nRewrite these lines with supported ops, or compute them on the CPU: outside of the"
            ' program with arrays put on jax.devices("cpu")[0], inside it with jax.pure_callback.'
        )


class UnsupportedDtypeError(IpuError):
    """The program computes in a dtype that an IPU does not have, such as float64."""

    pjrt_code = PjrtCode.UNIMPLEMENTED


class NestingError(IpuError):
    """Calls, loops and branches of the program nest deeper than can be compiled."""

    pjrt_code = PjrtCode.UNIMPLEMENTED


def too_deep(got: str) -> NestingError:
    """The error of a program that has `got`."""
    return NestingError(
        f"[compile] needs a program whose calls, loops and branches nest less deeply; got {got}. "
        "Replace the recursion that builds it by lax.scan or lax.fori_loop, or jit its parts "
        "separately."
    )


class OutOfMemoryError(IpuError, MemoryError):
    """The program needs more memory on a tile than a tile has (`out_of_memory="error"`)."""

    pjrt_code = PjrtCode.RESOURCE_EXHAUSTED


class PlacementError(IpuError, ValueError):
    """An array was asked into a memory or a layout that an IPU does not offer."""

    pjrt_code = PjrtCode.UNIMPLEMENTED


class CompileCancelledError(IpuError):
    """Python is about to end while a compile that nobody waits for goes on."""

    pjrt_code = PjrtCode.CANCELLED


class CallbackError(IpuError):
    """A host callback of a running program is unknown, or returned what it must not."""

    pjrt_code = PjrtCode.INTERNAL


class ReplicationError(IpuError, ValueError):
    """A replicated program or a collective was asked for what its replicas cannot do."""

    pjrt_code = PjrtCode.INVALID_ARGUMENT


class OracleError(IpuError):
    """An oracle of `ipujax.verify()` refused a program, took too long, or died of it."""

    pjrt_code = PjrtCode.UNIMPLEMENTED


class MismatchError(IpuError, AssertionError):
    """A program's result on the IPU differs from what `ipujax.verify()` compares it with.

    Args:
        message: the whole report.
        op: the first op that differs, such as "stablehlo.add"; empty where no single op does.
        source: its line in the user's code, such as "train.py:31"; empty where it is not known.
        values: what each oracle computed, by its name: "ipu", "cpu", "interpreter".
        max_error: the largest difference to the oracle; NaN where shapes differ.
        reproducer: path of the file that shows the difference; empty where none was written.
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
