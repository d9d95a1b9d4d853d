"""Programs for the compiler's tests, made by JAX and read without an IPU device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from ipujax import jax_compat
from ipujax.compiler import ir
from ipujax.compiler.ingest import ingest
from ipujax.compiler.normalise import normalise
from ipujax.compiler.reader import read_program
from ipujax.compiler.rules.registry import RULES


def artifact(f: Callable[..., Any], *args: Any, **options: Any) -> bytes:
    """What the plugin gets for jax.jit(f)(*args)."""
    lowered = jax.jit(f, **options).trace(*args).lower(lowering_platforms=("ipu",))
    return jax_compat.serialize_artifact(lowered)


def read(f: Callable[..., Any], *args: Any, **options: Any) -> ir.Program:
    """The program as it was written."""
    module = jax_compat.deserialize_artifact(artifact(f, *args, **options))
    return read_program(module, "test", RULES.__contains__)


def normal(f: Callable[..., Any], *args: Any, **options: Any) -> ir.Program:
    """The program after stage 3."""
    return normalise(ingest(artifact(f, *args, **options), b"", {}))


def names(block: ir.Block) -> list[str]:
    """The names of a block's own ops."""
    return [op.name for op in block.ops]


def find(program: ir.Program, name: str) -> ir.Op:
    """The first op of that name, in any block."""
    return next(op for op in ir.walk_ops(program.main) if op.name == name)
