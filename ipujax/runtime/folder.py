"""The location of the C library that runs saved programs."""

from __future__ import annotations

from pathlib import Path

from ipujax.errors import IpuError

_PACKAGE = Path(__file__).resolve().parents[1]


def folder() -> Path:
    """The folder with `include/ipujax_runtime.h` and `lib/libipujax_runtime.so`.

    Wheels contain it; in a source tree `make runtime` makes it. CMake finds it with
    `-DCMAKE_PREFIX_PATH=<folder>`, C compilers with `-I<folder>/include -L<folder>/lib`.

    Raises:
        IpuError: it does not exist.

    Example:
        >>> print((ipu.runtime.folder() / "include" / "ipujax_runtime.h").is_file())
        True
    """
    places = (_PACKAGE / "embedded", _PACKAGE.parent / "build" / "runtime")
    for place in places:
        if (place / "include" / "ipujax_runtime.h").is_file():
            return place
    raise IpuError(
        f"[runtime] needs the C library in {places[0]} or {places[1]}; got neither. Install a "
        "wheel, or run make runtime."
    )
