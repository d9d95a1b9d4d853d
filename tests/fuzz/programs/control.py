"""Control flow and transforms: each draws a body, which may use the enclosing values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.fuzz.programs import carries, trees
from tests.fuzz.programs.elementwise import condition
from tests.fuzz.programs.values import Facts, Value
from tests.fuzz.programs.writer import NotApplicableError, Writer, op

MAX_DEPTH = 2


def parameter(block: Writer, letter: str, tracer: Any, facts: Facts, maker: str) -> Value:
    """A parameter of a block, known under a new name."""
    value = block.declare(block.fresh(letter), tracer, facts, maker)
    block.values.append(value)
    return value


def abstract(value: Value) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(value.shape, value.dtype)


def row(value: Value, axis: int = 0) -> jax.ShapeDtypeStruct:
    shape = (*value.shape[:axis], *value.shape[axis + 1 :])
    return jax.ShapeDtypeStruct(shape, value.dtype)


def traced(function: Callable[..., None], *types: jax.ShapeDtypeStruct) -> None:
    """Runs what writes a body, on tracers of these types."""

    def run(*tracers: Any) -> None:
        function(*tracers)

    jax.eval_shape(run, *types)


def enter(w: Writer, kind: str) -> Writer:
    if len(w.context) - ("gradient" in w.context) >= MAX_DEPTH:
        raise NotApplicableError
    return w.block(kind)


def num_ops(w: Writer) -> int:
    return w.choice((1, 2, 3, 4, 6)) if not w.context else w.choice((1, 2, 3))


def results(w: Writer, source: str, parts: Sequence[tuple[str, Sequence[Facts]]]) -> None:
    """Appends the assignment of a call's result, a tree of trees, to new names."""
    leaves = iter(jax.tree.leaves(eval(source, w.shared.names)))
    targets: list[str] = []
    after: list[str] = []
    for kind, facts in parts:
        names = [w.fresh("v") for _ in facts]
        text, more = trees.target(w, kind, names)
        targets.append(text)
        after += more
        for name, known in zip(names, facts, strict=True):
            leaf = next(leaves)
            if isinstance(leaf, float):  # a loop of no iterations returns its operands
                after.append(f"{name} = jnp.asarray({name})")
                leaf = jnp.asarray(leaf)
            w.values.append(w.declare(name, leaf, known, w.op))
    w.lines += [f"{', '.join(targets)} = {source}", *after]


def inner_values(w: Writer, block: Writer) -> list[Value]:
    """What was made inside, parameters included."""
    return block.values[len(w.values) :]


def chosen(w: Writer, block: Writer, most: int) -> list[Value]:
    """Some values that a body returns: mostly its own, perhaps one from around it."""
    own = [v for v in inner_values(w, block) if v.size <= 5000]
    count = w.integer(1, most)
    found = own[-count:] if w.chance(0.5) else [w.choice(own) for _ in range(count) if own]
    if w.values and w.chance(0.2):
        found.append(w.choice([v for v in w.values if v.size <= 500] or w.values[:1]))
    return [v for v in found if v.size <= 5000]


@op(7)
def scan(w: Writer) -> None:
    """Any mixture of carries, slices of inputs, a length, and stacked results."""
    block = enter(w, "scan")
    sliced = w.pick(lambda v: v.rank > 0 and v.shape[0] <= 130) if w.chance(0.75) else None
    count = sliced.shape[0] if sliced else w.choice((1, 2, 3, 5, 8, 16, 17))
    xs = _inputs(w, sliced, count)
    carry = carries.drawn(w, count, least=0 if xs else 1)
    names: list[str] = []
    stacked: list[Value] = []

    def write(*tracers: Any) -> None:
        state = carries.enter(block, carry, tracers[: len(carry)])
        for (_, facts, _), tracer in zip(xs, tracers[len(carry) :], strict=True):
            names.append(parameter(block, "x", tracer, facts, "slice").name)
        block.grow(num_ops(w))
        stacked.extend(chosen(w, block, 2) if not state or w.chance(0.7) else [])
        carries.leave(block, carry, state)

    traced(write, *(c.type for c in carry), *(kind for _, _, kind in xs))
    _write_scan(w, block, carry, xs, names, stacked, count)


