"""Control flow: loops, branches, calls, and functions that are batched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.fuzz.generator import Generator, NotApplicableError, step
from tests.fuzz.values import TAME, Node, dtype_of, on_grid, whole

MAX_DEPTH = 2


def carried(g: Generator) -> Node:
    """A value that a loop may carry: floats are small whole numbers around each iteration."""
    a = g.pick(lambda n: n.exact and n.size <= 300)
    return on_grid(a, TAME[a.dtype] / 4) if a.is_float else a


def fitted(node: Node, like: Node) -> Any:
    """The node's elements, cut or padded into the shape, dtype and bounds of `like`."""
    if node.is_float and like.is_float:
        node = on_grid(node, TAME[like.dtype] / 4)
    elif node.is_float:
        node = on_grid(node, 9.0)
        if like.dtype.startswith("u"):
            node = node.like(lax.abs(node.value))
    elif like.is_float:
        node = whole(node.value.astype(np.int32) % 3)
    value = node.value.astype(dtype_of(like.dtype))
    flat = lax.reshape(value, (node.size,))
    missing = like.size - node.size
    flat = lax.pad(flat, jnp.zeros((), value.dtype), [(0, missing, 0)])
    return lax.reshape(flat, like.shape)


def inner(g: Generator, known: Sequence[Node], num_steps: int) -> Generator:
    """A generator for a body, which sees some values around it too."""
    if g.depth >= MAX_DEPTH:
        raise NotApplicableError
    around = [n for n in g.nodes if g.chance(0.3) and n.size <= 300]
    child = Generator(g.rng, g.depth + 1, [*around, *known])
    child.grow(num_steps)
    return child


def last_exact(g: Generator) -> Node:
    found = [n for n in g.nodes if n.exact]
    return g.choice(found[-3:])


def loop_node(a: Node, value: Any) -> Node:
    limit = TAME[a.dtype] / 4 if a.is_float else 0.0
    return Node(value, -limit, limit) if a.is_float else whole(value)


def held(a: Node, value: Any) -> Node:
    """The carried value as a body sees it."""
    return loop_node(a, value)


def body_of(g: Generator, carry: Sequence[Node]) -> Callable[[Sequence[Any]], list[Any]]:
    seed = g.rng.getrandbits(64)

    def body(values: Sequence[Any]) -> list[Any]:
        # Traced more than once by JAX: the same choices each time.
        import random

        twin = Generator(random.Random(seed), g.depth, list(g.nodes))
        child = inner(twin, [held(a, v) for a, v in zip(carry, values, strict=True)], 3)
        return [fitted(last_exact(child), a) for a in carry]

    return body


def several_carried(g: Generator) -> list[Node]:
    if g.depth >= MAX_DEPTH:
        raise NotApplicableError
    return [carried(g) for _ in range(g.integer(1, 3))]


@step(1.2)
def while_loop(g: Generator) -> Sequence[Node]:
    """A counted loop whose number of iterations may be known only when it runs."""
    carry = several_carried(g)
    body = body_of(g, carry)
    turns = jnp.asarray(g.integer(0, 4), np.int32)
    if g.chance(0.4):
        turns = lax.clamp(0, g.pick(lambda n: n.dtype == "int32" and n.shape == ()).value, 3)
    results = lax.while_loop(
        lambda state: state[0] < turns,
        lambda state: (state[0] + 1, tuple(body(state[1]))),
        (np.int32(0), tuple(n.value for n in carry)),
    )[1]
    return [loop_node(a, r) for a, r in zip(carry, results, strict=True)]


@step(0.8)
def fori_loop(g: Generator) -> Sequence[Node]:
    carry = several_carried(g)
    body = body_of(g, carry)
    results = lax.fori_loop(
        0,
        g.integer(0, 4),
        lambda i, state: tuple(
            body([s + i.astype(s.dtype) if s.dtype == np.int32 else s for s in state])
        ),
        tuple(n.value for n in carry),
    )
    return [loop_node(a, r) for a, r in zip(carry, results, strict=True)]


