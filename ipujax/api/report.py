"""`report`: whether a program fits, what it costs, and where its time and memory go."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from ipujax.api.cost import lower
from ipujax.reporting.model import Report

#: Where the engine's bytes begin in what JAX serialises: cpp/engine/Image.cpp.
_MAGIC = b"IPUJAXEX"


def report(fun: Callable[..., Any], *args: Any) -> Report:
    """Compiles a function for an IPU and says where its time and memory go. Nothing runs.

    A program that does not fit is reported all the same, whatever `ipu_out_of_memory` says.

    Args:
        fun: a function that `jax.jit` takes, or one that it returned.
        args: its arguments: arrays, or `jax.ShapeDtypeStruct`s.
    Returns:
        A report to print, save and compare.
    Raises:
        ConfigError: `fun` is no function.
        PlacementError: the arguments are on a device that is no IPU.

    Example:
        >>> found = ipu.report(jnp.tanh, jax.ShapeDtypeStruct((256, 256), jnp.float32))
        >>> found.fits, [group.name for group in found.by("op")]
        (True, ['tanh'])
        >>> found.save("tanh.json")
    """
    from ipujax.reporting.profile import read_profile

    options = {"ipu_out_of_memory": "log", "ipu_profile": True}
    compiled = lower("report", fun, args).compile(options)
    serialised = bytes(compiled.runtime_executable().serialize())
    return read_profile(serialised[serialised.index(_MAGIC) :], version("ipujax"))
