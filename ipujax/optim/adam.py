"""Adam, and what AdamW, AdaMax and LAMB share with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from ipujax.api.arguments import check_dtype, flag
from ipujax.api.replicate.replicas import AxisName
from ipujax.optim.hyperparameters import Declared, Hyperparameter, Hyperparameters, Values
from ipujax.optim.moments import (
    accumulating,
    averaged,
    clipped,
    compute_dtype,
    in_dtype_of,
    kept,
    needs_params,
    unscaled,
    with_decay,
    zeros,
)

if TYPE_CHECKING:
    import optax

WHERE = "ipu.optim.adam"


class AdamState(NamedTuple):
    """State of `adam`, `adamw`, `adamax` and `lamb`."""

    count: jax.Array  # type: ignore[assignment]  # int32 []: updates so far
    mu: Any  # pytree like the parameters, first moments in `first_moment_dtype`
    nu: Any  # pytree like the parameters, second moments in `second_moment_dtype`
    hyperparameters: Hyperparameters
    scaling: Any = None  # float32 [], scale of the moments, if it is a variable


def adam(
    learning_rate: Hyperparameter = 1e-3,
    b1: Hyperparameter = 0.9,
    b2: Hyperparameter = 0.999,
    eps: Hyperparameter = 1e-8,
    weight_decay: Hyperparameter = 0.0,
    *,
    loss_scaling: Hyperparameter = 1.0,
    bias_correction: bool = True,
    max_grad_norm: Hyperparameter | None = None,
    scaled_optimizer_state: bool = False,
    first_moment_dtype: Any = None,
    second_moment_dtype: Any = None,
    accumulator_dtype: Any = None,
    num_micro_batches: int = 1,
) -> optax.GradientTransformationExtraArgs:
    """Adam, with the weight decay in the gradient (L2 regularization).

        g = gradient / loss_scaling + weight_decay * w
        m = b1 * m + (1 - b1) * g;   v = b2 * v + (1 - b2) * g ** 2
        update = -learning_rate * (m / (1 - b1 ** t)) / (sqrt(v / (1 - b2 ** t)) + eps)

    Args:
        learning_rate, b1, b2, eps, weight_decay: numbers, `ipu.optim.variable`, or functions of the
            number of updates so far.
        loss_scaling: the factor of the loss, see `ipu.optim.scale_loss`; not a function.
        bias_correction: whether moments are divided by 1 - b ** t.
        max_grad_norm: if the norm of gradients / loss_scaling, over all arrays together, is larger,
            they are scaled to this norm, before weight decay; inside `ipu.optim.shard_state` it is
            the norm of whole gradients. None: no bound.
        scaled_optimizer_state: whether the state holds m times loss_scaling, and v times its
            square, so that small moments do not underflow in float16. If the scale is a variable
            that changes, the state is rescaled.
        first_moment_dtype, second_moment_dtype: dtypes of m and v; None: float32, or the
            parameter's if it is wider. Updates are computed in float32 or wider.
        accumulator_dtype, num_micro_batches: make one update from the mean of the gradients of
            several calls, see `ipu.optim.gradient_accumulation`.
    Returns:
        An optax transformation; updates have the dtypes of the parameters. An update with a
        variable that is NaN or infinite changes nothing: it is zero, and the state stays.
    Raises:
        ConfigError: a hyperparameter is out of its range, or a dtype is not a floating-point one;
            at `update`: parameters are missing, or the state has other constants.

    Source: Kingma and Ba, 2015 (arXiv 1412.6980); `poptorch.optim.Adam`; `popart::Adam`, its
    `scaledOptimizerState` and `ClipNormSettings`.

    Example:
        >>> tx = ipu.optim.adam(0.1, b1=0.75, first_moment_dtype=jnp.float16)
        >>> updates, state = tx.update(jnp.array([2.0, -4.0]), tx.init(jnp.ones(2)))
        >>> print(updates, state.mu.dtype)
        [-0.1  0.1] float16
    """
    bias_correction = flag(WHERE, "bias_correction", bias_correction)

    def rule(grads: Any, state: AdamState, params: Any, h: Values) -> tuple[Any, AdamState]:
        terms, new = adam_terms(grads, state, h, bias_correction)
        return jax.tree.map(lambda x: -h["learning_rate"] * x, terms), new

    family = Family(
        *(learning_rate, b1, b2, eps, weight_decay, loss_scaling, max_grad_norm),
        scaled_optimizer_state,
        *(first_moment_dtype, second_moment_dtype, accumulator_dtype, num_micro_batches),
    )
    return family.optimizer(WHERE, rule, l2=True)


#: gradients, state, parameters, hyperparameters -> updates in float32 or wider, the new state
Rule = Callable[[Any, AdamState, Any, Values], tuple[Any, AdamState]]


@dataclass(frozen=True)
class Family:
    """The arguments that `adam` and the other optimizers share."""

    learning_rate: Hyperparameter
    b1: Hyperparameter
    b2: Hyperparameter
    eps: Hyperparameter
    weight_decay: Hyperparameter
    loss_scaling: Hyperparameter
    max_grad_norm: Hyperparameter | None
    scaled_optimizer_state: bool
    first_moment_dtype: Any
    second_moment_dtype: Any
    accumulator_dtype: Any
    num_micro_batches: int

    def optimizer(
        self,
        where: str,
        rule: Rule,
        *,
        l2: bool = False,
        needs: str = "",
        max_weight_norm: Hyperparameter | None = None,
        second_power: int = 2,
        axis_name: AxisName | None = None,
    ) -> optax.GradientTransformationExtraArgs:
        """The transformation.

        Args:
            rule: makes the updates.
            l2: whether gradients get weight decay.
            needs: what each update needs the parameters for.
            second_power: the power of the scale that multiplies the second moment in a scaled
                state.
            axis_name: the axis of replicas that each hold a part of every parameter.
        """
        for name in ("first_moment_dtype", "second_moment_dtype", "accumulator_dtype"):
            check_dtype(where, name, getattr(self, name))
        names = ("learning_rate", "b1", "b2", "eps", "weight_decay", "loss_scaling")
        given = {name: getattr(self, name) for name in names}
        bounds = {"max_grad_norm": self.max_grad_norm, "max_weight_norm": max_weight_norm}
        given |= {name: bound for name, bound in bounds.items() if bound is not None}
        declared = Declared(where, **given)
        scaled = flag(where, "scaled_optimizer_state", self.scaled_optimizer_state)
        scaled = scaled and not declared.is_constant("loss_scaling", 1.0)
        init = self._init(declared, scaled)

        def update(
            grads: Any, state: AdamState, params: Any = None, **_: Any
        ) -> tuple[Any, AdamState]:
            h = declared.values(state.hyperparameters, state.count)
            if needs or (l2 and not declared.is_constant("weight_decay", 0.0)):
                needs_params(where, params, needs or "weight decay")
            plain = clipped(where, unscaled(grads, h), h.get("max_grad_norm"), axis_name)
            plain = with_decay(plain, params, h["weight_decay"]) if l2 else plain
            before = _rescaled(state, h, second_power, False) if scaled else state
            updates, new = rule(plain, before, params, h)
            new = _rescaled(new, h, second_power, True, state) if scaled else new
            return kept(h.valid, in_dtype_of(updates, grads, params), new, state)

        def make() -> optax.GradientTransformation:
            import optax

            return optax.GradientTransformationExtraArgs(init, update)

        return accumulating(where, make, self.num_micro_batches, self.accumulator_dtype)

    def _init(self, declared: Declared, scaled: bool) -> Any:
        def init(params: Any) -> AdamState:
            mu = zeros(params, self.first_moment_dtype)
            nu = zeros(params, self.second_moment_dtype)
            first = declared.initial()
            scaling = first.variables.get("loss_scaling") if scaled else None
            return AdamState(jnp.zeros((), jnp.int32), mu, nu, first, scaling)

        return init


def _rescaled(
    state: AdamState, h: Values, second_power: int, to_store: bool, like: AdamState | None = None
) -> AdamState:
    """Unscales the moments; with `to_store`, scales them.

    Args:
        like: the state whose dtypes the stored moments get.
    """
    scale = h["loss_scaling"] if to_store or state.scaling is None else state.scaling

    def times(power: int) -> Callable[..., jax.Array]:
        def one(x: jax.Array, old: Any = None) -> jax.Array:
            wide = x.astype(compute_dtype(x))
            factor = scale**power
            return (wide * factor).astype(old.dtype) if to_store else wide / factor

        return one

    others = (like.mu, like.nu) if like is not None else ()
    mu = jax.tree.map(times(1), state.mu, *others[:1])
    nu = jax.tree.map(times(second_power), state.nu, *others[1:])
    scaling = None if state.scaling is None else jnp.float32(h["loss_scaling"])
    return state._replace(mu=mu, nu=nu, scaling=scaling)


def adam_terms(
    grads: Any, state: AdamState, h: Values, bias_correction: bool
) -> tuple[Any, AdamState]:
    """m / (sqrt(v) + eps) in the gradients' dtypes, and the new state."""
    count = state.count + 1
    mu = averaged(state.mu, grads, h["b1"])
    nu = averaged(state.nu, jax.tree.map(jnp.square, grads), h["b2"])

    def term(m: jax.Array, v: jax.Array, grad: jax.Array) -> jax.Array:
        m, v = m.astype(grad.dtype), v.astype(grad.dtype)
        if bias_correction:
            m = m / correction(h["b1"], count, grad.dtype)
            v = v / correction(h["b2"], count, grad.dtype)
        return m / (jnp.sqrt(v) + h["eps"])

    return jax.tree.map(term, mu, nu, grads), state._replace(count=count, mu=mu, nu=nu)


def correction(decay: Any, count: jax.Array, dtype: Any) -> Any:
    """1 - decay ** count, exact if decay is a constant close to 1."""
    if not isinstance(decay, float):
        return 1 - decay ** count.astype(dtype)
    return -jnp.expm1(count.astype(dtype) * math.log(decay)) if decay else 1.0
