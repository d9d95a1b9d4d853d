"""`inject`: device failures, to test recovery from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ipujax.errors import ConfigError, check_choice
from ipujax.types import Fault

#: What can fail, and the error that follows.
FAULTS = ("link_error", "host_link_timeout", "ecc", "exchange_parity", "power")


@contextmanager
def inject(kind: Fault, *, at_step: int = 1, program: str = "") -> Iterator[None]:
    """Makes IPUs fail as hardware does, to test recovery.

    The build against a Poplar SDK inserts Poplar's own simulated error in the engine that is to
    fail (`poplar::Engine::insertSimulatedError`), so Poplar's exception becomes the error here.

    From that run on, every run of this process fails until `ipujax.reset_device` is called with a
    sufficient action, or the scope ends. The run that fails computes nothing, and arrays that were
    donated to it are lost.

    Args:
        kind: "ecc" or "exchange_parity": a RecoverableError that an "ipu_reset" repairs;
            "link_error": one that a "partition_reset" does; "host_link_timeout": one that a
            "full_reset" does; "power": an UnrecoverableError.
        at_step: the number of the run that fails, from 1, counted from here.
        program: the name of a function; only its runs are counted. Empty: all runs, including the
            small ones of operations outside `jax.jit`.
    Raises:
        ConfigError: an invalid kind or number.

    Example:
        >>> def step(x):
        ...     return x + 1
        >>> with ipu.testing.inject("link_error", at_step=2, program="step"):
        ...     x = jax.jit(step)(jnp.zeros(3))
        ...     try:
        ...         with ipu.typed_errors():
        ...             jax.block_until_ready(jax.jit(step)(x))
        ...     except ipu.RecoverableError as error:
        ...         ipu.reset_device(error.recovery_action)
        ...     jax.jit(step)(x).tolist()
        [2.0, 2.0, 2.0]
    """
    from ipujax._poplar._poplar import embedded

    check_choice("testing.inject", "kind", kind, FAULTS, ConfigError)
    if isinstance(at_step, bool) or not isinstance(at_step, int) or at_step < 1:
        raise ConfigError(
            f"[testing.inject] needs at_step of 1 or more; got {at_step!r}. Pass 1 for the next "
            "run."
        )
    embedded.inject_fault(kind, at_step, f"jit_{program}" if program else "")
    try:
        yield
    finally:
        embedded.clear_faults()
