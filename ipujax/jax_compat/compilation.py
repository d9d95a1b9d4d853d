"""Changes to what JAX does around a compilation by the plugin."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ipujax.jax_compat.platform import PLATFORM


def show_text_on_demand(show: Callable[[bool], None]) -> None:
    """Gives jaxlib the text of a program only inside `as_text`.

    jaxlib asks for it with every program it compiles, to learn layouts that are the defaults
    anyway; parsing the text of 1,000 ops takes longer than compiling them.

    Args:
        show: adds (True) or removes (False) a reader of texts; the plugin starts with one.
    """
    from jax._src import stages

    others = stages.Executable.as_text

    def as_text(self: stages.Executable) -> str:
        show(True)
        try:
            return others(self)
        finally:
            show(False)

    stages.Executable.as_text = as_text
    show(False)


#: Modules whose compilation was interrupted, kept until the process ends.
_interrupted: list[Any] = []


def outlive_interrupted_compiles() -> None:
    """Keeps a module alive when Ctrl-C interrupts its compilation.

    jaxlib compiles on a thread of its own. KeyboardInterrupt ends the wait for that thread and
    frees the module while the thread still uses it: the process may crash (jaxlib 0.10).
    """
    from jax._src import compiler, traceback_util

    traceback_util.register_exclusion(__file__)  # its frame would appear below each compile error
    compile_and_load = compiler.backend_compile_and_load

    @functools.wraps(compile_and_load)
    def keeping(backend: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return compile_and_load(backend, module, *args, **kwargs)
        except KeyboardInterrupt:
            _interrupted.append(module)
            raise

    compiler.backend_compile_and_load = keeping


def estimate_costs_by_compiling() -> None:
    """Makes `lowered.cost_analysis()` return the compiled program's costs; JAX only has XLA's.

    The executable is kept, so a later `compile()` takes no time.
    """
    from jax._src.interpreters import pxla

    others = pxla.MeshComputation.cost_analysis

    def cost_analysis(self: Any) -> Any:
        # A program that was lowered without devices cannot be compiled.
        known = self._device_list is not None
        if known and self.compile_args["backend"].platform == PLATFORM:
            return self.compile().cost_analysis()
        return others(self)

    pxla.MeshComputation.cost_analysis = cost_analysis
