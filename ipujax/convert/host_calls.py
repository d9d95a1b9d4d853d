"""Ops of a program that run on the host while it runs: calls of JAX's CPU backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.export
import jax.ffi
import numpy as np

from ipujax import jax_compat
from ipujax.compiler.sources import name_of
from ipujax.convert.dtypes import cast, dtype_of
from ipujax.errors import ConvertError
from ipujax.host import programs as host_programs
from ipujax.verification.slices import piece, results_used_outside

Dtypes = Mapping[np.dtype[Any], np.dtype[Any]]


class HostGroup(NamedTuple):
    """Ops of one block that run together."""

    block: Any
    operations: Sequence[Any]
    results: list[Any]  #: values that others use


def host_group(block: Any, operations: Sequence[Any]) -> HostGroup:
    return HostGroup(block, operations, results_used_outside(operations))


def call_host(
    exported: jax.export.Exported, group: HostGroup, env: Mapping[Any, Any], wire: Dtypes
) -> dict[Any, Any]:
    """The results of a group of ops, computed on the host as they were written.

    Args:
        exported: the program that they belong to.
        env: the arrays of earlier values.
        wire: maps dtypes to other dtypes in which arrays cross the link.
    Raises:
        ConvertError: the host does not support an op.
    """
    made = {value for operation in group.operations for value in operation.results}
    extracted = piece(group.block, group.results, cut=lambda value: value not in made)
    written = [dtype_of(value) for value in extracted.inputs]
    given = [cast(env[v], wire.get(d, d)) for v, d in zip(extracted.inputs, written, strict=True)]
    takes = [jax.ShapeDtypeStruct(x.shape, d) for x, d in zip(given, written, strict=True)]
    gives = [jax.ShapeDtypeStruct(tuple(v.type.shape), dtype_of(v)) for v in group.results]
    code = jax_compat.artifact_of(extracted.code)
    called = jax_compat.exported_like(exported, "host", code, takes, gives, ("cpu",))

    def on_host(*arrays: Any) -> list[Any]:
        operands = [cast(x, dtype) for x, dtype in zip(arrays, written, strict=True)]
        results = called.call(*operands)
        return [cast(x, wire.get(x.dtype, x.dtype)) for x in results]

    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in given]
    try:
        program = jax.export.export(jax.jit(on_host), platforms=["cpu"])(*shapes)
    except ValueError as error:
        names = ", ".join(name_of(operation.location) for operation in group.operations)
        raise ConvertError(
            f"[convert] needs operations for the host that JAX's CPU backend has; got {names}: "
            f"{error}. Exclude others."
        ) from None
    return dict(zip(group.results, _call(program, given), strict=True))


def _call(program: jax.export.Exported, operands: Sequence[Any]) -> Sequence[Any]:
    """A callback whose id is the program, so that the whole program can be saved."""
    call = jax.ffi.ffi_call(
        jax_compat.CALLBACK_TARGET,
        [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in program.out_avals],
        vmap_method="sequential",
        custom_call_api_version=2,
        legacy_backend_config=host_programs.id_of(program),
    )
    results: Sequence[Any] = call(*operands)
    return results
