"""Libraries of custom ops that this process has declared, by their digest.

Programs name a library only by its digest, as they name codelets (codelet_sources.py): a program
from elsewhere can only run native code that this process declared.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ipujax.errors import ConfigError
from ipujax.host import local_includes, sdk_compiler

if TYPE_CHECKING:
    from ipujax._poplar._poplar.popx import CustomOpLibrary

#: Files that are compiled; others are loaded as they are.
SOURCE_SUFFIXES = frozenset({".cpp", ".cc", ".cxx", ".C"})


#: What `codelets=` of `ipujax.custom_op` takes: C++ as text, or the path of a C++ or .gp file.
Codelets: TypeAlias = str | Path


@dataclass(frozen=True)
class CodeletFile:
    """Codelets that the library's functions use: text, or the path of a .gp file."""

    text: str = ""
    path: str = ""


@dataclass(frozen=True)
class Library:
    """A loaded library."""

    functions: CustomOpLibrary
    codelets: tuple[CodeletFile, ...]


@dataclass(frozen=True)
class _Declared:
    """A source and the compiler's flags, or the path of a library; and codelets."""

    source: str = ""
    flags: str = ""
    path: str = ""
    codelets: tuple[CodeletFile, ...] = ()

    def digest(self) -> str:
        """The digest of everything but the compiler that the compiled library depends on.

        Raises:
            OSError: a file cannot be read.
        """
        digest = hashlib.sha256()
        texts = [self.source, self.flags, self.path]
        texts += [part for file in self.codelets for part in (file.text, file.path)]
        contents = [Path(path).read_bytes() for path in [self.path, *self._archives()] if path]
        included = local_includes.read(self.source, Path(), self.flags)
        for part in [*(text.encode() for text in texts), *contents, *(c for _, c in included)]:
            digest.update(hashlib.sha256(part).digest())
        return digest.hexdigest()

    def load(self) -> Library:
        from ipujax._poplar import _poplar

        if self.path:
            return Library(_poplar.popx.CustomOpLibrary.load(self.path), self.codelets)
        if not _poplar.capabilities.own_headers:
            return Library(sdk_compiler.compile_library(self.source, self.flags), self.codelets)
        return Library(_poplar.engine.compileCustomOps(self.source, self.flags), self.codelets)

    def _archives(self) -> list[str]:
        return [file.path for file in self.codelets]


_declared: dict[str, _Declared] = {}
_loaded: dict[str, Library] = {}
_lock = threading.Lock()


def get_include() -> str:
    """The folder of the Poplar headers against which libraries of custom ops are compiled.

    Example:
        >>> import pathlib
        >>> (pathlib.Path(ipu.get_include()) / "poplar" / "Graph.hpp").exists()
        True
    """
    from ipujax._poplar import _poplar

    if not _poplar.capabilities.own_headers:
        return str(sdk_compiler.include_folder())
    return str(Path(__file__).parents[1] / "_poplar" / "include")


def register(
    where: str,
    library: str | Path,
    flags: str,
    codelets: Codelets | Sequence[Codelets] = (),
) -> str:
    """Declares a library: C++ as text, a file of C++, or a shared library. Returns its digest.

    Args:
        where: the function that errors name.
    Raises:
        ConfigError: there is no such file.
    """
    given = [codelets] if isinstance(codelets, (str, Path)) else codelets
    if not isinstance(given, list | tuple):
        given = [given]  # type: ignore[list-item]  # which is refused
    files = tuple(_codelet_file(where, each) for each in given)
    try:
        declared = _declared_library(library, flags, files)
        digest = declared.digest()
    except (OSError, TypeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"[{where}] needs C++ with line ends, or the path of a C++ file or of a shared "
            f"library; got {str(library)!r}: {reason}. Check the path."
        ) from None
    _declared[digest] = declared
    return digest


def _declared_library(
    library: str | Path, flags: str, codelets: tuple[CodeletFile, ...]
) -> _Declared:
    if _is_text(library):
        return _Declared(source=str(library), flags=flags, codelets=codelets)
    path = Path(library).expanduser().absolute()
    if path.suffix not in SOURCE_SUFFIXES:
        return _Declared(path=str(path), codelets=codelets)
    # Compiler messages and includes from the file's folder are then as for the file itself.
    source = f'#line 1 "{path}"\n{path.read_text(encoding="utf-8")}'
    return _Declared(source, f'{flags} -iquote "{path.parent}"', codelets=codelets)


def _codelet_file(where: str, given: Codelets) -> CodeletFile:
    if _is_text(given):
        return CodeletFile(text=str(given))
    try:
        path = Path(given).expanduser().absolute()
        if path.suffix in SOURCE_SUFFIXES:
            text = path.read_text(encoding="utf-8")
            return CodeletFile(text=local_includes.inlined(text, path.name, path.parent))
        path.read_bytes()
    except (OSError, TypeError, ValueError) as error:
        raise ConfigError(
            f"[{where}] needs codelets as C++ with line ends, or the path of a C++ or .gp file; "
            f"got {str(given)!r}: {error}. Check the path."
        ) from None
    return CodeletFile(path=str(path))


def _is_text(given: str | Path) -> bool:
    return isinstance(given, str) and "\n" in given


def find(digest: str) -> Library | None:
    """The library, if this process has declared it; compiled and loaded at its first use.

    Raises:
        ConfigError: files have changed since it was declared.
    """
    declared = _declared.get(digest)
    if declared is None:
        return None
    with _lock:
        if digest not in _loaded:
            _check_unchanged(declared, digest)
            _loaded[digest] = declared.load()
        return _loaded[digest]


def _check_unchanged(declared: _Declared, digest: str) -> None:
    try:
        found = declared.digest()
    except OSError as error:
        found = str(error)
    if found != digest:
        raise ConfigError(
            f"[custom_op] needs the library {declared.path or 'and the files that it includes'} as "
            "it was declared; got changed files. Call ipujax.custom_op again."
        )
