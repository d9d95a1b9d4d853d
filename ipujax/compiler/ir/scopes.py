"""Options of single ops: the program's options, as changed by `ipu.precision`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipujax.config.options import CompileConfig, with_compiler_options
from ipujax.config.product_options import proportions_of

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

    def memory_proportion(self, op: Op, ipu: int) -> float:
        """The op's own available memory proportion, or else its IPU's, or else the program's."""
        several = proportions_of(self.program.available_memory_proportions)
        own = "ipu_available_memory_proportion" in dict(op.source.options)
        of_ipu = several[ipu] if ipu < len(several) and not own else None
        return self.of(op).available_memory_proportion if of_ipu is None else of_ipu
