"""Reductions, cumulative sums, sorts, row work and matrix products."""

from __future__ import annotations

import math

from tests.fuzz.programs.sources import void
from tests.fuzz.programs.values import Facts, Value
from tests.fuzz.programs.writer import NotApplicableError, Writer, op


def axes(w: Writer, a: Value) -> tuple[str, int]:
    """Source of an axis argument, and how many elements go into each result."""
    if not a.rank or w.chance(0.4):
        return "", a.size
    if a.rank > 1 and w.chance(0.3):
        chosen = sorted(w.rng.sample(range(a.rank), 2))
        return str(tuple(chosen)), math.prod(a.shape[k] for k in chosen)
    axis = w.axis(a)
    return str(axis - a.rank * w.chance(0.3)), a.shape[axis]


def _arguments(w: Writer, axis: str) -> str:
    return ", ".join(filter(None, (axis, "keepdims=True" if w.chance(0.25) else "")))


@op(5)
def total(w: Writer) -> None:
    a = w.number()
    axis, count = axes(w, a)
    w.put(f"{a}.sum({_arguments(w, axis)})", a.facts.repeated(count))


@op(2)
def extreme(w: Writer) -> None:
    a = w.real(lambda v: v.size > 0)
    axis, _ = axes(w, a)
    w.put(f"{a}.{w.choice(('max', 'min'))}({_arguments(w, axis)})", a.facts)


@op(1)
def mean(w: Writer) -> None:
    a = w.floating(lambda v: v.size > 0)
    axis, _ = axes(w, a)
    w.put(f"{a}.mean({_arguments(w, axis)})", a.facts.rounded())


@op(1)
def any_all(w: Writer) -> None:
    a = w.pick(lambda v: v.is_bool)
    axis, _ = axes(w, a)
    w.put(f"{a}.{w.choice(('any', 'all'))}({_arguments(w, axis)})", Facts(1))


@op(1)
def count(w: Writer) -> None:
    a = w.pick(lambda v: v.is_bool)
    axis, _ = axes(w, a)
    w.put(f"{a}.sum({_arguments(w, axis)})", Facts(a.size))


@op(1)
def arg_extreme(w: Writer) -> None:
    a = w.real(lambda v: v.exact and v.size > 0 and v.rank > 0)
    axis = w.axis(a)
    w.put(f"jnp.{w.choice(('argmax', 'argmin'))}({a}, {axis})", Facts(a.shape[axis]))


@op(0.7)
def product(w: Writer) -> None:
    """Of few floats: their product is exact or at least small; or of integers, which wrap."""
    a = w.real(lambda v: v.rank and (v.is_integer or v.shape[-1] <= 3))
    facts = Facts()
    if a.is_float:
        if a.bound > 64:
            raise NotApplicableError
        facts = Facts(1)
        for _ in range(a.shape[-1]):
            facts = facts.times(a.facts).union(Facts(1))
    w.put(f"{a}.prod(-1)", facts)


@op(2)
def cumulative(w: Writer) -> None:
    a = w.real(lambda v: v.rank > 0)
    axis = w.axis(a)
    kind = w.choice(("sum", "sum", "max", "min", "reverse"))
    if kind in ("max", "min"):
        return void(w.put(f"lax.cum{kind}({a}, axis={axis})", a.facts))
    source = f"jnp.cumsum({a}, {axis})"
    if kind == "reverse":
        source = f"lax.cumsum({a}, axis={axis}, reverse=True)"
    w.put(source, a.facts.repeated(a.shape[axis]))


@op(1)
def sort(w: Writer) -> None:
    a = w.real(lambda v: v.rank > 0)
    axis = w.axis(a)
    if a.exact and w.chance(0.4):
        w.put(f"jnp.argsort({a}, axis={axis})", Facts(a.shape[axis]))
    else:
        w.put(f"jnp.sort({a}, axis={axis})", a.facts)


#: Work on rows, with a bound of the result.
_ROWS = (
    ("jax.nn.softmax({}, axis={})", lambda b: 1.0),
    ("jax.nn.log_softmax({}, axis={})", lambda b: 2 * b + 10),
    ("jax.nn.logsumexp({}, axis={})", lambda b: b + 10),
    ("{0} - {0}.mean({1}, keepdims=True)", lambda b: 2 * b),
    ("{0} / (1 + jnp.abs({0}).sum({1}, keepdims=True))", lambda b: 1.0),
    (
        "({0} - {0}.mean({1}, keepdims=True)) * lax.rsqrt({0}.var({1}, keepdims=True) + 1)",
        lambda b: 2 * b,
    ),
    ("jnp.sqrt(1 + jnp.square({0}).sum({1}))", lambda b: 64 * b + 1),
)


@op(2)
def rows(w: Writer) -> None:
    a = w.floating(lambda v: v.rank > 0 and v.size > 0 and v.bound <= 64)
    source, bound = w.choice(_ROWS)
    axis = -1 if w.chance(0.7) else w.axis(a)
    w.put(source.format(a, axis), Facts(bound(a.bound), 0.0))


@op(1)
def scaled_by_maximum(w: Writer) -> None:
    """Elements combined with a reduction of their row."""
    a = w.real(lambda v: v.rank > 0 and v.size > 0)
    name, axis = w.choice(("max", "min", "sum")), w.axis(a)
    facts = a.facts.repeated(a.shape[axis] if name == "sum" else 1)
    w.put(f"{a} - {a}.{name}({axis}, keepdims=True)", a.facts.plus(facts))


@op(2)
def matmul(w: Writer) -> None:
    a = w.number(lambda v: 0 < v.rank <= 3)
    b = w.number(lambda v: v.dtype == a.dtype and 0 < v.rank <= 2 and v.shape[0] == a.shape[-1])
    facts = a.facts.times(b.facts).repeated(a.shape[-1])
    if a.rank == 3 and w.chance(0.5):
        return void(w.put(f"jnp.einsum('bij,j...->bi...', {a}, {b})", facts))
    w.put(f"{a} @ {b}", facts)


@op(1)
def matmul_transposed(w: Writer) -> None:
    a = w.number(lambda v: v.rank == 2)
    b = w.number(lambda v: v.dtype == a.dtype and v.rank == 2 and v.shape[-1] == a.shape[-1])
    w.put(f"{a} @ {b}.T", a.facts.times(b.facts).repeated(a.shape[-1]))


@op(0.5)
def batched_matmul(w: Writer) -> None:
    a = w.number(lambda v: v.rank == 3)
    w.put(f"jnp.einsum('bij,bkj->bik', {a}, {a})", a.facts.times(a.facts).repeated(a.shape[-1]))


@op(0.6)
def norm(w: Writer) -> None:
    a = w.floating(lambda v: v.rank and v.bound <= 2.0**6 and v.size <= 200)
    w.put(f"jnp.vdot({a}, {a})", a.facts.times(a.facts).repeated(a.size))
