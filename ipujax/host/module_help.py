"""The `help` text of a package whose names come from its modules: one line for each."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any


def with_names(namespace: Mapping[str, Any]) -> str:
    """The docstring of a package, and the first paragraph of each function's and class's docstring.

    `help` itself does not show functions that a package's modules define.

    Args:
        namespace: the globals of the package.

    Example:
        >>> "    softmax: exp(x) / sum(exp(x))." in ipu.nn.__doc__
        True
    """
    inside = f"{namespace['__name__']}."
    lines = [
        f"    {name}: {_first_paragraph(value)}"
        for name, value in sorted(namespace.items())
        if not name.startswith("_") and getattr(value, "__module__", "").startswith(inside)
    ]
    return "\n".join([(namespace["__doc__"] or "").rstrip(), "", *lines, ""])


def _first_paragraph(value: Any) -> str:
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
