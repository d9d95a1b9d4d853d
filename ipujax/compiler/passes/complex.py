"""Makes complex numbers legal: each value becomes two, its real and its imaginary part.

Before:  (%z: 4 x complex)                     After:  (%z: 4 x 2 x f32)
         %1 = multiply(%z, %z)                         %re, %im = the two columns of %z
         return %1                                     %1 = subtract(multiply(%re, %re), ...)
                                                       %2 = add(multiply(%re, %im), ...)
                                                       return concatenate(%1, %2)
Callers' arrays hold the parts side by side, so arguments and results of the program have a last
dimension of 2 and `Program.seen` remembers what callers see. Within, one op on complex values is

* one op for each part, where it only moves elements (`_MOVES`);
* one op on twice the values, where values go in and out together: loops, branches, sorts, scatters.
  Where such an op's rule must know (`fft`, `cholesky`, custom calls), `complex_operands` and
  `complex_results` say for each value of the original op whether two stand for it;
* arithmetic (`complex_math`), or real products and sums for dot_general and convolution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.ir import Block, Op, Program, Seen, Source, Value, walk_blocks
from ipujax.compiler.passes.complex_math import FORMULAS, modulus
from ipujax.compiler.passes.terms import Term, Writer
from ipujax.errors import UnsupportedOpError
from ipujax.jax_compat import CALLBACK_TARGET

#: By the complex type's name: the type of a part, and JAX's name.
COMPLEX = {"complex<f32>": ("f32", "complex64"), "complex<f64>": ("f64", "complex128")}
PARTS = {name: part for name, (part, _) in COMPLEX.items()}

Parts = tuple[Value, Value]

#: Ops that only move elements: done once for each part, with the same other operands.
_MOVES = frozenset(
    {
        "broadcast_in_dim",
        "concatenate",
        "dynamic_slice",
        "dynamic_update_slice",
        "gather",
        "pad",
        "reshape",
        "reverse",
        "select",
        "slice",
        "transpose",
    }
)
#: Between devices: done once for each part; those that combine must add.
_COLLECTIVES = frozenset(
    {
        "all_gather",
        "all_reduce",
        "all_to_all",
        "collective_broadcast",
        "collective_permute",
        "reduce_scatter",
    }
)
#: Ops with values that go in and out together: two stand for each complex one.
_PAIRED = frozenset(
    {"case", "if", "optimization_barrier", "reduce", "reduce_window", "scatter", "sort", "while"}
)
#: As `_PAIRED`, and the op's rule is told which values are two.
_PAIRED_AND_TOLD = frozenset({"cholesky", "custom_call", "fft", "triangular_solve"})


def split_complex(program: Program) -> Program:
    """Rewrites the program where it has complex values.

    Raises:
        UnsupportedOpError: names the ops that have no meaning on complex values.
    """
    values = [value for block in walk_blocks(program.main) for value in _values(block)]
    is_refused = program.x64 == "error" and any(v.dtype == "complex<f64>" for v in values)
    if not is_refused and any(map(_is_complex, values)):
        _Splitter().program(program)
    return program


def _values(block: Block) -> list[Value]:
    values = block.args + block.results
    for op in block.ops:
        values += op.results
        values += op.operands
    return values


def _is_complex(value: Value) -> bool:
    return value.dtype in PARTS


class _Splitter:
    """Walks the program once; `parts` holds the two values of each complex one."""

    def __init__(self) -> None:
        self.parts: dict[Value, Parts] = {}
        self.ops: list[Op] = []
        self.refused: list[tuple[str, str, str]] = []

    # Boundary ------------------------------------------------------------------------------------

    def program(self, program: Program) -> None:
        main = program.main
        entry: list[Op] = []
        for index, value in enumerate(main.args):
            if _is_complex(value):
                program.seen_arguments.setdefault(index, _seen(value))
                outer = Value((*value.shape, 2), PARTS[value.dtype])
                self.parts[value] = _columns(outer, entry)
                main.args[index] = outer
        for index, value in enumerate(main.results):
            if _is_complex(value):
                program.seen_results.setdefault(index, _seen(value))
        main.results, results = [], main.results
        self.block(main)
        main.ops = entry + main.ops
        for value in results:
            main.results.append(_joined(*self.of(value), main.ops) if _is_complex(value) else value)
        if self.refused:
            raise UnsupportedOpError(self.refused)

    # Values --------------------------------------------------------------------------------------

    def of(self, value: Value) -> Parts:
        """The two parts of a complex value."""
        found = self.parts.get(value)
        if found is None:
            const, dtype = value.const, PARTS[value.dtype]
            assert const is not None, value
            found = _constant(const.real, value, dtype), _constant(const.imag, value, dtype)
            self.parts[value] = found
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
        """Rewrites a block; its arguments come in pairs of one op's operands in a comparator."""
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
        outer, self.ops = self.ops, []
        for op in block.ops:
            self.op(op)
        block.ops, self.ops = self.ops, outer
        block.results = self.flat(block.results)

    def op(self, op: Op) -> None:
        if not any(map(_is_complex, (*op.operands, *op.results))):
            for region in op.regions:
                self.block(region)
            self.ops.append(op)
        elif op.name in _MOVES:
            self._each_part(op)
        elif op.name in _COLLECTIVES:
            self._collective(op)
        elif op.name in _PAIRED:
            self._paired(op)
        elif op.name in _PAIRED_AND_TOLD:
            self._told(op)
        elif op.name in FORMULAS:
            self._formula(op)
        elif op.name in _SPECIAL:
            _SPECIAL[op.name](self, op)
        else:
            self._refuse(op, "it has no meaning, or no rule, on complex numbers")

    def _refuse(self, op: Op, reason: str) -> None:
        self.refused.append((op.name, reason, op.source.line))
        for value in op.results:
            if _is_complex(value):
                self._fresh(value)

    # Kinds of ops --------------------------------------------------------------------------------

    def _add(self, like: Op, name: str, operands: list[Value], attrs: dict[str, Any]) -> Value:
        """One real op that gives a value of the shape of the first result."""
        op = Op(name, operands, attrs, like.source)
        result = like.results[0]
        self.ops.append(op)
        return op.add_result(result.shape, PARTS.get(result.dtype, result.dtype))

    def _each_part(self, op: Op) -> None:
        first, second = (
            self._add(
                op,
                op.name,
                [self.of(v)[part] if _is_complex(v) else v for v in op.operands],
                dict(op.attrs),
            )
            for part in (0, 1)
        )
        self.parts[op.results[0]] = first, second

    def _collective(self, op: Op) -> None:
        """One op for each array, or part of one."""
        if op.regions and not _adds(op.regions[0]):
            self._refuse(op, "complex numbers of several devices can be added, nothing else")
            return
        for value, result in zip(op.operands, op.results, strict=True):
            made = []
            for part in self.of(value) if _is_complex(value) else (value,):
                regions = [_real_sum(part.dtype, op.source)] if op.regions else []
                self.ops.append(Op(op.name, [part], dict(op.attrs), op.source, regions))
                made.append(self.ops[-1])
            if _is_complex(result):
                dtype = PARTS[result.dtype]
                re, im = (each.add_result(result.shape, dtype) for each in made)
                self.parts[result] = re, im
            else:
                result.op, result.index = made[0], 0
                made[0].results = [result]

    def _paired(self, op: Op) -> Op:
        if _sums_one_array(op):
            self._sum(op)
            return op
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
        return op

    def _sum(self, op: Op) -> None:
        """A complex sum is two sums, for which there are faster ways than for any body."""
        sums = []
        for part in (0, 1):
            region = _real_sum(PARTS[op.results[0].dtype], op.source)
            operands = [self.of(v)[part] if _is_complex(v) else v for v in op.operands]
            sums.append(self._add(op, op.name, operands, dict(op.attrs)))
            self.ops[-1].regions = [region]
        self.parts[op.results[0]] = sums[0], sums[1]

    def _told(self, op: Op) -> None:
        if op.attrs.get("call_target_name") == CALLBACK_TARGET:
            self._callback(op)
            return
        op.attrs = {
            **op.attrs,
            "complex_operands": tuple(map(_is_complex, op.operands)),
            "complex_results": tuple(map(_is_complex, op.results)),
        }
        self._paired(op)

    def _callback(self, op: Op) -> None:
        """Python is given arrays with both parts side by side: the bytes of complex ones."""
        for index, value in enumerate(op.operands):
            if _is_complex(value):
                op.operands[index] = _joined(*self.of(value), self.ops)
        self.ops.append(op)
        for index, value in enumerate(op.results):
            if _is_complex(value):
                outer = Value((*value.shape, 2), PARTS[value.dtype], op, index)
                self.parts[value] = _columns(outer, self.ops)
                op.results[index] = outer

    def writer(self, op: Op) -> Writer:
        return Writer(op.results[0].shape, op.source, self.ops)

    def terms(self, w: Writer, value: Value) -> tuple[Term, Term]:
        re, im = (self._in_shape(w, part) for part in self.of(value))
        return w.term(re), w.term(im)

    def _in_shape(self, w: Writer, value: Value) -> Value:
        """A scalar bound of a clamp is repeated."""
        if value.shape == w.shape or value.shape:
            return value
        op = Op("broadcast_in_dim", [value], {"broadcast_dimensions": ()}, w.source)
        self.ops.append(op)
        return op.add_result(w.shape, value.dtype)

    def _formula(self, op: Op) -> None:
        w = self.writer(op)
        re, im = FORMULAS[op.name](w, *(self.terms(w, value) for value in op.operands))
        self.parts[op.results[0]] = re.value, im.value

    def replace(self, op: Op, value: Value) -> None:
        """The op's real result is `value`; others go on knowing the result that it had."""
        last = Op("reshape", [value], {}, op.source)
        last.results = op.results
        last.results[0].op = last
        self.ops.append(last)


