"""JAX's sparse direct solver, which JAX lowers for CPUs and NVIDIA's GPUs only."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import jax.numpy as jnp
from jax.interpreters import mlir

from ipujax.jax_compat.platform import PLATFORM

_MODULE = "jax.experimental.sparse.linalg"

#: Rows of the largest system that is solved on the IPU, as a dense matrix of 4 MiB of float32.
MAX_DENSE_ROWS = 1024
_FLOATS = ("float32", "float64", "complex64", "complex128")


def lower_spsolve() -> None:
    """Lowers `spsolve` once its module is imported: SciPy's sparse matrices take 0.3 s to load."""
    if _MODULE in sys.modules:
        _register(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _Watcher())


class _Watcher(MetaPathFinder):
    """Registers the lowering when the module has been run; other finders load it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_register(module: ModuleType) -> None:
                run(module)
                _register(module)

            spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec


def _register(module: Any) -> None:
    """A small system is solved on the IPU, a larger one by SciPy, as on JAX's CPU backend."""

    def lower(ctx: Any, *operands: Any, **parameters: Any) -> Sequence[Any]:
        b = ctx.avals_in[-1]
        if b.size <= MAX_DENSE_ROWS and b.dtype.name in _FLOATS:
            return mlir.lower_fun(_solve_dense, multiple_results=False)(ctx, *operands)
        result: Sequence[Any] = module._spsolve_cpu_lowering(ctx, *operands, **parameters)
        return result

    mlir.register_lowering(module.spsolve_p, lower, platform=PLATFORM, cacheable=False)


def _solve_dense(data: Any, indices: Any, indptr: Any, b: Any, **_: Any) -> Any:
    """Solves by LU with pivoting. Entries after the end of the last row are ignored."""
    order = jnp.arange(data.size, dtype=indptr.dtype)
    rows = jnp.searchsorted(indptr, order, side="right", method="compare_all") - 1
    dense = jnp.zeros((b.size, b.size), data.dtype).at[rows, indices].add(data, mode="drop")
    return jnp.linalg.solve(dense, b)
