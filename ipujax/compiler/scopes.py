"""The options of single ops: the program's, changed by what `ipu.precision` set around them."""

from __future__ import annotations

from ipujax.compiler.ir import Op
from ipujax.config import CompileConfig, with_compiler_options


class ScopedOptions:
    """Looks up ops' options; each set of changes is parsed once."""

    def __init__(self, program: CompileConfig):
        self._known: dict[tuple[tuple[str, str], ...], CompileConfig] = {(): program}

    def of(self, op: Op) -> CompileConfig:
        scope = op.source.options
        found = self._known.get(scope)
        if found is None:
            found = self._known[scope] = with_compiler_options(self._known[()], dict(scope))
        return found
