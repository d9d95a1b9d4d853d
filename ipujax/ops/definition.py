"""Ops: JAX primitives that are one custom call on IPUs, and a plain function elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ipujax import jax_compat
from ipujax.api.custom.custom_calls import custom_call, register
from ipujax.api.precision.policy import allow_casts
from ipujax.ops.dimensions import Dimensions

#: (operands, results, a cotangent or None for each result, **parameters) -> one for each operand
Vjp = Callable[..., Sequence[Any]]


class Op:
    """A function of arrays that the compiler lowers by the rule of its custom call.

    The custom call's target is `ipu_<name>`. Its config, in JSON, has the op's parameters, and
    `dimensions`, by which the partitioner shards it. On other platforms, and for every
    transformation not given here, the op is its plain definition.

    Args:
        name: of the op.
        plain: the definition, `plain(*arrays, **parameters)` in functions of JAX.
        multiple: whether it returns a tuple of arrays, not an array.
        dimensions: the dimensions of operands and results, as in einsum: "...c, c -> ...c". A
            program over several devices may shard lower-case dimensions; upper-case ones are whole
            on each device. A dimension that only operands have is summed over: results without it
            are added up over devices. "..." is any number of dimensions, of the same sizes wherever
            it stands; vmap adds to leading ones. If the text depends on the parameters, pass a
            function of them that returns it. None: each device does all of the work, and vmap maps
            the definition.
        own_operands: number of consecutive operands that each result is computed from; it is summed
            over the dimensions of these operands alone. None: all operands.
        block_starts: whether results depend on the positions of elements. If a program over several
            devices shards the only result, the custom call has one more operand: int32, for each
            dimension of the result the start of the device's block.
        vjp: the gradient, `vjp(operands, results, cotangents, **parameters)`; a cotangent is None
            if it is zero. It returns a value for each operand, None for an operand without a
            gradient, and may call other ops, whose gradients give derivatives of higher order.
            None: the definition is differentiated.
        linear: whether the only result is linear in the first operand, and the others have no
            derivative; then the op is its own derivative, and `vjp` its transpose (the first
            operand is None there).
        fused: whether the op is its definition on IPUs too, where the compiler fuses it; it is then
            an op only for its gradient.
        batch: `batch(size, operands, dims, **parameters)` returns results and their dims, as in
            `jax.interpreters.batching`; a dim is None if an operand has no mapped axis.

    Parameters are hashable and can be written as JSON (tuples become lists).

    Example:
        >>> twice = Op("example_twice", lambda x: 2 * x, dimensions="... -> ...")
        >>> twice.plain(3.0)
        6.0
    """

    def __init__(
        self,
        name: str,
        plain: Callable[..., Any],
        *,
        multiple: bool = False,
        dimensions: str | Callable[..., str] | None = None,
        own_operands: int | None = None,
        block_starts: bool = False,
        vjp: Vjp | None = None,
        linear: bool = False,
        fused: bool = False,
        batch: Callable[..., Any] | None = None,
    ):
        self.name, self.plain, self.multiple = name, plain, multiple
        self._dimensions, self._vjp, self._batch_rule = dimensions, vjp, batch
        self._own_operands, self._block_starts = own_operands, block_starts
        self.primitive = _primitive(f"ipu_{name}", self._flat)
        register(self.primitive, self._flat, None if fused else self._on_ipu)
        batching.primitive_batchers[self.primitive] = self._batch
        ad.primitive_jvps[self.primitive] = self._jvp if vjp is None else self._jvp_by_transpose
        if linear:
            ad.primitive_jvps[self.primitive] = self._jvp_of_linear
            ad.primitive_transposes[self.primitive] = self._transpose_of_linear
        elif vjp is not None:
            self._tangent = _tangent_primitive(self)

    def __call__(self, *operands: Any, **parameters: Any) -> Any:
        """The result, or a tuple of them if the definition returns one."""
        results = self.bind(operands, parameters)
        return tuple(results) if self.multiple else results[0]

    def bind(self, operands: Sequence[Any], parameters: dict[str, Any]) -> list[Any]:
        """All results as a list."""
        return self.primitive.bind(*_alike(operands), **parameters)

    def _flat(self, *operands: Any, **parameters: Any) -> list[Any]:
        made = self.plain(*operands, **parameters)
        return list(made) if self.multiple else [made]

    def dimensions(self, parameters: dict[str, Any]) -> Dimensions | None:
        """The op's dimensions with these parameters."""
        given = self._dimensions
        text = given(**parameters) if callable(given) else given
        return None if text is None else Dimensions(text)

    def _on_ipu(self, **parameters: Any) -> Any:
        def lower(ctx: Any, *operands: Any, **_: Any) -> Any:
            dimensions = self.dimensions(parameters)
            config = dict(parameters)
            if dimensions is not None:
                ranks = [[aval.ndim for aval in avals] for avals in (ctx.avals_in, ctx.avals_out)]
                config["dimensions"] = dimensions.numbered(*ranks)
                config["own_operands"] = self._own_operands
                config["block_starts"] = self._block_starts
            return custom_call(f"ipu_{self.name}", config)(ctx, *operands)

        return lower

    # Transformations -----------------------------------------------------------------------------

    def _batch(self, operands: Any, dims: Any, **parameters: Any) -> Any:
        size = next(x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
        if self._batch_rule is not None:
            return self._batch_rule(size, operands, dims, **parameters)
        dimensions = self.dimensions(parameters)
        if dimensions is None or not dimensions.can_lead([d is not None for d in dims]):
            return _vmapped(partial(self._flat, **parameters), operands, dims)
        results = self.bind(
            [
                _leading(x, d, size) if leads else x
                for x, d, leads in zip(operands, dims, dimensions.leads, strict=True)
            ],
            parameters,
        )
        return results, [0] * len(results)

    def _jvp(self, primals: Any, tangents: Any, **parameters: Any) -> Any:
        results = self.bind(primals, parameters)
        made = _tangents(partial(self._flat, **parameters), primals, tangents)
        return results, [_symbolic(x, y) for x, y in zip(made, results, strict=True)]

    def _jvp_of_linear(self, primals: Any, tangents: Any, **parameters: Any) -> Any:
        results = self.bind(primals, parameters)
        tangent = tangents[0]
        if type(tangent) is ad.Zero:
            return results, [ad.Zero(jax.typeof(results[0]).to_tangent_aval())]
        return results, self.bind((tangent, *primals[1:]), parameters)

    def _transpose_of_linear(self, cotangents: Any, *operands: Any, **parameters: Any) -> Any:
        assert self._vjp is not None
        if type(cotangents[0]) is ad.Zero:
            return [None] * len(operands)
        made = self._vjp((None, *operands[1:]), None, list(cotangents), **parameters)
        return [made[0], *[None] * (len(operands) - 1)]

    def _jvp_by_transpose(self, primals: Any, tangents: Any, **parameters: Any) -> Any:
        results = self.bind(primals, parameters)
        there = tuple(type(tangent) is not ad.Zero for tangent in tangents)
        given = [tangent for tangent in tangents if type(tangent) is not ad.Zero]
        made = self._tangent.bind(
            *_alike([*primals, *results, *given]), there=there, parameters=_frozen(parameters)
        )
        floats = iter(made)
        return results, [
            next(floats) if _is_float(y) else ad.Zero(jax.typeof(y).to_tangent_aval())
            for y in results
        ]

    def tangents(
        self, *values: Any, there: tuple[bool, ...], parameters: tuple[tuple[str, Any], ...]
    ) -> list[Any]:
        """Tangents of results of float dtypes: linear in the last values."""
        primals, rest = values[: len(there)], iter(values[len(values) - sum(there) :])
        given = [next(rest) if is_there else None for is_there in there]
        made = _tangents(partial(self._flat, **dict(parameters)), primals, given)
        return [tangent for tangent in made if tangent.dtype != jax.dtypes.float0]

    def transposed(
        self, cotangents: Any, *values: Any, there: tuple[bool, ...], parameters: Any
    ) -> list[Any]:
        """Cotangents of the last values of `tangents`, by the op's own gradient."""
        assert self._vjp is not None
        count = len(values) - sum(there)
        primals, results = values[: len(there)], values[len(there) : count]
        rest = iter(cotangents)
        full = [next(rest) if _is_float(y) else None for y in results]
        full = [None if type(each) is ad.Zero else each for each in full]
        made: Sequence[Any] = [None] * len(primals)
        if any(each is not None for each in full):
            made = self._vjp(primals, results, full, **dict(parameters))
        wanted = [(g, x) for g, x, w in zip(made, primals, there, strict=True) if w]
        zero = [ad.Zero(jax.typeof(x).to_tangent_aval()) if g is None else g for g, x in wanted]
        return [None] * count + zero


def _tangent_primitive(op: Op) -> Primitive:
    """A linear primitive: the definition's derivative, whose transpose is the op's own gradient."""
    primitive = _primitive(f"ipu_{op.name}_tangent", op.tangents)
    lowered = mlir.lower_fun(op.tangents, multiple_results=True)
    mlir.register_lowering(primitive, lowered)
    primitive.def_impl(op.tangents)

    def derivative(values: Any, tangents: Any, **parameters: Any) -> Any:
        function = partial(op.tangents, **parameters)
        return primitive.bind(*values, **parameters), _tangents(function, values, tangents)

    def batch(values: Any, dims: Any, **parameters: Any) -> Any:
        return _vmapped(partial(op.tangents, **parameters), values, dims)

    ad.primitive_jvps[primitive] = derivative
    ad.primitive_transposes[primitive] = op.transposed
    batching.primitive_batchers[primitive] = batch
    return primitive


def _primitive(name: str, plain: Callable[..., list[Any]]) -> Primitive:
    """A primitive with the shapes of the plain function."""
    primitive = Primitive(name)
    primitive.multiple_results = True
    allow_casts(name)

    def avals(*operands: Any, **parameters: Any) -> list[Any]:
        jaxpr, _ = jax_compat.trace_avals(partial(plain, **parameters), operands)
        return [aval.update(weak_type=False) for aval in jaxpr.out_avals]

    primitive.def_abstract_eval(avals)
    return primitive


def _alike(operands: Sequence[Any]) -> list[Any]:
    """The operands as arrays that vary over the same mapped axes."""
    arrays = [jnp.asarray(x) for x in operands]
    axes = frozenset[Any]().union(*map(jax_compat.varying_axes, arrays))
    return [jax_compat.varying_over(x, axes) for x in arrays] if axes else arrays


def _tangents(function: Callable[..., list[Any]], primals: Any, tangents: Any) -> list[Any]:
    """Tangents of the function's results; those given may be None or symbolic if zero."""
    there = [tangent is not None and type(tangent) is not ad.Zero for tangent in tangents]

    def of_varied(*varied: Any) -> list[Any]:
        rest = iter(varied)
        merged = (next(rest) if y else x for x, y in zip(primals, there, strict=True))
        return function(*merged)

    made: list[Any] = jax.jvp(
        of_varied, list(compress(primals, there)), list(compress(tangents, there))
    )[1]
    return made


def _vmapped(function: Callable[..., list[Any]], operands: Any, dims: Any) -> Any:
    results = jax.vmap(function, in_axes=tuple(dims))(*operands)
    return results, [0] * len(results)


def _leading(x: jax.Array, dim: int | None, size: int) -> jax.Array:
    if dim is None:
        return jnp.broadcast_to(x, (size, *x.shape))
    return jnp.moveaxis(x, dim, 0)


def _symbolic(tangent: Any, result: Any) -> Any:
    return tangent if _is_float(result) else ad.Zero(jax.typeof(result).to_tangent_aval())


def _is_float(value: Any) -> bool:
    return bool(jnp.issubdtype(jax.typeof(value).dtype, jnp.inexact))


def _frozen(parameters: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(parameters.items()))
