"""C++ sources of vertices that this process has declared, by their digest.

Programs name a source by its digest alone. So a program that comes from elsewhere, such as one that
`jax.export` wrote, can run the native code that this process declared, and no other.
"""

from __future__ import annotations

import hashlib

_SOURCES: dict[str, str] = {}


def register(text: str) -> str:
    """Declares a source; returns its digest."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    _SOURCES[digest] = text
    return digest


def find(digest: str) -> str | None:
    """The source, if this process has declared it."""
    return _SOURCES.get(digest)
