"""What rounds with which random bits, and on which replicas alike."""

from __future__ import annotations

from collections import defaultdict

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import ipujax as ipu
from ipujax import jax_compat
from ipujax.compiler.ingest import ingest
from ipujax.compiler.ir import walk_ops
from ipujax.compiler.normalise import normalise
from ipujax.compiler.partition import partition
from ipujax.compiler.replica_classes import equal_replicas
from ipujax.compiler.rounding_streams import OWN, ROUNDING
from tests.compiler.programs import normal

HALF = jnp.float16
X, W = jnp.ones((4, 8), HALF), jnp.ones((5, 8, 8), HALF)


def roundings(f, *args):
    """Of each tanh that rounds at random, in order."""

    def inside(*args):
        with ipu.precision(stochastic_rounding=True):
            return f(*args)

    ops = walk_ops(normal(inside, *args).main)
    return [op.attrs[ROUNDING] for op in ops if op.name == "tanh"]


def gradient(f):
    return jax.value_and_grad(lambda *args: f(*args).astype(jnp.float32).sum())


def test_equal_ops_have_equal_streams_and_others_have_not():
    def f(x):
        kept = lax.optimization_barrier(x)
        return jnp.tanh(x) + jnp.tanh(kept) + jnp.tanh(x + 1) + jnp.tanh(jnp.tanh(kept + 1))

    first, again, plus, inner, outer = roundings(f, X)
    assert first == again
    assert plus.stream == inner.stream
    assert len({first.stream, plus.stream, outer.stream}) == 3
    assert first.turn is None


def test_programs_without_it_have_none():
    program = normal(lambda x: jnp.tanh(x), X)
    assert not any(ROUNDING in op.attrs for op in walk_ops(program.main))


@pytest.mark.parametrize("reverse", [False, True])
def test_a_backward_loop_takes_the_turns_of_the_forward_one(reverse):
    def f(w, x):
        layer = jax.checkpoint(lambda c, w: (jnp.tanh(c @ w), None))
        return lax.scan(layer, x, w, reverse=reverse)[0]

    forward, backward = roundings(gradient(f), W, X)
    assert forward.stream == backward.stream
    assert (forward.turn, backward.turn) == (OWN, (4, -1))


def test_loops_inside_of_loops():
    def block(x, w):
        return lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=3)[0]

    def f(w, x):
        return lax.scan(lambda c, w: (jax.checkpoint(block)(c, w), None), x, w)[0]

    found = defaultdict(set)
    for each in roundings(gradient(f), W, X):
        found[each.stream].add(each.turn)
    assert found == {stream: {OWN} for stream in found}
    assert len(found) == 1  # the inner loops are one, at two turns of the outer ones


def test_constant_operands_round_anew_in_each_iteration():
    def f(x):
        return lax.scan(lambda c, _: (c, jnp.tanh(x)), 0, None, length=5)[1]

    (rounding,) = roundings(f, X)
    assert rounding.turn == OWN


# Replicas -----------------------------------------------------------------------------------------


def classes(f, *args, names):
    """By name of the op: the replicas that have equal values."""
    lowered = jax.jit(f).trace(*args).lower(lowering_platforms=("ipu",))
    code = jax_compat.serialize_artifact(lowered)
    options = jax_compat.write_compile_options({}, 4)
    request = partition(ingest(code, options, {}))
    program = normalise(request)
    replicas = equal_replicas(program, request.parameter_shardings, 4)
    return {op.name: replicas(op) for op in walk_ops(program.main) if op.name in names}


def test_replicas_that_have_equal_values():
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("a", "b"))

    def shape(*spec):
        return jax.ShapeDtypeStruct((8, 8), HALF, sharding=NamedSharding(mesh, P(*spec)))

    def f(w, x, y):
        return jnp.tanh(w), jnp.sin(x), jnp.cos(y), jnp.sqrt(w * x.sum()), jnp.exp(x.sum(0))

    names = ("tanh", "sine", "cosine", "sqrt", "exponential", "all_reduce")
    found = classes(f, shape(), shape("a"), shape(("a", "b")), names=names)
    assert found["tanh"] == (0, 0, 0, 0)
    assert found["sine"] == (0, 0, 2, 2)
    assert found["cosine"] == (0, 1, 2, 3)
    assert found["sqrt"] == found["exponential"] == found["all_reduce"] == (0, 0, 0, 0)


def test_replicas_in_loops_and_branches():
    mesh = Mesh(np.array(jax.devices()[:4]), ("a",))

    def own(w, x):
        def body(c):
            a, b, n = c
            return jnp.tanh(a), jnp.sin(a[:2] + b), n + 1

        a, b, _ = lax.while_loop(lambda c: c[2] < 3, body, (w, x, 0))
        far = lax.cond(lax.axis_index("a") > 1, jnp.exp, lambda w: w, w)
        near = lax.ppermute(x, "a", [(i, 3 - i) for i in range(4)])
        return a, b, jnp.sqrt(far), jnp.cos(lax.psum(near, "a"))

    f = jax.shard_map(own, mesh=mesh, in_specs=(P(), P("a")), out_specs=P("a"), check_vma=False)

    def shape(spec):
        return jax.ShapeDtypeStruct((8, 8), HALF, sharding=NamedSharding(mesh, spec))

    names = ("tanh", "sine", "sqrt", "cosine")
    found = classes(f, shape(P()), shape(P("a")), names=names)
    assert found["tanh"] == found["cosine"] == (0, 0, 0, 0)
    assert found["sine"] == found["sqrt"] == (0, 1, 2, 3)