def _sums_one_array(op: Op) -> bool:
    if op.name not in ("reduce", "reduce_window", "scatter") or len(op.results) != 1:
        return False
    return _adds(op.regions[0])


def _adds(region: Block) -> bool:
    """Whether the body of a combining op is the sum of its two arguments."""
    if len(region.ops) != 1 or region.ops[0].name != "add":
        return False
    body = region.ops[0]
    return set(body.operands) == set(region.args) and region.results == body.results


def _real_sum(dtype: str, source: Source) -> Block:
    args = [Value((), dtype), Value((), dtype)]
    body = Op("add", list(args), {}, source)
    return Block(args, [body], [body.add_result((), dtype)])


def _seen(value: Value) -> Seen:
    return Seen(COMPLEX[value.dtype][1], value.shape)


def _columns(outer: Value, ops: list[Op]) -> Parts:
    """The two halves of an array with both parts side by side."""
    shape = outer.shape[:-1]
    found = []
    for part in (0, 1):
        attrs = {
            "start_indices": (*(0 for _ in shape), part),
            "limit_indices": (*shape, part + 1),
            "strides": (1,) * len(outer.shape),
        }
        column = Op("slice", [outer], attrs)
        flat = Op("reshape", [column.add_result((*shape, 1), outer.dtype)], {})
        found.append(flat.add_result(shape, outer.dtype))
        ops += [column, flat]
    return found[0], found[1]


