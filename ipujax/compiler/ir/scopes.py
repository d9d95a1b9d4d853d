"""The options of single ops: those of the program, as changed by `ipu.precision`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipujax.config import CompileConfig, with_compiler_options

if TYPE_CHECKING:
    from ipujax.compiler.ir.program import Op


class ScopedOptions:
    """Looks up ops' options; each set of changes is parsed once."""

    def __init__(self, program: CompileConfig):
        self.program = program
        self._known: dict[tuple[tuple[str, str], ...], CompileConfig] = {(): program}

    def of(self, op: Op) -> CompileConfig:
        scope = op.source.options
        found = self._known.get(scope)
        if found is None:
            found = self._known[scope] = with_compiler_options(self.program, dict(scope))
        return found
