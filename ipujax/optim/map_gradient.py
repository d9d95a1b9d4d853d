"""A function of each gradient and its parameter, applied before an optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax

from ipujax.errors import ConfigError
from ipujax.optim.wrap import extended, on_arrays

if TYPE_CHECKING:
    import optax

WHERE = "ipu.optim.map_gradient"


def map_gradient(
    tx: optax.GradientTransformation, fn: Callable[[jax.Array, jax.Array], jax.Array]
) -> optax.GradientTransformationExtraArgs:
    """Makes an optimizer use fn(gradient, parameter) instead of the gradient.

    Args:
        tx: any optax transformation.
        fn: (gradient [...], parameter [...]) -> gradient [...].
    Raises:
        ConfigError: `tx` is not an optax transformation, or `fn` is not a function; at `update`: no
            parameters were passed.

    Example:
        >>> tx = ipu.optim.map_gradient(optax.sgd(1.0), lambda grad, param: grad + 0.5 * param)
        >>> params = jnp.array([2.0, 4.0])
        >>> updates, state = tx.update(jnp.ones(2), tx.init(params), params)
        >>> print(updates)
        [-2. -3.]
    """
    inner = extended(WHERE, tx)
    if not callable(fn):
        raise ConfigError(
            f"[{WHERE}] needs fn to be a function of a gradient and a parameter; got {fn!r}. Pass "
            "one that returns a gradient."
        )

    def update(grads: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        if params is None:
            raise ConfigError(
                f"[{WHERE}] needs parameters; got none. Call update(grads, state, params)."
            )
        return inner.update(jax.tree.map(fn, grads, params), state, params, **extra)

    return on_arrays(WHERE, inner._replace(update=update))
