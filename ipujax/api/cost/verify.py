"""`with ipujax.verify():` compares every program that runs inside with other backends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import jax

from ipujax import jax_compat
from ipujax.errors import ConfigError
from ipujax.types import OracleName
from ipujax.verification.oracles import ORACLES
from ipujax.verification.verifier import VerifiedProgram, Verifier

#: Part of JAX's cache keys, so that functions called before are dispatched again inside.
_inside = jax.make_user_context(default_value=False)
_local = threading.local()


@dataclass
class VerifyReport:
    """What `verify` checked: one entry for each call, in order."""

    programs: list[VerifiedProgram] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(map(str, self.programs)) or "no program ran"


@contextmanager
def verify(
    *,
    oracles: Sequence[OracleName] = ORACLES,
    rtol: Mapping[str, float] | None = None,
    reproducer_dir: str | None = ".",
    timeout: float = 60.0,
) -> Iterator[VerifyReport]:
    """Checks every program that this thread runs on the IPU inside the `with` block.

    Each call of a jitted function, and each op outside jit, runs on the IPU, on JAX's CPU backend
    and on StableHLO's reference interpreter, the last two in child processes. If the results
    differ, the first op at fault is located, also inside loops and branches, by running ops on all
    sides with equal inputs.

    Args:
        oracles: what to compare with: "cpu", "interpreter". One that agrees is enough; if none
            does, the report shows the first one named here.
        rtol: relative tolerance by dtype, such as `{"float16": 0.02}`; the defaults are
            `ipujax.verification.compare.TOLERANCE`. It applies to each element and to the largest
            element of the array. Integers must be equal.
        reproducer_dir: folder for a file that reproduces a mismatch; None writes none.
        timeout: seconds that a program may take on an oracle.
    Yields:
        A `VerifyReport` that grows with each call.
    Raises:
        MismatchError: at the call whose results differ; names the op, its line in your source,
            the values on every side, the largest error, and the reproducer.

    Example:
        >>> x = jnp.ones(3)
        >>> with ipu.verify(oracles=("cpu",)) as report:
        ...     y = jax.jit(jnp.tanh)(x)
        >>> report.programs[0].name, report.programs[0].max_error["cpu"] < 1e-6
        ('tanh', True)
    """
    unknown = sorted(set(oracles) - set(ORACLES))
    if unknown or not oracles:
        raise ConfigError(
            f"[verify] needs oracles from {', '.join(ORACLES)}; got "
            f"{', '.join(unknown) or 'none'}. Use one of these, or omit the argument."
        )
    jax_compat.watch_calls(_watcher)
    report = VerifyReport()
    verifier = Verifier(oracles, rtol or {}, reproducer_dir, timeout)

    def check(call: jax_compat.WatchedCall) -> None:
        # Programs that the check itself runs are not checked.
        before, _local.check = _local.check, None
        try:
            report.programs.append(verifier.check(call))
        finally:
            _local.check = before

    outer = getattr(_local, "check", None)
    _local.check = check
    try:
        with _inside(True):
            yield report
    finally:
        _local.check = outer
        verifier.close()


def _watcher() -> Callable[[jax_compat.WatchedCall], None] | None:
    return getattr(_local, "check", None)
