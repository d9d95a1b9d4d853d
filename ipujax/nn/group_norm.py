"""Layer, group and instance normalisation of popnn, fused by the compiler into few steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ipujax.api.arguments import (
    array,
    check_real,
    flag,
    floats,
    real_number,
    whole_number,
    wide_dtype,
)
from ipujax.config.options import from_environment
from ipujax.errors import ConfigError
from ipujax.ops.definition import Op

#: Gamma or beta: [C], or None for ones or zeros.
Parameter = Any


def wide(x: jax.Array) -> jax.Array:
    """Casts x to the dtype of sums: float32 or wider."""
    return x.astype(wide_dtype(x.dtype))


class _Groups(NamedTuple):
    """A view of x [..., before, C, after] with its channels as two dimensions, or as rows.

    Attributes:
        number: of groups.
        strided: whether channel c is in group c % number, not c // (C / number).
        rows: x is [..., C], if only its channels are normalised. It then keeps the shape of its
            neighbours, with which it is fused.
    """

    number: int
    strided: bool
    rows: bool

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions of one group."""
        if self.rows:
            return (-1,)
        return (-4, -3, -1) if self.strided else (-4, -2, -1)

    def split(self, x: jax.Array) -> jax.Array:
        *leading, channels, after = x.shape
        if self.rows:
            return x.reshape(*leading[:-1], channels)
        size = channels // self.number
        return x.reshape(
            *leading, *((size, self.number) if self.strided else (self.number, size)), after
        )

    def result(self, statistic: jax.Array) -> jax.Array:
        """In the shape that the op returns: [..., 1, groups, 1, 1] or similar, or four ones."""
        return statistic[..., None, None, None] if self.rows else statistic

    def statistic(self, result: jax.Array) -> jax.Array:
        return result[..., 0, 0, 0] if self.rows else result

    def mean(self, x: jax.Array) -> jax.Array:
        """Mean of each group of what `split` returns, in the wide dtype, to broadcast with it."""
        return jnp.mean(wide(x), self.dims, keepdims=True)


