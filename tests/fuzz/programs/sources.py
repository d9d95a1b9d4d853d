"""Constants, iotas and broadcasts: values that are not computed from others."""

from __future__ import annotations

import math

import numpy as np

from tests.fuzz.programs.values import Facts, Value
from tests.fuzz.programs.writer import NotApplicableError, Writer, op
from tests.fuzz.values import FLOATS, dtype_of


def dtype(w: Writer) -> str:
    return w.choice(w.shared.dtypes)


def literal(w: Writer, kind: str) -> tuple[str, Facts]:
    """A Python number, as people combine it with an array of this dtype."""
    if kind in FLOATS or kind == "complex64":
        text = w.choice(("2.0", "0.5", "1.0", "3.0", "-1.0", "0.0", "2", "4.0", "0.25"))
        number = float(text)
        return text, Facts(abs(number), min(1.0, abs(number) or 1.0))
    if kind == "bool":
        return w.choice(("True", "False")), Facts(1)
    low = 0 if kind.startswith("u") else -3
    number = w.integer(low, 5)
    return str(number), Facts(abs(number))


def scalar_of(w: Writer, kind: str) -> tuple[str, Facts]:
    """A scalar of this dtype: a value so far, an element of one, or a number."""
    found = [v for v in w.values if v.dtype == kind and v.shape == ()]
    if found and w.chance(0.6):
        value = w.choice(found)
        return value.name, value.facts
    arrays = [v for v in w.values if v.dtype == kind and v.rank and v.size]
    if arrays and w.chance(0.5):
        value = w.choice(arrays)
        return element(w, value), value.facts
    text, facts = literal(w, kind)
    return text, facts


def element(w: Writer, value: Value) -> str:
    """One element, perhaps by a counter."""
    return f"{value}[{', '.join(index(w, n) for n in value.shape)}]"


def index(w: Writer, size: int) -> str:
    """A number inside, or a counter's value (JAX clamps what is outside)."""
    found = [v for v in w.values if v.shape == () and v.dtype == "int32"]
    if found and w.chance(0.5):
        return w.choice(found).name
    return str(w.integer(-size, size - 1)) if size else "0"


@op(1.5)
def full(w: Writer) -> None:
    """An array of one number, or of one value."""
    kind = dtype(w)
    shape = w.shape()
    text, facts = scalar_of(w, kind)
    name = w.choice(("full", "full", "zeros", "ones"))
    if name == "full":
        w.put(f"jnp.full({shape}, {text}, jnp.{named(kind)})", facts)
    else:
        w.put(f"jnp.{name}({shape}, jnp.{named(kind)})", Facts(1))


@op(0.8)
def full_like(w: Writer) -> None:
    a = w.pick()
    name = w.choice(("zeros_like", "ones_like", "full_like"))
    if name == "full_like":
        text, facts = scalar_of(w, a.dtype)
        w.put(f"jnp.full_like({a}, {text})", facts)
    else:
        w.put(f"jnp.{name}({a})", Facts(1))


@op(1)
def arange(w: Writer) -> None:
    n, kind = w.dim(), w.choice(("int32", "float32", dtype(w)))
    if kind in ("bool", "complex64") or (kind in ("int8", "uint8") and n > 100):
        raise NotApplicableError
    if w.chance(0.3):
        shape = w.shape(2)
        axis = w.integer(0, 1)
        source = f"lax.broadcasted_iota(jnp.{kind}, {shape}, {axis})"
        if kind in ("int8", "uint8") and shape[axis] > 100:
            raise NotApplicableError
        n = shape[axis]
    elif kind == "float32" and w.chance(0.3):
        source = f"jnp.arange({n}.)"
    else:
        source = f"jnp.arange({n}, dtype=jnp.{kind})"
    w.put(source, Facts(n, 1.0))


@op(0.5)
def eye(w: Writer) -> None:
    n, m = w.shape(2) or (2, 2)
    kind = w.choice(("float32", dtype(w)))
    name = w.choice((f"jnp.eye({n}, {m}, {w.integer(-1, 1)}, dtype=jnp.{named(kind)})",) * 2)
    if w.chance(0.3):
        name = f"jnp.tri({n}, {m}, {w.integer(-1, 1)}, dtype=jnp.{named(kind)})"
    w.put(name, Facts(1))


@op(1)
def constant(w: Writer) -> None:
    """A NumPy array that the function closes over."""
    text, facts = array(w, w.shape(most=200), dtype(w))
    w.put(f"jnp.asarray({text})", facts)


