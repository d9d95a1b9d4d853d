"""Makes complex numbers legal: each value becomes two, its real and its imaginary part.

Before:  (%z: 4 x complex)                     After:  (%z: 4 x 2 x f32)
         %1 = multiply(%z, %z)                         %re, %im = the two columns of %z
         return %1                                     %1 = subtract(multiply(%re, %re), ...)
                                                       %2 = add(multiply(%re, %im), ...)
                                                       return concatenate(%1, %2)
Callers' arrays hold the parts side by side, so arguments and results of the program have a last
dimension of 2 and `Program.seen` remembers what callers see. Inside, one op on complex values is

* one op for each part, where it only moves elements;
* one op on twice the values, where values go in and out together: loops, branches, sorts, scatters.
  Where such an op's rule must know (`fft`, `cholesky`, custom calls), `complex_operands` and
  `complex_results` say for each value of the original op whether two stand for it;
* arithmetic (`complex_math`), or real products and sums for dot_general and convolution.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ipujax.compiler.formulas.complex import FORMULAS, modulus
from ipujax.compiler.ir import (
    Block,
    Legaliser,
    Op,
    Program,
    Seen,
    Term,
    Value,
    combiner,
    combiner_of,
    converted,
    number,
    walk_values,
)
from ipujax.jax_compat import CALLBACK_TARGET
from ipujax.types import BY_STABLEHLO

#: The type of a part, by the complex type's name.
PARTS = {"complex<f32>": "f32", "complex<f64>": "f64"}

Parts = tuple[Value, Value]


def split_complex(program: Program) -> Program:
    """Rewrites the program if it has complex values.

    Raises:
        UnsupportedOpError: names the ops that have no meaning on complex values.
    """
    dtypes = {value.dtype for value in walk_values(program.main)}
    is_refused = "complex<f64>" in dtypes and program.options.program.x64 == "error"
    if not is_refused and not dtypes.isdisjoint(PARTS):
        _Splitter().program(program)
    return program


def _is_complex(value: Value) -> bool:
    return value.dtype in PARTS


class _Splitter(Legaliser):
    """`parts` holds the two values of each complex one."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: dict[Value, Parts] = {}

    # Boundary ------------------------------------------------------------------------------------

    def illegal_dtype(self, value: Value) -> str:
        return value.dtype if _is_complex(value) else ""

    def seen(self, value: Value) -> Seen | None:
        return Seen(BY_STABLEHLO[value.dtype].name, value.shape) if _is_complex(value) else None

    def enters(self, value: Value) -> Value:
        """Splits an array that holds both parts side by side."""
        if not _is_complex(value):
            return value
        outer = Value((*value.shape, 2), PARTS[value.dtype], value.op, value.index)
        self.parts[value] = self.columns(outer)
        return outer

    def leaves(self, value: Value) -> Value:
        return self.joined(value) if _is_complex(value) else self.now(value)

    def columns(self, outer: Value) -> Parts:
        """The two halves of an array with both parts side by side."""
        shape = outer.shape[:-1]
        zeros = (0,) * len(shape)
        re, im = (
            self.reshape(self.slice(outer, (*zeros, part), (*shape, part + 1)), shape)
            for part in (0, 1)
        )
        return re, im

    def joined(self, value: Value) -> Value:
        """Both parts side by side, as callers' arrays hold them."""
        shape = value.shape
        columns = [self.reshape(part, (*shape, 1)) for part in self.of(value)]
        return self.op("concatenate", columns, {"dimension": len(shape)}, shape=(*shape, 2))

    # Values --------------------------------------------------------------------------------------

    def of(self, value: Value) -> Parts:
        """The two parts of a complex value."""
        found = self.parts.get(value)
        if found is None:
            dtype = PARTS[value.dtype]
            re, im = converted(value, dtype, np.real), converted(value, dtype, np.imag)
            found = self.parts[value] = re, im
        return found

    def flat(self, values: list[Value]) -> list[Value]:
        """The values with two in place of each complex one."""
        found: list[Value] = []
        for value in values:
            found += self.of(value) if _is_complex(value) else (value,)
        return found

    def _fresh(self, value: Value) -> Parts:
        dtype = PARTS[value.dtype]
        self.parts[value] = Value(value.shape, dtype), Value(value.shape, dtype)
        return self.parts[value]

    # Blocks --------------------------------------------------------------------------------------

    def block(self, block: Block, pairs_of_args: bool = False) -> None:
        """Rewrites a block; a comparator has a pair of arguments for each operand of its sort."""
        args: list[Value] = []
        step = 2 if pairs_of_args else 1
        for begin in range(0, len(block.args), step):
            group = block.args[begin : begin + step]
            if _is_complex(group[0]):
                both = [self._fresh(value) for value in group]
                args += [pair[part] for part in (0, 1) for pair in both]
            else:
                args += group
        block.args = args
        super().block(block)

    def results(self, block: Block) -> list[Value]:
        return [self.now(value) for value in self.flat(block.results)]

    def visit(self, op: Op) -> None:
        self.source = op.source
        op.operands = [self.now(value) for value in op.operands]
        if not any(map(_is_complex, (*op.operands, *op.results))):
            self.regions(op)
            self.ops.append(op)
        elif op.traits.collective:
            self._collective(op)
        elif op.traits.complex == "parts":
            self._each_part(op)
        elif op.traits.complex == "pairs":
            self._paired(op)
        elif op.traits.complex == "marked pairs":
            self._told(op)
        elif op.name in FORMULAS:
            self._formula(op)
        elif op.name in _SPECIAL:
            _SPECIAL[op.name](self, op)
        else:
            self.refuse(op, "it is not defined, or has no rule, for complex numbers")

    def refuse(self, op: Op, reason: str) -> None:
        super().refuse(op, reason)
        for value in op.results:
            if _is_complex(value):
                self._fresh(value)

    # Kinds of ops --------------------------------------------------------------------------------

    def real(self, op: Op, operands: list[Value], regions: list[Block] | None = None) -> Value:
        """One real op like `op`; returns a part of its first result."""
        result = op.results[0]
        dtype = PARTS.get(result.dtype, result.dtype)
        return self.op(
            op.name, operands, dict(op.attrs), shape=result.shape, dtype=dtype, regions=regions
        )

    def _part(self, values: list[Value], part: int) -> list[Value]:
        return [self.of(v)[part] if _is_complex(v) else v for v in values]

    def _each_part(self, op: Op) -> None:
        """One op for each part; a body that adds is faster than a general one."""
        dtype = PARTS[op.results[0].dtype]
        re, im = (
            self.real(
                op,
                self._part(op.operands, part),
                [combiner("add", dtype, op.source)] if op.regions else None,
            )
            for part in (0, 1)
        )
        self.parts[op.results[0]] = re, im

    def _collective(self, op: Op) -> None:
        """One op for each array, or part of one."""
        if op.regions and combiner_of(op.regions[0]) != "add":
            self.refuse(op, "collectives can only add complex numbers")
            return
        for value, result in zip(op.operands, op.results, strict=True):
            made = []
            for part in self.flat([value]):
                regions = [combiner("add", part.dtype, op.source)] if op.regions else []
                attrs = dict(op.attrs)
                made.append(self.op(op.name, [part], attrs, shape=result.shape, regions=regions))
            if _is_complex(result):
                self.parts[result] = made[0], made[1]
            else:
                self.replaced[result] = made[0]

    def _paired(self, op: Op) -> None:
        if _sums_one_array(op):
            self._each_part(op)
            return
        op.operands = self.flat(op.operands)
        results = op.results
        op.results = []
        for value in results:
            if _is_complex(value):
                dtype = PARTS[value.dtype]
                re = op.add_result(value.shape, dtype)
                self.parts[value] = re, op.add_result(value.shape, dtype)
            else:
                value.index = len(op.results)
                op.results.append(value)
        for region in op.regions:
            self.block(region, pairs_of_args=op.name == "sort")
        self.ops.append(op)

    def _told(self, op: Op) -> None:
        if op.attrs.get("call_target_name") == CALLBACK_TARGET:
            self.callback(op)
            return
        op.attrs = {
            **op.attrs,
            "complex_operands": tuple(map(_is_complex, op.operands)),
            "complex_results": tuple(map(_is_complex, op.results)),
        }
        self._paired(op)

    def terms(self, value: Value) -> tuple[Term, Term]:
        re, im = self.of(value)
        return self.term(re), self.term(im)

    def _formula(self, op: Op) -> None:
        shape = op.results[0].shape
        pairs = [
            # A scalar bound of a clamp is repeated.
            tuple(
                self.term(part if part.shape == shape else self.broadcast(part, (), shape))
                for part in self.of(value)
            )
            for value in op.operands
        ]
        re, im = FORMULAS[op.name](*pairs)
        self.parts[op.results[0]] = re.value, im.value


