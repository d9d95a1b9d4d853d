"""Options of `poplar::Engine`: those that mean what options of ours do, in the IPU Model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ipujax._poplar import _poplar as ipu
from ipujax.config import CompileConfig
from ipujax.configuration.arithmetic import EXCEPTIONS
from ipujax.errors import ConfigError
from ipujax.product_options import flags_of


def with_engine_options(options: CompileConfig) -> CompileConfig:
    """The options with what `engine_options` says in their place.

    The Poplar SDK gets `engine_options` as they are.

    Raises:
        ConfigError: an option that no Poplar has, or a value that it cannot have.
    """
    flags = flags_of(options.engine_options)
    if not flags or ipu.backend != "IPU Model":
        return options
    try:
        refuses_too_large, traps = ipu.engine.engineOptions(dict(flags))
    except ipu.poplar.poplar_error as error:
        raise ConfigError(str(error)) from None
    changes: dict[str, Any] = {}
    if "debug.outOfMemory" in flags:
        changes["out_of_memory"] = "error" if refuses_too_large else "log"
    if "debug.floatPointOpException" in flags:
        changes["floating_point_exceptions"] = ",".join(EXCEPTIONS) if traps else ""
    return replace(options, **changes)
