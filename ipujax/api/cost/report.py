"""`report`: whether a program fits, what it costs, and where its time and memory go."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax

from ipujax import jax_compat
from ipujax.api.cost.changed_programs import ChangedPrograms
from ipujax.api.cost.cost import QUIETLY, as_function, lower, of_compiled
from ipujax.api.cost.remedies import Remedies, search
from ipujax.errors import ConfigError
from ipujax.reporting.model import Report

#: Marks the start of the engine's bytes in what JAX serialises: cpp/model/engine/image/Image.cpp.
_MAGIC = b"IPUJAXEX"
#: Seconds for trying changes of a program that does not fit.
SECONDS = 10.0


def report(
    fun: Callable[..., Any],
    *args: Any,
    remedies: Remedies | float = SECONDS,
    options: Mapping[str, Any] | None = None,
) -> Report:
    """Compiles a function for an IPU and reports where its time and memory go. Nothing runs.

    A program that does not fit is reported, too, whatever `ipu_out_of_memory` says, with changes
    found to make it smaller.

    Args:
        fun: a function that `jax.jit` takes, or one that it, `ipu.pmap` or `jax.pmap` returned; or
            a `jax.export.Exported`.
        args: its arguments: arrays, or `jax.ShapeDtypeStruct`s, which may be sharded over a mesh of
            IPUs or over an abstract one; none for an exported program.
        remedies: what `ipu.remedies` found for it; or the seconds in which trials of changes may
            begin if it does not fit; none begin if it takes longer to compile.
        options: compiler options, such as {"ipu_outline": "auto"}.
    Returns:
        A report to print, save and compare.
    Raises:
        ConfigError: `fun` is not a function, or `remedies` is neither of the two.
        PlacementError: the arguments are on a device that is not an IPU, or there are fewer IPUs
            than the program needs.

    Example:
        >>> found = ipu.report(jnp.tanh, jax.ShapeDtypeStruct((256, 256), jnp.float32))
        >>> found.fits, [group.name for group in found.by("op")]
        (True, ['tanh'])
        >>> found.save("tanh.json")
    """
    from ipujax.reporting.origin import with_origin
    from ipujax.reporting.profile import read_profile

    _check(remedies)
    begin = time.monotonic()
    wanted = {**QUIETLY, "ipu_profile": True, **(options or {})}
    compiled = lower("report", fun, args, with_callers=True).compile(wanted)
    serialised = bytes(compiled.runtime_executable().serialize())
    profile = read_profile(serialised[serialised.index(_MAGIC) :])
    found = with_origin(profile, _kind_of(compiled), options or {})
    if isinstance(remedies, Remedies):
        return replace(found, remedies=remedies.rows)
    is_quick = time.monotonic() - begin < remedies  # to compile
    if found.fits or not is_quick:
        return found
    programs = ChangedPrograms(*as_function(fun, args), (), None, None, dict(options or {}))
    tried = search(programs, of_compiled(compiled), lambda: found, remedies)
    return replace(found, remedies=tried.rows)


def _kind_of(compiled: Any) -> str:
    """The kind of IPU for which a program was compiled."""
    shardings = jax.tree.leaves((compiled.input_shardings, compiled.output_shardings))
    devices = (
        shardings[0].device_set if shardings else jax.local_devices(backend=jax_compat.PLATFORM)
    )
    return str(next(iter(devices)).device_kind)


def _check(remedies: Any) -> None:
    is_number = isinstance(remedies, int | float) and not isinstance(remedies, bool)
    if isinstance(remedies, Remedies) or (is_number and remedies >= 0):
        return
    raise ConfigError(
        f"[report] needs remedies to be seconds from 0, or what ipu.remedies returns; got "
        f"{remedies!r}. Use one of these."
    )