def _sums_one_array(op: Op) -> bool:
    return op.traits.combines and len(op.results) == 1 and combiner_of(op.regions[0]) == "add"


# Ops of their own kind ---------------------------------------------------------------------------


def _complex(s: _Splitter, op: Op) -> None:
    s.parts[op.results[0]] = op.operands[0], op.operands[1]


def _real(s: _Splitter, op: Op) -> None:
    s.replaced[op.results[0]] = s.of(op.operands[0])[0]


def _imag(s: _Splitter, op: Op) -> None:
    s.replaced[op.results[0]] = s.of(op.operands[0])[1]


def _abs(s: _Splitter, op: Op) -> None:
    s.replaced[op.results[0]] = modulus(s.terms(op.operands[0])).value


def _zeros(op: Op) -> Value:
    return number(0, op.results[0].shape, PARTS[op.results[0].dtype])


def _convert(s: _Splitter, op: Op) -> None:
    """From a real type, the imaginary part is zero; to a real type, the real part is kept."""
    (operand,), (result,) = op.operands, op.results
    if not _is_complex(operand):
        re = s.term(operand).convert(PARTS[result.dtype])
        s.parts[result] = re.value, _zeros(op)
    elif _is_complex(result):
        x, y = (part.convert(PARTS[result.dtype]) for part in s.terms(operand))
        s.parts[result] = x.value, y.value
    elif result.dtype == "i1":
        x, y = s.terms(operand)
        s.replaced[result] = (x.ne(0.0) | y.ne(0.0)).value
    else:
        op.operands = [s.of(operand)[0]]
        s.ops.append(op)


