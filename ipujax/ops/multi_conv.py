"""`multi_conv`: several convolutions as one operation of poplin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ipujax.api.arguments import LARGEST_INT32, array, whole_number
from ipujax.config.product_options import as_text
from ipujax.errors import ConfigError
from ipujax.ops.definition import Op


@dataclass(frozen=True)
class Conv:
    """One convolution of `ipu.ops.multi_conv`: arguments of `jax.lax.conv_general_dilated`.

    Args:
        lhs: the data, [batch, channels, field...] in the default layout.
        rhs: the kernel, [output channels, input channels, kernel...] in the default layout.
        window_strides: one for each dimension of the field; default: 1.
        padding: "SAME", "VALID", or pairs.
        lhs_dilation, rhs_dilation: one for each dimension of the field; default: 1.
        dimension_numbers: the layouts, as `jax.lax` has them.
        feature_group_count: groups of channels.
        options: options of this convolution, by PopLibs' names, such as {"partialsType": "half"}.

    Source: `poplin::multiconv::ConvolutionArgs`.
    """

    lhs: Any
    rhs: Any
    window_strides: Sequence[int] | None = None
    padding: str | Sequence[tuple[int, int]] = "VALID"
    lhs_dilation: Sequence[int] | None = None
    rhs_dilation: Sequence[int] | None = None
    dimension_numbers: Any = None
    feature_group_count: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)


def _plain(*arrays: jax.Array, convs: Any, options: str) -> tuple[jax.Array, ...]:
    pairs = zip(arrays[::2], arrays[1::2], convs, strict=True)
    return tuple(_one(lhs, rhs, *parameters[:-1]) for lhs, rhs, parameters in pairs)


def _one(lhs: Any, rhs: Any, strides: Any, padding: Any, left: Any, right: Any, groups: int) -> Any:
    return lax.conv_general_dilated(
        lhs, rhs, strides, padding, left, right, feature_group_count=groups
    )


class _Sizes(NamedTuple):
    """Sizes along one dimension of the field, including the zeros that dilation inserts."""

    data: int
    kernel: int
    result: int


def _vjp(
    operands: Any, results: Any, cotangents: Any, *, convs: Any, options: str
) -> Sequence[Any]:
    """Gradients of data and kernels are convolutions, run as one operation, too."""
    arrays: list[jax.Array] = []
    static = []
    for number, (conv, ct) in enumerate(zip(convs, cotangents, strict=True)):
        lhs, rhs = operands[2 * number : 2 * number + 2]
        cotangent = jnp.zeros_like(results[number]) if ct is None else ct
        for *pair, parameters in _gradients(lhs, rhs, cotangent, conv):
            arrays += pair
            static.append(parameters)
    made = _convolve(arrays, static, options)
    for number in range(1, len(made), 2):  # of kernels: their channels are swapped
        made[number] = jnp.swapaxes(made[number], 0, 1)
    return made


def _convolve(arrays: list[jax.Array], static: list[Any], options: str) -> list[jax.Array]:
    """Runs convolutions as one operation, except those that poplin's does not support."""
    pairs = list(zip(arrays[::2], arrays[1::2], static, strict=True))
    is_alone = [_is_empty_or_crops(*pair) for pair in pairs]
    alone = [
        _one(lhs, rhs, *each[:-1]) for (lhs, rhs, each), c in zip(pairs, is_alone, strict=True) if c
    ]
    rest = [pair for pair, c in zip(pairs, is_alone, strict=True) if not c]
    together = []
    if rest:
        flat = [array for lhs, rhs, _ in rest for array in (lhs, rhs)]
        together = _MULTI_CONV.bind(
            flat, {"convs": tuple(each for *_, each in rest), "options": options}
        )
    in_turn = iter(alone), iter(together)
    return [next(in_turn[0] if c else in_turn[1]) for c in is_alone]