def _inputs(
    w: Writer, sliced: Value | None, count: int
) -> list[tuple[str, Facts, jax.ShapeDtypeStruct]]:
    if sliced is None:
        return []
    found = [(sliced.name, sliced.facts, row(sliced))]
    others = [v for v in w.values if v.rank and v.shape[0] == count and v is not sliced]
    if others and w.chance(0.3):
        other = w.choice(others)
        found.append((other.name, other.facts, row(other)))
    if w.chance(0.25):
        found.append((f"jnp.arange({count})", Facts(count), jax.ShapeDtypeStruct((), np.int32)))
    return found


def _write_scan(
    w: Writer,
    block: Writer,
    carry: Sequence[carries.Carry],
    xs: Sequence[tuple[str, Facts, jax.ShapeDtypeStruct]],
    names: Sequence[str],
    stacked: Sequence[Value],
    count: int,
) -> None:
    name, kind = w.fresh("body"), trees.kind_for(w, len(carry))
    head, unpack = trees.target(w, kind, [c.name for c in carry])
    x_kind, y_kind = trees.kind_for(w, len(xs)), trees.kind_for(w, len(stacked))
    x_head, x_unpack = trees.target(w, x_kind, names)
    state, x = w.fresh("s"), w.fresh("s")
    block.lines[:0] = [f"{head} = {state}", *unpack] * bool(carry)
    block.lines[:0] = [f"{x_head} = {x}", *x_unpack] * bool(xs)
    for value in stacked:
        block.uses(value.name, "scan.stacked")
    first = len(w.lines)
    result = f"{trees.packed(kind, [c.next for c in carry])}, "
    result += trees.packed(y_kind, [v.name for v in stacked])
    w.nest(f"{name}({state}, {x})", block, result)
    w.define(first)
    source = f"lax.scan({name}, {trees.packed(kind, [c.start for c in carry])}, "
    source += trees.packed(x_kind, [text for text, _, _ in xs])
    source += "" if xs else f", length={count}"
    source += ", reverse=True" if w.chance(0.3) else ""
    source += ", unroll=2" if w.chance(0.08) else ""
    w.uses(source)
    parts = [(kind, [c.facts for c in carry]), (y_kind, [v.facts for v in stacked])]
    results(w, source + ")", parts)


@op(2.5)
def lax_map(w: Writer) -> None:
    block = enter(w, "map")
    a = w.pick(lambda v: v.rank > 0 and 0 < v.shape[0] <= 130)
    kept: list[Value] = []
    names: list[str] = []

    def write(tracer: Any) -> None:
        names.append(parameter(block, "x", tracer, a.facts, "slice").name)
        block.grow(num_ops(w))
        kept.extend(chosen(w, block, 2))

    traced(write, row(a))
    batch = f", batch_size={w.integer(1, a.shape[0])}" if w.chance(0.15) else ""
    _apply(w, block, names, kept, "lax.map({}, " + f"{a}{batch})", "map.stacked")


def _apply(
    w: Writer, block: Writer, names: Sequence[str], kept: Sequence[Value], call: str, consumer: str
) -> None:
    """Appends a function that returns `kept`, and the call that applies it."""
    if not kept:
        raise NotApplicableError
    name, kind = w.fresh("f"), trees.kind_for(w, len(kept))
    for value in kept:
        block.uses(value.name, consumer)
    first = len(w.lines)
    w.nest(f"{name}({', '.join(names)})", block, trees.packed(kind, [v.name for v in kept]))
    w.define(first)
    source = call.format(name)
    w.uses(source)
    results(w, source, [(kind, [v.facts for v in kept])])


def _function(w: Writer, kind: str, types: Sequence[Any], facts: Sequence[Facts]) -> Any:
    """A block with parameters of these types: itself, their names, some values it made."""
    block = enter(w, kind)
    kept: list[Value] = []
    names: list[str] = []

    def write(*tracers: Any) -> None:
        for tracer, known in zip(tracers, facts, strict=True):
            names.append(parameter(block, "p", tracer, known, "parameter").name)
        block.grow(num_ops(w))
        kept.extend(chosen(w, block, 2))

    traced(write, *types)
    return block, names, kept