@step(1.5)
def scan(g: Generator) -> Sequence[Node]:
    """Carries, slices of an input, and a stacked result."""
    carry = several_carried(g)
    xs = g.pick(lambda n: n.rank > 0 and n.exact and n.shape[0] <= 8)
    xs = on_grid(xs, TAME[xs.dtype] / 4) if xs.is_float else xs
    seed = g.rng.getrandbits(64)
    stacked = carry[-1]

    def body(state: Any, x: Any) -> Any:
        import random

        twin = Generator(random.Random(seed), g.depth, list(g.nodes))
        known = [held(a, v) for a, v in zip(carry, state, strict=True)]
        child = inner(twin, [*known, held(xs, x)], 3)
        return tuple(fitted(last_exact(child), a) for a in carry), fitted(
            last_exact(child), stacked
        )

    results, ys = lax.scan(
        body,
        tuple(n.value for n in carry),
        xs.value,
        reverse=g.chance(0.3),
        unroll=g.choice((1, 1, 2)),
    )
    return [
        *[loop_node(a, r) for a, r in zip(carry, results, strict=True)],
        loop_node(stacked, ys),
    ]


@step(1.2)
def branches(g: Generator) -> Sequence[Node]:
    """cond and switch; an index out of range takes the nearest branch."""
    carry = several_carried(g)
    operands = [n.value for n in carry]
    if g.chance(0.4):
        found = [n for n in g.nodes if n.is_bool and n.shape == ()]
        which = g.choice(found).value if found else jnp.asarray(g.chance(0.5))
        bodies = [body_of(g, carry) for _ in range(2)]
        results = lax.cond(which, *(lambda *x, f=f: tuple(f(x)) for f in bodies), *operands)
    else:
        found = [n for n in g.nodes if n.dtype == "int32" and n.shape == ()]
        which = g.choice(found).value if found else jnp.asarray(g.integer(-1, 3), np.int32)
        bodies = [body_of(g, carry) for _ in range(g.integer(1, 3))]
        results = lax.switch(which, [lambda *x, f=f: tuple(f(x)) for f in bodies], *operands)
    return [loop_node(a, r) for a, r in zip(carry, results, strict=True)]


@step(0.8)
def call(g: Generator) -> Sequence[Node]:
    """A separate function, sometimes called twice."""
    carry = several_carried(g)
    body = body_of(g, carry)
    f = jax.jit(lambda *x: tuple(body(x)))
    results = f(*(n.value for n in carry))
    if g.chance(0.4):
        results = f(*results)
    return [loop_node(a, r) for a, r in zip(carry, results, strict=True)]


@step(1)
def batched(g: Generator) -> Sequence[Node]:
    """vmap over some axis: batching rules, and ops with batch dimensions."""
    a = carried(g)
    if a.rank == 0 or 0 in a.shape or g.depth >= MAX_DEPTH:
        raise NotApplicableError
    axis = g.integer(0, a.rank - 1)
    rest = (*a.shape[:axis], *a.shape[axis + 1 :])
    one = Node(jnp.zeros(rest, a.value.dtype))
    body = body_of(g, [one])
    value = jax.vmap(lambda x: body([x])[0], in_axes=axis, out_axes=0)(a.value)
    return [loop_node(a, value)]


@step(0.5)
def random_bits(g: Generator) -> Sequence[Node]:
    """JAX's generator must give the same bits everywhere."""
    key = jax.random.key(g.integer(0, 1000))
    shape = g.shape(max_elements=100)
    dtype = g.choice((np.uint32, np.uint16, np.uint8))
    bits = jax.random.bits(key, shape, dtype)
    if g.chance(0.5):
        return [whole(bits)]
    return [whole(bits), whole(jax.random.randint(key, shape, -5, 5, np.int32))]
