"""Translates options of `poplar::Engine` to our own options, for the IPU Model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ipujax._poplar import _poplar as ipu
from ipujax.config.arithmetic import EXCEPTIONS
from ipujax.config.engine import OF_REPORTS, OF_RUNS
from ipujax.config.options import CompileConfig, warn_once
from ipujax.config.product_options import check_product_options, flags_of
from ipujax.errors import ConfigError

#: Poplar's environment variable for options, which override the program's.
VARIABLE = "POPLAR_ENGINE_OPTIONS"


def with_engine_options(options: CompileConfig) -> CompileConfig:
    """The options, overridden by `engine_options` and Poplar's variable.

    Warns once about each Poplar option that has no effect here. The Poplar SDK gets
    `engine_options` as they are, and reads the variable itself.

    Raises:
        ConfigError: an option that Poplar does not have, or an invalid value.
    """
    if not ipu.capabilities.images:
        return options
    flags = engine_flags(options)
    if not flags:
        return options
    found = _meaning(flags)
    without_effect = {*found["without_effect"], *(OF_RUNS & flags.keys())}
    if not found["report_folder"]:
        without_effect |= OF_REPORTS & flags.keys()
    for name in sorted(without_effect):
        warn_once(
            "[config] the engine option %s has no effect on JAX's programs on the IPU Model.", name
        )
    changes: dict[str, Any] = {}
    if {"debug.outOfMemory", "debug.allowOutOfMemory"} & flags.keys():
        changes["out_of_memory"] = "error" if found["refuses_too_large"] else "log"
    if "debug.floatPointOpException" in flags:
        changes["floating_point_exceptions"] = (
            ",".join(EXCEPTIONS) if found["float_exceptions"] else ""
        )
    if found["report_folder"]:
        changes["profile"] = True
    return replace(options, **changes)


def engine_flags(options: CompileConfig) -> dict[str, str]:
    """Poplar's options by name: the program's, overridden by those in Poplar's variable."""
    return {**flags_of(options.engine_options), **_flags_of_variable()}


def report_folder(options: CompileConfig) -> str:
    """The folder for the reports that Poplar's options ask for; empty if they ask for none."""
    flags = engine_flags(options) if ipu.capabilities.images else {}
    return str(_meaning(flags)["report_folder"]) if flags else ""


def _meaning(flags: Mapping[str, str]) -> dict[str, Any]:
    try:
        return ipu.engine.engineOptions(flags)
    except ipu.poplar.poplar_error as error:
        raise ConfigError(str(error)) from None


def _flags_of_variable() -> Mapping[str, str]:
    text = os.environ.get(VARIABLE, "")
    if check_product_options(text):
        raise ConfigError(
            f"[config] {VARIABLE} needs a JSON object of options, with text, numbers and bools as "
            f"values; got {text!r}. Correct the variable, or unset it."
        )
    return flags_of(text)
