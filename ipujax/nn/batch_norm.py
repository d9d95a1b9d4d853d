"""Batch normalisation with explicit moving statistics, over the batch of one or more replicas."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ipujax.api.arguments import (
    array,
    check_real,
    count,
    dimension,
    flag,
    floats,
    real_number,
    whole_number,
)
from ipujax.api.replicate.collectives import cross_replica_mean
from ipujax.api.replicate.replicas import AxisName, resolve
from ipujax.config.options import from_environment
from ipujax.errors import ConfigError
from ipujax.nn.group_norm import is_stable, wide
from ipujax.ops.definition import Op


class BatchNormState(NamedTuple):
    """Moving statistics.

    Attributes:
        mean: [C] float32.
        variance: [C] float32.
    """

    mean: jax.Array
    variance: jax.Array


def _along(vector: jax.Array, x: jax.Array, axis: int) -> jax.Array:
    """[C] reshaped to broadcast with x."""
    return vector.reshape([-1 if d == axis else 1 for d in range(x.ndim)])


def _all_but(x: jax.Array, axis: int) -> tuple[int, ...]:
    return tuple(d for d in range(x.ndim) if d != axis)


def _plain(x: jax.Array, *vectors: jax.Array, axis: int, scaled: bool, shifted: bool) -> jax.Array:
    mean, inverse, *affine = (_along(v.astype(x.dtype), x, axis) for v in vectors)
    y = (x - mean) * inverse
    y = y * affine[0] if scaled else y
    return y + affine[-1] if shifted else y


def _vjp(
    operands: Any, _: Any, cotangents: Any, *, axis: int, scaled: bool, shifted: bool
) -> list[jax.Array]:
    """Needs two sums over the batch: gamma and the deviation share the one of products."""
    x, mean, inverse, *affine = operands
    dy = wide(cotangents[0])
    centred = wide(x) - wide(_along(mean.astype(x.dtype), x, axis))
    sums, products = (jnp.sum(each, _all_but(x, axis)) for each in (dy, dy * centred))
    gamma = wide(affine[0]) if scaled else 1
    scale = gamma * inverse
    made = [dy * _along(scale, x, axis), -sums * scale, products * gamma]
    made += [products * inverse] * scaled + [sums] * shifted
    return [g.astype(operand.dtype) for g, operand in zip(made, operands, strict=True)]


#: Operands: x and, each [C], means, 1 / deviation, gamma if `scaled`, beta if `shifted`.
NORMALISE = Op("batch_normalise", _plain, vjp=_vjp, fused=True)


def batch_norm_init(channels: int) -> BatchNormState:
    """The state before the first step: means of 0, variances of 1.

    Args:
        channels: the number of channels, C.

    Raises:
        ConfigError: channels is not an integer of at least 0.

    Source: initializers of `tf.keras.layers.BatchNormalization`.

    Example:
        >>> ipu.nn.batch_norm_init(2).variance.tolist()
        [1.0, 1.0]
    """
    number = count("nn.batch_norm_init", "channels", channels, 0)
    return BatchNormState(jnp.zeros(number, jnp.float32), jnp.ones(number, jnp.float32))


def batch_norm(
    x: Any,
    state: BatchNormState,
    gamma: Any = None,
    beta: Any = None,
    *,
    training: bool = True,
    channels_axis: int = -1,
    epsilon: float = 1e-3,
    momentum: float = 0.99,
    use_stable_statistics: bool | None = None,
    replica_group_size: int | Literal["option"] | None = "option",
    axis_name: AxisName | None = None,
) -> tuple[jax.Array, BatchNormState]:
    """Normalises each channel over the batch and the field: (x - mean) / deviation * gamma + beta.

    Sums are in float32. If jit shards the program along the batch, the statistics are still those
    of the whole batch.

    Args:
        x: of a float dtype, with a dimension of C channels.
        state: moving statistics, from `batch_norm_init` or the last step.
        gamma: [C]; None: ones.
        beta: [C]; None: zeros.
        training: use the batch's statistics and move the state towards them; False: use the state.
        channels_axis: the dimension of the channels.
        epsilon: added to the variance.
        momentum: the new state is momentum * old + (1 - momentum) * the batch's statistics. Its
            variance is updated with the unbiased estimate, as in TensorFlow.
        use_stable_statistics: True: compute the variance from x - mean; False: as the mean of
            squares minus the square of the mean, which is faster but loses digits where the mean is
            large; None: use the option of that name.
        replica_group_size: compute statistics over the batches of this many consecutive replicas of
            `ipu.pmap`, `jax.pmap` or `shard_map`; 1: over each replica's own batch; None: over all
            batches; "option": use the option `batch_norm_replica_group_size`, which is 1 unless it
            is set.
        axis_name: the axis of the replicas; by default the enclosing mapped axis.
    Returns:
        an array of the shape and dtype of x, and the new state.
    Raises:
        ConfigError: an argument is invalid.
        ReplicationError: no axis is mapped, or the group size does not divide its replicas.

    Source: `popnn::bn` of PopLibs, its `distributedBatchNormStatistics`; `norms` options of
    Graphcore's TensorFlow.

    Example:
        >>> x = jnp.array([[1.0], [3.0]])
        >>> y, state = ipu.nn.batch_norm(x, ipu.nn.batch_norm_init(1), momentum=0.5, epsilon=1e-6)
        >>> jnp.round(y, 3).tolist(), state.mean.tolist(), state.variance.tolist()
        ([[-1.0], [1.0]], [1.0], [1.5])
    """
    x = floats("nn.batch_norm", "x", x)
    axis = _check(x, channels_axis, epsilon, momentum)
    state = BatchNormState(*_of_channels(x.shape[axis], _named(state)))
    vectors = {"gamma": gamma, "beta": beta}
    given = {name: vector for name, vector in vectors.items() if vector is not None}
    affine = [vector.astype(x.dtype) for vector in _of_channels(x.shape[axis], given)]
    replicas = 1
    group_size = _group_size(replica_group_size)
    is_alone = whole_number(group_size) == 1
    if not is_alone:
        replicas = resolve("nn.batch_norm", axis_name, group_size).size

    def over_replicas(values: Any) -> Any:
        if is_alone:
            return values
        return cross_replica_mean(values, group_size, axis_name=axis_name)

    if flag("nn.batch_norm", "training", training) and x.size:
        stable = is_stable("nn.batch_norm", use_stable_statistics)
        size = replicas * (x.size // x.shape[axis])
        mean, variance = _statistics(x, axis, stable, over_replicas)
        state = _moved(state, mean, variance * (size / max(size - 1, 1)), momentum)
    else:
        mean, variance = state
    inverse = lax.rsqrt(variance + epsilon)
    scaled, shifted = gamma is not None, beta is not None
    y = NORMALISE(x, mean, inverse, *affine, axis=axis, scaled=scaled, shifted=shifted)
    return y, state


def _group_size(given: int | Literal["option"] | None) -> int | None:
    if isinstance(given, str) and given == "option":
        return from_environment().norms.batch_norm_replica_group_size
    return given


def _statistics(
    x: jax.Array, axis: int, stable: bool, over_replicas: Any
) -> tuple[jax.Array, jax.Array]:
    x, dims = wide(x), _all_but(x, axis)
    if stable:
        mean = over_replicas(jnp.mean(x, dims))
        return mean, over_replicas(jnp.mean(jnp.square(x - _along(mean, x, axis)), dims))
    mean, squares = over_replicas((jnp.mean(x, dims), jnp.mean(jnp.square(x), dims)))
    return mean, jnp.maximum(squares - jnp.square(mean), 0)


def _moved(
    state: BatchNormState, mean: jax.Array, variance: jax.Array, momentum: float
) -> BatchNormState:
    return BatchNormState(
        *(
            old * momentum + lax.stop_gradient(new).astype(old.dtype) * (1 - momentum)
            for old, new in zip(state, (mean, variance), strict=True)
        )
    )


def _check(x: jax.Array, axis: Any, epsilon: float, momentum: float) -> int:
    number = dimension(axis, x.ndim)
    if number is None:
        raise ConfigError(
            f"[nn.batch_norm] needs channels_axis to be a dimension of x {x.shape}; got "
            f"channels_axis={axis}. Use one of its dimensions."
        )
    if not 0 < real_number(epsilon) < math.inf or not 0 <= real_number(momentum) <= 1:
        raise ConfigError(
            "[nn.batch_norm] needs a finite epsilon above 0 and a momentum from 0 to 1; got "
            f"epsilon={epsilon}, momentum={momentum}. Use 1e-3 and 0.99, for example."
        )
    return number


def _named(state: Any) -> dict[str, Any]:
    if not isinstance(state, tuple) or len(state) != 2:
        raise ConfigError(
            f"[nn.batch_norm] needs a BatchNormState as state; got {type(state).__name__}. Use "
            "ipu.nn.batch_norm_init."
        )
    return {"state.mean": state[0], "state.variance": state[1]}


def _of_channels(channels: int, vectors: dict[str, Any]) -> list[jax.Array]:
    """Each as an array [channels]."""
    arrays = {name: array("nn.batch_norm", name, value) for name, value in vectors.items()}
    for name, made in arrays.items():
        if made.shape != (channels,):
            raise ConfigError(
                f"[nn.batch_norm] needs {name} of shape {(channels,)}; got {made.shape}. "
                "Pass one value for each channel."
            )
        check_real("nn.batch_norm", name, made)
    return list(arrays.values())
