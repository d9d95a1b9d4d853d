"""Stage 8: allocation, plans, costs, and whether the program fits: the sealed executable."""

from __future__ import annotations

import dataclasses
import io

from ipujax.compiler.ingest import Request
from ipujax.compiler.lower import Lowered
from ipujax.compiler.rules import poplar as ipu
from ipujax.errors import OutOfMemoryError


def build(lowered: Lowered, request: Request) -> bytes:
    """The executable's bytes.

    Raises:
        OutOfMemoryError: it does not fit a tile, and `out_of_memory="error"`.
    """
    bytecode = io.BytesIO()  # for as_text(); much faster to write than text
    request.module.operation.write_bytecode(bytecode)
    try:
        image = ipu.engine.buildImage(
            lowered.graph,
            lowered.program,
            lowered.signature,
            bytecode.getvalue(),
            dataclasses.asdict(request.options),
        )
    except ipu.poplar.graph_memory_allocation_error as error:
        raise OutOfMemoryError(str(error)) from error
    return bytes(image)
