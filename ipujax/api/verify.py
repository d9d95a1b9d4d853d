"""`with ipujax.verify():` checks every jitted function that runs inside against other backends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import jax

from ipujax import jax_compat
from ipujax.errors import ConfigError
from ipujax.verification.oracles import ORACLES
from ipujax.verification.verifier import VerifiedProgram, Verifier

#: Part of JAX's cache keys, so that functions that were called before are dispatched anew inside.
_inside = jax.make_user_context(default_value=False)
_local = threading.local()


@dataclass
class VerifyReport:
    """What `verify` checked: one entry for each call, in order. Prints as a list."""

    programs: list[VerifiedProgram] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(map(str, self.programs)) or "no program ran"


@contextmanager
def verify(
    *,
    oracles: Sequence[str] = ORACLES,
    rtol: Mapping[str, float] | None = None,
    reproducer_dir: str | None = ".",
    timeout: float = 60.0,
) -> Iterator[VerifyReport]:
    """Checks every program that this thread runs on the IPU inside the `with` block.

    Each call of a jitted function, and each op outside of jit, runs on the IPU, on JAX's CPU
    backend, and on the reference interpreter of StableHLO, the latter two in processes of their
    own. Where the results differ the first op that does is searched, with equal inputs on both
    sides, and inside of loops and branches too.

    Args:
        oracles: what to compare with: "cpu", "interpreter". One that agrees is enough; where none
            does, the report shows the first one named here.
        rtol: relative tolerance by dtype, such as `{"float16": 0.02}`, for what is not named the
            defaults in `ipujax.verification.compare.TOLERANCE`. It applies to each element and to
            the array's largest one. Whole numbers must be equal.
        reproducer_dir: folder for the file that shows a difference; None writes none.
        timeout: seconds that a program may take on an oracle.
    Yields:
        A `VerifyReport` that grows with each call.
    Raises:
        MismatchError: at the call whose results differ; names the op, its line in your source,
            the values everywhere, the largest error, and the file that shows it.

    Example:
        with ipujax.verify() as report:
            jax.jit(jnp.tanh)(x)
        print(report)
    """
    unknown = sorted(set(oracles) - set(ORACLES))
    if unknown or not oracles:
        raise ConfigError(
            f"[verify] oracles needs names out of {', '.join(ORACLES)}; got "
            f"{', '.join(unknown) or 'none'}. Use one of these, or leave it out."
        )
    jax_compat.watch_calls(_watcher)
    report = VerifyReport()
    verifier = Verifier(oracles, rtol or {}, reproducer_dir, timeout)

    def check(call: jax_compat.WatchedCall) -> None:
        # What the check itself runs is not checked.
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