def _is_empty_or_crops(lhs: jax.Array, rhs: jax.Array, static: Any) -> bool:
    """Whether an operand has no elements, or negative padding crops the data."""
    return not lhs.size or not rhs.size or any(edge < 0 for pair in static[1] for edge in pair)


def _gradients(lhs: Any, rhs: Any, ct: Any, conv: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Data, kernel and parameters of the convolutions for the data's and the kernel's gradient."""
    strides, padding, left, right, groups, own = conv
    sizes = [
        _Sizes(*(max((n - 1) * step + 1, 0) for n, step in zip(each, steps, strict=True)))
        for each, steps in zip(
            zip(lhs.shape[2:], rhs.shape[2:], ct.shape[2:], strict=True),
            zip(left, right, strides, strict=True),
            strict=True,
        )
    ]
    lows = [low for low, _ in padding]
    turned = _by_groups(jnp.flip(rhs, range(2, rhs.ndim)), groups, 0)
    before = [size.kernel - low - 1 for size, low in zip(sizes, lows, strict=True)]
    of_data = tuple(
        (low, size.data + size.kernel - 1 - size.result - low)
        for size, low in zip(sizes, before, strict=True)
    )
    kernel = jnp.swapaxes(turned, 1, 2)
    kernel = kernel.reshape(groups * rhs.shape[1], rhs.shape[0] // groups, *rhs.shape[2:])
    yield ct, kernel, (left, of_data, strides, right, groups, own)
    of_kernel = tuple(
        (low, size.result - size.data + size.kernel - low - 1)
        for size, low in zip(sizes, lows, strict=True)
    )
    channels = jnp.moveaxis(_by_groups(lhs, groups, 1), 0, 2)  # [groups, channels, batch, field...]
    data = jnp.swapaxes(channels, 0, 1)
    data = data.reshape(lhs.shape[1] // groups, groups * lhs.shape[0], *lhs.shape[2:])
    yield data, jnp.swapaxes(ct, 0, 1), (right, of_kernel, left, strides, groups, own)


def _by_groups(x: jax.Array, groups: int, axis: int) -> jax.Array:
    return x.reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])


def _dimensions(*, convs: Any, options: str) -> str:
    """Letters of batches, output channels, and input channels, over which a result is summed."""
    letters = iter(_LETTERS)
    operands, results = [], []
    for strides, *_, groups, _ in convs:
        field = "F" * len(strides)
        batch, summed, out = next(letters), "C", "C"
        if groups == 1:
            summed, out = next(letters), next(letters)
        operands += [f"{batch}{summed}{field}", f"{out}{summed}{field}"]
        results.append(f"{batch}{out}{field}")
    return f"{', '.join(operands)} -> {', '.join(results)}"


_LETTERS = [letter for letter in map(chr, range(ord("a"), 0x3000)) if letter.islower()]
_MULTI_CONV: Op = Op(
    "multi_conv", _plain, multiple=True, dimensions=_dimensions, own_operands=2, vjp=_vjp
)


def multi_conv(
    convs: Sequence[Conv], options: Mapping[str, Any] | None = None
) -> tuple[jax.Array, ...]:
    """Computes several independent convolutions as one operation.

    The gradients of all data and kernels are one operation, too. On the IPU Model each convolution
    is planned for all tiles, and they run one after the other; on hardware PopLibs may run them
    side by side.

    Args:
        convs: the convolutions, with float16 or float32 operands.
        options: options of PopLibs' multi-convolution, such as {"planType": "parallel"}; they have
            no effect on the IPU Model.
    Returns:
        an array for each convolution.
    Raises:
        ConfigError: something other than a `Conv`, or arguments that are not those of a
            convolution.

    Source: `nn_ops.multi_conv` of Graphcore's TensorFlow, `poplin::multiconv::convolution`.

    Example:
        >>> x, w = jnp.ones((1, 2, 4, 4)), jnp.ones((3, 2, 3, 3))
        >>> y, z = ipu.ops.multi_conv([ipu.ops.Conv(x, w), ipu.ops.Conv(x, w, padding="SAME")])
        >>> y.shape, z.shape
        ((1, 3, 2, 2), (1, 3, 4, 4))
    """
    convs = tuple(convs) if isinstance(convs, Iterable) else ()
    if not convs or not all(isinstance(conv, Conv) for conv in convs):
        kinds = ", ".join(type(each).__name__ for each in convs) or "none"
        raise ConfigError(
            f"[ipu.ops.multi_conv] needs a list of ipu.ops.Conv; got {kinds}. Pass "
            "[ipu.ops.Conv(lhs, rhs), ...]."
        )
    arrays: list[jax.Array] = []
    parameters, orders = [], []
    for number, conv in enumerate(convs):
        lhs, rhs, static, order = _in_poplins_layout(number, conv)
        arrays += [lhs, rhs]
        parameters.append(static)
        orders.append(order)
    made = _convolve(arrays, parameters, as_text(dict(options or {})))
    return tuple(jnp.transpose(y, order) for y, order in zip(made, orders, strict=True))


def _positive(numbers: Any) -> tuple[int, ...]:
    made = [whole_number(each) for each in numbers]
    if any(each is None or not 1 <= each <= LARGEST_INT32 for each in made):
        raise ValueError(
            f"strides, dilations and groups are from 1 to 2**31 - 1, not {list(numbers)}"
        )
    return tuple(each for each in made if each is not None)


def _in_poplins_layout(number: int, conv: Conv) -> tuple[Any, Any, tuple[Any, ...], list[int]]:
    """Operands as [batch, channels, field...], [out, in, kernel...], and the result's order."""
    where = "ipu.ops.multi_conv"
    lhs, rhs = array(where, "lhs", conv.lhs), array(where, "rhs", conv.rhs)
    if lhs.dtype != rhs.dtype or not jnp.issubdtype(lhs.dtype, jnp.floating):
        raise ConfigError(
            f"[ipu.ops.multi_conv] needs floats of one dtype in each convolution; got {lhs.dtype} "
            f"and {rhs.dtype} in number {number}. Cast them."
        )
    try:
        numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, conv.dimension_numbers)
        lhs = jnp.transpose(lhs, numbers.lhs_spec)
        rhs = jnp.transpose(rhs, numbers.rhs_spec)
        rank = lhs.ndim - 2
        strides, left, right = (
            (1,) * rank if steps is None else _positive(steps)
            for steps in (conv.window_strides, conv.lhs_dilation, conv.rhs_dilation)
        )
        if not len(strides) == len(left) == len(right) == rank:
            raise ValueError(f"strides and dilations are {rank} numbers, one for each dimension")
        padding = conv.padding
        if isinstance(padding, str):
            kernel = [
                (size - 1) * step + 1 for size, step in zip(rhs.shape[2:], right, strict=True)
            ]
            padding = lax.padtype_to_pads(lhs.shape[2:], kernel, strides, padding)
        pairs = tuple((int(low), int(high)) for low, high in padding)
        if any(edge < 0 for pair in pairs for edge in pair):
            raise ValueError(f"padding is 0 or more, not {pairs}.")
        (groups,) = _positive([conv.feature_group_count])
        if 0 in rhs.shape[2:]:
            raise ValueError("a kernel has one or more elements along each dimension of the field")
        jax.eval_shape(lambda x, w: _one(x, w, strides, pairs, left, right, groups), lhs, rhs)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"[ipu.ops.multi_conv] needs arguments of a convolution; got {list(lhs.shape)} and "
            f"{list(rhs.shape)} in number {number}: {str(error).rstrip('.')}. Correct "
            "them."
        ) from None
    order = sorted(range(lhs.ndim), key=lambda dim: numbers.out_spec[dim])
    text = as_text(dict(conv.options or {}))
    return lhs, rhs, (strides, pairs, left, right, groups, text), order
