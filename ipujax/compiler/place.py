"""Stage 4: which IPU and which memory every value of the program lives in.

A device is one virtual graph over its IPUs, and all of its memory is tile memory, so today the only
thing to decide is what cannot be had: arguments in another memory than the device's are refused.
"""

from __future__ import annotations

from ipujax.compiler.ir import Program
from ipujax.errors import InvalidProgramError

#: JAX's names for the memory that programs compute in.
DEVICE_KINDS = frozenset({"", "device", "tile"})


def place(program: Program) -> Program:
    """Checks the memory kind of every argument.

    Raises:
        InvalidProgramError: an argument lives in a memory that programs cannot reach.
    """
    for index, parameter in enumerate(program.parameters):
        if parameter.memory_kind not in DEVICE_KINDS:
            raise InvalidProgramError(
                f"[place] needs arguments in device memory; got argument {index} in "
                f"{parameter.memory_kind!r}. Move it to the device first with jax.device_put."
            )
    return program
