"""Costs of ops: every step costs something, and more work costs more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from ipujax import jax_compat
from ipujax.compiler.compile import compile_module
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.registry import RULES

#: Few tiles, so that a few thousand elements are more than one for each worker.
PLATFORM = {"machine": "gc200", "ipus_per_device": 1, "num_tiles": 4}
SIZE = 1 << 12

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def floats(n: int, dtype: Any = np.float32) -> np.ndarray:
    return np.ones(n, dtype)


def ints(n: int) -> np.ndarray:
    return np.ones(n, np.int32)


def unary(f: Callable, dtype: Any = np.float32) -> Callable[[int], Program]:
    return lambda n: (f, (np.ones(n, dtype),))


def binary(f: Callable, dtype: Any = np.float32) -> Callable[[int], Program]:
    return lambda n: (f, (np.ones(n, dtype), np.ones(n, dtype)))


def square(f: Callable) -> Callable[[int], Program]:
    """A matrix of about n elements."""
    return lambda n: (f, (np.ones((int(n**0.5), int(n**0.5)), np.float32),))


def scan(n: int) -> Program:
    return lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + i, x), (floats(n),)


def while_loop(n: int) -> Program:
    return lambda x: lax.while_loop(lambda c: c[0] < 5, jnp.sin, x), (floats(n),)


def case(n: int) -> Program:
    branches = [jnp.sin, jnp.cos, lambda x: x * 2]
    return lambda i, x: lax.switch(i, branches, x), (np.int32(1), floats(n))


def if_(n: int) -> Program:
    return lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), (floats(n),)


def exact_gelu(x: Any) -> Any:
    return jax.nn.gelu(x, approximate=False)


def gradient(f: Callable) -> Callable:
    """Of an elementwise function, times x."""
    return lambda x, y: jax.vjp(f, x)[1](y)


def softmax(n: int) -> Program:
    return jax.nn.softmax, (np.ones((n // 16, 16), np.float16),)


def pooled(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID")


def pool_gradient(x: Any) -> Any:
    return jax.vjp(pooled, x)[1](jnp.ones((x.shape[0] - 1, x.shape[1] - 1)))


def convolution(n: int) -> Program:
    image, kernel = np.ones((1, 4, n // 64, 16), np.float32), np.ones((4, 4, 3, 3), np.float32)
    return lambda x, k: lax.conv(x, k, (1, 1), "SAME"), (image, kernel)


def solved(a: Any) -> Any:
    return lax.linalg.triangular_solve(a, a, lower=True, left_side=True)


#: For each op of the registry a program of the given size that spends its time in it.
PROGRAMS: dict[str, Callable[[int], Program]] = {
    "abs": unary(jnp.abs),
    "add": binary(jnp.add),
    "and": binary(jnp.bitwise_and, np.int32),
    "atan2": binary(jnp.arctan2),
    "bitcast": unary(lambda x: lax.bitcast_convert_type(x, np.int32) + 1),
    "bitcast_convert": unary(lambda x: lax.bitcast_convert_type(x, np.uint16)),
    "broadcast_in_dim": lambda n: (lambda x: jnp.broadcast_to(x, (n, 2)), (floats(1)[0],)),
    "case": case,
    "cbrt": unary(jnp.cbrt),
    "ceil": unary(jnp.ceil),
    "chlo.acos": unary(lax.acos),
    "chlo.acosh": unary(lax.acosh),
    "chlo.asin": unary(lax.asin),
    "chlo.asinh": unary(lax.asinh),
    "chlo.atanh": unary(lax.atanh),
    "chlo.cosh": unary(lax.cosh),
    "chlo.erf": unary(lax.erf),
    "chlo.erfc": unary(lax.erfc),
    "chlo.sinh": unary(lax.sinh),
    "chlo.top_k": lambda n: (lambda x: lax.top_k(x, 8), (floats(n),)),
    "cholesky": square(lambda a: lax.linalg.cholesky(a, symmetrize_input=False)),
    "clamp": unary(lambda x: lax.clamp(0.5, x, 0.7)),
    "compare": binary(jnp.less),
    "concatenate": binary(lambda x, y: jnp.concatenate([x, y])),
    "convert": unary(lambda x: x.astype(jnp.int32)),
    "convolution": convolution,
    "cosine": unary(jnp.cos),
    "count_leading_zeros": unary(lax.clz, np.int32),
    "divide": binary(jnp.divide),
    "dot_general": square(lambda a: a @ a),
    "dynamic_slice": lambda n: (
        lambda x, i: lax.dynamic_slice(x, (i,), (n // 2,)),
        (floats(n), np.int32(3)),
    ),
    "dynamic_update_slice": lambda n: (
        lambda x, y, i: lax.dynamic_update_slice(x, y, (i,)),
        (floats(n), floats(n // 2), np.int32(3)),
    ),
    "exponential": unary(jnp.exp),
    "exponential_minus_one": unary(jnp.expm1),
    "fft": lambda n: (lambda x: jnp.abs(jnp.fft.rfft(x)), (np.ones((n // 64, 64), np.float32),)),
    "floor": unary(jnp.floor),
    "fused": unary(lambda x: jnp.sin(x) * 2 + x),
    "gather": lambda n: (lambda x, i: x[i], (floats(n), ints(n))),
    "gelu": unary(jax.nn.gelu),
    "gelu_erf": unary(exact_gelu),
    "gelu_erf_gradient": binary(gradient(exact_gelu)),
    "gelu_gradient": binary(gradient(jax.nn.gelu)),
    "if": if_,
    "iota": lambda n: (lambda: lax.iota(np.int32, 4 * n), ()),
    "is_finite": unary(jnp.isfinite),
    "log": unary(jnp.log),
    "log_plus_one": unary(jnp.log1p),
    "logistic": unary(jax.nn.sigmoid),
    "maximum": binary(jnp.maximum),
    "minimum": binary(jnp.minimum),
    "multiply": binary(jnp.multiply),
    "multiply_wide": softmax,
    "negate": unary(jnp.negative),
    "not": unary(jnp.bitwise_not, np.int32),
    "or": binary(jnp.bitwise_or, np.int32),
    "pad": unary(lambda x: jnp.pad(x, 3)),
    "popcnt": unary(lax.population_count, np.int32),
    "power": binary(jnp.power),
    "reduce": unary(jnp.sum),
    "reduce_precision": unary(lambda x: lax.reduce_precision(x, 8, 7)),
    "reduce_window": square(pooled),
    "remainder": binary(lax.rem),
    "reverse": unary(lambda x: x[::-1]),
    "rng_bit_generator": lambda n: (
        lambda key: lax.rng_bit_generator(key, (n,), np.uint32)[1],
        (np.ones(4, np.uint32),),
    ),
    "round_nearest_afz": unary(lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)),
    "round_nearest_even": unary(lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)),
    "rsqrt": unary(lax.rsqrt),
    "scatter": lambda n: (lambda x, i: x.at[i].add(2.0), (floats(n), ints(n))),
    "select": lambda n: (jnp.where, (np.ones(n, bool), floats(n), floats(n))),
    "select_and_scatter": square(pool_gradient),
    "shift_left": binary(lax.shift_left, np.int32),
    "shift_right_arithmetic": binary(lax.shift_right_arithmetic, np.int32),
    "shift_right_logical": binary(lax.shift_right_logical, np.int32),
    "sign": unary(jnp.sign),
    "sine": unary(jnp.sin),
    "slice": unary(lambda x: x[1::2]),
    "sort": unary(jnp.sort),
    "sqrt": unary(jnp.sqrt),
    "subtract": binary(jnp.subtract),
    "tan": unary(jnp.tan),
    "tanh": unary(jnp.tanh),
    "transpose": square(jnp.transpose),
    "triangular_solve": square(solved),
    "while": scan,
    "xor": binary(jnp.bitwise_xor, np.int32),
}

#: Ops without work of their own, or that other tests cover.
WITHOUT = {
    "after_all": "tokens hold nothing",
    "create_token": "tokens hold nothing",
    "custom_call": "costs what its target says",
    "map": "is its body's ops",
    "optimization_barrier": "renames values",
    "cross-replica-sum": "is all_reduce by its old name",
    "partition_id": "is one number of each replica",
    "replica_id": "is a constant",
    "raise_if": "stops the program where emulation is at its end",
    "reshape": "is a view",
    "rng": "is refused or rewritten",
    "call": "is its function's ops: tests/api/pipeline/test_outlined.py",
    "copy_to_ipu": "needs a device of several IPUs: tests/stages",
    "pipeline": "needs a device of several IPUs: tests/stages",
    "host_empty": "is memory of the host",
    "host_reshape": "is a view",
    **dict.fromkeys(
        ("read_entry", "to_device", "to_host", "write_entry"), "tests/compiler/test_memories.py"
    ),
}


def steps(program: Program) -> list[dict[str, Any]]:
    """The steps of a compiled program, each with its account."""
    f, arguments = program
    lowered = jax.jit(f).trace(*arguments).lower(lowering_platforms=("ipu",))
    image = compile_module(jax_compat.serialize_artifact(lowered), b"", PLATFORM)
    return list(ipu.engine.inspectImage(image)["steps"])


def cycles(found: list[dict[str, Any]]) -> float:
    return sum(step["cost"]["cycles"] for step in found)


@pytest.mark.parametrize("name", PROGRAMS)
def test_more_work_costs_more(name: str):
    small, one, two = (steps(PROGRAMS[name](n)) for n in (64, SIZE, 4 * SIZE))
    for found in (small, one, two):
        assert found, "nothing runs"
        free = [step["kernel"] for step in found if not step["cost"]["cycles"] > 0]
        assert free == [], "steps that cost nothing"
    assert cycles(small) < cycles(one) < cycles(two)
    # Four times the elements; the fixed cost is less than half of the total.
    assert cycles(two) > 1.5 * cycles(one)


RING = [(i, (i + 1) % 4) for i in range(4)]
COLLECTIVES: dict[str, Callable[[jax.Array], jax.Array]] = {
    "all_gather": lambda x: lax.all_gather(x, "x"),
    "all_reduce": lambda x: lax.psum(x, "x"),
    "all_to_all": lambda x: lax.all_to_all(x.reshape(4, -1), "x", 0, 0),
    "collective_broadcast": lambda x: lax.pbroadcast(x, "x", 1),
    "collective_permute": lambda x: lax.ppermute(x, "x", RING),
    "reduce_scatter": lambda x: lax.psum_scatter(x, "x", tiled=True),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_more_to_send_costs_more(name: str):
    mesh = Mesh(np.array(jax.devices("ipu")[:4]), ("x",))
    f = jax.shard_map(
        COLLECTIVES[name],
        mesh=mesh,
        in_specs=PartitionSpec("x"),
        out_specs=PartitionSpec("x"),
        check_vma=False,
    )
    small, one, two = (
        jax.jit(f).lower(floats(4 * n)).compile().cost_analysis() for n in (64, SIZE, 4 * SIZE)
    )
    for key in ("cycles", "link cycles", "link bytes"):
        assert 0 < small[key] < one[key] < two[key]
    assert two["link bytes"] == 4 * one["link bytes"]


def test_every_op_with_a_rule_is_here():
    named = PROGRAMS.keys() | COLLECTIVES.keys() | WITHOUT.keys()
    assert sorted(RULES.keys() - named) == []
    assert sorted(PROGRAMS.keys() & WITHOUT.keys()) == []