@op(2)
def vmap(w: Writer) -> None:
    a = w.pick(lambda v: v.rank > 0 and v.size > 0)
    axis = w.axis(a) if w.chance(0.4) else 0
    others = [v for v in w.values if v.size <= 300 and v is not a]
    whole = [w.choice(others)] if others and w.chance(0.5) else []
    types = [row(a, axis), *map(abstract, whole)]
    facts = [a.facts, *(v.facts for v in whole)]
    block, names, kept = _function(w, "vmap", types, facts)
    if any(v.size * a.shape[axis] > 20_000 for v in kept):
        raise NotApplicableError
    kept = [v for v in kept if v in block.values]
    in_axes = f"({axis}, {'None, ' * len(whole)})"
    call = "jax.vmap({}, in_axes=" + in_axes + ")"
    _apply(w, block, names, kept, f"{call}({', '.join([a.name, *map(str, whole)])})", "vmap.out")


@op(1.2)
def call(w: Writer) -> None:
    """A jitted function, or one that is recomputed in the backward pass."""
    values = [w.pick() for _ in range(w.integer(1, 2))]
    block, names, kept = _function(w, "call", [*map(abstract, values)], [v.facts for v in values])
    form = w.choice(("jax.jit({})", "jax.checkpoint({})", "jax.checkpoint({})"))
    _apply(w, block, names, kept, f"{form}({', '.join(map(str, values))})", "call.out")


@contextmanager
def differentiable(w: Writer) -> Iterator[None]:
    """No loops inside whose number of iterations is known only at run time."""
    before, w.shared.reverse = w.shared.reverse, True
    try:
        yield
    finally:
        w.shared.reverse = before


@op(2)
def gradient(w: Writer) -> None:
    """Of a sum of what a body makes of a value."""
    a = w.floating(lambda v: v.size <= 2000)
    with differentiable(w):
        block, names, kept = _function(w, "grad", [abstract(a)], [a.facts])
    kept = [v for v in kept if v.is_float]
    if not kept:
        raise NotApplicableError
    name, first = w.fresh("f"), len(w.lines)
    terms = [w.choice(("{}.sum()", "({0} * {0}).sum()", "{}.mean()")).format(v) for v in kept]
    terms = [f"{t}.astype(jnp.float32)" for t in terms]
    for value in kept:
        block.uses(value.name, "grad.out")
    w.nest(f"{name}({names[0]})", block, " + ".join(terms))
    w.define(first)
    form = w.choice(
        (
            "jax.grad({f})({a})",
            "jax.grad({f})({a})",
            "jax.value_and_grad({f})({a})[1]",
            "jax.jvp({f}, ({a},), (jnp.ones_like({a}),))[1]",
            "jax.grad(jax.checkpoint({f}))({a})",
        )
    )
    source = form.format(f=name, a=a)
    result = w.put(source, Facts(2.0**12, 0.0), small=False)
    w.values.remove(result)
    w.put(f"jnp.clip({result}, -8, 8)", Facts(8, 0.0))


@op(2.5)
def fori_loop(w: Writer) -> None:
    """With a counter that indexes; the number of iterations is known, or an argument."""
    block = enter(w, "fori")
    count = w.choice((0, 1, 2, 3, 5, 8, 16, 17, 33))
    carry = carries.drawn(w, count, least=1)

    def write(*tracers: Any) -> None:
        parameter(block, "i", tracers[0], Facts(count), "counter")
        state = carries.enter(block, carry, tracers[1:])
        block.grow(num_ops(w))
        carries.leave(block, carry, state)

    counter = f"i{w.shared.counter + 1}"
    traced(write, jax.ShapeDtypeStruct((), np.int32), *(c.type for c in carry))
    turns = str(count)
    if not w.shared.reverse and w.chance(0.4):
        turns = _dynamic(w, count)
    name, kind = w.fresh("body"), trees.kind_for(w, len(carry))
    head, unpack = trees.target(w, kind, [c.name for c in carry])
    state = w.fresh("s")
    block.lines[:0] = [f"{head} = {state}", *unpack]
    first = len(w.lines)
    w.nest(f"{name}({counter}, {state})", block, trees.packed(kind, [c.next for c in carry]))
    w.define(first)
    source = f"lax.fori_loop(0, {turns}, {name}, {trees.packed(kind, [c.start for c in carry])})"
    w.uses(source)
    results(w, source, [(kind, [c.facts for c in carry])])


