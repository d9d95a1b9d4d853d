"""Compiling for machines that are only described (`jax.experimental.topologies`)."""

from __future__ import annotations

import functools
from typing import Any

from ipujax.errors import ExecutableError
from ipujax.jax_compat.platform import PLATFORM


def compile_for_topologies() -> None:
    """Compiles for a described machine without a client in this process.

    JAX would make a client to compile with, which attaches to IPUs. It passes that client's devices
    to the call, which a described machine does not have, and callbacks to a function that takes
    none.
    """
    from jax._src import compiler, traceback_util
    from jax._src.interpreters import pxla
    from jaxlib import _jax

    cross_compile_backend = compiler._get_cross_compile_backend
    compile_and_load = compiler.backend_compile_and_load
    build_unsafe_call = pxla.UnloadedMeshExecutable.build_unsafe_call

    def no_backend(compile_only: Any) -> Any:
        return None if compile_only.platform == PLATFORM else cross_compile_backend(compile_only)

    @functools.wraps(compile_and_load)
    def without_callbacks(
        backend: Any, module: Any, devices: Any, options: Any, host_callbacks: Any
    ) -> Any:
        if host_callbacks and backend.platform == PLATFORM and is_compile_only(backend):
            name = module.operation.attributes["sym_name"].value
            raise ExecutableError(
                f"[compile] needs a program that runs by itself; got {name} for a described "
                "machine, which calls functions of this Python process. Remove its callbacks."
            )
        return compile_and_load(backend, module, devices, options, host_callbacks)

    def build(self: Any) -> Any:
        if self.backend.platform == PLATFORM and isinstance(self.xla_executable, _jax.Executable):
            raise ExecutableError(
                f"[call] needs a program on devices of this process; got {self.name}, compiled for "
                "a described machine. Save it with jax.experimental.serialize_executable and load "
                "it where the devices are."
            )
        return build_unsafe_call(self)

    traceback_util.register_exclusion(__file__)  # as in compilation.py
    compiler._get_cross_compile_backend = no_backend
    compiler.backend_compile_and_load = without_callbacks
    pxla.UnloadedMeshExecutable.build_unsafe_call = build


def is_compile_only(backend: Any) -> bool:
    """Whether the backend is that of a described machine, which runs and loads nothing."""
    from jaxlib import _jax

    return isinstance(backend, _jax.CompileOnlyPyClient)
