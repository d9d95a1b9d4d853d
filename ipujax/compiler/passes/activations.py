"""Recognises GELU and its gradient, for which IPUs have an operation, however they are written.

Before:  %1 = negate(%0)                             After:  %9 = gelu_erf(%0)
         %2 = multiply(%1, 0.707106)
         %3 = chlo.erfc(%2)
         %4 = multiply(0.5, %0)
         %9 = multiply(%4, %3)
A sum of products is compared as a polynomial, so brackets and the order of factors do not matter:
x / 2 (1 + tanh(u)) is the polynomial {x: 1/2, x tanh: 1/2}, and u the polynomial of GELU's cubic.
A gradient is the polynomial of the derivative times anything else. Coefficients may differ by a
few roundings of the dtype. Results are rounded once, while the parts were rounded one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ipujax.compiler.ir import (
    Block,
    Op,
    Program,
    Rewriter,
    Value,
    number,
    splat_of,
)

#: A product: its factors, sorted, with repeats. A polynomial maps products to coefficients.
Monomial = tuple[Value, ...]
Polynomial = dict[Monomial, float]

MAX_TERMS = 32
MAX_DEGREE = 8
MAX_DEPTH = 24
#: Values examined around one tanh or erf, in either direction.
MAX_NEAR = 48
#: Half of a unit in the last place of a number from 1 to 2.
ROUNDING = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
NUM_ROUNDINGS = 3

_SCALE = math.sqrt(2 / math.pi)
_CUBE = 0.044715
_ARITHMETIC = ("add", "divide", "multiply", "negate", "subtract")


class Found(NamedTuple):
    name: str
    operands: list[Value | float]


def recognise_activations(program: Program) -> Program:
    """Rewrites all blocks that become steps."""
    found: dict[Value, Found] = {}
    for block in program.blocks_run():
        if any(op.name in _OUTER for op in block.ops):
            _search(block, found)
    return _Activations(found).program(program) if found else program


class _Activations(Rewriter):
    def __init__(self, found: dict[Value, Found]):
        super().__init__()
        self.found = found

    def rule(self, op: Op) -> Sequence[Value] | None:
        found = self.found.get(op.results[0]) if op.results else None
        if found is None:
            return None
        like = op.results[0]
        operands = [
            self.now(each) if isinstance(each, Value) else number(each, like.shape, like.dtype)
            for each in found.operands
        ]
        return [self.op(found.name, operands, like=like)]


class _Algebra:
    """Values as polynomials of `atoms` and of values that are not sums or products."""

    def __init__(self, atoms: Sequence[Value]):
        self.known: dict[Value, Polynomial] = {atom: {(atom,): 1.0} for atom in atoms}

    def of(self, value: Value, depth: int = 0) -> Polynomial:
        known = self.known.get(value)
        if known is None:
            made = self._of(value, depth + 1) if depth < MAX_DEPTH else None
            known = self.known[value] = {(value,): 1.0} if made is None else made
        return known

    def _of(self, value: Value, depth: int) -> Polynomial | None:
        constant = splat_of(value)
        if constant is not None:
            return {(): float(constant)}
        op = value.op
        if op is None or op.name not in _ARITHMETIC:
            return None
        if op.name == "divide":
            divisor = splat_of(op.operands[1])
            return _scaled(self.of(op.operands[0], depth), 1 / float(divisor)) if divisor else None
        first, *rest = (self.of(operand, depth) for operand in op.operands)
        if op.name == "negate":
            return _scaled(first, -1)
        if op.name == "multiply":
            return _product(first, rest[0])
        return _sum(first, rest[0] if op.name == "add" else _scaled(rest[0], -1))


def _scaled(a: Polynomial, factor: float) -> Polynomial:
    return {monomial: factor * coefficient for monomial, coefficient in a.items()}


def _sum(a: Polynomial, b: Polynomial) -> Polynomial | None:
    total = dict(a)
    for monomial, coefficient in b.items():
        total[monomial] = total.get(monomial, 0.0) + coefficient
    return total if len(total) <= MAX_TERMS else None


def _product(a: Polynomial, b: Polynomial) -> Polynomial | None:
    if len(a) * len(b) > MAX_TERMS:
        return None
    total: Polynomial = {}
    for left, x in a.items():
        for right, y in b.items():
            if len(left) + len(right) > MAX_DEGREE:
                return None
            monomial = tuple(sorted((*left, *right), key=id))
            total[monomial] = total.get(monomial, 0.0) + x * y
    return total


def _is_close(a: Polynomial, b: Polynomial, dtype: str) -> bool:
    """Whether the two are equal but for the rounding of constants."""
    tolerance = NUM_ROUNDINGS * ROUNDING[dtype]
    largest = max(map(abs, b.values()), default=0.0)
    for monomial in a.keys() | b.keys():
        x, y = a.get(monomial, 0.0), b.get(monomial, 0.0)
        if abs(x - y) > tolerance * (abs(y) or largest):
            return False
    return True


def _terms(*terms: tuple[float, Sequence[Value]]) -> Polynomial:
    return {tuple(sorted(values, key=id)): coefficient for coefficient, values in terms}


def _gelu(x: Value, t: Value) -> Polynomial:
    return _terms((0.5, [x]), (0.5, [x, t]))


def _gelu_slope(x: Value, t: Value) -> Polynomial:
    """1/2 (1 + t) + x/2 (1 - t^2) scale (1 + 3 cube x^2)."""
    a, b = 0.5 * _SCALE, 1.5 * _SCALE * _CUBE
    return _terms(
        (0.5, []), (0.5, [t]), (a, [x]), (-a, [x, t, t]), (b, [x] * 3), (-b, [x, x, x, t, t])
    )


def _argument(op: Op, x: Value) -> Polynomial:
    """The argument of the tanh, erf or erfc in GELU of x."""
    if op.name == "tanh":
        return _terms((_SCALE, [x]), (_SCALE * _CUBE, [x] * 3))
    return _terms((math.sqrt(0.5) if op.name == "chlo.erf" else -math.sqrt(0.5), [x]))


def _activation(op: Op, x: Value) -> tuple[str, Polynomial]:
    (y,) = op.results
    if op.name == "chlo.erfc":
        return "gelu_erf", _terms((0.5, [x, y]))
    return "gelu" if op.name == "tanh" else "gelu_erf", _gelu(x, y)


def _slope(op: Op, x: Value, exponential: Value | None) -> tuple[str, Polynomial] | None:
    (y,) = op.results
    if op.name == "tanh":
        return "gelu_gradient", _gelu_slope(x, y)
    if exponential is None:
        return None
    density = (1 / math.sqrt(2 * math.pi), [x, exponential])
    if op.name == "chlo.erfc":
        return "gelu_erf_gradient", _terms((0.5, [y]), density)
    return "gelu_erf_gradient", _terms((0.5, []), (0.5, [y]), density)


_OUTER = ("tanh", "chlo.erf", "chlo.erfc")


def _search(block: Block, found: dict[Value, Found]) -> None:
    users: dict[Value, list[Op]] = {}
    for op in block.ops:
        if op.name in _ARITHMETIC or op.name == "exponential":
            for operand in op.operands:
                users.setdefault(operand, []).append(op)
    for op in block.ops:
        if op.name in _OUTER and op.results[0].dtype in ROUNDING and op.results[0] in users:
            for x in _arguments(op):
                _search_from(op, x, users, found)


def _arguments(op: Op) -> Iterator[Value]:
    """The values x for which op(u) can be part of a GELU of x."""
    (u,) = op.operands
    for x in _near([u], _factors):
        if x is u or x.is_splat:
            continue
        if _is_close(_Algebra([x]).of(u), _argument(op, x), x.dtype):
            yield x


def _factors(value: Value) -> Sequence[Value]:
    return value.op.operands if value.op is not None and value.op.name in _ARITHMETIC else ()


def _near(start: Sequence[Value], step: Callable[[Value], Sequence[Value]]) -> list[Value]:
    """Up to MAX_NEAR values that steps reach, nearest first."""
    seen = dict.fromkeys(start)
    for value in (pending := list(start)):
        for other in step(value):
            if other not in seen and len(seen) < MAX_NEAR:
                seen[other] = None
                pending.append(other)
    return pending


def _search_from(op: Op, x: Value, users: dict[Value, list[Op]], found: dict[Value, Found]) -> None:
    (outer,) = op.results
    exponential = _density(x, users)
    algebra = _Algebra([x, outer] if exponential is None else [x, outer, exponential])
    name, activation = _activation(op, x)
    slope = _slope(op, x, exponential)

    def later(value: Value) -> list[Value]:
        return [user.results[0] for user in users.get(value, ()) if user.name in _ARITHMETIC]

    for value in _near([outer], later):
        if value is outer or value in found:
            continue
        polynomial = algebra.of(value)
        if _is_close(polynomial, activation, value.dtype):
            found[value] = Found(name, [x])
        elif slope is not None and len(polynomial) >= len(slope[1]):
            gradient = _quotient(polynomial, slope[1], algebra, value.dtype)
            if gradient is not None:
                found[value] = Found(slope[0], [x, gradient])


def _density(x: Value, users: dict[Value, list[Op]]) -> Value | None:
    """exp(-x^2 / 2), if the program computes it."""
    expected = _terms((-0.5, [x, x]))
    algebra = _Algebra([x])

    def later(value: Value) -> list[Value]:
        return [user.results[0] for user in users.get(value, ()) if user.name != "exponential"]

    for value in _near([x], later):
        for user in users.get(value, ()):
            if user.name == "exponential" and _is_close(algebra.of(value), expected, x.dtype):
                return user.results[0]
    return None


def _quotient(
    whole: Polynomial, part: Polynomial, algebra: _Algebra, dtype: str
) -> Value | float | None:
    """The value or number that gives `whole` when multiplied by `part`."""
    own = {value for monomial in part for value in monomial}
    groups: dict[Monomial, Polynomial] = {}
    for monomial, coefficient in whole.items():
        inside = tuple(value for value in monomial if value in own)
        outside = tuple(value for value in monomial if value not in own)
        groups.setdefault(inside, {})[outside] = coefficient
    if not part.keys() <= groups.keys():
        return None
    anchor = max(part, key=lambda monomial: abs(part[monomial]))
    other = _scaled(groups[anchor], 1 / part[anchor])
    product = _product(other, part)
    if product is None or not _is_close(whole, product, dtype):
        return None
    if other.keys() == {()}:
        return other[()]
    known = algebra.known.items()
    return next((value for value, each in known if _is_close(each, other, dtype)), None)
