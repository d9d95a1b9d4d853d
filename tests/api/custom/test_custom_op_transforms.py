"""Custom ops under JAX's transformations, in control flow, and on several devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import ipujax as ipu
from tests.api.custom.test_custom_op_interface import HEADERS, function, gradient, level_of

SOURCE = (
    HEADERS
    + level_of(5)
    + function("Build", "outputs.push_back(popops::mul(graph, inputs[0], inputs[1], prog));")
    + gradient(
        "Build_grad",
        "outputs.push_back(popops::mul(graph, gradients[0], fwd_inputs[1 - input], prog));",
    )
)
Op = Callable[[jax.Array, jax.Array], jax.Array]


def multiply(**options: Any) -> Op:
    return ipu.custom_op(SOURCE, outputs=lambda x, y: x, gradients="separate", **options)


def with_rule() -> Op:
    """Its rule makes one call for all examples."""

    def rule(size: int, batched: list[bool], *inputs: jax.Array) -> tuple[jax.Array, bool]:
        rows = (
            x if b else jnp.broadcast_to(x, (size, *x.shape))
            for x, b in zip(inputs, batched, strict=True)
        )
        return multiply()(*rows), True

    return multiply(vmap=rule)


def scanned(op: Op) -> Callable[..., Any]:
    return lambda x, y: lax.scan(
        lambda carry, row: (op(carry, row), op(row, row)), x, jnp.stack([y] * 4)
    )


def branched(op: Op) -> Callable[..., jax.Array]:
    return lambda x, y: lax.cond(x.sum() > 0, lambda: op(x, y), lambda: op(y, y))


def repeated(op: Op) -> Callable[..., jax.Array]:
    return lambda x, y: lax.while_loop(lambda c: c.sum() < 100, lambda c: op(c, y), x)


PROGRAMS: dict[str, Callable[[Op], Callable[..., Any]]] = {
    "scan": scanned,
    "gradient of scan": lambda op: jax.grad(lambda x, y: scanned(op)(x, y)[0].sum(), (0, 1)),
    "gradient of cond": lambda op: jax.grad(lambda x, y: branched(op)(x, y).sum()),
    "while": repeated,
    "checkpoint": lambda op: jax.grad(
        jax.checkpoint(lambda x, y: jnp.sin(op(jnp.sin(x), y)).sum())
    ),
    "gradient by example": lambda op: jax.vmap(jax.grad(lambda x, y: op(x, y).sum())),
    "gradient of vmap": lambda op: jax.grad(lambda x, y: jax.vmap(op)(x, y).sum()),
    "one operand batched": lambda op: lambda x, y: jax.vmap(op, (0, None))(x, y[0]),
    "other axes": lambda op: jax.vmap(jax.jit(op), (1, 1), 1),
    "vmap of vmap": lambda op: lambda x, y: jax.vmap(jax.vmap(op, (0, None)), (None, 0))(x, y[:2]),
    "vmap of scan": lambda op: jax.vmap(scanned(op)),
}


@pytest.fixture
def pair() -> tuple[jax.Array, jax.Array]:
    keys = jax.random.split(jax.random.key(0))
    return tuple(1 + jax.random.uniform(key, (4, 6)) for key in keys)


def assert_same(found: Any, wanted: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5), found, wanted)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_as_with_an_operation_of_jax(name: str, pair) -> None:
    wanted = jax.jit(PROGRAMS[name](jnp.multiply))(*pair)
    for op in (multiply(), with_rule()):
        assert_same(jax.jit(PROGRAMS[name](op))(*pair), wanted)


def test_several_devices(pair) -> None:
    """pmap and shard_map call it with parts; under jit it gets whole arrays."""
    op, (x, y) = multiply(), pair
    assert_same(jax.pmap(op)(x, y), x * y)
    assert_same(jax.grad(lambda x, y: jax.pmap(op)(x, y).sum())(x, y), y)
    mesh = Mesh(np.array(jax.devices()[:2]), "r")
    parts = jax.device_put(pair, NamedSharding(mesh, P(None, "r")))
    assert_same(jax.jit(op)(*parts), x * y)
    spread = jax.shard_map(op, mesh=mesh, in_specs=P(None, "r"), out_specs=P(None, "r"))
    assert_same(jax.jit(spread)(*parts), x * y)


def test_stages_on_two_ipus(run_python, tmp_path) -> None:
    """Each stage's functions get the graph of its IPU."""
    script = tmp_path / "stages.py"
    script.write_text(
        f"""
import jax, jax.numpy as jnp, numpy as np, ipujax as ipu
op = ipu.custom_op({SOURCE!r}, outputs=lambda x, y: x, gradients="separate")
stages = [lambda w, x: op(x, w), lambda v, h: jnp.mean(jnp.tanh(op(h, v)))]
pipelined = ipu.pipeline(stages, micro_batches=4, reduction="mean", device_mapping=[0, 1])
x = jnp.linspace(0, 1, 32).reshape(4, 8)
w, v = jnp.arange(8.0) / 8, jnp.ones(8)
found = jax.jit(jax.grad(lambda p: pipelined(list(p), x)))((w, v))
wanted = jax.grad(lambda p: jnp.mean(jnp.tanh(x * p[0] * p[1])))((w, v))
jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), found, wanted)
print("same")
"""
    )
    run = run_python(script, env={"JAX_IPU_IPUS_PER_DEVICE": "2", "JAX_IPU_DEVICE_COUNT": "1"})
    assert run.stdout.strip().endswith("same"), run.stdout + run.stderr
