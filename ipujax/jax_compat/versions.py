"""The versions of jax and jaxlib that the package was tested with."""

from __future__ import annotations

import jax
import jaxlib

from ipujax.errors import VersionError

#: Series of jax and jaxlib, as (major, minor).
TESTED = ((0, 10),)


def check_versions(jax_version: str | None = None, jaxlib_version: str | None = None) -> None:
    """Refuses any jax or jaxlib of an untested series.

    Raises:
        VersionError: names the installed version and the ones that work.
    """
    for name, version in (
        ("jax", jax_version or jax.__version__),
        ("jaxlib", jaxlib_version or jaxlib.__version__),
    ):
        series = tuple(int(part) for part in version.split(".")[:2])
        if series not in TESTED:
            works = " or ".join(".".join(map(str, tested)) + ".x" for tested in TESTED)
            raise VersionError(
                f"[plugin] needs {name} {works}; got {name} {version}. "
                f'Run pip install "jax~={".".join(map(str, TESTED[-1]))}.0" '
                f'"jaxlib~={".".join(map(str, TESTED[-1]))}.0".'
            )
