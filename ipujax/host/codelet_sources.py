"""C++ sources of vertices that this process has declared, by their digest.

Programs name a source only by its digest. So a program from elsewhere, such as one that
`jax.export` wrote, can only run native code that this process declared.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from ipujax.errors import ConfigError
from ipujax.host import local_includes

_SOURCES: dict[str, str] = {}


def register(where: str, source: str | Path, flags: str = "") -> str:
    """Declares a source: C++ as text, or the path of a file. Returns its digest.

    Files that it includes from its own folder (for text: from the working folder) become part of
    it. The digest also covers files in the -I folders of the flags.

    Args:
        where: the function that errors name.
    Raises:
        ConfigError: the file, or one that it includes, cannot be read.
    """
    try:
        if isinstance(source, str):
            text = local_includes.inlined(source, "codelets.cpp", Path())
        elif not isinstance(source, Path):
            raise TypeError(f"{source!r}")
        else:
            text = source.read_text(encoding="utf-8")
            text = local_includes.inlined(text, source.name, source.parent)
        others = local_includes.read(text, Path(), flags)
    except (OSError, TypeError, ValueError) as error:
        raise ConfigError(
            f"[{where}] needs a file of C++ source; got {error}. Pass another path, or the text."
        ) from None
    digest = hashlib.sha256(text.encode())
    for _, content in others:
        digest.update(b"\0" + hashlib.sha256(content).digest())
    _SOURCES[digest.hexdigest()] = text
    return digest.hexdigest()


def find(digest: str) -> str | None:
    """The source, if this process has declared it."""
    return _SOURCES.get(digest)
