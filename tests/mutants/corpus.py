"""Sealed images of small programs that have, together, steps of every kernel JAX reaches.

Arrays are small, so that most of what an altered step touches wrongly lies outside of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import ipujax as ipu

#: A function, its arguments and, if there are any, compiler options.
Program = (
    tuple[Callable[..., Any], tuple[Any, ...]]
    | tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
)

_f32 = partial(np.ones, dtype=np.float32)


def _int(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.int32)


def _elementwise() -> dict[str, Program]:
    def mixed(x, y, n):
        h = x.astype(jnp.float16)
        chosen = jnp.where(n > 0, x, y.T)
        return jnp.tanh(x) * y.T, h + h, n << 3, chosen.sum(), x[::-1, 1::2], jnp.exp2(h)

    def softmax(x):
        return jax.nn.softmax(x, axis=-1), jnp.square(x).sum(0), (x * 2).max(-1)

    return {
        "mixed": (mixed, (_f32((6, 9)), _f32((9, 6)), _int(6, 9))),
        "rows": (softmax, (_f32((128, 96)),)),
        "concat": (lambda a, b: jnp.concatenate([a, b.T], 1)[:, ::2], (_f32((5, 4)), _f32((3, 5)))),
        "pad": (lambda a: lax.pad(a, 0.0, ((1, 2, 1), (-1, 3, 0))), (_f32((4, 5)),)),
        "random": (
            lambda k: jax.random.normal(k, (7, 9)),
            (jax.random.key_data(jax.random.key(1)),),
        ),
        "bits": (
            lambda s: lax.rng_bit_generator(s, (33,), jnp.uint32),
            (np.zeros(4, np.uint32),),
        ),
        "threefry": (
            lambda s: lax.rng_bit_generator(
                s, (33,), jnp.uint16, algorithm=lax.RandomAlgorithm.RNG_THREE_FRY
            ),
            (np.zeros(4, np.uint32),),
        ),
        "iota": (lambda n: jnp.arange(5000) + n, (np.int32(1),)),
        "cycles": (lambda x: ipu.cycle_count(jnp.tanh(x)), (_f32((40,)),)),
    }


def _reductions() -> dict[str, Program]:
    def windows(x):
        return (
            jnp.cumsum(x, 1),
            lax.reduce_window(x, -jnp.inf, lax.max, (2, 3), (1, 2), "SAME"),
            lax.reduce_window(x, 0.0, lax.add, (3, 2), (2, 1), "VALID"),
        )

    def bodies(x, n):
        both = lax.reduce((x, x), (0.0, 1.0), lambda a, b: (a[0] + b[1], a[1] * b[0]), (1,))
        window = lax.reduce_window(
            x, 0.0, lambda a, b: jnp.maximum(a, b) + a * 0, (2, 2), (1, 1), "VALID"
        )
        return both, window, jnp.argmax(x, 1), jnp.argmin(n), (n > 0).all(0)

    def gradient(x):
        def pooled(v):
            window, strides = (1, 2, 3, 1), (1, 1, 2, 1)
            return (lax.reduce_window(v, -jnp.inf, lax.max, window, strides, "SAME") ** 2).sum()

        return jax.grad(pooled)(x)

    return {
        "reductions": (lambda x: (x.sum(0), x.max(1), jnp.prod(x)), (_f32((7, 33)),)),
        "windows": (windows, (_f32((9, 40)),)),
        "bodies": (bodies, (_f32((5, 31)), _int(5, 31))),
        "window_gradient": (gradient, (_f32((2, 6, 8, 3)),)),
    }


def _products() -> dict[str, Program]:
    def convolution(x, w):
        dims = ("NHWC", "HWIO", "NHWC")
        conv = partial(lax.conv_general_dilated, dimension_numbers=dims)
        loss = lambda a, b: conv(a, b, (2, 1), "SAME").sum()  # noqa: E731
        dilated = conv(x, w, (1, 1), ((1, 2), (0, 1)), lhs_dilation=(2, 1), rhs_dilation=(1, 2))
        return dilated, jax.grad(loss, (0, 1))(x, w)

    def grouped(x, w):
        return lax.conv_general_dilated(x, w, (1,), "SAME", feature_group_count=8)

    return {
        "matmul": (
            lambda a, b: (a @ b, (b.T @ a.T).astype(jnp.float16)),
            (_f32((9, 17)), _f32((17, 5))),
        ),
        "batched": (
            lambda a, b: jnp.einsum("bij,bjk->bik", a, b),
            (_f32((3, 4, 5)), _f32((3, 5, 6))),
        ),
        "integers": (
            lambda a, b: (a @ b, a.astype("int8") @ b.astype("int8")),
            (_int(6, 70), _int(70, 8)),
        ),
        "integer_convolution": (
            lambda x, w: lax.conv(x.astype("int8"), w.astype("int8"), (1, 1), "SAME"),
            (_int(2, 3, 6, 5), _int(4, 3, 3, 2)),
        ),
        "convolution": (convolution, (_f32((2, 7, 6, 3)), _f32((3, 2, 3, 4)))),
        "grouped": (grouped, (_f32((2, 8, 11)), _f32((8, 1, 3)))),
    }


def _moves() -> dict[str, Program]:
    def updates(x, i, u):
        several = lax.scatter_add(x, i[:, None], u, lax.ScatterDimensionNumbers((1,), (0,), (0,)))
        return x.at[i].set(u), x.at[i].add(u), x.at[i, 2].mul(3.0), several, x.at[i].apply(jnp.sin)

    def slices(x, i):
        taken = lax.dynamic_slice(x, (i, 0), (2, 3))
        return taken, lax.dynamic_update_slice(x, taken + 1, (i, i))

    return {
        "gather": (
            lambda x, i: (x[i], x[i, 1:3], jnp.take_along_axis(x, x.astype(int) % 4, 0)),
            (_f32((6, 5)), _int(4)),
        ),
        "scatter": (updates, (_f32((6, 5)), _int(3), _f32((3, 5)))),
        "slices": (slices, (_f32((6, 7)), np.int32(1))),
        "sort": (
            lambda x, n: (jnp.sort(x, 0), lax.sort((n, x), num_keys=1), jnp.argsort(-x)),
            (_f32((9, 12)), _int(9, 12)),
        ),
        "sort_long": (lambda x: jnp.sort(x)[::-1], (_f32((700,)),)),
        "sort_any": (_sort_by_comparator, (_f32((3, 20)),)),
        "top_k": (lambda x: lax.top_k(x, 4), (_f32((3, 30)),)),
    }


def _sort_by_comparator(x: jax.Array) -> Any:
    """By |x|: no key of the operand says that, so a merge sort runs the comparison."""
    return lax.sort((jnp.abs(x) % 3, x), num_keys=2, dimension=1), jnp.median(x, 1)


def _linear_algebra() -> dict[str, Program]:
    square = (np.eye(5) * 3 + np.arange(25).reshape(5, 5) / 10).astype(np.float32)
    batch = np.stack([square @ square.T, np.eye(5, dtype=np.float32)])
    tall = np.arange(28).reshape(7, 4).astype(np.float32) % 5
    lines = (_f32((6,)), 4 * _f32((6,)), _f32((6,)), _f32((6, 2)))
    return {
        "cholesky": (jnp.linalg.cholesky, (batch,)),
        "solve": (lambda a, b: jsp.linalg.solve_triangular(a, b, lower=True), (square, tall[:5])),
        "lu": (lambda a: (jsp.linalg.lu(a), jnp.linalg.solve(a, a)), (square,)),
        "qr": (lambda a: jnp.linalg.qr(a, "complete"), (tall,)),
        "qr_pivots": (lambda a: jsp.linalg.qr(a, pivoting=True), (tall,)),
        "qr_multiply": (lax.linalg.ormqr, (tall, _f32((4,)), _f32((7, 2)))),
        "svd": (lambda a: jnp.linalg.svd(a, full_matrices=False), (tall,)),
        "eigh": (jnp.linalg.eigh, (batch,)),
        "eig": (jnp.linalg.eig, (square,)),
        "schur": (jsp.linalg.schur, (square,)),
        "hessenberg": (lax.linalg.hessenberg, (square,)),
        "tridiagonal": (lambda a: lax.linalg.tridiagonal(a, lower=True), (batch,)),
        "tridiagonal_solve": (lax.linalg.tridiagonal_solve, lines),
        "complex": (lambda a: jnp.linalg.eigvals(a + 1j * a.T), (square,)),
        "fft": (
            lambda x: (jnp.fft.fft(x), jnp.fft.rfft2(x), jnp.fft.irfft(jnp.fft.rfft(x), 15)),
            (_f32((6, 15)),),
        ),
        "fft_prime": (lambda x: jnp.fft.ifft(x + 1j), (_f32((67,)),)),
    }


def _layers() -> dict[str, Program]:
    def lstm(x, *weights):
        return ipu.nn.lstm(x, ipu.nn.LSTMWeights(*weights))[0].sum()

    def gru(x, *weights):
        return ipu.nn.gru(x, ipu.nn.GRUWeights(*weights))[0].sum()

    def ctc(x):
        return ipu.nn.ctc_loss(x, np.array([[1, 2], [2, 0]]), label_lengths=np.array([2, 1])).sum()

    def beams(x):
        return ipu.nn.ctc_beam_search_decoder(x, np.array([6, 3]), beam_width=4, top_paths=2)

    def shapes(units):
        return _f32((5, 2, 3)), _f32((units, 3, 4)), _f32((units, 4, 4)), _f32((units, 4))

    return {
        "lstm": (jax.value_and_grad(lstm, (0, 1, 2, 3)), shapes(4)),
        "gru": (jax.value_and_grad(gru, (0, 1, 2, 3)), shapes(3)),
        "ctc": (jax.value_and_grad(ctc), (_f32((6, 2, 4)),)),
        "ctc_alone": (ctc, (_f32((6, 2, 4)),)),
        "beams": (beams, (_f32((6, 2, 4)),)),
    }


def _control() -> dict[str, Program]:
    def scan(w, xs):
        return lax.scan(lambda c, x: (jnp.tanh(c * w + x), c.sum()), w, xs)

    def branches(x, i):
        doubled = lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x)
        return lax.switch(i, [jnp.sin, jnp.cos, lambda v: v[::-1]], doubled)

    def loops(x):
        grown = lax.while_loop(lambda v: v[0] < 100, lambda v: v * 2 + 1, x)
        return lax.fori_loop(0, 6, lambda i, v: v.at[i % 4].add(v @ v), grown)

    def walk(x):
        return lax.fori_loop(0, 50, lambda i, v: v * 1.01 + x[i % 4], 0.5)

    def rounded(c, xs):
        return lax.scan(lambda c, x: (c + c * x, c * x), c, xs)

    def streamed(xs):
        near, far = jax.memory.Space.Device, jax.memory.Space.Host
        last, kept = lax.scan(lambda c, x: (c + x, jax.device_put(c * x, far)), xs[0], xs)
        return lax.scan(lambda c, x: (c * jax.device_put(x, near), None), last, kept)[0]

    return {
        "streamed": (streamed, (_f32((7, 4)),)),
        "scan": (scan, (_f32((4,)), _f32((7, 4)))),
        "scan_gradient": (jax.grad(lambda w, xs: scan(w, xs)[0].sum()), (_f32((4,)), _f32((7, 4)))),
        "rounded": (
            rounded,
            (np.ones(4, np.float16), np.ones((7, 4), np.float16)),
            {"ipu_stochastic_rounding": True},
        ),
        "branches": (branches, (_f32((5,)), np.int32(1))),
        "loops": (loops, (_f32((4,)),)),
        "walk": (walk, (_f32((4,)),)),
        "donated": (
            jax.jit(lambda a, b: (a + b, b * 2), donate_argnums=0),
            (_f32((8,)), _f32((8,))),
        ),
        "callback": (_call_back, (_f32((3, 4)),)),
    }


def _call_back(x: jax.Array) -> jax.Array:
    jax.debug.print("sum {s}", s=x.sum())
    return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def _collectives() -> dict[str, Program]:
    mesh = Mesh(np.array(jax.devices("ipu")[:2]), ("d",))
    spread = PartitionSpec("d")

    @partial(jax.shard_map, mesh=mesh, in_specs=spread, out_specs=spread, check_vma=False)
    def together(x):
        total = lax.psum(x, "d") + lax.axis_index("d")
        moved = lax.ppermute(x, "d", [(0, 1), (1, 0)])
        turned = lax.all_to_all(x, "d", 1, 1, tiled=True)
        part = lax.psum_scatter(x, "d", scatter_dimension=1, tiled=True)
        everyone = lax.all_gather(x, "d", tiled=True).sum(0, keepdims=True)
        return total + moved + turned + everyone + jnp.tile(part, (1, 2)) + lax.pmean(x, "d")

    def dropped(x):
        x = lax.with_sharding_constraint(x, NamedSharding(mesh, spread))
        return ipu.nn.dropout(x, np.array([1, 2], np.uint32), rate=0.5)

    return {
        "collectives": (together, (_f32((4, 6)),)),
        "sharded dropout": (dropped, (_f32((4, 6)),)),
    }


def programs() -> dict[str, Program]:
    """The programs by name."""
    parts = (
        _elementwise,
        _reductions,
        _products,
        _moves,
        _linear_algebra,
        _layers,
        _control,
        _collectives,
    )
    return {name: program for part in parts for name, program in part().items()}


def sealed(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    options: dict[str, Any] | None = None,
) -> bytes:
    """The plugin's own bytes of a program, without JAX's wrapping."""
    with jax.default_device(jax.devices("ipu")[0]):
        compiled = jax.jit(function).lower(*arguments).compile(options)
    wrapped = bytes(compiled.runtime_executable().serialize())
    begin = wrapped.index(b"IPUJAXEX")
    # Magic, format; the version and the contents each behind its length; the checksum between.
    version_bytes = int.from_bytes(wrapped[begin + 12 : begin + 20], "little")
    at = begin + 20 + version_bytes
    return wrapped[begin : at + 16 + int.from_bytes(wrapped[at : at + 8], "little")]


def write(folder: Path) -> None:
    """One file for each program."""
    for name, program in programs().items():
        (folder / f"jax_{name}.image").write_bytes(sealed(*program))
