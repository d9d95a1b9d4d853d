"""Files of options: JSON, TOML, and PopTorch's commands, which are never executed."""

from __future__ import annotations

import ast
import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipujax.config.theirs import CONVERTED, RENAMED, WITHOUT
from ipujax.errors import ConfigError
from ipujax.host.file_reading import json_of, text_of
from ipujax.host.logs import logger_of

if TYPE_CHECKING:
    from ipujax.config.tree import IPUConfig

logger = logger_of("config")

#: Maximum size of a file of options, and of a line of commands.
MOST_BYTES = 1 << 20
_LONGEST_LINE = 10_000


def to_json(config: IPUConfig) -> str:
    """The options that differ from their defaults, an object for each section."""
    from ipujax.config.tree import SECTION_OF

    sections: dict[str, dict[str, Any]] = {}
    for name, value in config.changes().items():
        sections.setdefault(SECTION_OF[name], {})[name] = value
    return json.dumps(sections, indent=2)


def from_json(text: str, where: str) -> dict[str, Any]:
    """Values of options by name, from JSON.

    Raises:
        ConfigError: the text is not a JSON object, or an option is unknown; `where` names the text.
    """
    try:
        found = json_of(text)
    except ValueError as error:
        raise _refused(where, "JSON", str(error)) from None
    return _named(found, where)


def from_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Values of options by name, from a file; see `IPUConfig.from_file`."""
    file = Path(path)
    try:
        text = text_of(file, MOST_BYTES)
    except ValueError as error:
        raise _refused(str(file), f"at most {MOST_BYTES} bytes of UTF-8 text", str(error)) from None
    if file.suffix == ".json":
        return from_json(text, str(file))
    if file.suffix != ".toml":
        return _from_commands(text, str(file))
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refused(str(file), "TOML", str(error)) from None
    return _named(found, str(file))


def _refused(where: str, needs: str, got: str) -> ConfigError:
    return ConfigError(f"[config] {where} needs {needs}; got {got}. Correct the file.")


def _named(found: object, where: str) -> dict[str, Any]:
    if not isinstance(found, Mapping):
        raise _refused(where, "an object of options", type(found).__name__)
    values: dict[str, Any] = {}
    for name, value in _flat(found, ""):
        _add(values, name, value, where)
    return values


def _flat(found: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Options by name; names in tables have the table's name as a prefix."""
    for key, value in found.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and not _is_theirs(name) and not _is_ours(name):
            yield from _flat(value, f"{name}.")
        else:
            yield name, value


def _is_theirs(name: str) -> bool:
    return name in RENAMED or name in CONVERTED or name in WITHOUT


def _is_ours(name: str) -> bool:
    from ipujax.config.tree import SPECS

    return name.rpartition(".")[2] in SPECS


def _add(values: dict[str, Any], name: str, value: Any, where: str) -> None:
    """Adds the values that an option of ours or theirs sets; logs one without a counterpart."""
    from ipujax.config.tree import spec_of

    if name in WITHOUT:
        logger.warning("[config] %s: %s has no effect: %s.", where, name, WITHOUT[name])
        return
    try:
        set_here = CONVERTED[name](value) if name in CONVERTED else {name: value}
    except (ValueError, TypeError, AttributeError) as error:
        raise _refused(f"{where}: {name}", str(error) or "another value", repr(value)) from None
    for given, each in set_here.items():
        ours = RENAMED.get(given, given)
        if ours.endswith("+"):  # one more of several
            ours = ours[:-1]
            each = ",".join(filter(None, (str(values.get(ours, "")), str(each))))
        if isinstance(each, Mapping):
            each = json.dumps(each, sort_keys=True)
        if isinstance(each, list):
            each = ",".join(map(str, each))
        try:
            values[spec_of(ours).name] = each
        except ConfigError as error:
            raise ConfigError(f"{error} It is in {where}.") from None


def _from_commands(text: str, where: str) -> dict[str, Any]:
    """PopTorch's form: one command such as `deviceIterations(1)` on each line."""
    values: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        at = f"{where}:{number}"
        try:
            if len(line) > _LONGEST_LINE:
                raise ValueError
            name, value = _command(ast.parse(line, mode="eval").body)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            needs = "one command with constants as arguments, such as deviceIterations(1)"
            raise _refused(at, needs, repr(line[:80])) from None
        _add(values, name, value, at)
    return values


def _command(node: ast.expr) -> tuple[str, Any]:
    """The option and the value of a call; its arguments are read, not evaluated."""
    if not isinstance(node, ast.Call):
        raise ValueError
    name = _path(node.func).removeprefix("options.").removeprefix("opts.")
    given = [_constant(each) for each in node.args]
    given += [_constant(each.value) for each in node.keywords]
    if name in ("_Popart.set", "_popart.set") and given:  # its first argument is the option
        name, given = f"_Popart.{given[0]}", given[1:]
        if not _is_theirs(name):
            name = "_Popart.set"
    value = given[0] if len(given) == 1 else (given or True)
    return name, value


def _path(node: ast.expr) -> str:
    """A dotted name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_path(node.value)}.{node.attr}"
    raise ValueError


def _constant(node: ast.expr) -> Any:
    """A literal, a member of an enumeration by its name, or the settings of a location."""
    if isinstance(node, ast.Attribute):
        return _path(node)
    if isinstance(node, ast.Call):
        return _settings(node)
    return ast.literal_eval(node)


def _settings(node: ast.Call) -> Any:
    """`Settings().one(True).other(2)` as a dictionary; `Strategy()` as its name."""
    settings: dict[str, Any] = {}
    each: ast.expr = node
    while isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
        if not isinstance(each.func.value, ast.Call):
            break
        given = [_constant(argument) for argument in each.args]
        settings[each.func.attr] = given[0] if given else True
        each = each.func.value
    return settings if settings or not isinstance(each, ast.Call) else _path(each.func)
