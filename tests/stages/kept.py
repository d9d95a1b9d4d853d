"""Functions that keep for their backward pass what the frameworks of published programs do.

JAX differentiates softmax step by step, which keeps exponentials beside the result, and swish
keeps a sigmoid. PopART's, PyTorch's and popnn's gradients need one tensor each.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

#: Over the last axis; keeps its result.
softmax: Any = jax.custom_vjp(lambda x: jax.nn.softmax(x))


def _softmax(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    y = jax.nn.softmax(x)
    return y, y


def _softmax_gradient(y: jax.Array, gradient: jax.Array) -> tuple[jax.Array]:
    product = y * gradient
    return (product - y * jnp.sum(product, -1, keepdims=True),)


softmax.defvjp(_softmax, _softmax_gradient)


def dropped_at_rate_0(x: jax.Array) -> jax.Array:
    """Dropout that keeps every element: another tensor, as PopART's of rate 0 is in training."""
    y: jax.Array = x * lax.optimization_barrier(jnp.ones((), x.dtype))
    return y


#: x sigmoid(x); keeps x.
swish: Any = jax.custom_vjp(lambda x: x * jax.nn.sigmoid(x))


def _swish(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return x * jax.nn.sigmoid(x), x


def _swish_gradient(x: jax.Array, gradient: jax.Array) -> tuple[jax.Array]:
    x, gradient = lax.optimization_barrier((x, gradient))  # the sigmoid is computed again
    gate = jax.nn.sigmoid(x)
    return (gradient * gate * (1 + x * (1 - gate)),)


swish.defvjp(_swish, _swish_gradient)


#: Of mean 0 and variance 1 over the last axis; keeps its operand, and two numbers a row.
standardized: Any = jax.custom_vjp(lambda x: _standardize(x)[0])


def _standardize(x: jax.Array) -> tuple[jax.Array, Any]:
    mean = jnp.mean(x, -1, jnp.float32, keepdims=True)
    variance = jnp.mean(x * x, -1, jnp.float32, keepdims=True) - mean * mean
    mean, inverse = mean.astype(x.dtype), lax.rsqrt(variance + 1e-5).astype(x.dtype)
    return (x - mean) * inverse, (x, mean, inverse)


def _standardize_gradient(kept: Any, gradient: jax.Array) -> tuple[jax.Array]:
    x, mean, inverse = kept
    y = (x - mean) * inverse
    shift = jnp.mean(gradient, -1, jnp.float32, keepdims=True).astype(x.dtype)
    product = jnp.mean(gradient * y, -1, jnp.float32, keepdims=True).astype(x.dtype)
    return (inverse * (gradient - shift - y * product),)


standardized.defvjp(_standardize, _standardize_gradient)


#: Of mean 0 and variance 1 for each channel, the last axis; keeps its result.
whitened: Any = jax.custom_vjp(lambda y: _whiten(y)[0])


def _whiten(y: jax.Array) -> tuple[jax.Array, Any]:
    mean = jnp.mean(y, (0, 1, 2), jnp.float32)
    variance = jnp.mean(y * y, (0, 1, 2), jnp.float32) - mean * mean
    inverse = lax.rsqrt(variance + 1e-5).astype(y.dtype)
    whitened = (y - mean.astype(y.dtype)) * inverse
    return whitened, (whitened, inverse)


def _unwhiten(kept: Any, gradient: jax.Array) -> tuple[jax.Array]:
    whitened, inverse = kept
    mean = jnp.mean(gradient, (0, 1, 2), jnp.float32).astype(gradient.dtype)
    product = jnp.mean(gradient * whitened, (0, 1, 2), jnp.float32).astype(gradient.dtype)
    return (inverse * (gradient - mean - whitened * product),)


whitened.defvjp(_whiten, _unwhiten)
