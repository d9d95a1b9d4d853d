"""Ops with loops in `shard_map`, which checks what varies over devices by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec

import ipujax as ipu

nn, ops = ipu.nn, ipu.ops
RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=(2, *shape)).astype(np.float32)


def integers(most: int, *shape: int) -> np.ndarray:
    return RNG.integers(0, most, (2, *shape)).astype(np.int32)


#: The function, and its operands on two devices.
CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "ctc_loss": (nn.ctc_loss, (floats(5, 2, 4), integers(3, 2, 2) + 1)),
    "beam_search": (lambda x: nn.ctc_beam_search_decoder(x, beam_width=4), (floats(5, 2, 4),)),
    "embedding_lookup": (
        lambda x, at: ops.embedding_lookup(x, at, 3),
        (floats(6, 2), integers(6, 5)),
    ),
    "serialized_matmul": (
        lambda a, b: ops.serialized_matmul(a, b, 2, "reducing_dim"),
        (floats(3, 4), floats(4, 2)),
    ),
    "uniform_sampler": (
        lambda seed: ops.uniform_candidate_sampler(seed, jnp.array([1]), 4, True, 6),
        (integers(99, 2),),
    ),
    "learned_sampler": (
        lambda x: ops.learned_unigram_candidate_sampler(3, x * x, jnp.array([1]), 4, True),
        (floats(6),),
    ),
    "nce_loss": (
        lambda w, x: ops.nce_loss(w, w[:, 0], jnp.array([[1], [2]]), x, 3, 6, seed=5),
        (floats(6, 4), floats(2, 4)),
    ),
}


def gradient_of(function: Callable[..., Any], operands: Any) -> Callable[..., Any]:
    smooth = [k for k, x in enumerate(operands) if x.dtype == np.float32]

    def total(*operands: Any) -> Any:
        leaves = jax.tree.leaves(function(*operands))
        return sum(jnp.sum(jnp.cos(y)) for y in leaves if y.dtype == jnp.float32)

    return jax.grad(total, smooth)


DIFFERENTIABLE = ("ctc_loss", "embedding_lookup", "serialized_matmul", "nce_loss")
RUNS = [(name, False) for name in CASES] + [(name, True) for name in DIFFERENTIABLE]


@pytest.mark.parametrize(("name", "derive"), RUNS)
@pytest.mark.parametrize("platform", ["ipu", "cpu"])
def test_each_device_does_its_own(name: str, derive: bool, platform: str):
    function, operands = CASES[name]
    function = gradient_of(function, operands) if derive else function
    devices = jax.devices(platform)[: 2 if platform == "ipu" else 1]
    operands = tuple(x[: len(devices)] for x in operands)
    mesh, spec = Mesh(np.array(devices), ("d",)), PartitionSpec("d")

    def local(*operands: Any) -> Any:
        return jax.tree.map(lambda y: y[None], function(*(x[0] for x in operands)))

    mapped = jax.shard_map(local, mesh=mesh, in_specs=spec, out_specs=spec)
    found = jax.tree.leaves(jax.jit(mapped)(*operands))
    with jax.default_device(devices[0]):
        alone = [jax.jit(function)(*(x[n] for x in operands)) for n in range(len(devices))]
    expected = jax.tree.leaves(jax.tree.map(lambda *each: np.stack(each), *alone))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("update", ["add", "sorted", "combined"])
def test_rows_and_products_without_elements(update: str):
    empty = np.zeros((4, 0, 3), np.float32)
    for factor in (1, 2):
        found = ops.embedding_lookup(empty, np.array([1, 3, 3]), factor, update=update)
        assert found.shape == (3, 0, 3)
    sizes = {"a_columns": (4, 2, 0), "reducing_dim": (0, 4, 2), "b_rows": (2, 0, 4)}
    for dimension, (m, k, n) in sizes.items():
        a, b = np.ones((3, m, k), np.float32), np.ones((3, k, n), np.float32)
        np.testing.assert_array_equal(ops.serialized_matmul(a, b, 2, dimension), a @ b)
