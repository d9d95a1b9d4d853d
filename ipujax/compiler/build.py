"""Stage 8: allocates, plans, costs and seals the program, and checks whether it fits."""

from __future__ import annotations

import dataclasses
import io
from dataclasses import dataclass
from typing import Any

from ipujax import jax_compat
from ipujax.compiler.ingest import Request
from ipujax.compiler.lower import Lowered
from ipujax.compiler.rules import poplar as ipu
from ipujax.config.product_options import flags_of
from ipujax.errors import InvalidProgramError, OutOfMemoryError


@dataclass(frozen=True)
class Built:
    """A sealed executable."""

    executable: bytes
    report: str  #: by how much it does not fit; empty if it fits


def build(lowered: Lowered, request: Request) -> Built:
    """Allocates memory for the lowered program and seals it."""
    bytecode = _bytecode_to_show(request.module)
    if not ipu.capabilities.images:
        return Built(_compile(lowered, bytecode, request.options.engine_options), "")
    return Built(
        *ipu.engine.buildImage(
            lowered.graph,
            lowered.program,
            lowered.signature,
            bytecode,
            dataclasses.asdict(request.options),
        )
    )


def _bytecode_to_show(module: Any) -> bytes:
    """Bytecode for as_text(), which only knows StableHLO; faster to write than text."""
    written = _bytecode_of(module)
    if b"chlo\0" not in written:
        return written
    jax_compat.run_passes(module, ["func.func(chlo-legalize-to-stablehlo)"])
    return _bytecode_of(module)


def _bytecode_of(module: Any) -> bytes:
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def _compile(lowered: Lowered, bytecode: bytes, engine_options: str) -> bytes:
    """Compiles with the Poplar SDK, which refuses programs that do not fit."""
    engine: Any = ipu.engine  # the stubs describe the IPU Model's build
    try:
        executable: bytes = engine.buildExecutable(
            lowered.graph,
            lowered.program,
            lowered.signature,
            bytecode,
            lowered.host_calls,
            lowered.remote_inputs,
            lowered.remote_outputs,
            lowered.kept_inputs,
            dict(flags_of(engine_options)),
        )
    except ipu.poplar.graph_memory_allocation_error as error:
        raise OutOfMemoryError(
            f"[build] needs a program that fits; got {error} Use more devices or IPUs, smaller "
            "arrays, or a lower ipu_available_memory_proportion."
        ) from error
    except ipu.poplar.poplar_error as error:
        raise InvalidProgramError(
            f"[build] needs a program that the Poplar SDK compiles; got its error: {error}"
        ) from error
    return executable