def _dynamic(w: Writer, most: int) -> str:
    """A number of iterations that is known only at run time."""
    a = w.pick(lambda v: v.shape == () and v.dtype == "int32")
    return f"jnp.clip({a}, 0, {most})"


@op(2)
def while_loop(w: Writer) -> None:
    """Ends by a count, or earlier by what it computes."""
    if w.shared.reverse:
        raise NotApplicableError
    block = enter(w, "while")
    count = w.choice((1, 2, 3, 5, 16, 17))
    carry = carries.drawn(w, count, least=1)

    def write(*tracers: Any) -> None:
        parameter(block, "i", tracers[0], Facts(count), "counter")
        state = carries.enter(block, carry, tracers[1:])
        block.grow(num_ops(w))
        carries.leave(block, carry, state)

    counter = f"i{w.shared.counter + 1}"
    traced(write, jax.ShapeDtypeStruct((), np.int32), *(c.type for c in carry))
    name, state = w.fresh("body"), w.fresh("s")
    names = [c.name for c in carry]
    block.lines.insert(0, f"{', '.join([counter, *names])} = {state}")
    first = len(w.lines)
    goes_on = f"{state}[0] < {count if w.chance(0.6) else _dynamic(w, count)}"
    exact = [k for k, c in enumerate(carry) if c.facts.grid and c.type.dtype != bool]
    if exact and w.chance(0.5):
        k = w.choice([k for k in exact if str(carry[k].type.dtype) != "complex64"] or [None])
        if k is not None:
            goes_on = f"({goes_on}) & ({state}[{k + 1}].sum() < {w.integer(0, 200)})"
    w.nest(
        f"{name}({state})", block, f"({', '.join([f'{counter} + 1', *(c.next for c in carry)])})"
    )
    w.define(first)
    starts = ", ".join(["0", *(f"jnp.asarray({c.start})" for c in carry)])
    source = f"lax.while_loop(lambda {state}: {goes_on}, {name}, ({starts}))"
    w.uses(source)
    results(w, source, [("tuple", [Facts(count), *(c.facts for c in carry)])])


@op(2)
def cond(w: Writer) -> None:
    _branches(w, 2, condition(w, ()), "lax.cond({pred}, {fs}, {args})", "cond")


@op(1)
def switch(w: Writer) -> None:
    a = w.pick(lambda v: v.shape == () and v.dtype == "int32")
    count = w.integer(1, 3)
    _branches(w, count, a.name, "lax.switch({pred}, [{fs}], {args})", "switch")


def _branches(w: Writer, count: int, pred: str, form: str, kind: str) -> None:
    values = [w.pick() for _ in range(w.integer(1, 2))]
    like: list[Value] = []
    facts: list[Facts] = []
    functions, first = [], len(w.lines)
    for number in range(count):
        block = enter(w, kind)
        names: list[str] = []
        sources: list[str] = []

        def write(*tracers: Any, block=block, names=names, sources=sources, number=number) -> None:
            for tracer, value in zip(tracers, values, strict=True):
                names.append(parameter(block, "p", tracer, value.facts, "parameter").name)
            block.grow(w.choice((0, 1, 2, 3)))
            if number == 0:
                like.extend(v for v in chosen(w, block, 2))
                facts.extend(v.facts for v in like)
                sources.extend(v.name for v in like)
                return
            for k, value in enumerate(like):
                text, known = carries.alike(block, value)
                facts[k] = facts[k].union(known)
                sources.append(text)

        traced(write, *map(abstract, values))
        if not like:
            raise NotApplicableError
        functions.append(w.fresh("f"))
        for text in sources:
            block.uses(text, f"{kind}.out")
        w.nest(f"{functions[-1]}({', '.join(names)})", block, trees.packed("tuple", sources))
    w.define(first)
    arguments = ", ".join(map(str, values))
    source = form.format(pred=pred, fs=", ".join(functions), args=arguments)
    w.uses(source)
    results(w, source, [("tuple", facts)])
