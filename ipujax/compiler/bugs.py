"""Reports compiler bugs to users with their source line, not our traceback."""

from __future__ import annotations

from types import TracebackType

from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar as ipu
from ipujax.errors import ConfigError, InternalError
from ipujax.host.logs import logger_of

logger = logger_of("compiler")

#: Text that only errors raised by accident contain.
TEXT = "needs a compiler without bugs"

#: Types that the libraries below raise on purpose; Python's own errors have other texts.
_DELIBERATE = (ValueError, TypeError, NotImplementedError, MemoryError)


def is_bug(error: Exception) -> bool:
    """Whether the error was raised by accident."""
    return not (isinstance(error, _DELIBERATE) and str(error).startswith("["))


def is_refused_option(error: Exception) -> bool:
    """Whether Poplar refused an option that the user set for an op."""
    return isinstance(error, ipu.poplar.invalid_option)


def option_error(error: Exception) -> ConfigError:
    """The error as a ConfigError that names the op and its source line."""
    op = _op_at_fault(error.__traceback__)
    if op is None:
        return ConfigError(str(error))
    at = f" at {op.source.line}" if op.source.line else ""
    return ConfigError(f"{error} It is for {op.name}{at}.")


def report(error: Exception, stage: str) -> InternalError:
    """Logs the traceback; returns the error to raise in place of `error`."""
    op = _op_at_fault(error.__traceback__)
    where = ""
    if op is not None:
        where = f" at {op.name}" + (f" ({op.source.line})" if op.source.line else "")
    logger.debug("[compile] stage %s failed%s", stage, where, exc_info=error)
    first = (str(error).splitlines() or [""])[0]
    return InternalError(
        f"[compile] {TEXT}; got {type(error).__name__}: {first} in stage "
        f"{stage}{where}. Report it with the program, which IPUJAX_DUMP_DIR=<folder> writes, and "
        'the traceback, which logging.getLogger("ipujax") has at level DEBUG.'
    )


def _op_at_fault(traceback: TracebackType | None) -> Op | None:
    """The op in the innermost frame that has one; preferably one with a source line."""
    found: Op | None = None
    while traceback is not None:
        ops = [v for v in traceback.tb_frame.f_locals.values() if isinstance(v, Op)]
        for op in ops:
            if op.source.line or found is None or not found.source.line:
                found = op
        traceback = traceback.tb_next
    return found
