"""Normalisations, channel by channel as their formulas say."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

import ipujax as ipu
from tests.fuzz.library.case import Case, Draw, Numbers, generator, normal


def _statistics(d: Draw) -> dict[str, Any]:
    """The difference of two means may be wrong by some 1e-7, far less than epsilon."""
    if d.chance(0.5):
        return {"epsilon": d.one(1e-3, 1e-2), "use_stable_statistics": False}
    return {"epsilon": d.one(1e-3, 1e-2, 1e-5), "use_stable_statistics": True}


def _whitened(x: Any, dims: Any, epsilon: float) -> Any:
    mean = jnp.sum(x, dims, keepdims=True) / max(np.prod([x.shape[k] for k in dims]), 1)
    centred = x - mean
    count = max(np.prod([x.shape[k] for k in dims]), 1)
    return centred / jnp.sqrt(jnp.sum(centred * centred, dims, keepdims=True) / count + epsilon)


def _vectors(d: Draw) -> tuple[bool, bool]:
    """Whether there is a gamma, a beta."""
    return d.chance(0.7), d.chance(0.7)


def _operands(numbers: Numbers, shape: Any, sizes: Any, dtype: Any, given: Any) -> tuple[Any, ...]:
    vectors = [normal(numbers, sizes, dtype) for is_given in given if is_given]
    return (normal(numbers, shape, dtype), *vectors)


def _named(vectors: Any, given: tuple[bool, bool]) -> dict[str, Any]:
    rest = iter(vectors)
    names = zip(("gamma", "beta"), given, strict=True)
    return {name: next(rest) for name, is_given in names if is_given}


@generator("nn.group_norm", "nn.instance_norm")
def group_norm(d: Draw, name: str) -> Case:
    groups, size = d.one(1, 2, 3, 4, 5), d.one(1, 2, 3, 4)
    channels = groups * size
    field = d.shape(0, 2, 24, 0.0)
    axis = d.integer(1, len(field) + 1)
    shape = (d.one(1, 2, 3, 5), *field[: axis - 1], channels, *field[axis - 1 :])
    dtype, given = d.dtype(), _vectors(d)
    options: dict[str, Any] = _statistics(d)
    options["channels_axis"] = axis if d.chance(0.5) else axis - len(shape)
    strided = d.chance(0.5)
    if name == "nn.group_norm":
        options |= {"groups": groups, "strided_channel_grouping": strided}
    else:
        groups, size, strided = channels, 1, True
    channel = np.arange(channels)
    group_of = channel % groups if strided else channel // size
    order = np.argsort(group_of, kind="stable")

    def reference(x: Any, *vectors: Any) -> Any:
        moved = jnp.moveaxis(x, axis, 1)
        parts = moved[:, order].reshape(len(x), groups, size, *moved.shape[2:])
        y = _whitened(parts, tuple(range(2, parts.ndim)), options["epsilon"])
        y = y.reshape(moved.shape)[:, np.argsort(order)]
        named = _named(vectors, given)
        wide = (channels, *[1] * (moved.ndim - 2))
        y = y * named.get("gamma", jnp.ones(channels)).reshape(wide)
        y = y + named.get("beta", jnp.zeros(channels)).reshape(wide)
        return jnp.moveaxis(y, 1, axis)

    function = getattr(ipu.nn, name.removeprefix("nn."))
    return Case(
        lambda x, *vectors: function(x, **_named(vectors, given), **options),
        reference,
        lambda numbers: _operands(numbers, shape, (channels,), dtype, given),
        smooth=tuple(range(1 + sum(given))),
        factor=3,
        text=f"{options}",
    )


@generator("nn.layer_norm")
def layer_norm(d: Draw) -> Case:
    shape, dtype, given = d.shape(1, 4), d.dtype(), _vectors(d)
    axes = d.rng.sample(range(len(shape)), d.integer(1, len(shape)))
    sizes = tuple(shape[axis] for axis in axes)
    options = _statistics(d)
    axis = axes[0] if len(axes) == 1 and d.chance(0.5) else tuple(axes)

    def reference(x: Any, *vectors: Any) -> Any:
        named = _named(vectors, given)
        ends = list(range(-len(axes), 0))
        y = jnp.moveaxis(_whitened(x, tuple(axes), options["epsilon"]), axes, ends)
        y = y * named.get("gamma", 1.0) + named.get("beta", 0.0)
        return jnp.moveaxis(y, ends, axes)

    return Case(
        lambda x, *v: ipu.nn.layer_norm(x, **_named(v, given), axis=axis, **options),
        reference,
        lambda numbers: _operands(numbers, shape, sizes, dtype, given),
        smooth=tuple(range(1 + sum(given))),
        factor=3,
        text=f"axis={axis}, {options}",
    )


@generator("nn.batch_norm")
def batch_norm(d: Draw) -> Case:
    shape, dtype, given = d.shape(1, 4), d.dtype(), _vectors(d)
    axis = d.integer(-len(shape), len(shape) - 1)
    channels = shape[axis]
    options = {
        **_statistics(d),
        "momentum": d.one(0.0, 0.9, 0.99),
        "training": d.chance(0.7),
    }
    dims = tuple(k for k in range(len(shape)) if k != axis % len(shape))

    def draw(numbers: Numbers) -> tuple[Any, ...]:
        state = (
            normal(numbers, (channels,), np.float32),
            np.abs(normal(numbers, (channels,), "f4")),
        )
        x, *vectors = _operands(numbers, shape, (channels,), dtype, given)
        return (x, state[0], state[1] + np.float32(0.1), *vectors)

    def function(x: Any, mean: Any, variance: Any, *vectors: Any) -> Any:
        state = ipu.nn.BatchNormState(mean, variance)
        return ipu.nn.batch_norm(x, state, **_named(vectors, given), channels_axis=axis, **options)

    def reference(x: Any, mean: Any, variance: Any, *vectors: Any) -> Any:
        wide = [channels if k == axis % x.ndim else 1 for k in range(x.ndim)]
        state = (mean, variance)
        if options["training"] and x.size:
            count = x.size // channels
            mean = jnp.sum(x, dims) / count
            centred = x - mean.reshape(wide)
            variance = jnp.sum(centred * centred, dims) / count
            share = options["momentum"]
            unbiased = variance * count / max(count - 1, 1)
            state = tuple(
                old * share + (1 - share) * lax.stop_gradient(new)
                for old, new in zip(state, (mean, unbiased), strict=True)
            )
        y = (x - mean.reshape(wide)) / jnp.sqrt(variance.reshape(wide) + options["epsilon"])
        named = _named(vectors, given)
        if "gamma" in named:
            y = y * named["gamma"].reshape(wide)
        if "beta" in named:
            y = y + named["beta"].reshape(wide)
        return y, state

    return Case(
        function,
        reference,
        draw,
        smooth=(0, *range(3, 3 + sum(given))),
        factor=3,
        text=f"channels_axis={axis}, {options}",
    )


@generator("nn.batch_norm_init")
def batch_norm_init(d: Draw) -> Case:
    channels = d.integer(0, 9)
    return Case(
        lambda x: tuple(x + each for each in ipu.nn.batch_norm_init(channels)),
        lambda x: (x + jnp.zeros(channels), x + jnp.ones(channels)),
        lambda numbers: (normal(numbers, (channels,), np.float32),),
        text=f"channels={channels}",
    )
