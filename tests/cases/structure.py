"""Ops that move elements, index, sort and branch."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.cases.case import ALL_RUNS, Case, array, dtype_of

X = array((4, 6))
CUBE = array((3, 4, 5))
INDICES = np.array([2, 0, 1, 2, 3], "i4")


def _shape_cases() -> list[Case]:
    return [
        Case(
            "broadcast_in_dim",
            lambda x: lax.broadcast_in_dim(x, (2, 4, 3, 6), (1, 3)),
            (X,),
            ALL_RUNS,
        ),
        Case("broadcast-size-1", lambda x: x[:, None] + jnp.zeros((4, 3, 6)), (X,), ALL_RUNS),
        Case("reshape", lambda x: jnp.sin(x).reshape(3, 8), (X,), ALL_RUNS),
        Case("reshape-transposed", lambda x: x.T.reshape(8, 3) * 2, (X,), ALL_RUNS),
        Case("transpose", lambda x: jnp.transpose(x, (2, 0, 1)) + 1, (CUBE,), ALL_RUNS),
        Case("transpose-only", lambda x: x.T, (X,), ALL_RUNS),
        Case("slice", lambda x: lax.slice(x, (1, 0), (4, 5), (2, 2)), (X,), ALL_RUNS),
        Case("concatenate", lambda x, y: jnp.concatenate([x, y * 2, x], 1), (X, X + 1), ALL_RUNS),
        Case("stack", lambda x, y: jnp.stack([x, y], 1), (X, X + 1), ALL_RUNS),
        Case("pad", lambda x: lax.pad(x, 1.5, ((1, 2, 0), (0, 3, 1))), (X,), ALL_RUNS),
        Case("pad-negative", lambda x: lax.pad(x, 0.0, ((-1, 2, 0), (1, -2, 1))), (X,), ALL_RUNS),
        Case("pad-int", lambda x: jnp.pad(x, 1, constant_values=7), (X.astype("i4"),)),
        Case("reverse", lambda x: lax.rev(x, (0, 2)), (CUBE,), ALL_RUNS),
        Case("roll", lambda x: jnp.roll(x, 2, 1), (X,), ALL_RUNS),
        Case("iota", lambda x: x + lax.broadcasted_iota(jnp.float32, (4, 6), 1), (X,)),
        Case("iota-long", lambda x: x + jnp.arange(5000), (np.int32(3),), ("jit",)),
        Case(
            "iota-long-bfloat16",
            lambda x: x + jnp.arange(5000, dtype="bfloat16"),
            (dtype_of("bfloat16").type(1),),
            ("jit",),
            rtol=1e-6,
        ),
        Case("constant", lambda x: x * np.arange(24, dtype="f4").reshape(4, 6), (X,)),
        Case("constant-bool", lambda x: jnp.where(np.eye(4, 6, dtype=bool), x, 0), (X,)),
        Case(
            "constant-bfloat16",
            lambda x: x * np.arange(6).astype(dtype_of("bfloat16")),
            (X.astype(dtype_of("bfloat16")),),
        ),
        Case("constant-half", lambda x: x * np.arange(6).astype("f2"), (X.astype("f2"),)),
        Case("identity", lambda x: x, (X,)),
        Case("same-twice", lambda x: (x + 1, x + 1, x), (X,)),
        Case("constant-result", lambda x: (jnp.ones((3,)), np.arange(4.0, dtype="f4"), x), (X,)),
        Case("tril", jnp.tril, (X,), ALL_RUNS),
        Case("repeat", lambda x: jnp.repeat(x, 3, 0), (X,), ALL_RUNS),
        Case("tile", lambda x: jnp.tile(x, (2, 3)), (X,), ALL_RUNS),
        Case("dot-barrier", lambda x: lax.optimization_barrier(x * 2) + 1, (X,), ("jit", "grad")),
    ]


def _index_cases() -> list[Case]:
    # Long: a table.
    start = np.int32(2)
    return [
        Case("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 3)), (X, start)),
        Case(
            "dynamic_slice-clamped",
            lambda x, i: lax.dynamic_slice(x, (i, i), (2, 3)),
            (X, np.int32(9)),
        ),
        Case(
            "dynamic_slice-negative",
            lambda x, i: lax.dynamic_slice(x, (i, i), (2, 3)),
            (X, np.int32(-3)),
            ("jit",),
        ),
        Case(
            "dynamic_slice-grad",
            lambda x: lax.dynamic_slice(x, (jnp.argmax(x[:, 0]), 1), (1, 3)),
            (X,),
            ALL_RUNS,
        ),
        Case(
            "dynamic_update_slice",
            lambda x, y, i: lax.dynamic_update_slice(x, y, (i, 2)),
            (X, array((2, 3)), start),
        ),
        Case(
            "dynamic_update-clamped",
            lambda x, y, i: lax.dynamic_update_slice(x, y, (i, i)),
            (X, array((2, 3)), np.int32(7)),
        ),
        Case(
            "dynamic_update-uint8",
            lambda x, y, i: lax.dynamic_update_slice(x, y, (i, i)),
            (X, array((2, 3)), np.uint8(1)),
            ("jit",),
        ),
        Case("index", lambda x, i: x[i], (X, start)),
        Case("index-negative", lambda x: x[-2, 1:-1], (X,), ALL_RUNS),
        Case("take", lambda x, i: jnp.take(x, i, 0), (X, np.array([3, 0, 9, -1], "i4"))),
        Case("take-grad", lambda x: jnp.take(x, INDICES, 0), (X,), ALL_RUNS),
        Case(
            "take_along_axis",
            lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1),
            (X,),
            ALL_RUNS,
        ),
        Case("gather-2d", lambda x: x[INDICES, INDICES[::-1] + 1], (X,), ALL_RUNS),
        Case(
            "gather-window",
            lambda x, i: jax.vmap(lambda k: lax.dynamic_slice(x, (k, 0), (2, 4)))(i),
            (X, np.array([0, 2, 1], "i4")),
        ),
        Case(
            "gather-fill",
            lambda x, i: x.at[i].get(mode="fill", fill_value=-1),
            (X, np.array([1, 8], "i4")),
        ),
        Case("gather-bool-mask", lambda x: x[np.array([True, False, True, True])], (X,), ALL_RUNS),
        Case(
            "scatter-set", lambda x, y: x.at[np.array([2, 0])].set(y), (X, array((2, 6))), ALL_RUNS
        ),
        Case("scatter-add", lambda x, y: x.at[INDICES].add(y), (X, array((5, 6))), ALL_RUNS),
        Case(
            "scatter-mul",
            lambda x, y: x.at[np.array([1, 3])].multiply(y, unique_indices=True),
            (X, array((2, 6))),
            ALL_RUNS,
        ),
        Case("scatter-min", lambda x, y: x.at[INDICES].min(y), (X, array((5, 6)))),
        Case("scatter-max", lambda x, y: x.at[INDICES].max(y), (X, array((5, 6)))),
        Case(
            "scatter-int",
            lambda x, i: x.at[i].add(1),
            (np.zeros(9, "i4"), np.array([1, 1, 20], "i4")),
        ),
        Case("scatter-elements", lambda x: x.at[INDICES, INDICES].add(2.0), (X,), ALL_RUNS),
        Case(
            "scatter-half",
            lambda x: x.at[INDICES].add(x[:1].astype(x.dtype)),
            (X.astype("f2"),),
            ("jit",),
        ),
        Case(
            "scatter-bfloat16",
            lambda x: x.at[INDICES].add(x[:1]),
            (X.astype(dtype_of("bfloat16")),),
            ("jit",),
            rtol=4e-2,
            atol=4e-2,
        ),
        Case("scatter-apply", lambda x: x.at[np.array([0, 2])].apply(jnp.sin), (X,), ("jit",)),
        Case("one_hot", lambda i: jax.nn.one_hot(i, 5), (INDICES,)),
        Case("embedding-grad", lambda x: (x[INDICES] ** 2).sum(1), (X,), ALL_RUNS),
        Case("segment_sum", lambda x: jax.ops.segment_sum(x, INDICES[:4], 5), (X,), ALL_RUNS),
    ]


def _sort_cases() -> list[Case]:
    special = np.array([3, np.nan, -0.0, 0.0, -np.inf, np.inf, 1, np.nan, -2], "f4")
    many = array((37,), "int32", -5, 5)
    return [
        Case("sort", lambda x: jnp.sort(x, 1), (X,), ALL_RUNS),
        Case("sort-axis-0", lambda x: jnp.sort(x, 0), (X,), ALL_RUNS),
        Case("sort-special", jnp.sort, (special,)),
        Case("sort-descending", lambda x: jnp.sort(x, descending=True), (X,)),
        Case("sort-int", jnp.sort, (many,)),
        Case("sort-uint8", jnp.sort, (many.astype("u1"),), ("jit",)),
        Case("sort-half", jnp.sort, (X.astype("f2"),), ("jit",)),
        Case("sort-bfloat16", jnp.sort, (X.astype(dtype_of("bfloat16")),), ("jit",)),
        Case("sort-bool", jnp.sort, (X > 0,), ("jit",)),
        Case("argsort", lambda x: jnp.argsort(x, 0), (X,)),
        Case("argsort-stable", lambda x: jnp.argsort(x, stable=True), (many,)),
        Case(
            "sort-pairs",
            lambda x, y: lax.sort((x, y), num_keys=1),
            (many, np.arange(37, dtype="f4")),
        ),
        Case("sort-two-keys", lambda x, y: lax.sort((x, y), num_keys=2), (many, array((37,)))),
        Case("top_k", lambda x: lax.top_k(x, 3), (X,)),
        Case("top_k-special", lambda x: lax.top_k(x, 4), (special,)),
        Case("top_k-int", lambda x: lax.top_k(x, 5), (many,)),
        Case("top_k-grad", lambda x: lax.top_k(x, 2)[0], (X,), ALL_RUNS),
        Case("median", jnp.median, (array((9,)),), ("jit",)),
        Case("unique-size", lambda x: jnp.unique(x, size=12, fill_value=99), (many,), ("jit",)),
        Case("searchsorted", jnp.searchsorted, (np.sort(array((16,))), array((5,)))),
        Case("permutation", lambda x: jax.random.permutation(jax.random.key(3), x), (X,), ("jit",)),
    ]


def _repeated_row_cases() -> list[Case]:
    """Rows that are one element repeated, stacked by loops or written into what they carry."""
    steps = array((8, 4), "float32", -3, 3)
    half = steps[:, 0].astype("f2")

    def written(x):
        def body(i, out):
            return lax.dynamic_update_slice(out, jnp.full((1, 3), x[i]), (i, 0))

        return lax.fori_loop(0, 8, body, jnp.zeros((8, 3), x.dtype))

    def stacked(x, reverse):
        def body(carry, value):
            return carry + value, (jnp.full((2, 3), value), jnp.full((5,), carry), value)

        return lax.scan(body, x[0], x, reverse=reverse)

    squares = jax.grad(lambda w: lax.scan(lambda c, r: (c + r.sum() ** 2, None), 0.0, w)[0])
    cases = [
        Case("scan-grad-of-sums", squares, (steps,), ("eager", "jit", "vmap")),
        Case("map-broadcast", lambda x: lax.map(lambda r: jnp.broadcast_to(r, (4,)), x), (half,)),
        Case("map-ones", lambda x: lax.map(lambda r: jnp.ones((4,)), x), (half,)),
        Case("fori-full-rows", written, (steps[:, 0],), ALL_RUNS),
    ]
    for reverse in (False, True):
        stack = lambda x, reverse=reverse: stacked(x, reverse)  # noqa: E731
        cases += [
            Case(f"scan-full-rows-{x.dtype}-{reverse}", stack, (x,))
            for x in (steps[:, 0], half, steps[:, 0].astype("i4"))
        ]
    return cases


def _control_cases() -> list[Case]:
    # Long: a table, each with its functions.
    def collatz(n):
        def body(state):
            value, count = state
            return jnp.where(value % 2 == 0, value // 2, 3 * value + 1), count + 1

        return lax.while_loop(lambda s: s[0] != 1, body, (n, jnp.int32(0)))

    def swap(x, y):
        return lax.fori_loop(0, 5, lambda i, s: (s[1], s[0] + i), (x, y))

    def rotate(x):
        return lax.fori_loop(0, 4, lambda i, s: (s[2], s[0], s[1]), (x, x + 1, x * 2))

    def scan(x):
        def body(carry, row):
            carry = jnp.tanh(carry * 0.9 + row)
            return carry, (carry * 2, row.sum())

        return lax.scan(body, jnp.zeros(6), x)

    def nested(x):
        def outer(carry, row):
            total, _ = lax.scan(lambda c, v: (c + v * carry.sum(), c), 0.0, row)
            return carry * 0.5 + total, total

        return lax.scan(outer, jnp.ones(3), x)

    def branch(i, x):
        return lax.switch(i, [lambda x: x, jnp.sin, lambda x: x.T.reshape(x.shape)], x)

    flag = np.bool_(True)
    return [
        Case("while", collatz, (np.int32(27),)),
        Case(
            "fori-dynamic",
            lambda n, x: lax.fori_loop(0, n, lambda i, c: c * 1.1 + i, x),
            (np.int32(7), X),
        ),
        *(  # about as many iterations as the engine makes one expression of
            Case(
                f"fori-dynamic-{count}",
                lambda n, x: lax.fori_loop(0, n, lambda i, c: c * 0.99 + i, x),
                (np.int32(count), X),
            )
            for count in (31, 64, 200)
        ),
        Case(
            "scan-200",
            lambda x: lax.scan(lambda c, r: (jnp.sin(c) + r, c * 2), x[0], x),
            (array((200, 6)),),
            ALL_RUNS,
        ),
        Case("fori-zero", lambda x: lax.fori_loop(0, 0, lambda i, c: c * 2, x), (X,)),
        Case(
            "while-never",
            lambda x: lax.while_loop(lambda c: c.sum() > 1e9, lambda c: c * 2, x),
            (X,),
        ),
        Case("while-swap", swap, (X, X + 1), ALL_RUNS),
        Case("while-rotate", rotate, (X,), ALL_RUNS),
        Case("scan", scan, (X,), ALL_RUNS),
        Case(
            "scan-reverse",
            lambda x: lax.scan(lambda c, r: (c + r, c), jnp.zeros(6), x, reverse=True),
            (X,),
            ALL_RUNS,
        ),
        Case("scan-nested", nested, (X,), ALL_RUNS),
        *_repeated_row_cases(),
        Case("scan-no-carry", lambda x: lax.map(lambda r: r * r.sum(), x), (X,), ALL_RUNS),
        Case(
            "scan-length",
            lambda x: lax.scan(lambda c, _: (c * 2, c), x, None, length=3),
            (X,),
            ALL_RUNS,
        ),
        Case(
            "scan-unroll",
            lambda x: lax.scan(lambda c, r: (c + r, c), jnp.zeros(6), x, unroll=2),
            (X,),
        ),
        Case(
            "scan-bfloat16",
            lambda x: lax.scan(lambda c, r: (c * r + 1, c), x[0], x),
            (X.astype(dtype_of("bfloat16")),),
            ("jit",),
        ),
        Case(
            "scan-remat",
            lambda x: lax.scan(jax.checkpoint(lambda c, r: (jnp.sin(c * r), c)), x[0], x),
            (X,),
            ("jit", "grad"),
        ),
        Case("cond", lambda p, x: lax.cond(p, jnp.sin, lambda x: x * 2, x), (flag, X)),
        Case(
            "cond-false",
            lambda x: lax.cond(x.sum() > 1e6, jnp.sin, lambda x: x * 2, x),
            (X,),
            ALL_RUNS,
        ),
        Case(
            "cond-pair",
            lambda p, x: lax.cond(p, lambda x: (x, x.sum()), lambda x: (x.T.T, 1.0), x),
            (flag, X),
        ),
        Case("switch-0", branch, (np.int32(0), X)),
        Case("switch-2", branch, (np.int32(2), X)),
        Case("switch-out-of-range", branch, (np.int32(17), X)),
        Case("switch-negative", branch, (np.int32(-4), X)),
        Case(
            "cond-in-scan",
            lambda x: lax.scan(
                lambda c, r: (lax.cond(r[0] > 0, lambda c: c + r, lambda c: c * 0.5, c), c[0]),
                jnp.ones(6),
                x,
            ),
            (X,),
            ALL_RUNS,
        ),
        Case(
            "if-in-while",
            lambda x: lax.while_loop(
                lambda s: s[0] < 6,
                lambda s: (
                    s[0] + 1,
                    lax.cond(s[0] % 2 == 0, lambda v: v + 1, lambda v: v * 2, s[1]),
                ),
                (0, x),
            ),
            (X,),
        ),
        Case("remat", jax.checkpoint(lambda x: jnp.sin(jnp.sin(x) * x)), (X,), ("jit", "grad")),
        Case("custom_jvp", lambda x: jax.nn.relu6(x) + jax.nn.elu(x), (X,), ALL_RUNS),
        Case(
            "jit-in-jit",
            jax.jit(lambda x: jax.jit(jnp.sin)(x) + jax.jit(jnp.sin)(x * 2)),
            (X,),
            ALL_RUNS,
        ),
        Case("associative_scan", lambda x: lax.associative_scan(jnp.multiply, x), (X,), ALL_RUNS),
        Case(
            "associative_scan-axis",
            lambda x: lax.associative_scan(jnp.add, x, axis=1),
            (X,),
            ALL_RUNS,
        ),
    ]


CASES = _shape_cases() + _index_cases() + _sort_cases() + _control_cases()
