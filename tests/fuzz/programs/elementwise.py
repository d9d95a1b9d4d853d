"""Arithmetic, comparisons, selects and casts, with the broadcasting that people leave to JAX."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.programs.sources import array, literal, named, scalar_of
from tests.fuzz.programs.values import Facts, Value
from tests.fuzz.programs.writer import NotApplicableError, Writer, op
from tests.fuzz.values import FLOATS, INTEGERS


def partner(w: Writer, a: Value, exact: bool = False) -> tuple[str, Facts]:
    """Something that combines with `a`: equal in shape, broadcast, a scalar, a constant."""
    found = [v for v in w.values if v.dtype == a.dtype and (v.exact or not exact)]
    same = [v for v in found if v.shape == a.shape]
    kind = w.choice(("same", "same", "same", "scalar", "number", "row", "column", "array"))
    if kind == "same" and same:
        b = w.choice(same)
        return b.name, b.facts
    if kind == "scalar":
        text, facts = scalar_of(w, a.dtype)
        if facts.grid or not exact:
            return text, facts
    rows = [v for v in found if v.rank and a.rank and v.shape == a.shape[-v.rank :]]
    if kind == "row" and rows:
        b = w.choice(rows)
        return b.name, b.facts
    columns = [v for v in found if a.rank == 2 and v.shape == a.shape[:1]]
    if kind == "column" and columns:
        b = w.choice(columns)
        return f"{b}[:, None]", b.facts
    if kind == "array" and a.size <= 300 and a.dtype != "bool":
        return array(w, a.shape[w.integer(0, a.rank) :], a.dtype)
    return literal(w, a.dtype)


@op(5)
def arithmetic(w: Writer) -> None:
    a = w.number()
    b, facts = partner(w, a)
    sign = w.choice("+-*+-")
    left, right = (str(a), b) if w.chance(0.7) else (b, str(a))
    known = a.facts.times(facts) if sign == "*" else a.facts.plus(facts)
    w.put(f"{left} {sign} {right}", known)


@op(1.5)
def multiply_add(w: Writer) -> None:
    a = w.number()
    b, known_b = partner(w, a)
    c, known_c = partner(w, a)
    w.put(f"{a} * {b} + {c}", a.facts.times(known_b).plus(known_c))


#: Exact for exact elements: source, and what it does to the facts.
_EXACT: dict[str, Callable[[Facts], Facts]] = {
    "-{}": lambda f: f,
    "jnp.abs({})": lambda f: f,
    "{} * 0.5": lambda f: Facts(f.bound / 2, f.grid / 2),
    "{} / 2": lambda f: Facts(f.bound / 2, f.grid / 2),
    "{} + 1": lambda f: f.plus(Facts(1)),
    "{} ** 2": lambda f: f.times(f),
    "jnp.square({})": lambda f: f.times(f),
    "jax.nn.relu({})": lambda f: f,
    "jnp.maximum({}, 0.0)": lambda f: f,
    "jnp.clip({}, -2.0, 2.0)": lambda f: Facts(min(f.bound, 2.0), min(f.grid, 1.0)),
    "lax.stop_gradient({})": lambda f: f,
    "lax.optimization_barrier({})": lambda f: f,
}


@op(2.5)
def unary(w: Writer) -> None:
    a = w.floating()
    source = w.choice(list(_EXACT))
    w.put(source.format(a), _EXACT[source](a.facts))


#: Smooth everywhere, with a bound of the result.
_SMOOTH: dict[str, Callable[[float], float]] = {
    "jnp.tanh({})": lambda b: 1.0,
    "jnp.sin({})": lambda b: 1.0,
    "jnp.cos({})": lambda b: 1.0,
    "jax.nn.sigmoid({})": lambda b: 1.0,
    "jnp.exp(-jnp.abs({}))": lambda b: 1.0,
    "jnp.exp(jnp.clip({}, -4.0, 2.0))": lambda b: 8.0,
    "jnp.log1p(jnp.abs({}))": lambda b: b,
    "jnp.sqrt(jnp.abs({}) + 1)": lambda b: b + 1,
    "lax.rsqrt(jnp.abs({}) + 1)": lambda b: 1.0,
    "1 / (1 + jnp.square({}))": lambda b: 1.0,
    "jax.nn.softplus({})": lambda b: b + 1,
    "jax.nn.gelu({})": lambda b: b,
    "jax.nn.silu({})": lambda b: b,
    "{} / 3": lambda b: b / 3,
    "jax.scipy.special.erf({})": lambda b: 1.0,
    "jnp.arctan({})": lambda b: 2.0,
}


@op(2.5)
def smooth(w: Writer) -> None:
    a = w.floating(lambda v: v.bound <= 2.0**9)
    source = w.choice(list(_SMOOTH))
    w.put(source.format(a), Facts(_SMOOTH[source](a.bound), 0.0))


@op(0.7)
def divide(w: Writer) -> None:
    a = w.floating(lambda v: v.bound <= 2.0**9)
    b = w.floating(lambda v: v.bound <= 2.0**9 and v.dtype == a.dtype and v.shape == a.shape)
    w.put(f"{a} / ({b} * {b} + 1)", Facts(a.bound, 0.0))


@op(2)
def minmax(w: Writer) -> None:
    a = w.real()
    b, facts = partner(w, a)
    name = w.choice(("maximum", "minimum"))
    w.put(f"jnp.{name}({a}, {b})", a.facts.union(facts))


@op(2)
def compare(w: Writer) -> None:
    a = w.real(lambda v: v.exact)
    b, _ = partner(w, a, exact=True)
    w.put(f"{a} {w.choice(('<', '<=', '>', '>=', '==', '!='))} {b}", Facts(1))


def condition(w: Writer, shape: tuple[int, ...]) -> str:
    """A predicate for elements of this shape: of all of them, of rows, or one for all."""
    shapes = [shape[k:] for k in range(len(shape) + 1)]
    found = [v for v in w.values if v.is_bool and v.shape in shapes]
    if found and w.chance(0.6):
        return str(w.choice(found))
    values = [v for v in w.values if (v.is_float or v.is_integer) and v.exact]
    scalars = [v for v in values if v.shape == ()]
    if scalars and w.chance(0.6):
        return f"{w.choice(scalars)} > 0"
    same = [v for v in values if v.shape in shapes]
    if not same:
        raise NotApplicableError
    return f"{w.choice(same)} > {w.integer(-1, 1) if same[0].is_float else 1}"


def branch(w: Writer, a: Value) -> tuple[str, Facts]:
    """An operand of a select: a value, a number, or a constant array."""
    found = [v for v in w.values if v.dtype == a.dtype and v.shape == a.shape]
    kind = w.choice(("value", "value", "partner", "constant", "constant"))
    if kind == "value":
        b = w.choice(found)
        return b.name, b.facts
    if kind == "partner":
        return partner(w, a)
    name = w.choice(("zeros", "ones", "full"))
    if name == "full":
        text, facts = literal(w, a.dtype)
        return f"jnp.full({a.shape}, {text}, jnp.{named(a.dtype)})", facts
    return f"jnp.{name}({a.shape}, jnp.{named(a.dtype)})", Facts(1)


@op(3)
def where(w: Writer) -> None:
    a = w.pick()
    x, known_x = branch(w, a)
    y, known_y = branch(w, a)
    w.put(f"jnp.where({condition(w, a.shape)}, {x}, {y})", known_x.union(known_y))


@op(0.5)
def where_constants(w: Writer) -> None:
    """By a scalar predicate, between two arrays that are known."""
    kind = w.choice(w.shared.dtypes)
    shape = w.shape(w.integer(1, 2))
    texts = [literal(w, kind) for _ in range(2)]
    x, y = (f"jnp.full({shape}, {text}, jnp.{named(kind)})" for text, _ in texts)
    form = w.choice(("jnp.where({}, {}, {})", "lax.select({}, {}, {})"))
    w.put(form.format(condition(w, ()), x, y), texts[0][1].union(texts[1][1]))


@op(2)
def cast(w: Writer) -> None:
    a = w.pick()
    kind = w.choice((*w.shared.dtypes, *w.shared.dtypes, *FLOATS, "int32", "int8", "uint8", "bool"))
    source, facts = f"{a}.astype(jnp.{named(kind)})", a.facts
    if a.is_bool:
        facts = Facts(1)
    elif a.is_complex:
        if kind != "complex64":
            source, facts = f"jnp.real({a})", a.facts
    elif kind in FLOATS or kind == "complex64":
        if a.bound > 2.0**10:
            source, facts = f"({a} % 8).astype(jnp.{kind})", Facts(8)
            if not a.exact:
                raise NotApplicableError
    elif a.is_float:
        source, facts = _whole(a, kind)
    elif kind in INTEGERS:
        facts = Facts()
    w.put(source, facts)


def _whole(a: Value, kind: str) -> tuple[str, Facts]:
    """Of a float to an integer or bool: only exact ones, inside of what the dtype holds."""
    if not a.exact:
        raise NotApplicableError
    if kind == "bool":
        return f"{a} != 0", Facts(1)
    low = 0 if kind.startswith("u") else -100
    return f"jnp.clip({a}, {low}, 100).astype(jnp.{kind})", Facts(min(100, a.bound))


@op(1.5)
def integer_arithmetic(w: Writer) -> None:
    a = w.pick(lambda v: v.is_integer)
    b, _ = partner(w, a)
    forms = ("{0} & {1}", "{0} | {1}", "{0} ^ {1}", "{0} // 3", "{0} % 5", "~{0}", "{0} << 1")
    form = w.choice((*forms, "{0} >> 1", "jnp.sign({0})", "{0} * {1}"))
    w.put(form.format(a, b), Facts(5) if "% 5" in form else Facts())


@op(1)
def logic(w: Writer) -> None:
    a = w.pick(lambda v: v.is_bool)
    same = [v for v in w.values if v.is_bool and v.shape in (a.shape, ())]
    form = w.choice(("{0} & {1}", "{0} | {1}", "~{0}", "{0} ^ {1}", "jnp.logical_not({0})"))
    w.put(form.format(a, w.choice(same)), Facts(1))


@op(0.6)
def rounding(w: Writer) -> None:
    a = w.floating(lambda v: v.exact)
    name = w.choice(("floor", "ceil", "round", "sign", "trunc"))
    w.put(f"jnp.{name}({a})", Facts(a.bound + 1, max(a.facts.grid, 1.0)))


@op(1)
def complex_parts(w: Writer) -> None:
    a = w.pick(lambda v: v.is_complex)
    w.put(w.choice(("jnp.real({})", "jnp.imag({})", "jnp.conj({})")).format(a), a.facts)


@op(0.6)
def complex_of(w: Writer) -> None:
    a = w.floating(lambda v: v.dtype == "float32")
    b, facts = partner(w, a)
    w.put(
        f"lax.complex({a}, jnp.broadcast_to(jnp.asarray({b}, jnp.float32), {a.shape}))",
        a.facts.union(facts),
    )