def array(w: Writer, shape: tuple[int, ...], kind: str) -> tuple[str, Facts]:
    """Source of a NumPy array: small ones number by number."""
    size = math.prod(shape)
    floating = kind in FLOATS or kind == "complex64"
    modulus = w.choice((2, 3, 5, 7))
    low = 0 if kind.startswith("u") or kind == "bool" else -(modulus // 2)
    if size <= 8 and len(shape) == 1 and floating and kind != "bfloat16":
        numbers = [w.choice((-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0)) for _ in range(size)]
        return f"np.array({numbers}, np.{kind})", Facts(3, 0.5)
    text = f"(np.arange({size}) % {modulus} + {low}).reshape({shape})"
    cast = "jnp.bfloat16" if kind == "bfloat16" else f"np.{kind}"
    return f"{text}.astype({cast})".replace("np.bool)", "bool)"), Facts(modulus)


def named(kind: str) -> str:
    return "bool_" if kind == "bool" else kind


@op(2.5)
def broadcast_to(w: Writer) -> None:
    """Leading dimensions more, and dimensions of 1 that grow."""
    a = w.pick(lambda v: v.rank <= 3)
    inner = tuple(w.dim() if n == 1 and w.chance(0.7) else n for n in a.shape)
    shape = (*w.shape(w.integer(0 if 1 in a.shape else 1, 2 if a.rank < 2 else 1)), *inner)
    w.put(f"jnp.broadcast_to({a}, {shape})", a.facts)


@op(1)
def broadcast_scalar(w: Writer) -> None:
    """A scalar into an array, by any of the ways in which it is written."""
    kind = dtype(w)
    if kind == "bool":
        raise NotApplicableError
    a = w.pick(lambda v: v.dtype == kind and v.shape == ())
    shape = w.shape(w.integer(1, 3))
    source = w.choice(
        (
            f"jnp.full({shape}, {a})",
            f"jnp.zeros({shape}, jnp.{kind}) + {a}",
            f"jnp.broadcast_to({a}, {shape})",
            f"jnp.tile({a}, {shape})",
            f"jnp.ones({shape}, jnp.{kind}) * {a}",
            f"lax.broadcast({a}, {shape})",
        )
    )
    w.put(source, a.facts)


@op(1.5)
def expand_dims(w: Writer) -> None:
    a = w.pick(lambda v: v.rank < 4)
    if w.chance(0.5):
        w.put(f"jnp.expand_dims({a}, {w.integer(0, a.rank)})", a.facts)
    else:
        parts = [":"] * a.rank
        parts.insert(w.integer(0, a.rank), "None")
        w.put(f"{a}[{', '.join(parts)}]", a.facts)


@op(1)
def repeat(w: Writer) -> None:
    a = w.pick(lambda v: v.rank and v.size <= 300)
    n, axis = w.integer(1, 4), w.axis(a)
    if w.chance(0.5):
        w.put(f"jnp.repeat({a}, {n}, axis={axis})", a.facts)
    else:
        repeats = tuple(w.integer(1, 3) for _ in a.shape)
        w.put(f"jnp.tile({a}, {repeats})", a.facts)


@op(1.2)
def outer(w: Writer) -> None:
    """A value of every pair of elements."""
    a = w.number(lambda v: v.rank == 1)
    b = w.number(lambda v: v.rank == 1 and v.dtype == a.dtype)
    if w.chance(0.3):
        return void(w.put(f"jnp.outer({a}, {b})", a.facts.times(b.facts)))
    sign = w.choice("+-*")
    facts = a.facts.times(b.facts) if sign == "*" else a.facts.plus(b.facts)
    w.put(f"{a}[:, None] {sign} {b}[None, :]", facts)


def void(value: object) -> None:
    del value


@op(0.5)
def meshgrid(w: Writer) -> None:
    a = w.pick(lambda v: v.rank == 1)
    b = w.pick(lambda v: v.rank == 1)
    k = w.integer(0, 1)
    order = w.choice(("xy", "ij"))
    source = f"jnp.meshgrid({a}, {b}, indexing={order!r})[{k}]"
    w.put(source, (a, b)[k].facts)


def random_argument(w: Writer, kind: str) -> np.ndarray:
    """Small whole numbers of any dtype."""
    shape = w.shape()
    rng = np.random.default_rng(w.rng.getrandbits(32))
    if kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    low, high = (0, 9) if kind.startswith("u") else (-4, 4)
    numbers = rng.integers(low, high + 1, shape)
    if kind == "complex64":
        return (numbers + 1j * rng.integers(low, high + 1, shape)).astype(np.complex64)
    return np.asarray(numbers).astype(dtype_of(kind))
