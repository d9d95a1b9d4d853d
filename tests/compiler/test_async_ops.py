"""Collectives in two halves give what the collectives themselves give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax._src.interpreters import mlir as private_mlir
from jax._src.lax import parallel
from jax.sharding import PartitionSpec as P
from jaxlib.mlir import ir

from ipujax.compiler.async_ops import join_halves
from ipujax.errors import UnsupportedOpError

RING = [(0, 1), (1, 2), (2, 3), (3, 0)]
PAIRS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "psum": (lambda x: parallel.psum_start(x, "a"), lambda x: lax.psum(x, "a")),
    "psum_scatter": (
        lambda x: parallel.psum_scatter_start(x, "a", tiled=True),
        lambda x: lax.psum_scatter(x, "a", tiled=True),
    ),
    "all_gather": (
        lambda x: parallel.all_gather_start(x, "a", tiled=True),
        lambda x: lax.all_gather(x, "a", tiled=True),
    ),
    "all_to_all": (
        lambda x: parallel.all_to_all_start(x, "a", 0, 0, tiled=True),
        lambda x: lax.all_to_all(x, "a", 0, 0, tiled=True),
    ),
    "pbroadcast": (
        lambda x: parallel.pbroadcast_start(x, "a", source=0),
        lambda x: lax.pbroadcast(x, "a", source=0),
    ),
    "ppermute": (
        lambda x: parallel.ppermute_start(x, "a", RING),
        lambda x: lax.ppermute(x, "a", RING),
    ),
}


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("name", PAIRS)
def test_two_halves_are_the_collective(name: str, count: int):
    start, whole = PAIRS[name]
    if name == "ppermute" and count == 1:
        start = lambda x: parallel.ppermute_start(x, "a", [(0, 0)])  # noqa: E731
        whole = lambda x: x  # noqa: E731
    mesh = jax.make_mesh((count,), ("a",), devices=jax.devices("ipu")[:count])

    def in_halves(x: Any) -> Any:
        future = start(x)
        other = x @ x.T
        return future.done(), other

    def run(f: Callable[..., Any]) -> Any:
        x = jax.device_put(np.arange(64, dtype=np.float32).reshape(16, 4), P("a"))
        return jax.device_get(jax.jit(jax.shard_map(f, out_specs=P("a")))(x))

    with jax.set_mesh(mesh):
        got, wanted = run(in_halves), run(lambda x: (whole(x), x @ x.T))
    jax.tree.map(np.testing.assert_array_equal, got, wanted)


def test_a_future_that_leaves_its_function_is_refused_by_name():
    text = """
    func.func @main(%x: tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>> {
      %f = "stablehlo.async_start"(%x) ({
      ^bb0(%y: tensor<4xf32>):
        %z = "stablehlo.all_gather"(%y) <{
          all_gather_dim = 0 : i64, replica_groups = dense<[[0]]> : tensor<1x1xi64>
        }> : (tensor<4xf32>) -> tensor<4xf32>
        stablehlo.return %z : tensor<4xf32>
      }) : (tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>>
      return %f : !stablehlo.future<tensor<4xf32>>
    }"""
    with private_mlir.make_ir_context():
        module = ir.Module.parse(text)
    with pytest.raises(UnsupportedOpError, match=r"async_start.*call done\(\)"):
        join_halves(module)
