"""The formulas of the optimizers in NumPy, float64: plain loops over steps."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def sgd(
    w: Array, grads: Array, lr: float, momentum=0.0, dampening=0.0, decay=0.0, nesterov=False
) -> Array:
    v = None
    for gradient in grads:
        g = gradient + decay * w
        if momentum:
            v = g if v is None else momentum * v + (1 - dampening) * g
            g = g + momentum * v if nesterov else v
        w = w - lr * g
    return w


def _moments(m: Array, v: Array, g: Array, b1: float, b2: float) -> tuple[Array, Array]:
    return b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g


def adam(
    w: Array,
    grads: Array,
    lr: float,
    b1=0.9,
    b2=0.999,
    eps=1e-8,
    decay=0.0,
    decoupled=False,
    corrected=True,
) -> Array:
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t, gradient in enumerate(grads, 1):
        m, v = _moments(m, v, gradient + (0 if decoupled else decay * w), b1, b2)
        c1, c2 = (1 - b1**t, 1 - b2**t) if corrected else (1, 1)
        x = (m / c1) / (np.sqrt(v / c2) + eps)
        w = w - lr * (x + (decay * w if decoupled else 0))
    return w


def adamax(
    w: Array, grads: Array, lr: float, b1=0.9, b2=0.999, eps=1e-8, decay=0.0, corrected=True
) -> Array:
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t, gradient in enumerate(grads, 1):
        g = gradient + decay * w
        m, v = b1 * m + (1 - b1) * g, np.maximum(b2 * v, abs(g) + eps)
        w = w - lr * (m / (1 - b1**t if corrected else 1)) / v
    return w


def lamb(
    w: Array,
    grads: Array,
    lr: float,
    b1=0.9,
    b2=0.999,
    eps=1e-8,
    decay=0.0,
    bound=np.inf,
    corrected=True,
) -> Array:
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t, g in enumerate(grads, 1):
        m, v = _moments(m, v, g, b1, b2)
        c1, c2 = (1 - b1**t, 1 - b2**t) if corrected else (1, 1)
        x = (m / c1) / (np.sqrt(v / c2) + eps) + decay * w
        r1, r2 = min(np.linalg.norm(w), bound), np.linalg.norm(x)
        w = w - (lr * r1 / r2 if r1 and r2 else lr) * x
    return w


def rmsprop(
    w: Array,
    grads: Array,
    lr: float,
    alpha=0.99,
    eps=1e-8,
    decay=0.0,
    momentum=0.0,
    centered=False,
    tensorflow=False,
) -> Array:
    v = np.ones_like(w) if tensorflow else np.zeros_like(w)
    m, u = np.zeros_like(w), np.zeros_like(w)
    for gradient in grads:
        g = gradient + decay * w
        v = alpha * v + (1 - alpha) * g * g
        m = alpha * m + (1 - alpha) * g if centered else m
        if tensorflow:
            u = momentum * u + lr * g / np.sqrt(v - m * m + eps)
            w = w - u
        else:
            u = momentum * u + g / (np.sqrt(v - m * m) + eps)
            w = w - lr * u
    return w


def automatic_scales(
    sizes: list[Array], scale: float, edge: float, share: float, period: int, limit: float
) -> list[float]:
    """The scale before each update, and after the last; gradients by the unscaled loss."""
    scales, lower, upper, step = [scale], 0, 0, 0
    for plain in sizes:
        scaled = np.abs(plain * scales[-1])
        overflowed = bool((scaled >= limit).any())
        upper, lower = upper + (scaled > edge).sum(), lower + (scaled <= edge).sum()
        step += 1
        factor = 1.0
        if overflowed or step == period:
            down = overflowed or upper / (upper + lower) > share
            factor, lower, upper, step = 0.5 if down else 2.0, 0, 0, 0
        scales.append(min(scales[-1] * factor, 2.0**15))
    return scales