def _plain(
    x: jax.Array,
    gamma: jax.Array,
    beta: jax.Array,
    *,
    groups: int,
    strided: bool,
    epsilon: float,
    stable: bool,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Also returns the mean and 1 / deviation of each group, [..., 1, groups, 1, 1] or similar."""
    view = _view(x, groups, strided)
    parts = view.split(x)
    mean = view.mean(parts)
    if stable:
        variance = view.mean(jnp.square(wide(parts) - mean))
    else:
        variance = jnp.maximum(view.mean(jnp.square(wide(parts))) - jnp.square(mean), 0)
    inverse = lax.rsqrt(variance + epsilon)
    scale = view.split(gamma[None, :, None])
    shift = view.split(beta[None, :, None])
    if view.rows or x.shape[-3] * x.shape[-1] == 1:
        y = ((wide(parts) - mean) * inverse).astype(x.dtype) * scale + shift
    else:  # saves one multiplication per element: scales are per channel
        y = ((wide(parts) - mean) * (inverse * wide(scale)) + wide(shift)).astype(x.dtype)
    return y.reshape(x.shape), view.result(mean), view.result(inverse)


def _view(x: jax.Array, groups: int, strided: bool) -> _Groups:
    return _Groups(groups, strided, groups == x.shape[-3] == x.shape[-1] == 1)


def _plain_gradient(
    x: jax.Array,
    gamma: jax.Array,
    mean: jax.Array,
    inverse: jax.Array,
    dy: jax.Array,
    *,
    groups: int,
    strided: bool,
    epsilon: float,
    stable: bool,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    view = _view(x, groups, strided)
    mean, inverse = view.statistic(mean), view.statistic(inverse)
    whitened = (wide(view.split(x)) - mean) * inverse
    dy_parts = wide(view.split(dy))
    grads = dy_parts * wide(view.split(gamma[None, :, None]))
    first, second = view.mean(grads), view.mean(grads * whitened)
    dx = (grads - first - whitened * second) * inverse
    all_but_channels = (*range(x.ndim - 3),) if view.rows else (*range(x.ndim - 2), x.ndim)
    dgamma = jnp.sum(dy_parts * whitened, all_but_channels).reshape(-1)
    dbeta = jnp.sum(dy_parts, all_but_channels).reshape(-1)
    return dx.reshape(x.shape).astype(x.dtype), dgamma.astype(x.dtype), dbeta.astype(x.dtype)


def _vjp(operands: Any, results: Any, cotangents: Any, **parameters: Any) -> Sequence[Any]:
    """Statistics have cotangents of their own in derivatives of the gradient."""
    x, gamma, _ = operands
    dy, *others = cotangents
    made: list[Any] = [None] * 3
    if dy is not None:
        made = list(GRADIENT(x, gamma, *results[1:], dy, **parameters))
    if all(other is None for other in others):
        return made
    _, transpose = jax.vjp(lambda x: _plain(x, *operands[1:], **parameters)[1:], x)
    zeros = [
        jnp.zeros_like(y) if g is None else g for g, y in zip(others, results[1:], strict=True)
    ]
    (dx,) = transpose(tuple(zeros))
    return [dx if made[0] is None else made[0] + dx, *made[1:]]


GRADIENT = Op(
    "group_norm_gradient",
    _plain_gradient,
    multiple=True,
    fused=True,
    dimensions="...PCQ, C, ...PSTQ, ...PSTQ, ...PCQ -> ...PCQ, C, C",
)
GROUP_NORM = Op(
    "group_norm",
    _plain,
    multiple=True,
    fused=True,
    dimensions="...PCQ, C, C -> ...PCQ, ...PSTQ, ...PSTQ",
    vjp=_vjp,
)


def is_stable(where: str, use_stable_statistics: bool | None) -> bool:
    """Resolves a norm's argument: None means the option in force."""
    if use_stable_statistics is None:
        return from_environment().norms.use_stable_statistics
    return flag(where, "use_stable_statistics", use_stable_statistics)


def group_norm(
    x: jax.Array,
    gamma: Parameter = None,
    beta: Parameter = None,
    *,
    groups: int = 2,
    channels_axis: int = -1,
    epsilon: float = 1e-6,
    strided_channel_grouping: bool = True,
    use_stable_statistics: bool | None = None,
) -> jax.Array:
    """Normalises groups of channels of each batch element: (x - mean) / deviation * gamma + beta.

    The mean and the variance are over a group's channels and all dimensions but the first, which is
    the batch. They are summed in float32.

    Args:
        x: [batch, ...] with a dimension of C channels, of a float dtype.
        gamma: [C]; None: ones.
        beta: [C]; None: zeros.
        groups: a divisor of C. 1 is layer normalisation over all but the batch, C instance
            normalisation.
        channels_axis: the dimension of the channels.
        epsilon: added to the variance.
        strided_channel_grouping: channel c is in group c % groups, which is faster on IPUs; False:
            in group c // (C / groups), as in other libraries.
        use_stable_statistics: True: compute the variance from x - mean; False: as the mean of
            squares minus the square of the mean, which is faster but loses digits where the mean is
            large; None: use the option of that name.
    Returns:
        an array of the shape and dtype of x.
    Raises:
        ConfigError: an argument is invalid.

    Source: `popnn::gn` of PopLibs; `normalization_ops.group_norm` of Graphcore's TensorFlow.

    Example:
        >>> x = jnp.arange(16.0).reshape(2, 2, 4)
        >>> y = ipu.nn.group_norm(x, groups=2, strided_channel_grouping=False)
        >>> print(y[0, :, :2].round(2))
        [[-1.21 -0.73]
         [ 0.73  1.21]]
    """
    strided = flag("nn.group_norm", "strided_channel_grouping", strided_channel_grouping)
    x, axis = _batch_of_channels("group_norm", x, channels_axis, epsilon)
    channels = x.shape[axis]
    number = whole_number(groups)
    if number is None or number < 1 or channels % number:
        raise ConfigError(
            f"[nn.group_norm] needs groups that divide the {channels} channels; got "
            f"groups={groups}. Use a divisor of {channels}."
        )
    how = _How(number, epsilon, strided, use_stable_statistics)
    return _grouped("group_norm", x, axis, (gamma, beta), how)


def instance_norm(
    x: jax.Array,
    gamma: Parameter = None,
    beta: Parameter = None,
    *,
    channels_axis: int = -1,
    epsilon: float = 1e-6,
    use_stable_statistics: bool | None = None,
) -> jax.Array:
    """Normalises each channel of each batch element: `group_norm` with a group for each channel.

    Args:
        x: [batch, ...] with a dimension of C channels, of a float dtype.
        gamma: [C]; None: ones.
        beta: [C]; None: zeros.
        channels_axis: the dimension of the channels.
        epsilon: added to the variance.
        use_stable_statistics: as for `group_norm`.
    Returns:
        an array of the shape and dtype of x.
    Raises:
        ConfigError: an argument is invalid.

    Source: `popnn::in` of PopLibs; `normalization_ops.instance_norm` of Graphcore's TensorFlow.

    Example:
        >>> y = ipu.nn.instance_norm(jnp.arange(6.0).reshape(1, 3, 2))
        >>> print(y[0, :, 0].round(2))
        [-1.22  0.    1.22]
    """
    x, axis = _batch_of_channels("instance_norm", x, channels_axis, epsilon)
    how = _How(max(x.shape[axis], 1), epsilon, True, use_stable_statistics)
    return _grouped("instance_norm", x, axis, (gamma, beta), how)


def layer_norm(
    x: jax.Array,
    gamma: Parameter = None,
    beta: Parameter = None,
    *,
    axis: int | Sequence[int] | None = -1,
    epsilon: float = 1e-6,
    use_stable_statistics: bool | None = None,
) -> jax.Array:
    """Normalises over the last dimension, or over others: (x - mean) / deviation * gamma + beta.

    Args:
        x: of a float dtype, in any shape; [batch, ..., C] if `axis` is None.
        gamma: with the sizes of x along `axis`; [C] if `axis` is None; None: ones.
        beta: as gamma; None: zeros.
        axis: the dimensions over which means are taken, in float32; None: all but the first, as
            in Graphcore's TensorFlow and in `group_norm` with one group.
        epsilon: added to the variance.
        use_stable_statistics: as for `group_norm`.
    Returns:
        an array of the shape and dtype of x.
    Raises:
        ConfigError: an argument is invalid.

    Source: `popnn::ln` of PopLibs; `normalization_ops.layer_norm` of Graphcore's TensorFlow.

    Example:
        >>> x = jnp.array([[[1.0, 2.0], [3.0, 4.0]]])
        >>> print(ipu.nn.layer_norm(x).round(2))
        [[[-1.  1.]
          [-1.  1.]]]
        >>> print(ipu.nn.layer_norm(x, axis=None).round(2))
        [[[-1.34 -0.45]
          [ 0.45  1.34]]]
    """
    x = _checked("layer_norm", x, epsilon)
    if axis is None:
        if x.ndim < 2:
            raise ConfigError(
                "[nn.layer_norm] needs x with a batch and channels for axis=None; got shape "
                f"{x.shape}. Pass axis=-1 to normalise over the last dimension."
            )
        how = _How(1, epsilon, True, use_stable_statistics)
        return _grouped("layer_norm", x, x.ndim - 1, (gamma, beta), how)
    is_sequence = isinstance(axis, list | tuple) or np.ndim(axis)
    given: tuple[Any, ...] = tuple(axis) if is_sequence else (axis,)  # type: ignore[arg-type]
    axes = [_axis("layer_norm", x, each, "axis") for each in given]
    if not axes or len({*axes}) < len(axes):
        raise ConfigError(
            f"[nn.layer_norm] needs one or more different dimensions of x; got axis={axis}. "
            "Name each dimension once."
        )
    ends = list(range(-len(axes), 0))
    moved = jnp.moveaxis(x, axes, ends)
    leading, sizes = moved.shape[: -len(axes)], moved.shape[-len(axes) :]
    y = _normalise(
        "layer_norm",
        moved.reshape(*leading, 1, math.prod(sizes), 1),
        (gamma, beta),
        sizes,
        groups=1,
        epsilon=float(epsilon),
        strided=True,
        stable=is_stable("nn.layer_norm", use_stable_statistics),
    )
    return jnp.moveaxis(y.reshape(moved.shape), ends, axes)


def _batch_of_channels(
    name: str, x: Any, channels_axis: Any, epsilon: Any
) -> tuple[jax.Array, int]:
    """The array, and the dimension of its channels."""
    x = _checked(name, x, epsilon)
    return x, _axis(name, x, channels_axis)


class _How(NamedTuple):
    """How groups are normalised."""

    groups: int
    epsilon: float
    strided: bool
    stable: bool | None


def _grouped(
    name: str, x: jax.Array, axis: int, given: tuple[Parameter, Parameter], how: _How
) -> jax.Array:
    before, after = math.prod(x.shape[1:axis]), math.prod(x.shape[axis + 1 :])
    y = _normalise(
        name,
        x.reshape(x.shape[0], before, x.shape[axis], after),
        given,
        groups=how.groups,
        epsilon=float(how.epsilon),
        strided=how.strided,
        stable=is_stable(f"nn.{name}", how.stable),
    )
    return y.reshape(x.shape)


def _normalise(
    name: str,
    x: jax.Array,
    given: tuple[Parameter, Parameter],
    sizes: tuple[int, ...] | None = None,
    **parameters: Any,
) -> jax.Array:
    """x: [..., before, C, after]."""
    wanted = (x.shape[-2],) if sizes is None else sizes
    vectors = [
        _vector(f"nn.{name}", label, value, wanted, x.dtype, default)
        for label, value, default in zip(("gamma", "beta"), given, (1, 0), strict=True)
    ]
    if x.size == 0:
        return x
    return GROUP_NORM(x, *vectors, **parameters)[0]


def _vector(
    where: str, label: str, value: Parameter, sizes: tuple[int, ...], dtype: Any, default: int
) -> jax.Array:
    if value is None:
        return jnp.full(math.prod(sizes), default, dtype)
    value = array(where, label, value)
    if value.shape != sizes:
        raise ConfigError(
            f"[{where}] needs {label} of shape {sizes}; got {value.shape}. "
            "Pass one value for each channel."
        )
    check_real(where, label, value)
    return value.reshape(-1).astype(dtype)


def _checked(name: str, x: Any, epsilon: float) -> jax.Array:
    x = floats(f"nn.{name}", "x", x)
    if not 0 < real_number(epsilon) < math.inf:
        raise ConfigError(
            f"[nn.{name}] needs a finite epsilon above 0; got epsilon={epsilon}. Use 1e-6, for "
            "example."
        )
    return x


def _axis(name: str, x: jax.Array, axis: Any, label: str = "channels_axis") -> int:
    number = whole_number(axis)
    if number is None:
        raise ConfigError(
            f"[nn.{name}] needs {label} to be the number of a dimension; got {label}={axis!r}. "
            "Pass an integer."
        )
    least = -x.ndim if name == "layer_norm" else 1 - x.ndim
    if not least <= number < x.ndim or (name != "layer_norm" and number == 0):
        raise ConfigError(
            f"[nn.{name}] needs {label} to be a dimension of x {x.shape}"
            f"{'' if name == 'layer_norm' else ' other than the batch, which is the first'}; got "
            f"{label}={axis}. Use another dimension."
        )
    return number % x.ndim
