"""One option: a dataclass field whose metadata describe it, and the check of its values."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from dataclasses import field
from typing import Any

from ipujax.errors import ConfigError

Value = str | int | float | bool


def option(
    default: Value,
    help: str,
    env: str,
    allowed: tuple[Value, ...] | Callable[[], tuple[Value, ...]] = (),
    several: bool = False,
    bounds: tuple[float, float] | None = None,
    check: Callable[[Any], str | None] | None = None,
    numbers: bool = False,
    scoped: bool = False,
    no_effect: str = "",
    deprecated: str = "",
) -> Any:
    """A dataclass field with the description of the option as metadata.

    Args:
        allowed: the possible values; a function if the built extension defines them.
        several: the value is a comma-separated list of them.
        bounds: the smallest and the largest number.
        check: returns what is needed if a value is wrong, else None.
        numbers: comma-separated whole numbers, which may also be given as one number or a list.
        scoped: operations of one program may have different values, set by `ipu.options`.
        no_effect: why the option changes nothing here, and what to use instead; empty if it works.
        deprecated: what to use instead; setting the option gives a warning.
    """
    metadata: dict[str, Any] = {"help": help, "env": env, "allowed": allowed, "several": several}
    metadata |= {"bounds": bounds, "check": check, "numbers": numbers, "scoped": scoped}
    metadata |= {"no_effect": no_effect, "deprecated": deprecated}
    return field(default=default, metadata=metadata)


def allowed_values(spec: dataclasses.Field[Any]) -> tuple[Value, ...]:
    allowed = spec.metadata["allowed"]
    return allowed() if callable(allowed) else allowed


def shown(spec: dataclasses.Field[Any]) -> str:
    allowed, bounds = allowed_values(spec), spec.metadata["bounds"]
    if allowed:
        kind = "a comma-separated list of " if spec.metadata["several"] else "one of "
        return kind + ", ".join(str(value) for value in allowed)
    if isinstance(spec.default, bool):
        return "true or false"
    if bounds:
        kind = "a whole number" if isinstance(spec.default, int) else "a number"
        return f"{kind} from {bounds[0]} to {bounds[1]}"
    return "text"


def _convert(spec: dataclasses.Field[Any], value: object) -> Value:
    """The value in the option's type; KeyError or ValueError if it cannot be converted."""
    if isinstance(spec.default, bool):
        known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
        return known[str(value).strip().lower()]
    if isinstance(spec.default, int):
        if isinstance(value, (bool, float)):
            raise ValueError
        return int(str(value))
    if isinstance(spec.default, float):
        if isinstance(value, bool):
            raise ValueError
        return float(str(value))
    if spec.metadata["numbers"] and not isinstance(value, (str, bool)):
        value = ",".join(map(str, value if isinstance(value, (list, tuple)) else [value]))
    if not isinstance(value, (str, os.PathLike)):
        raise ValueError
    text = os.fspath(value)
    parts = [part.strip() for part in text.split(",")] if spec.metadata["several"] else [text]
    return ",".join(_member(part, allowed_values(spec)) for part in parts)


def _member(text: str, allowed: tuple[Value, ...]) -> str:
    """The allowed value that Graphcore's enumerations write in upper case, such as
    SelectionOrder.SNAKE; any other text as it is."""
    name = text.rpartition(".")[2].lower()
    return name if text not in allowed and name in allowed else text


def parse(spec: dataclasses.Field[Any], value: object, where: str) -> Value:
    """Converts and checks one value; `where` names the option as the user did."""

    def refused(needs: str) -> ConfigError:
        return ConfigError(
            f"[config] {where} needs {needs}; got {value!r}. Use such a value, or omit it"
            + (f" for the default {spec.default!r}." if spec.default != "" else ".")
        )

    try:
        parsed = _convert(spec, value)
    except (KeyError, ValueError):
        raise refused(shown(spec)) from None
    allowed, bounds = allowed_values(spec), spec.metadata["bounds"]
    chosen = str(parsed).split(",") if spec.metadata["several"] and parsed else [parsed]
    known = not allowed or parsed == spec.default or set(chosen) <= set(allowed)
    if not known or (bounds and not bounds[0] <= parsed <= bounds[1]):
        raise refused(shown(spec))
    complaint = spec.metadata["check"] and spec.metadata["check"](parsed)
    if complaint:
        raise refused(complaint)
    return parsed
