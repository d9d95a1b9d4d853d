"""Applies a function to each gradient and its parameter before an optimizer sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax

from ipujax.errors import ConfigError
from ipujax.optim.wrap import around

if TYPE_CHECKING:
    import optax

WHERE = "ipu.optim.map_gradient"


def map_gradient(
    tx: optax.GradientTransformation, fn: Callable[[jax.Array, jax.Array], jax.Array]
) -> optax.GradientTransformationExtraArgs:
    """The same optimizer, fed with fn(gradient, parameter).

    Args:
        tx: any optax transformation.
        fn: (gradient [...], parameter [...]) -> gradient [...].
    Raises:
        ConfigError: no optax transformation; at `update`: no parameters were passed.

    Example:
        tx = ipu.optim.map_gradient(optax.sgd(0.1), lambda grad, param: grad + 0.01 * param)
    """

    def build(inner: optax.GradientTransformationExtraArgs) -> tuple[Any, Any]:
        def update(grads: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
            if params is None:
                raise ConfigError(
                    f"[{WHERE}] needs parameters; got none. Call update(grads, state, params)."
                )
            return inner.update(jax.tree.map(fn, grads, params), state, params, **extra)

        return inner.init, update

    return around(WHERE, tx, build)
