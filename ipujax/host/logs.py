"""The logger "ipujax" and those of its components, with Graphcore's levels.

Messages go to Python's logging as any library's do. With a level set, by the option `log_level` or
by `set_log_level`, they are also written to a stream or a file of ipujax's own.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from ipujax.errors import ConfigError

ROOT = "ipujax"
#: Below DEBUG: what happens in every stage of every compilation.
TRACE = 5
logging.addLevelName(TRACE, "TRACE")
#: Graphcore's names of levels; OFF is above all others.
LEVELS = {
    "TRACE_ALL": 1,
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERR": logging.ERROR,
    "OFF": logging.CRITICAL + 10,
}
#: Each component has a logger "ipujax.<component>".
COMPONENTS = ("api", "compiler", "config", "devices", "plugin")

_handler: logging.Handler | None = None


def logger_of(component: str) -> logging.Logger:
    """The logger of a component of ipujax."""
    assert component in COMPONENTS, component
    return logging.getLogger(f"{ROOT}.{component}")


def parse_levels(text: str) -> dict[str, int]:
    """The levels of components, "" for all, in a text such as "WARN,compiler=DEBUG".

    Raises:
        ValueError: the text has another form, or an unknown level or component.

    Example:
        >>> parse_levels("WARN,compiler=DEBUG")
        {'': 30, 'compiler': 10}
    """
    levels = {}
    for part in text.split(","):
        component, equals, level = part.rpartition("=")
        component, level = component.strip().lower(), level.strip().upper()
        if level not in LEVELS or bool(equals) != (component in COMPONENTS):
            raise ValueError(text)
        levels[component] = LEVELS[level]
    return levels


def check_levels(text: str) -> str | None:
    """What is needed if the text is not a list of levels; empty text is allowed."""
    try:
        parse_levels(text) if text else None
    except ValueError:
        return (
            f"levels {', '.join(LEVELS)}, for all or as component=level for "
            f"{', '.join(COMPONENTS)}, with commas between"
        )
    return None


def check_destination(text: str) -> str | None:
    """What is needed if the text names neither a stream nor a file that can be created."""
    if text in ("", "stderr", "stdout") or Path(text).parent.is_dir():
        return None
    return "stderr, stdout, or a file in a folder that exists"


def set_log_level(level: str, destination: str = "") -> None:
    """Sets which messages of ipujax are written, and where.

    Args:
        level: "TRACE_ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERR" or "OFF", for all messages; or
            with levels of components, such as "WARN,compiler=DEBUG"; components are "api",
            "compiler", "config", "devices" and "plugin". Empty: undo what an earlier call or
            `log_level` set.
        destination: "stderr", also if it is empty; "stdout"; or a file to append to.
    Raises:
        ConfigError: an unknown level or component, or an invalid destination.

    Source: `poptorch.setLogLevel`, and POPLAR_LOG_LEVEL and POPLAR_LOG_DEST of Poplar.

    Example:
        >>> ipu.set_log_level("ERR,compiler=INFO")
        >>> import logging
        >>> logging.getLogger("ipujax.compiler").isEnabledFor(logging.INFO)
        True
        >>> ipu.set_log_level("")
    """
    for name, value, needs in (
        ("a level", level, check_levels(level)),
        ("a destination", destination, check_destination(destination)),
    ):
        if needs:
            raise ConfigError(f"[set_log_level] {name} needs {needs}; got {value!r}. Use one.")
    levels = parse_levels(level) if level else {}
    for component in ("", *COMPONENTS):
        logger = logging.getLogger(f"{ROOT}.{component}" if component else ROOT)
        logger.setLevel(levels.get(component, logging.NOTSET))
    _write_to(destination if level else None)


def _write_to(destination: str | None) -> None:
    """Replaces the handler of ipujax; None removes it."""
    global _handler
    logger = logging.getLogger(ROOT)
    if _handler is not None:
        logger.removeHandler(_handler)
        _handler.close()
    _handler = None
    if destination is None:
        return
    if destination in ("", "stderr", "stdout"):
        _handler = logging.StreamHandler(sys.stdout if destination == "stdout" else sys.stderr)
    else:
        _handler = logging.FileHandler(destination, encoding="utf-8", delay=True)
    line = "%(asctime)s [%(name)s] [%(levelname)s] %(message)s"
    _handler.setFormatter(logging.Formatter(line, "%Y-%m-%d %H:%M:%S"))
    logger.addHandler(_handler)
