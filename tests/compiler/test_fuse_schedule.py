"""Stages 5 and 6: what becomes one op, and in which order ops run."""

from __future__ import annotations

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ipujax.compiler import ir
from ipujax.compiler.fuse import MAX_BODY, fuse
from ipujax.compiler.ir.verify import verify
from ipujax.compiler.rules.elementwise import ELEMENTWISE
from ipujax.compiler.schedule import schedule
from tests.compiler.programs import names, normal

X = np.ones((8, 8), np.float32)


def fused(f, *args, **options):
    program = fuse(normal(f, *args, **options))
    verify(program, "fuse")
    return program


def scheduled(f, *args, **options):
    program = schedule(fused(f, *args, **options))
    verify(program, "schedule")
    return program


def test_a_chain_is_one_op():
    program = fused(lambda x: jnp.tanh(x * 2 + 1) - x, X)
    assert names(program.main) == ["fused"]
    assert [op.name for op in program.main.ops[0].attrs["body"]] == [
        "multiply",
        "add",
        "tanh",
        "subtract",
    ]


def test_values_used_outside_are_further_results():
    def f(x):
        e = jnp.exp(x)
        return e, e.sum(), e + 1

    program = fused(f, X)
    (cluster,) = [op for op in program.main.ops if op.name == "fused"]
    assert len(cluster.results) == 2


def test_no_cluster_waits_for_itself():
    """exp feeds the sum, and the division needs both: one op would need its own result."""
    program = fused(lambda x: jnp.exp(x) / jnp.exp(x).sum(1, keepdims=True), X)
    assert names(program.main) == ["fused", "reduce", "broadcast_in_dim", "fused"]


def test_shapes_do_not_mix():
    program = fused(lambda x: (x * 2).sum(0) + 1, X)
    assert names(program.main) == ["fused", "reduce", "fused"]


def test_long_chains_are_cut():
    def f(x):
        for _ in range(MAX_BODY):
            x = jnp.sin(x) + 1
        return x

    sizes = [len(op.attrs["body"]) for op in fused(f, X).main.ops]
    assert sum(sizes) == 2 * MAX_BODY
    assert max(sizes) <= MAX_BODY


def test_bodies_of_loops_are_fused_and_bodies_of_reductions_are_not():
    def f(x):
        return lax.fori_loop(0, 9, lambda i, c: jnp.tanh(c @ c) * 2 + 1, x).sum()

    ops = list(ir.walk_ops(fused(f, X).main))
    loop = next(op for op in ops if op.name == "while")
    assert "fused" in names(loop.regions[1])
    reduction = next(op for op in ops if op.name == "reduce")
    assert names(reduction.regions[0]) == ["add"]


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_stay_acyclic_and_whole(seed):
    """Random graphs of fusible and unfusible ops: verify checks that all is defined before use."""
    rng = random.Random(seed)

    def f(x):
        values = [x, x.T]
        for _ in range(60):
            a, b = rng.choice(values[-12:]), rng.choice(values)
            kind = rng.randrange(6)
            if kind == 0:
                values.append(jnp.broadcast_to(a.sum(0, keepdims=True), a.shape))
            elif kind == 1:
                values.append(a @ b)
            elif kind == 2:
                values.append(a.T)
            else:
                values.append(a * b + kind)
        return values[-5:]

    before = normal(f, X)
    count = sum(op.name in ELEMENTWISE for op in before.main.ops)
    program = scheduled(f, X)
    assert count == sum(len(op.attrs["body"]) for op in program.main.ops if op.name == "fused")


@pytest.mark.parametrize("same", [lambda x: x, lax.optimization_barrier])
def test_updates_come_after_all_readers(same):
    def f(x, y):
        updated = lax.dynamic_update_slice(x, y, (1, 1))
        return updated, jnp.sort(same(x), 0)

    order = names(scheduled(f, X, X[:2, :2]).main)
    assert order.index("sort") < order.index("dynamic_update_slice")


def test_donated_arguments_are_read_before_their_result_is_made():
    def f(x, y):
        new = jnp.sin(x @ y)
        return new, jnp.sort(x, 0).sum()

    program = scheduled(f, X, X, donate_argnums=0)
    order = names(program.main)
    assert order.index("sort") < order.index("fused")


def test_carries_are_read_before_they_change():
    def body(c, _):
        new = jnp.sin(c[0] @ c[0])
        return (new, jnp.sort(c[0], 0) + c[1]), None

    program = scheduled(lambda x: lax.scan(body, (x, x), None, length=20)[0], X)
    loop = next(op for op in program.main.ops if op.name == "while")
    order = [
        (op.name, [inner.name for inner in op.attrs.get("body", [])]) for op in loop.regions[1].ops
    ]
    positions = [name for name, _ in order]
    sine = next(i for i, (_, body) in enumerate(order) if "sine" in body)
    assert positions.index("sort") < sine


def test_low_liveness_is_found():
    """Written breadth first, eight large products live at once; depth first only two do."""

    def f(x):
        return sum(p.sum() for p in [x @ (x + k) for k in range(8)])

    program = scheduled(f, np.ones((64, 64), np.float32))
    live = most = 0
    for name in names(program.main):
        live += {"dot_general": 1, "reduce": -1}.get(name, 0)
        most = max(most, live)
    assert most <= 2


def test_an_argument_that_is_a_result_is_not_freed():
    """Products with it free nothing, so the small product, which is summed, comes first."""

    def f(x, *ys):
        return x, [x @ y for y in ys], (ys[0][:32] @ ys[1]).sum()

    x = np.ones((64, 64), np.float32)
    assert names(scheduled(f, *[x] * 5).main)[:3] == ["slice", "dot_general", "reduce"]


def test_effects_keep_their_order():
    def f(x):
        for k in range(4):
            jax.debug.callback(lambda v: None, x * k)
        return x

    program = scheduled(f, X)
    ids = [op.attrs["backend_config"] for op in program.main.ops if op.name == "custom_call"]
    assert ids == sorted(ids, key=lambda i: int(i.rpartition("-")[2]))
    assert len(ids) == 4


def test_same_program_same_order():
    def f(x):
        return [jnp.sin(x @ (x + k)).sum() for k in range(6)]

    first, second = (ir.to_text(scheduled(f, X)) for _ in range(2))
    assert first == second


def test_chains_fuse_across_reshapes():
    program = fused(lambda x: jnp.tanh((x * 2).reshape(64) + 1)[:, None] * 3, X)
    assert names(program.main) == ["fused", "reshape"]
