"""MLIR modules: reading them and running passes on them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

#: Bytes of programs that one context may read: it keeps every type, attribute and constant that
#: it has seen.
_CONTEXT_BYTES = 1 << 20

#: Contexts that are not in use, each with the bytes that it may still read.
_idle_contexts: list[tuple[Any, int]] = []


@contextlib.contextmanager
def lent_context(code_bytes: int) -> Iterator[Any]:
    """An MLIR context for a program of `code_bytes` bytes, for the caller's use alone.

    Contexts are reused: making one and loading all dialects takes longer than compiling a small
    program. It is JAX's context, with every dialect that a program may hold; there is no public way
    to make one.
    """
    from jax._src.interpreters import mlir as private_mlir

    try:
        context, room = _idle_contexts.pop()
    except IndexError:
        context, room = private_mlir.make_ir_context(), _CONTEXT_BYTES
    try:
        yield context
    finally:
        if room > code_bytes:
            _idle_contexts.append((context, room - code_bytes))


def stablehlo_version() -> list[int]:
    """The newest StableHLO version that this jaxlib reads: JAX need not write an older one."""
    from jaxlib.mlir.dialects import stablehlo

    return [int(part) for part in stablehlo.get_current_version().split(".")]


def serialize_artifact(lowered: Any) -> bytes:
    """The bytes that the plugin would get for `jax.jit(f).lower(...)`."""
    from jax._src.interpreters import mlir as private_mlir
    from jaxlib import _jax
    from jaxlib.mlir.dialects import stablehlo

    module = lowered.compiler_ir()
    shapes = lowered._lowering.compile_args["shape_poly_state"]
    if shapes is not None and shapes.uses_dim_vars:
        # As JAX does before it compiles: it resolves choices by platform and symbolic sizes.
        module = private_mlir.refine_polymorphic_shapes(module)
    bytecode = private_mlir.module_to_bytecode(module)
    return bytes(
        _jax.mlir.serialize_portable_artifact(bytecode, stablehlo.get_current_version(), True)
    )


def artifact_of(code: bytes | str) -> bytes:
    """The portable artifact of StableHLO bytecode or text."""
    from jax._src.interpreters import mlir as private_mlir
    from jaxlib import _jax
    from jaxlib.mlir.dialects import stablehlo

    bytecode = private_mlir.module_to_bytecode(parse_module(code))
    return bytes(
        _jax.mlir.serialize_portable_artifact(bytecode, stablehlo.get_current_version(), True)
    )


def deserialize_artifact(code: bytes, context: Any = None) -> Any:
    """The MLIR module of a StableHLO portable artifact, in `context` or in a new one."""
    from jax._src.interpreters import mlir as private_mlir
    from jaxlib.mlir.dialects import stablehlo

    if context is None:
        context = private_mlir.make_ir_context()
    return stablehlo.deserialize_portable_artifact(context, code)


def num_devices_of(code: bytes) -> int:
    """The number of devices that a StableHLO portable artifact runs on; 1 if it gives none.

    Raises:
        ValueError: it gives a number below 1.
    """
    from jaxlib.mlir import ir

    attributes = deserialize_artifact(code).operation.attributes
    count = 1
    for name in ("mhlo.num_replicas", "mhlo.num_partitions"):
        if name in attributes:
            said = ir.IntegerAttr(attributes[name]).value
            if said < 1:
                raise ValueError(f"{name} = {said}")
            count *= said
    return count


def parse_module(code: bytes | str) -> Any:
    """The MLIR module of bytecode or text, in a new context."""
    from jax._src.interpreters import mlir as private_mlir
    from jaxlib.mlir import ir

    with private_mlir.make_ir_context(), ir.Location.unknown():
        return ir.Module.parse(code)


def is_undecodable(error: Exception) -> bool:
    """Whether MLIR's bindings failed on a name that is not valid UTF-8."""
    return isinstance(error, UnicodeDecodeError) or (
        isinstance(error, RuntimeError) and "str_from_cstr_and_size" in str(error)
    )


def refine_shapes(module: Any) -> None:
    """Infers, in place, the shapes that follow from the arguments' shapes and from constants.

    The passes stop with an error if a shape depends on run-time values. The module then stays
    partly refined, and its reader reports the op that is left.
    """
    from jaxlib.mlir import ir

    refine = ["stablehlo-refine-shapes", "func.func(stablehlo-canonicalize-dynamism)"]
    with contextlib.suppress(ir.MLIRError):
        # Twice: the second round uses shapes that the first turned from operands into types.
        run_passes(module, [*refine, *refine, "canonicalize"])


def run_passes(module: Any, passes: Sequence[str]) -> None:
    """Runs MLIR passes of StableHLO and Shardy on a module, in place.

    A pass at the wrong nesting level aborts the process: pass only names that a test covers.
    """
    from jaxlib.mlir import passmanager
    from jaxlib.mlir.dialects import stablehlo

    stablehlo.register_stablehlo_passes()
    with module.context:
        passmanager.PassManager.parse(f"builtin.module({','.join(passes)})").run(module.operation)
