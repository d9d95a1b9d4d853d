"""Fixed and automatic loss scales, for gradients computed in float16."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from ipujax.api.arguments import LARGEST_INT32, check_dtype, flag, floats, real_number
from ipujax.api.replicate.replicas import AxisName
from ipujax.errors import ConfigError
from ipujax.optim.hyperparameters import (
    Declared,
    Hyperparameters,
    Variable,
    check_number,
    hyperparameters_in,
)
from ipujax.optim.moments import compute_dtype, in_dtype_of, kept
from ipujax.optim.shards import sum_over_shards
from ipujax.optim.wrap import extended, on_arrays

if TYPE_CHECKING:
    import optax

WHERE = "ipu.optim.loss_scale"
NAME = "loss_scaling"


class LossScaleState(NamedTuple):
    """State of `loss_scale`."""

    step: jax.Array  # int32 []: updates of this period so far
    counts: jax.Array  # float32 [2]: gradients of this period up to the bin edge, and above it
    skipped: jax.Array  # int32 []: updates that were skipped since `init`
    hyperparameters: Hyperparameters  # its variable "loss_scaling" is the scale
    inner: Any  # the optimizer's own state

    @property
    def scale(self) -> jax.Array:
        """float32 []: the factor of the next loss."""
        return self.hyperparameters.variables[NAME]


def loss_scale(
    tx: optax.GradientTransformation,
    scale: float = 2.0**15,
    *,
    automatic: bool = False,
    period: int = 1,
    bin_edge_location: float = 0.0625,
    threshold_upper_count_proportion: float = 1e-7,
    increase_factor: float = 2.0,
    decrease_factor: float = 0.5,
    minimum: float = 2.0**-14,
    maximum: float = 2.0**15,
    dtype: Any = jnp.float16,
    axis_name: AxisName | None = None,
) -> optax.GradientTransformationExtraArgs:
    """Makes an optimizer take gradients of a loss that was multiplied by a scale.

    Multiply the loss by the scale with `ipu.optim.scale_loss(loss, state)`. `tx` gets the gradients
    divided by the scale, in float32. An update is skipped if its gradients have an infinity, a NaN
    or a float16 number of the largest size, to which IPUs may saturate: updates are zero, and the
    state of `tx` stays as it is.

    An automatic scale follows the histogram of the scaled gradients' sizes. It has one edge, at
    `bin_edge_location` times the largest number of `dtype`. At the end of a period the scale
    decreases if the proportion of elements above the edge exceeds
    `threshold_upper_count_proportion`, else it increases. A skipped update decreases it at once and
    begins another period.

    Args:
        tx: any optax transformation; one that accumulates gradients belongs around `loss_scale`, so
            that overflows of sums count, too.
        scale: the first scale, or the only one.
        automatic: whether the scale changes.
        period: updates between two changes.
        bin_edge_location: from 0 to 1.
        threshold_upper_count_proportion: from 0 to 1.
        increase_factor, decrease_factor: factors of the scale; above 1, and between 0 and 1.
        minimum, maximum: the scale stays between them. The largest power of two in float16 is
            2 ** 15; the gradient of a float16 loss starts from the scale.
        dtype: the dtype in which gradients are computed.
        axis_name: the axis of replicas that update with different gradients, as around
            `ipu.optim.cross_replica`: all replicas skip an update that one must skip. Not needed
            inside `cross_replica` and `shard_state`.
    Returns:
        A transformation whose state has `scale` and `skipped`; updates have the dtypes of the
        parameters. `ipu.optim.set_hyperparameters(state, loss_scaling=...)` sets the scale.
    Raises:
        ConfigError: `tx` is not an optax transformation, or a value is out of its range.

    Source: Micikevicius et al., 2018 (arXiv 1710.03740); PopART's `AutomaticLossScalingSettings`.

    Example:
        >>> tx = ipu.optim.loss_scale(optax.sgd(1.0), 8.0, automatic=True)
        >>> params = jnp.float16(3.0)
        >>> state = tx.init(params)
        >>> grad = jax.grad(lambda p: ipu.optim.scale_loss(p**2, state))(params)
        >>> updates, state = tx.update(grad, state, params)
        >>> print(grad, updates, state.scale)
        48.0 -6.0 16.0
    """
    inner = extended(WHERE, tx)
    automatic = flag(WHERE, "automatic", automatic)
    check_dtype(WHERE, "dtype", dtype)
    declared = Declared(WHERE, loss_scaling=Variable(scale))
    options = {
        "minimum": minimum,
        "maximum": maximum,
        "period": period,
        "bin_edge_location": bin_edge_location,
        "threshold_upper_count_proportion": threshold_upper_count_proportion,
        "increase_factor": increase_factor,
        "decrease_factor": decrease_factor,
    }
    _check_options(**options, **({"scale": scale} if automatic else {}))
    options = {name: float(value) for name, value in options.items()} | {"period": int(period)}
    edge = options["bin_edge_location"] * float(jnp.finfo(dtype).max)

    def init(params: Any) -> LossScaleState:
        wide = jax.tree.map(_wide, params)
        zero = jnp.zeros((), jnp.int32)
        return LossScaleState(zero, jnp.zeros(2), zero, declared.initial(), inner.init(wide))

    def update(
        grads: Any, state: LossScaleState, params: Any = None, **extra: Any
    ) -> tuple[Any, LossScaleState]:
        jax.tree.map(lambda g: floats(WHERE, "gradients", g), grads)
        counts = sum_over_shards(WHERE, _counts(grads, edge), axis_name)
        good = counts[2] == 0
        plain = jax.tree.map(lambda g: _wide(g) / state.scale, grads)
        wide = None if params is None else jax.tree.map(_wide, params)
        updates, new = inner.update(plain, state.inner, wide, **extra)
        updates, new = kept(good, updates, new, state.inner)
        skipped = state.skipped + jnp.where(good, 0, 1)
        state = state._replace(inner=new, skipped=skipped)
        if automatic:
            state = _rescaled(state, state.counts + counts[:2], good, options)
        return in_dtype_of(updates, grads, params), state

    return on_arrays(WHERE, inner._replace(init=init, update=update))


def _rescaled(
    state: LossScaleState, counts: jax.Array, good: jax.Array, options: dict[str, Any]
) -> LossScaleState:
    """The state after an update: with a new scale if a period ends or the update is bad."""
    share = options["threshold_upper_count_proportion"]
    ends = ~good | (state.step + 1 >= options["period"])
    down = ~good | (counts[1] * (1 - share) > share * counts[0])
    factor = jnp.where(down, options["decrease_factor"], options["increase_factor"])
    scale = state.scale * jnp.where(ends, factor, 1.0)
    scale = jnp.clip(scale, options["minimum"], options["maximum"]).astype(jnp.float32)
    hyperparameters = Hyperparameters(WHERE, state.hyperparameters.constants, {NAME: scale})
    step = jnp.where(ends, 0, state.step + 1)
    counts = jnp.where(ends, 0, counts)
    return state._replace(step=step, counts=counts, hyperparameters=hyperparameters)


def scale_loss(loss: Any, state: Any) -> jax.Array:
    """The loss times the loss scale of an optimizer's state.

    Args:
        loss: [...], of any floating-point dtype.
        state: a state that contains that of `ipu.optim.loss_scale`, or of optimizers with
            `loss_scaling`, at any depth. If it contains both, the scales multiply.
    Returns:
        float32 [...], or wider; the gradient of a float16 loss starts from the scale in float16.
    Raises:
        ConfigError: the optimizers of the state have different loss scales.

    Source: PopTorch's `loss_scaling`.

    Example:
        >>> state = ipu.optim.sgd(0.1, loss_scaling=128.0).init(jnp.zeros(2))
        >>> print(ipu.optim.scale_loss(jnp.float16(0.5), state))
        64.0
    """
    wrappers, fixed, variables = [], [], []
    for node in hyperparameters_in(state):
        constant = dict(node.constants).get(NAME)
        if node.owner == WHERE:
            wrappers.append(node.variables[NAME])
        elif NAME in node.variables:
            variables.append(node.variables[NAME])
        elif constant is not None:
            fixed.append(constant)
    _check_equal(fixed, len(variables))
    loss = floats("ipu.optim.scale_loss", "loss", loss)
    loss = loss.astype(compute_dtype(loss))
    for scale in (*wrappers, *variables[:1], *fixed[:1]):
        loss = loss * jax.lax.stop_gradient(scale)
    return loss


def _wide(x: Any) -> jax.Array:
    return jnp.asarray(x).astype(compute_dtype(x))


def _counts(grads: Any, edge: float) -> jax.Array:
    """float32 [3]: elements up to the edge, elements above it, arrays that overflowed."""

    def one(g: jax.Array) -> jax.Array:
        size, limit = jnp.abs(g), jnp.finfo(g.dtype).max
        if not g.size:
            return jnp.zeros(3)
        upper = jnp.sum(jnp.where(size <= edge, 0.0, 1.0))  # a NaN is above
        largest = jnp.max(size)
        # A half of the largest size may be a larger number that an IPU saturated.
        fits = largest < limit if g.dtype == jnp.float16 else largest <= limit
        return jnp.stack([g.size - upper, upper, jnp.where(fits, 0.0, 1.0)])

    return sum((one(g) for g in jax.tree.leaves(grads)), jnp.zeros(3))


def _check_options(**options: Any) -> None:
    """Refuses options of the automatic scale that are out of their ranges."""
    low, high = (real_number(options[name]) for name in ("minimum", "maximum"))
    finite = float("inf")
    ranges: dict[str, tuple[str, Callable[[Any], bool]]] = {
        "period": (
            "a whole number of at least 1, at most 2**31 - 1",
            lambda x: 1 <= x <= LARGEST_INT32 and x % 1 == 0,
        ),
        "bin_edge_location": ("a number from 0 to 1", lambda x: 0 <= x <= 1),
        "threshold_upper_count_proportion": ("a number from 0 to 1", lambda x: 0 <= x <= 1),
        "increase_factor": ("a finite number above 1", lambda x: 1 < x < finite),
        "decrease_factor": ("a number between 0 and 1", lambda x: 0 < x < 1),
        "minimum": ("a finite number above 0", lambda x: 0 < x < finite),
        "maximum": ("a finite number of at least minimum", lambda x: low <= x < finite),
        "scale": ("between minimum and maximum", lambda x: low <= x <= high),
    }
    for name, value in options.items():
        what, contains = ranges[name]
        number = real_number(value)
        check_number(WHERE, name, value, what, not math.isnan(number) and contains(number))


def _check_equal(fixed: list[float], num_variables: int) -> None:
    different = sorted(set(fixed))
    if len(different) > 1 or (num_variables and different not in ([], [1.0])):
        shown = " and ".join(map(str, different)) + (" and a variable" if num_variables else "")
        raise ConfigError(
            f"[ipu.optim.scale_loss] needs optimizers with one loss scale; got {shown}. "
            "Pass the same loss_scaling to all of them."
        )
