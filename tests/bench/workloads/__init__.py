"""The programs of `bench --all`, a file for each family."""

from __future__ import annotations

from ipujax.errors import ConfigError
from tests.bench.workload import Workload
from tests.bench.workloads import (
    elementwise,
    linalg,
    loops,
    models,
    moving,
    products,
    reductions,
)

_FAMILIES = (elementwise, reductions, products, models, loops, moving, linalg)


def workloads() -> list[Workload]:
    """All of them; none has made its arguments yet."""
    return [workload for family in _FAMILIES for workload in family.workloads()]


def named(name: str) -> Workload:
    """The one of exactly that name.

    Raises:
        ConfigError: there is none.
    """
    for workload in workloads():
        if workload.name == name:
            return workload
    raise ConfigError(
        f"[bench] needs the name of a program; got {name!r}. "
        "Run `python -m ipujax bench --all` to see the names."
    )