def _joined(re: Value, im: Value, ops: list[Op]) -> Value:
    """Both parts side by side, as callers' arrays hold them."""
    shape = re.shape
    columns = []
    for part in (re, im):
        column = Op("reshape", [part], {})
        columns.append(column.add_result((*shape, 1), part.dtype))
        ops.append(column)
    joined = Op("concatenate", columns, {"dimension": len(shape)})
    ops.append(joined)
    return joined.add_result((*shape, 2), re.dtype)


def _constant(array: np.ndarray, like: Value, dtype: str) -> Value:
    if like.is_splat:
        array = np.broadcast_to(array.flat[0:1].reshape(()), like.shape)
    else:
        array = np.ascontiguousarray(array)
    return Value(like.shape, dtype, const=array.astype(DTYPES[dtype].numpy, copy=False))


# Ops of their own kind ---------------------------------------------------------------------------


def _complex(s: _Splitter, op: Op) -> None:
    s.parts[op.results[0]] = op.operands[0], op.operands[1]


def _real(s: _Splitter, op: Op) -> None:
    s.replace(op, s.of(op.operands[0])[0])


def _imag(s: _Splitter, op: Op) -> None:
    s.replace(op, s.of(op.operands[0])[1])


def _abs(s: _Splitter, op: Op) -> None:
    w = s.writer(op)
    s.replace(op, modulus(w, s.terms(w, op.operands[0])).value)