def _compare(s: _Splitter, op: Op) -> None:
    direction = op.attrs["comparison_direction"]
    x, y = (s.terms(value) for value in op.operands)
    if direction == "EQ":
        s.replaced[op.results[0]] = (x[0].eq(y[0]) & x[1].eq(y[1])).value
    elif direction == "NE":
        s.replaced[op.results[0]] = (x[0].ne(y[0]) | x[1].ne(y[1])).value
    else:
        s.refuse(op, f"complex numbers have no order for {direction}")


def _iota(s: _Splitter, op: Op) -> None:
    s.parts[op.results[0]] = s.real(op, []), _zeros(op)


def _product(s: _Splitter, op: Op) -> None:
    """Four real products; two if one side, or the result, is real."""
    (a, b), (c, d) = (s.of(v) if _is_complex(v) else (v, None) for v in op.operands)
    result = op.results[0]
    dtype = next(PARTS[v.dtype] for v in (result, *op.operands) if _is_complex(v))

    def times(x: Value | None, y: Value | None) -> Term | None:
        if x is None or y is None:
            return None
        return s.term(s.op(op.name, [x, y], dict(op.attrs), shape=result.shape, dtype=dtype))

    ac, bd = times(a, c), times(b, d)
    assert ac is not None
    re = ac - bd if bd is not None else ac
    if not _is_complex(result):
        s.replaced[result] = re.convert(result.dtype).value
        return
    ad, bc = times(a, d), times(b, c)
    im = ad + bc if ad is not None and bc is not None else ad or bc
    s.parts[result] = re.value, im.value if im is not None else _zeros(op)


def _bitcast_convert(s: _Splitter, op: Op) -> None:
    """Converts to or from two words of a part's size."""
    (operand,), (result,) = op.operands, op.results
    if _is_complex(operand) and _is_complex(result):
        s.parts[result] = s.of(operand)
    elif _is_complex(operand) and result.shape == (*operand.shape, 2):
        op.operands = [s.joined(operand)]
        s.ops.append(op)
    elif _is_complex(result) and operand.shape == (*result.shape, 2):
        words = s.op("bitcast_convert", [operand], dtype=PARTS[result.dtype])
        s.parts[result] = s.columns(words)
    else:
        s.refuse(op, "complex numbers can only be bitcast to two words of half the size")


_SPECIAL: dict[str, Callable[[_Splitter, Op], None]] = {
    "abs": _abs,
    "bitcast_convert": _bitcast_convert,
    "compare": _compare,
    "complex": _complex,
    "convert": _convert,
    "convolution": _product,
    "dot_general": _product,
    "imag": _imag,
    "iota": _iota,
    "real": _real,
}
