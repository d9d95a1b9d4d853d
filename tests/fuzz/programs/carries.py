"""Carries of loops: how a value starts, what is assumed of it inside, how it changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from tests.fuzz.programs.sources import index, literal, named
from tests.fuzz.programs.values import LARGEST, Facts, Value
from tests.fuzz.programs.views import update_of
from tests.fuzz.programs.writer import Writer
from tests.fuzz.values import EXACT_LIMIT, FLOATS

#: Python numbers that a loop may start from.
_NUMBERS = ("0.0", "1.0")


@dataclass
class Carry:
    """One carried value.

    Attributes:
        start: source of its first value.
        facts: what holds for it at the beginning and end of every turn.
        step: how much may be added in one turn.
        name: inside of the body. next: source of its next value.
    """

    start: str
    type: jax.ShapeDtypeStruct
    facts: Facts
    step: float
    name: str = ""
    next: str = ""


def drawn(w: Writer, count: int, least: int) -> list[Carry]:
    return [_one(w, count) for _ in range(max(least, w.choice((0, 1, 1, 1, 2, 3))))]


def _one(w: Writer, count: int) -> Carry:
    found = [v for v in w.values if v.size <= 2500]
    if found and w.chance(0.7):
        value = w.choice(found)
        start, shape, dtype, facts = value.name, value.shape, value.dtype, value.facts
    elif w.chance(0.5):
        start, shape, dtype, facts = w.choice(_NUMBERS), (), "float32", Facts(1)
    else:
        dtype, shape = w.choice((*w.shared.dtypes, "float32")), w.shape(most=300)
        name = w.choice(("zeros", "ones"))
        start, facts = f"jnp.{name}({shape}, jnp.{named(dtype)})", Facts(1)
    facts, step = _assumed(w, dtype, facts, max(1, count))
    return Carry(start, jax.ShapeDtypeStruct(shape, dtype), facts, step)


def _assumed(w: Writer, dtype: str, start: Facts, count: int) -> tuple[Facts, float]:
    """What to hold the value to, and what may be added in each of `count` turns."""
    if dtype not in FLOATS:
        large = 1 if dtype == "bool" else float("inf")
        if dtype == "complex64":
            return Facts(start.bound + 8 * count, 0.0), 8
        return Facts(large), large
    exact = start.grid > 0 and w.chance(0.7)
    limit = EXACT_LIMIT[dtype] / 4 * min(1.0, start.grid) if exact else LARGEST[dtype]
    start = Facts(max(8, start.bound), min(1.0, start.grid))
    for step in w.rng.sample((4096, 256, 64, 8), 4):
        if start.bound + count * step <= limit:
            return Facts(start.bound + count * step, start.grid if exact else 0.0), step
    return Facts(start.bound + 8 * count, 0.0), 8


def enter(block: Writer, carry: Sequence[Carry], tracers: Sequence[Any]) -> list[Value]:
    """The carried values as the body sees them."""
    state = []
    for c, tracer in zip(carry, tracers, strict=True):
        c.name = block.fresh("c")
        state.append(block.declare(c.name, tracer, c.facts, "carry"))
    block.values += state
    return state


def leave(block: Writer, carry: Sequence[Carry], state: Sequence[Value]) -> None:
    """Draws how each of them changes."""
    for c, value in zip(carry, state, strict=True):
        c.next = _changed(block, c, value)
        if c.next == c.name and c.start in _NUMBERS:
            c.start = f"jnp.float32({c.start})"  # scan returns unchanged carries as they were
        block.uses(c.next, f"{block.context[-1]}.carry")


def _changed(block: Writer, c: Carry, value: Value) -> str:
    changes: list[Callable[[Writer, Carry, Value], str]] = [_added] * 3 + [_replaced] * 2
    changes += [_written] * 2 * bool(value.rank and value.size) + [_moved] + [_kept]
    if value.is_float or value.is_integer:
        changes += [_larger, _chosen]
    if value.is_float and not value.exact:
        changes.append(_decayed)
    return block.choice(changes)(block, c, value)


def _kept(block: Writer, c: Carry, value: Value) -> str:
    return value.name


def _fits(value: Value, like: Value) -> bool:
    """Whether it is as exact as what is assumed."""
    return value.dtype == like.dtype and (value.facts.grid >= like.facts.grid)


def _added(block: Writer, c: Carry, value: Value) -> str:
    """`c + e`, of which e is anything that fits or a sum of it."""
    if value.is_bool:
        return f"~{value}"
    limit = c.step
    shapes = [value.shape[k:] for k in range(value.rank + 1)]
    found = [v for v in block.values if _fits(v, value) and v.name != value.name]
    fits = [v for v in found if v.shape in shapes and v.bound <= limit]
    wide = value.is_float or value.dtype in ("int32", "uint32")  # JAX sums narrow ones in 32 bits
    sums = [v for v in found if v.rank and v.bound * v.size <= limit and wide]
    if sums and (not fits or block.chance(0.3)):
        return f"{value} + {block.choice(sums[-4:])}.sum()"
    if fits:
        return f"{value} + {block.choice(fits[-4:])}"
    clipped = [v for v in found if v.shape in shapes and not v.is_complex]
    if clipped:
        return f"{value} + jnp.clip({block.choice(clipped[-4:])}, -{limit}, {limit})"
    return f"{value} + {'1' if value.is_integer else '1.0'}"


def _replaced(block: Writer, c: Carry, value: Value) -> str:
    text, facts = alike(block, value, value)
    return _within(text, facts, value)


def _within(text: str, facts: Facts, value: Value) -> str:
    if facts.bound <= value.bound:
        return text
    return value.name if value.is_complex else f"jnp.clip({text}, -{_edge(value)}, {_edge(value)})"


def _edge(value: Value) -> float:
    """A bound that is a multiple of the grid."""
    return float(max(1, int(value.bound)))


def _moved(block: Writer, c: Carry, value: Value) -> str:
    if not value.rank:
        return value.name
    forms = [f"{value}[::-1]", f"jnp.roll({value}, 1, 0)"]
    if value.rank == 2 and value.shape[0] == value.shape[1]:
        forms.append(f"{value}.T")
    return block.choice(forms)


def _larger(block: Writer, c: Carry, value: Value) -> str:
    text, facts = alike(block, value, value)
    name = block.choice(("maximum", "minimum"))
    return f"jnp.{name}({value}, {_within(text, facts, value)})"


def _chosen(block: Writer, c: Carry, value: Value) -> str:
    text, facts = alike(block, value, value)
    found = [v for v in block.values if v.is_bool and v.shape in ((), value.shape)]
    scalars = [v for v in block.values if v.shape == () and v.exact and not v.is_complex]
    if found:
        predicate = str(block.choice(found))
    elif scalars:
        predicate = f"{block.choice(scalars)} > 0"
    else:
        return value.name
    return f"jnp.where({predicate}, {_within(text, facts, value)}, {value})"


def _decayed(block: Writer, c: Carry, value: Value) -> str:
    text, facts = alike(block, value, value)
    return f"{value} * 0.5 + 0.5 * {_within(text, facts, value)}"


def _written(block: Writer, c: Carry, value: Value) -> str:
    """A row of it, at a counter or anywhere."""
    at = index(block, value.shape[0])
    rows = [v for v in block.values if _fits(v, value) and v.shape in (value.shape[1:], ())]
    rows = [v for v in rows if v.bound <= value.bound]
    if rows and block.chance(0.5):
        return f"{value}.at[{at}].set({block.choice(rows[-4:])})"
    shape = (1, *value.shape[1:])
    text, facts = update_of(block, value, shape)
    if facts.grid < value.facts.grid or facts.bound > value.bound:
        text = f"jnp.full({shape}, {literal(block, value.dtype)[0]}, jnp.{named(value.dtype)})"
    starts = ", ".join([at, *("0" for _ in value.shape[1:])])
    return f"lax.dynamic_update_slice({value}, {text}, ({starts},))"


def alike(block: Writer, like: Value, exact: Value | None = None) -> tuple[str, Facts]:
    """Something of the same shape and dtype: a value, or a broadcast row or scalar."""
    found = [v for v in block.values if v.dtype == like.dtype and v is not like]
    if exact is not None:
        found = [v for v in found if _fits(v, exact)]
    same = [v for v in found if v.shape == like.shape]
    if same and block.chance(0.8):
        value = block.choice(same[-4:])
        return value.name, value.facts
    shapes = [like.shape[k:] for k in range(1, like.rank + 1)]
    rows = [v for v in found if v.shape in shapes]
    if rows:
        value = block.choice(rows[-4:])
        form = block.choice(("jnp.broadcast_to({0}, {1})", "jnp.zeros({1}, {0}.dtype) + {0}"))
        if value.is_bool:
            form = "jnp.broadcast_to({0}, {1})"
        return form.format(value, like.shape), value.facts
    text, facts = literal(block, like.dtype)
    return f"jnp.full({like.shape}, {text}, jnp.{named(like.dtype)})", facts
