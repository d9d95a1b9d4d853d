"""Programs over meshes that differ in the names of their axes, or in more."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.compiler.partition.sharded_oracle import LocalProgram, compare

X = np.arange(64, dtype=np.float32).reshape(8, 8)


def mesh(shape: tuple[int, ...], names: str, order: Any = None) -> Mesh:
    devices = np.array(jax.devices("cpu")[:8])[list(order or range(8))]
    return Mesh(devices.reshape(shape), tuple(names), axis_types=(AxisType.Auto,) * len(shape))


FIRST = mesh((4, 2), "ab")
SECOND = mesh((4, 1, 2), "xoy")


def put(on: Mesh, *spec: Any) -> Any:
    return jax.device_put(X, NamedSharding(on, P(*spec)))


def collectives(program: LocalProgram) -> int:
    return sum(f"stablehlo.{name}" in program.text for name in ("all_gather", "all_to_all"))


def test_blocks_of_equal_grids_meet_without_exchange():
    args = put(FIRST, "a"), put(SECOND, ("x", "o"))
    f = jax.jit(lambda a, b: a + b)
    program = compare(f, args, f, 0, 0)
    assert collectives(program) == 0
    assert "stablehlo.add %arg0, %arg1 : tensor<2x8xf32>" in program.text


def test_constraints_and_maps_over_the_second_grid():
    def f(a: Any) -> Any:
        b = lax.with_sharding_constraint(a * 2, NamedSharding(SECOND, P("y", "x")))
        mapped = jax.shard_map(
            lambda v: v * (1 + lax.axis_index("x")) + lax.psum(v, "y"),
            mesh=SECOND,
            in_specs=P("x"),
            out_specs=P("x"),
            axis_names={"x", "y", "o"},
        )
        part = jax.shard_map(
            lambda v: v.sum(1) + lax.axis_index("y"),
            mesh=SECOND,
            in_specs=P("y"),
            out_specs=P("y"),
            axis_names={"y"},
        )
        return b, mapped(a) + a, part(a), lax.scan(lambda c, row: (c + row, b[0]), a[0], b)

    jitted = jax.jit(f)
    compare(jitted, (put(FIRST, "a"),), jitted, 1e-5, 1e-5)


def test_other_grids_stay_apart():
    f = jax.jit(lambda a, b, c: a @ b + c)
    args = put(FIRST, "a"), put(mesh((2, 4), "pq"), "q", "p"), put(mesh((8,), "r"), "r")
    compare(f, args, f, 1e-5, 1e-5)
