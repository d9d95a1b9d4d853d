"""Libraries of custom ops that this process has declared, by their digest.

Programs name a library by its digest alone, as they name codelets (codelet_sources.py): one that
comes from elsewhere can run the native code that this process declared, and no other.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ipujax.errors import ConfigError

if TYPE_CHECKING:
    from ipujax._poplar._poplar.popx import CustomOpLibrary

#: Files that are compiled; others are loaded as they are.
SOURCE_SUFFIXES = frozenset({".cpp", ".cc", ".cxx", ".C"})


@dataclass(frozen=True)
class _Declared:
    """A source and the compiler's flags, or the path of a library."""

    source: str = ""
    flags: str = ""
    path: str = ""

    def load(self) -> CustomOpLibrary:
        from ipujax._poplar import _poplar

        if _poplar.backend != "IPU Model":
            raise ConfigError(
                "[custom_op] needs the IPU Model's own build, which loads libraries of custom ops; "
                "got a build against a Poplar SDK. Unset IPUJAX_EXTENSION, or write the op with "
                "ipu.tile."
            )
        library = _poplar.popx.CustomOpLibrary
        if self.path:
            return library.load(self.path)
        return library.compile(self.source, self.flags)


_declared: dict[str, _Declared] = {}
_loaded: dict[str, CustomOpLibrary] = {}
_lock = threading.Lock()


def get_include() -> str:
    """The folder of the Poplar headers against which libraries of custom ops are compiled.

    Example:
        >>> import pathlib
        >>> (pathlib.Path(ipu.get_include()) / "poplar" / "Graph.hpp").exists()
        True
    """
    return str(Path(__file__).parent / "_poplar" / "include")


def register(library: str | Path, flags: str) -> str:
    """Declares a library: C++ as text, a file of C++, or a shared library. Returns its digest.

    Raises:
        ConfigError: there is no such file.
    """
    is_path = isinstance(library, Path) or "\n" not in library
    if not is_path:
        return _add(_Declared(source=str(library), flags=flags), str(library).encode())
    path = Path(library).expanduser().absolute()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            "[custom_op] needs C++ with line ends, or the path of a C++ file or of a shared "
            f"library; got {str(library)!r}: {error.strerror}. Check the path."
        ) from None
    if path.suffix not in SOURCE_SUFFIXES:
        return _add(_Declared(path=str(path)), content)
    # So that the compiler's messages, and what is included beside the file, are as for the file.
    source = f'#line 1 "{path}"\n{content.decode()}'
    return _add(_Declared(source=source, flags=f'{flags} -iquote "{path.parent}"'), content)


def _add(declared: _Declared, content: bytes) -> str:
    text = f"{declared.flags}\0{declared.path}\0".encode()
    digest = hashlib.sha256(text + content).hexdigest()
    _declared[digest] = declared
    return digest


def find(digest: str) -> CustomOpLibrary | None:
    """The library, if this process has declared it; compiled and loaded when first asked for."""
    declared = _declared.get(digest)
    if declared is None:
        return None
    with _lock:
        if digest not in _loaded:
            _loaded[digest] = declared.load()
        return _loaded[digest]
