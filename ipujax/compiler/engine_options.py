"""Options of `poplar::Engine`: those that mean what options of ours do, in the IPU Model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ipujax._poplar import _poplar as ipu
from ipujax.config import CompileConfig
from ipujax.configuration.arithmetic import EXCEPTIONS
from ipujax.errors import ConfigError
from ipujax.product_options import check_product_options, flags_of

#: Poplar's variable of options, which come on top of those in the program's.
VARIABLE = "POPLAR_ENGINE_OPTIONS"


def with_engine_options(options: CompileConfig) -> CompileConfig:
    """The options with what `engine_options` and Poplar's variable say in their place.

    The Poplar SDK gets `engine_options` as they are, and reads the variable itself.

    Raises:
        ConfigError: an option that no Poplar has, or a value that it cannot have.
    """
    if ipu.backend != "IPU Model":
        return options
    flags = {**flags_of(options.engine_options), **_flags_of_variable()}
    if not flags:
        return options
    try:
        refuses_too_large, traps = ipu.engine.engineOptions(flags)
    except ipu.poplar.poplar_error as error:
        raise ConfigError(str(error)) from None
    changes: dict[str, Any] = {}
    if "debug.outOfMemory" in flags:
        changes["out_of_memory"] = "error" if refuses_too_large else "log"
    if "debug.floatPointOpException" in flags:
        changes["floating_point_exceptions"] = ",".join(EXCEPTIONS) if traps else ""
    return replace(options, **changes)


def _flags_of_variable() -> Mapping[str, str]:
    text = os.environ.get(VARIABLE, "")
    if check_product_options(text):
        raise ConfigError(
            f"[config] {VARIABLE} needs a JSON object of options, with text, numbers and bools as "
            f"values; got {text!r}. Correct the variable, or unset it."
        )
    return flags_of(text)
