"""Non-linearities of popnn. Each is one elementwise expression, fused with its neighbours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ipujax.api.arguments import flag, floats, real_number
from ipujax.errors import ConfigError
from ipujax.ops.definition import Op


def gelu(x: Any, *, approximate: bool = True) -> jax.Array:
    """x times the cumulative distribution function of the normal distribution at x.

    The compiler lowers it and its gradient to popnn's GELU.

    Args:
        x: of a float dtype, any shape.
        approximate: use tanh, as popnn's GELU does; False: use erf, as popnn's GELU_ERF does.
    Raises:
        ConfigError: x is not of a float dtype.

    Source: `popnn/NonLinearity.hpp` of PopLibs; `nn_ops.gelu` of Graphcore's TensorFlow.

    Example:
        >>> print(ipu.nn.gelu(jnp.array([-1.0, 0.0, 1.0])).round(3))
        [-0.159  0.     0.841]
    """
    x = floats("nn.gelu", "x", x)
    return jax.nn.gelu(x, approximate=flag("nn.gelu", "approximate", approximate))


def hard_sigmoid(x: Any) -> jax.Array:
    """clip(0.2 x + 0.5, 0, 1); its gradient is 0.2 where nothing is clipped, else 0.

    Args:
        x: of a float dtype, any shape.
    Raises:
        ConfigError: x is not of a float dtype.

    Source: `popnn/NonLinearity.hpp` of PopLibs; `nn_ops.hard_sigmoid` of Graphcore's TensorFlow.

    Example:
        >>> ipu.nn.hard_sigmoid(jnp.array([-4.0, 0.0, 4.0])).tolist()
        [0.0, 0.5, 1.0]
    """
    x = floats("nn.hard_sigmoid", "x", x)
    line = x * jnp.asarray(0.2, x.dtype) + jnp.asarray(0.5, x.dtype)
    return jax.lax.clamp(jnp.asarray(0, x.dtype), line, jnp.asarray(1, x.dtype))


def swish(x: Any) -> jax.Array:
    """x sigmoid(x).

    Args:
        x: of a float dtype, any shape.
    Raises:
        ConfigError: x is not of a float dtype.

    Source: `popnn/NonLinearity.hpp` of PopLibs.

    Example:
        >>> print(ipu.nn.swish(jnp.array([-1.0, 0.0, 1.0])).round(3))
        [-0.269  0.     0.731]
    """
    return jax.nn.silu(floats("nn.swish", "x", x))


def relu(x: Any) -> jax.Array:
    """max(x, 0); its gradient at 0 is 0.

    Args:
        x: of a float dtype, any shape.
    Raises:
        ConfigError: x is not of a float dtype.

    Source: `popnn/NonLinearity.hpp` of PopLibs.

    Example:
        >>> ipu.nn.relu(jnp.array([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """
    return jax.nn.relu(floats("nn.relu", "x", x))


def leaky_relu(x: Any, alpha: float = 0.01) -> jax.Array:
    """x where it is not negative, alpha x elsewhere.

    Args:
        x: of a float dtype, any shape.
        alpha: the slope of the negative side, a finite number.
    Raises:
        ConfigError: x is not of a float dtype, or alpha is not finite.

    Source: LeakyRelu of ONNX, which PopART computes.

    Example:
        >>> ipu.nn.leaky_relu(jnp.array([-1.0, 2.0]), 0.5).tolist()
        [-0.5, 2.0]
    """
    x = floats("nn.leaky_relu", "x", x)
    return jax.nn.leaky_relu(x, _alpha("leaky_relu", alpha, x))


def elu(x: Any, alpha: Any = 1.0) -> jax.Array:
    """x where it is positive, alpha (exp(x) - 1) elsewhere.

    Args:
        x: of a float dtype, any shape.
        alpha: a finite number; the function tends to -alpha on the negative side.
    Raises:
        ConfigError: x is not of a float dtype, or alpha is not finite.

    Source: Elu of ONNX, which PopART computes.

    Example:
        >>> print(ipu.nn.elu(jnp.array([-1.0, 2.0])).round(3))
        [-0.632  2.   ]
    """
    x = floats("nn.elu", "x", x)
    checked = _alpha("elu", alpha, x)
    if isinstance(alpha, jax.core.Tracer):
        return jax.nn.elu(x, checked)
    y: jax.Array = _ELU(x, alpha=real_number(alpha))
    return y


def _plain_elu(x: jax.Array, *, alpha: float) -> jax.Array:
    return jax.nn.elu(x, jnp.asarray(alpha, x.dtype))


def _alpha(name: str, alpha: Any, x: jax.Array) -> jax.Array:
    if not isinstance(alpha, jax.core.Tracer) and not math.isfinite(real_number(alpha)):
        raise ConfigError(
            f"[nn.{name}] needs a finite alpha; got alpha={alpha}. Use 0.01, for example."
        )
    return jnp.asarray(alpha, x.dtype)


def _elu_vjp(operands: Any, _: Any, cotangents: Any, *, alpha: float) -> Sequence[Any]:
    """The slope is alpha exp(x) where x is not positive; y + alpha would cancel."""
    (x,), (ct,) = operands, cotangents
    slope = jnp.asarray(alpha, x.dtype) * jnp.exp(jnp.where(x > 0, 0, x))
    return [jnp.where(x > 0, ct, ct * slope)]


_ELU: Op = Op("elu", _plain_elu, fused=True, dimensions="... -> ...", vjp=_elu_vjp)
