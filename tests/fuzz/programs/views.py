"""Ops that move elements and compute nothing."""

from __future__ import annotations

import math

from tests.fuzz.programs.elementwise import partner
from tests.fuzz.programs.sources import index
from tests.fuzz.programs.values import Value
from tests.fuzz.programs.writer import NotApplicableError, Writer, op


def factored(w: Writer, size: int) -> tuple[int, ...]:
    """A shape with the given number of elements."""
    if size == 0:
        return w.choice(((0,), (0, 2), (3, 0)))
    dims: list[int] = []
    while size > 1 and len(dims) < 3:
        divisors = [d for d in range(2, min(size, 130) + 1) if size % d == 0] or [size]
        dims.append(w.choice(divisors))
        size //= dims[-1]
    dims += [size] if size > 1 or w.chance(0.3) else []
    w.rng.shuffle(dims)
    return tuple(dims)


@op(2)
def reshape(w: Writer) -> None:
    a = w.pick(lambda v: v.rank or w.chance(0.3))
    shape = w.choice(((-1,), factored(w, a.size), (*a.shape, 1), (1, *a.shape)))
    if len(shape) > 4 or (shape == (-1,) and a.size == 0):
        raise NotApplicableError
    w.put(f"{a}.reshape({shape})", a.facts)


@op(2)
def transpose(w: Writer) -> None:
    a = w.pick(lambda v: v.rank > 1)
    order = w.rng.sample(range(a.rank), a.rank)
    form = w.choice((f"{a}.T", f"jnp.transpose({a}, {tuple(order)})", f"jnp.swapaxes({a}, 0, 1)"))
    w.put(form, a.facts)


@op(1.2)
def reverse(w: Writer) -> None:
    a = w.pick(lambda v: v.rank > 0)
    axis = w.axis(a)
    w.put(w.choice((f"jnp.flip({a}, {axis})", f"{a}[::-1]")), a.facts)


