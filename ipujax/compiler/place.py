"""Stage 4: which IPU and which memory every value of the program lives in.

A device is one virtual graph over its IPUs, and all of its memory is tile memory, so today the only
thing to decide is what cannot be had: arguments in another memory than the device's are refused.
"""

from __future__ import annotations

from ipujax import placement
from ipujax.compiler.ir import Program


def place(program: Program) -> Program:
    """Checks the memory kind of every argument.

    Raises:
        PlacementError: an argument lives in a memory that programs cannot reach.
    """
    for index, parameter in enumerate(program.parameters):
        placement.check_memory(f"argument {index}", parameter.memory_kind)
    return program
