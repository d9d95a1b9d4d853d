"""Files that a C++ source includes by `#include "name"`, which a source's digest also covers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b", re.MULTILINE)
_FOLDER_FLAGS = ("-I", "-iquote")


def read(text: str, folder: Path, flags: str) -> list[tuple[Path, bytes]]:
    """The files that quoted includes reach, with their contents.

    Args:
        text: text of the source.
        folder: folder of the source, where names are looked up first.
        flags: compiler flags; names are also looked up in their -I and -iquote folders.
    """
    folders = list(_folders(flags))
    found: dict[Path, bytes] = {}

    def visit(text: str, beside: Path) -> None:
        for name in _INCLUDE.findall(text):
            path = _look_up(name, [beside, *folders])
            if path is not None and path not in found:
                found[path] = path.read_bytes()
                visit(found[path].decode(errors="replace"), path.parent)

    visit(text, folder)
    return list(found.items())


def inlined(text: str, name: str, folder: Path) -> str:
    """The text, with includes replaced by the files in its folder, or in the folders of those.

    Each file is inserted once, as if it had `#pragma once`; lines keep their numbers and names.
    """
    seen: set[Path] = set()

    def expand(text: str, name: str, beside: Path) -> str:
        lines = [f'#line 1 "{name}"']
        for number, line in enumerate(text.splitlines(), 1):
            found = _INCLUDE.match(line)
            path = _look_up(found[1], [beside]) if found else None
            if found is None or path is None:
                lines.append("" if _ONCE.match(line) else line)
            elif path in seen:
                lines.append("")
            else:
                seen.add(path)
                lines.append(expand(path.read_text(encoding="utf-8"), found[1], path.parent))
                lines.append(f'#line {number + 1} "{name}"')
        return "\n".join(lines)

    return expand(text, name, folder) + "\n" if _INCLUDE.search(text) else text


def _look_up(name: str, folders: Sequence[Path]) -> Path | None:
    for folder in folders:
        if (folder / name).is_file():
            return (folder / name).resolve()
    return None


def _folders(flags: str) -> Iterator[Path]:
    try:
        words = iter(shlex.split(flags))
    except ValueError:  # the compiler will say what is wrong
        return
    for word in words:
        for flag in _FOLDER_FLAGS:
            if word == flag:
                yield Path(next(words, "."))
            elif word.startswith(flag):
                yield Path(word.removeprefix(flag))