def _part(w: Writer, n: int) -> str:
    """Of one dimension: all of it, a range, every other element, one element."""
    kind = w.choice(("all", "all", "from", "to", "step", "middle", "back"))
    low = w.integer(0, max(0, n // 2))
    high = w.integer(max(low, n // 2), n)
    texts = {"all": ":", "from": f"{low}:", "to": f":{high}", "step": f"{low}::{w.integer(2, 3)}"}
    texts |= {"middle": f"{low}:{high}", "back": "::-1"}
    return texts[kind]


@op(2.5)
def slice_(w: Writer) -> None:
    a = w.pick(lambda v: v.rank > 0)
    parts = [_part(w, n) for n in a.shape]
    if w.chance(0.3):
        parts = parts[:1]
    w.put(f"{a}[{', '.join(parts)}]", a.facts)


@op(2.5)
def pick_index(w: Writer) -> None:
    """One row, one column, one element."""
    a = w.pick(lambda v: v.rank > 0 and 0 not in v.shape)
    axis = w.axis(a)
    parts = [":"] * axis + [index(w, a.shape[axis])]
    if w.chance(0.4):
        parts = [index(w, n) for n in a.shape]
    w.put(f"{a}[{', '.join(parts)}]", a.facts)


@op(0.8)
def split(w: Writer) -> None:
    a = w.pick(lambda v: v.rank > 0 and v.size > 0)
    axis = w.axis(a)
    counts = [d for d in (2, 3, 4, 8) if a.shape[axis] % d == 0]
    if not counts:
        raise NotApplicableError
    count = w.choice(counts)
    w.put(f"jnp.split({a}, {count}, axis={axis})[{w.integer(0, count - 1)}]", a.facts)


@op(1)
def roll(w: Writer) -> None:
    a = w.pick(lambda v: v.rank > 0)
    w.put(f"jnp.roll({a}, {w.integer(-3, 3)}, {w.axis(a)})", a.facts)


@op(0.7)
def diagonal(w: Writer) -> None:
    a = w.pick(lambda v: v.rank in (1, 2) and v.size <= 200)
    if a.rank == 2:
        name = w.choice(("diag", "diagonal", "tril", "triu"))
        if a.is_bool and name.startswith("tri"):
            raise NotApplicableError
        w.put(f"jnp.{name}({a})", a.facts)
    else:
        w.put(f"jnp.diag({a})", a.facts)


@op(0.7)
def squeeze(w: Writer) -> None:
    a = w.pick(lambda v: 1 in v.shape)
    w.put(f"jnp.squeeze({a}, {a.shape.index(1)})", a.facts)


@op(0.8)
def pad(w: Writer) -> None:
    a = w.pick(lambda v: v.rank and not v.is_bool)
    widths = [(w.integer(0, 2), w.integer(0, 2)) for _ in a.shape]
    mode = w.choice(("constant", "constant", "edge", "wrap"))
    if mode != "constant" and 0 in a.shape:
        raise NotApplicableError
    w.put(f"jnp.pad({a}, {widths}, mode={mode!r})", a.facts)


@op(2)
def concatenate(w: Writer) -> None:
    a = w.pick(lambda v: v.rank > 0)
    axis = w.axis(a)

    def rest(v: Value) -> tuple[int, ...]:
        return (*v.shape[:axis], *v.shape[axis + 1 :])

    fits = [v for v in w.values if v.dtype == a.dtype and v.rank == a.rank and rest(v) == rest(a)]
    parts = [a, *(w.choice(fits) for _ in range(w.integer(1, 2)))]
    w.rng.shuffle(parts)
    facts = a.facts.union(*(v.facts for v in parts))
    w.put(f"jnp.concatenate([{', '.join(map(str, parts))}], axis={axis})", facts)


@op(1.5)
def stack(w: Writer) -> None:
    a = w.pick(lambda v: v.rank < 3)
    fits = [v for v in w.values if v.dtype == a.dtype and v.shape == a.shape]
    parts = [a, *(w.choice(fits) for _ in range(w.integer(1, 3)))]
    facts = a.facts.union(*(v.facts for v in parts))
    axis = w.integer(0, a.rank)
    w.put(f"jnp.stack([{', '.join(map(str, parts))}], axis={axis})", facts)


@op(1.5)
def dynamic_slice(w: Writer) -> None:
    a = w.pick(lambda v: v.rank > 0 and v.size > 0)
    sizes = tuple(w.choice((n, w.integer(1, n), 1)) for n in a.shape)
    starts = ", ".join(index(w, n) for n in a.shape)
    w.put(f"lax.dynamic_slice({a}, ({starts},), {sizes})", a.facts)


@op(1)
def dynamic_index(w: Writer) -> None:
    a = w.pick(lambda v: v.rank > 0 and v.size > 0)
    axis = w.axis(a)
    at = index(w, a.shape[axis])
    keep = w.choice((True, False))
    w.put(f"lax.dynamic_index_in_dim({a}, {at}, {axis}, keepdims={keep})", a.facts)


@op(2)
def dynamic_update_slice(w: Writer) -> None:
    """A part that is a value, a broadcast scalar, or a constant."""
    a = w.pick(lambda v: v.rank > 0 and v.size > 0)
    sizes = tuple(w.choice((n, n, w.integer(1, n), 1)) for n in a.shape)
    part, facts = update_of(w, a, sizes)
    starts = ", ".join(index(w, n) for n in a.shape)
    w.put(f"lax.dynamic_update_slice({a}, {part}, ({starts},))", a.facts.union(facts))


def update_of(w: Writer, a: Value, shape: tuple[int, ...]) -> tuple[str, object]:
    """What is written into a part of `a`."""
    found = [v for v in w.values if v.dtype == a.dtype and v.shape == shape]
    if found and w.chance(0.5):
        value = w.choice(found)
        return value.name, value.facts
    rows = [v for v in w.values if v.dtype == a.dtype and v.shape == shape[-v.rank :]]
    if rows and w.chance(0.7):
        value = w.choice(rows)
        if value.shape == shape:
            return value.name, value.facts
        return f"jnp.broadcast_to({value}, {shape})", value.facts
    text, facts = partner(w, Value("", (), a.dtype, a.facts))
    kind = "bool_" if a.is_bool else a.dtype
    return f"jnp.full({shape}, {text}, jnp.{kind})", facts


@op(2.5)
def at(w: Writer) -> None:
    """`.at[...].set` and its relatives."""
    a = w.pick(lambda v: v.rank > 0 and v.size > 0)
    axis = w.axis(a)
    where = w.choice((":, " * axis + index(w, a.shape[axis]), _part(w, a.shape[0])))
    text, facts = partner(w, Value("", (), a.dtype, a.facts))
    row = [v for v in w.values if v.dtype == a.dtype and v.shape == a.shape[1:] and axis == 0]
    if row and w.chance(0.6):
        text, facts = (lambda v: (v.name, v.facts))(w.choice(row))
    names = ["set", "set"] if a.is_bool else ["set", "set", "add", "max", "min"]
    name = w.choice(names if not a.is_complex else ["set", "add"])
    known = a.facts.plus(facts) if name == "add" else a.facts.union(facts)
    w.put(f"{a}.at[{where}].{name}({text})", known)


@op(1.5)
def gather(w: Writer) -> None:
    """Rows by an array of indices; JAX clamps or fills outside."""
    a = w.pick(lambda v: v.rank > 0 and v.size > 0)
    where = _indices(w, a.shape[0])
    if a.size // a.shape[0] * math.prod(where[1]) > w.shared.max_size * 4:
        raise NotApplicableError
    form = w.choice(("{0}[{1}]", "jnp.take({0}, {1}, axis=0, mode='clip')"))
    w.put(form.format(a, where[0]), a.facts)


@op(1.5)
def scatter(w: Writer) -> None:
    """Rows added at an array of indices, which may repeat."""
    a = w.number(lambda v: v.rank > 0 and v.size > 0)
    where, shape = _indices(w, a.shape[0])
    text, facts = partner(w, Value("", (), a.dtype, a.facts))
    rows = [
        v for v in w.values if v.dtype == a.dtype and v.shape in (a.shape[1:], shape + a.shape[1:])
    ]
    if rows and w.chance(0.7):
        text, facts = (lambda v: (v.name, v.facts))(w.choice(rows))
    count = math.prod(shape)
    if w.chance(0.7) or a.is_complex:
        w.put(f"{a}.at[{where}].add({text})", a.facts.plus(facts.repeated(count)))
    else:
        w.put(f"{a}.at[{where}].max({text})", a.facts.union(facts))


def _indices(w: Writer, size: int) -> tuple[str, tuple[int, ...]]:
    found = [v for v in w.values if v.dtype == "int32" and v.rank == 1 and 0 < v.size <= 40]
    if found and w.chance(0.6):
        value = w.choice(found)
        return f"({value} % {size})", value.shape
    numbers = [w.integer(0, size - 1) for _ in range(w.integer(1, 5))]
    return f"np.array({numbers})", (len(numbers),)
