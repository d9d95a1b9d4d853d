"""Device errors as exceptions of their own types, and resets that make devices work again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from ipujax.errors import ConfigError, IpuError
from ipujax.types import ResetAction

#: Actions of `reset_device`, from the weakest to the strongest.
ACTIONS = ("ipu_reset", "partition_reset", "full_reset")


@contextmanager
def typed_errors() -> Iterator[None]:
    """Raises the errors of compilations and runs as exceptions of ipujax.

    JAX raises `jax.errors.JaxRuntimeError` for all of them. Inside, they become the `ipujax.Error`
    that they represent, with the JAX error as its cause; also usable as a decorator,
    `@ipu.typed_errors()`. A run ends after its call returns: call `jax.block_until_ready` inside.

    Raises:
        RecoverableError: a device failed; `recovery_action` says what repairs it.
        UnrecoverableError: a device failed and needs repair.
        IpuError: an error of the type that the compiler raised, or another error of a run.

    Example:
        >>> with ipu.testing.inject("ecc"):
        ...     try:
        ...         with ipu.typed_errors():
        ...             jax.block_until_ready(jax.jit(jnp.tanh)(1.0))
        ...     except ipu.RecoverableError as error:
        ...         error.recovery_action
        'ipu_reset'
    """
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        raise IpuError.from_exception(error) from error


def reset_device(action: ResetAction = "ipu_reset") -> None:
    """Resets the IPUs of this process after a RecoverableError.

    Compiled programs stay loaded. Arrays that were donated to the run that failed are lost: load
    the last checkpoint.

    Args:
        action: the `recovery_action` of the error, or a later one of "ipu_reset",
            "partition_reset" and "full_reset"; PopTorch's upper case is accepted, too.
    Raises:
        ConfigError: the action is not one of these.
        IpuError: in a build against a Poplar SDK, whose tools reset hardware (`gc-reset`), unless
            `ipujax.testing.inject` made the error.

    Example:
        >>> ipu.reset_device("partition_reset")
    """
    from ipujax._poplar._poplar import embedded

    name = action.lower() if isinstance(action, str) else action
    if name not in ACTIONS:
        raise ConfigError(
            f"[reset_device] needs one of {', '.join(ACTIONS)}; got {action!r}. Pass the "
            "recovery_action of the error."
        )
    try:
        embedded.reset_devices(name)
    except RuntimeError as error:
        raise IpuError(str(error)) from None
