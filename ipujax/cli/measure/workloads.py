"""The programs of `bench --all`: small real ones, each a function and NumPy arrays to call it with.

Sizes are such that a call takes 0.1 to 100 ms on two cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ipujax.cli.measure.programs import repeat
from ipujax.cli.measure.timing import RunMany

MILLION = 1 << 20


class Workload(NamedTuple):
    """`function(*arguments)` is jitted and called again and again on the same arguments."""

    name: str
    function: Callable[..., Any]
    arguments: Sequence[np.ndarray[Any, Any]]


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def positive(*shape: int) -> np.ndarray[Any, Any]:
    return np.abs(normal(*shape)) + np.float32(0.1)


def indices(count: int, below: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).integers(0, below, count).astype(np.int32)


def _many_in_and_out(*values: jax.Array) -> list[jax.Array]:
    return [value + 1 for value in values]


def _layer_norm(x: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def _conv(x: jax.Array, w: jax.Array, groups: int = 1) -> jax.Array:
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=layout, feature_group_count=groups
    )


def _gradients(function: Callable[..., jax.Array]) -> Callable[..., Any]:
    """Both gradients of the sum of squares."""
    return jax.grad(lambda x, w: (function(x, w) ** 2).sum(), (0, 1))


def _depthwise(x: jax.Array, w: jax.Array) -> jax.Array:
    return _conv(x, w, x.shape[-1])


def _lstm(x: jax.Array, h: jax.Array, w: jax.Array, u: jax.Array) -> jax.Array:
    """x [time, batch, in], h [batch, hidden]."""

    def cell(state: Any, step: jax.Array) -> tuple[Any, jax.Array]:
        hidden, memory = state
        i, f, g, o = jnp.split(step @ w + hidden @ u, 4, -1)
        memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(memory)
        return (hidden, memory), hidden

    return lax.scan(cell, (h, h), x)[1]


def _sines(x: jax.Array) -> jax.Array:
    return lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=1000)[0]


def _tiny_steps(x: jax.Array) -> Any:
    return lax.while_loop(lambda s: s[0] < 10_000, lambda s: (s[0] + 1, s[1] * 0.999), (0, x))[1]


def _decode(cache: jax.Array, x: jax.Array, w: jax.Array, position: jax.Array) -> Any:
    """One token of attention: cache [2, heads, time, depth], x [heads * depth]."""
    _, heads, time, depth = cache.shape
    q, k, v = jnp.split((x @ w).reshape(heads, 3 * depth), 3, -1)
    cache = lax.dynamic_update_slice(cache, jnp.stack([k, v])[:, :, None], (0, 0, position, 0))
    scores = jnp.einsum("hd,htd->ht", q, cache[0]) / depth**0.5
    scores = jnp.where(jnp.arange(time) <= position, scores, -jnp.inf)
    return cache, jnp.einsum("ht,htd->hd", jax.nn.softmax(scores, -1), cache[1])


def _attention(x: jax.Array, w: jax.Array, out: jax.Array) -> jax.Array:
    """x [batch, time, width], eight heads."""
    batch, time, width = x.shape
    q, k, v = jnp.split((x @ w).reshape(batch, time, 8, 3 * width // 8), 3, -1)
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / (width / 8) ** 0.5, -1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, time, width) @ out


def _spd(n: int) -> np.ndarray[Any, Any]:
    a = normal(n, n).astype(np.float64)
    return (a @ a.T / n + np.eye(n)).astype(np.float32)


def _elementwise() -> list[Workload]:
    unary = {"exp": jnp.exp, "tanh": jnp.tanh, "erf": jax.scipy.special.erf, "log": jnp.log}
    rows = [
        Workload(f"{name} 1M", function, [positive(MILLION)]) for name, function in unary.items()
    ]
    chain = lambda x: jnp.tanh(x * 1.5 + 0.5) * x + jnp.maximum(x, 0.1) - x * x * 0.25  # noqa: E731
    rows += [
        Workload("50 in, 50 out", _many_in_and_out, [normal(8, seed=i) for i in range(50)]),
        Workload("elementwise chain 10k", chain, [normal(10_000)]),
        Workload("elementwise chain 1M", chain, [normal(MILLION)]),
        Workload("elementwise chain 1M bf16", chain, [normal(MILLION, dtype=jnp.bfloat16)]),
        Workload("elementwise chain 1M f16", chain, [normal(MILLION, dtype=np.float16)]),
    ]
    return rows


def _reductions() -> list[Workload]:
    square = normal(1024, 1024)
    million = normal(MILLION)
    return [
        Workload("sum 1M", jnp.sum, [million]),
        Workload("sum 1M bf16", jnp.sum, [million.astype(jnp.bfloat16)]),
        Workload("max 1M", jnp.max, [million]),
        Workload("argmax 1M", jnp.argmax, [million]),
        Workload("cumsum 1M", jnp.cumsum, [million]),
        Workload("sum of columns", lambda x: x.sum(0), [square]),
        Workload("softmax 1024", jax.nn.softmax, [square]),
        Workload("layer norm 1024", _layer_norm, [square]),
        Workload("transpose 1024", lambda x: x.T + 1, [square]),
    ]


def _products() -> list[Workload]:
    rows = []
    for n in (256, 1024):
        for dtype in (np.float32, np.float16, jnp.bfloat16):
            pair = [normal(n, n, dtype=dtype, seed=seed) for seed in (0, 1)]
            rows.append(Workload(f"matmul {n} {np.dtype(dtype).name}", jnp.matmul, pair))
    batched = [normal(64, 128, 128, seed=seed) for seed in (0, 1)]
    image, kernel = normal(8, 28, 28, 128), normal(3, 3, 128, 128)
    point, point_kernel = normal(8, 28, 28, 256), normal(1, 1, 256, 64)
    wide, wide_kernel = normal(8, 28, 28, 128), normal(3, 3, 1, 128)
    return [
        *rows,
        Workload("matmul 64 x (128 x 128)", jnp.matmul, batched),
        Workload("conv 3x3", _conv, [image, kernel]),
        Workload("conv 3x3 gradients", _gradients(_conv), [image, kernel]),
        Workload("conv 1x1", _conv, [point, point_kernel]),
        Workload("conv 1x1 gradients", _gradients(_conv), [point, point_kernel]),
        Workload("depthwise conv", _depthwise, [wide, wide_kernel]),
        Workload(
            "attention 4 x 128 x 256",
            _attention,
            [normal(4, 128, 256), normal(256, 768) / 16, normal(256, 256) / 16],
        ),
    ]


def _loops() -> list[Workload]:
    cache, position = normal(2, 8, 512, 32), np.array(300, np.int32)
    return [
        Workload("GPT decode step", _decode, [cache, normal(256), normal(256, 768) / 16, position]),
        Workload(
            "LSTM 128 steps",
            _lstm,
            [normal(128, 16, 64), np.zeros((16, 64), np.float32), normal(64, 256), normal(64, 256)],
        ),
        Workload("scan 1,000 sines", _sines, [normal(8)]),
        Workload("while 10,000 tiny steps", _tiny_steps, [np.ones((), np.float32)]),
    ]


def _moves() -> list[Workload]:
    million, table = normal(MILLION), normal(100_000, 64)
    chosen = indices(20_000, 100_000)
    key = jax.random.key_data(jax.random.key(0))
    return [
        Workload("sort 1M", jnp.sort, [million]),
        Workload("argsort 1M", jnp.argsort, [million]),
        Workload("top 16 of 1M", lambda x: lax.top_k(x, 16), [million]),
        Workload("gather embeddings", lambda t, i: t[i], [table, chosen]),
        Workload(
            "scatter-add embeddings",
            lambda t, i, x: t.at[i].add(x),
            [table, chosen, normal(20_000, 64)],
        ),
        Workload(
            "random.normal 1M",
            lambda k: jax.random.normal(jax.random.wrap_key_data(k), (MILLION,)),
            [np.asarray(key)],
        ),
        Workload("fft 2^18", jnp.fft.fft, [normal(1 << 18).astype(np.complex64)]),
        Workload("cholesky 256", jnp.linalg.cholesky, [_spd(256)]),
        Workload("eigh 256", jnp.linalg.eigh, [_spd(256)]),
    ]


def workloads() -> list[Workload]:
    """All of them."""
    return [*_elementwise(), *_reductions(), *_products(), *_loops(), *_moves()]


def on_device(workload: Workload, device: jax.Device) -> RunMany:
    """Calls on one device, warmed up."""
    inputs = [jax.device_put(argument, device) for argument in workload.arguments]
    return repeat(jax.jit(workload.function), *inputs)
