"""Arguments that stay on the device between runs, in a build against a Poplar SDK.

The IPU Model's own executor binds arguments to callers' arrays. `poplar::Engine` copies each over
the host link, so a program reads the larger ones only if they have changed: it first reads the
stream "fresh", with one number for each of them, and each copy is in a branch. If a branch is not
taken, its variable keeps its value from the last run, so Poplar gives these variables memory of
their own for the whole program. Rules never write to an argument's variable, and a donated one
holds the result that takes it over at the end.
"""

from __future__ import annotations

from ipujax.compiler.dtypes import DTYPES, TOKEN
from ipujax.compiler.ir import Op, Program, walk_ops
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.rounding_keys import USERS_CODE

#: A branch costs about as much as copying this many bytes. Microseconds per call with eight
#: arguments of one size, always copied and kept, on the host that builds this: 256 bytes 8.9 and
#: 9.9, 1 KiB 9.3 and 8.9, 4 KiB 9.6 and 9.2, 16 KiB 11.5 and 8.9, 64 KiB 23 and 9.5, 1 MiB 631
#: and 9.2. If all have changed, a branch adds at most 2 microseconds, up to 64 KiB.
LEAST_BYTES = 1024


def _is_users(op: Op) -> bool:
    """Whether the op is users' code, which could write to its inputs, though it must not."""
    return op.name == "custom_call" and op.attrs["call_target_name"] in USERS_CODE


class KeptArguments:
    """Adds the branches; `indices` are the arguments that have one, in the order of "fresh"."""

    def __init__(self, builder: Builder, program: Program):
        self._builder = builder
        self.indices: list[int] = []
        if ipu.capabilities.bound_arrays or any(map(_is_users, walk_ops(program.main))):
            return
        for index, value in enumerate(program.main.args):
            if value.dtype == TOKEN or value.is_remote:
                continue
            if value.num_elements * DTYPES[value.dtype].size >= LEAST_BYTES:
                self.indices.append(index)
        if self.indices:
            self._flags = self._read_flags()

    def _read_flags(self) -> ipu.Tensor:
        builder, poplar = self._builder, ipu.poplar
        debug, count = poplar.DebugContext("fresh"), len(self.indices)
        numbers = builder.graph.addVariable(poplar.INT, [count], debug)
        builder.graph.setTileMapping(numbers, 0)
        stream = builder.graph.addHostToDeviceFIFO("fresh", poplar.INT, count)
        builder.program.add(poplar.program.Copy(stream, numbers, debug))
        return builder.cast(numbers, poplar.BOOL, debug)

    def reading(self, index: int, copy: ipu.Program) -> ipu.Program:
        """The copy of an argument from its stream, in a branch if the device may keep it."""
        if index not in self.indices:
            return copy
        program, debug = ipu.poplar.program, ipu.poplar.DebugContext("fresh")
        place = self.indices.index(index)
        taken = program.Sequence(debug)
        taken.add(copy)
        flag = self._flags.slice(place, place + 1, 0).reshape([])
        return program.If(flag, taken, program.Sequence(debug), debug)