def _zeros(s: _Splitter, op: Op) -> Value:
    return s.writer(op).constant(0, PARTS[op.results[0].dtype]).value


def _convert(s: _Splitter, op: Op) -> None:
    """From a real type: no imaginary part. To a real type: the real part alone."""
    (operand,), (result,) = op.operands, op.results
    if not _is_complex(operand):
        part = PARTS[result.dtype]
        re = operand if operand.dtype == part else s._add(op, "convert", [operand], {})
        s.parts[result] = re, _zeros(s, op)
    elif _is_complex(result):
        w = s.writer(op)
        x, y = (part.convert(PARTS[result.dtype]) for part in s.terms(w, operand))
        s.parts[result] = x.value, y.value
    elif result.dtype == "i1":
        x, y = s.terms(s.writer(op), operand)
        s.replace(op, (x.ne(0.0) | y.ne(0.0)).value)
    else:
        op.operands = [s.of(operand)[0]]
        s.ops.append(op)


def _compare(s: _Splitter, op: Op) -> None:
    w, direction = s.writer(op), op.attrs["comparison_direction"]
    x, y = (s.terms(w, value) for value in op.operands)
    if direction == "EQ":
        s.replace(op, (x[0].eq(y[0]) & x[1].eq(y[1])).value)
    elif direction == "NE":
        s.replace(op, (x[0].ne(y[0]) | x[1].ne(y[1])).value)
    else:
        s._refuse(op, f"complex numbers have no order for {direction}")


def _iota(s: _Splitter, op: Op) -> None:
    s.parts[op.results[0]] = s._add(op, "iota", [], dict(op.attrs)), _zeros(s, op)


def _product(s: _Splitter, op: Op) -> None:
    """Four real products."""
    part = PARTS[op.results[0].dtype]
    operands = []
    for value in op.operands:
        both = s.of(value) if _is_complex(value) else (value, None)
        operands.append(both)
    (a, b), (c, d) = operands

    def times(x: Value | None, y: Value | None) -> Term | None:
        if x is None or y is None:
            return None
        return w.term(s._add(op, op.name, [x, y], dict(op.attrs)))

    w = s.writer(op)
    ac, bd, ad, bc = times(a, c), times(b, d), times(a, d), times(b, c)
    zero = w.constant(0, part)
    assert ac is not None
    re = ac - bd if bd is not None else ac
    im = ad + bc if ad is not None and bc is not None else ad or bc or zero
    s.parts[op.results[0]] = re.value, im.value


def _bitcast_convert(s: _Splitter, op: Op) -> None:
    """To two words of a part's size, or from them."""
    (operand,), (result,) = op.operands, op.results
    if _is_complex(operand) and _is_complex(result):
        s.parts[result] = s.of(operand)
    elif _is_complex(operand) and result.shape == (*operand.shape, 2):
        op.operands = [_joined(*s.of(operand), s.ops)]
        s.ops.append(op)
    elif _is_complex(result) and operand.shape == (*result.shape, 2):
        words = Op("bitcast_convert", [operand], dict(op.attrs), op.source)
        s.ops.append(words)
        s.parts[result] = _columns(words.add_result(operand.shape, PARTS[result.dtype]), s.ops)
    else:
        s._refuse(op, "bits of complex numbers are seen as two words of half the size")


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
