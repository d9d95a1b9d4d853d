"""Products, convolutions, reductions, windows, random numbers, and whole layers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.cases.case import ALL_RUNS, FLOATS, Case, array, dtype_of

A, B = array((5, 7)), array((7, 3))
BATCHED, OTHER = array((2, 5, 4)), array((2, 4, 3))
X = array((4, 6))
IMAGE, KERNEL = array((2, 8, 7, 3)), array((3, 3, 3, 4))
NHWC = ("NHWC", "HWIO", "NHWC")


def _product_cases() -> list[Case]:
    # Long: a table.
    cases = [
        Case(
            f"matmul-{dtype}",
            jnp.matmul,
            (A.astype(dtype_of(dtype)), B.astype(dtype_of(dtype))),
            ALL_RUNS if dtype == "float32" else ("jit",),
            atol=None if dtype == "float32" else 5e-2,
        )
        for dtype in FLOATS
    ]
    return [
        *cases,
        Case("matmul-transposed", lambda a, b: b.T @ a.T, (A, B), ALL_RUNS),
        Case("matmul-vector", lambda a, v: a @ v, (A, array((7,))), ALL_RUNS),
        Case("matmul-dot", jnp.dot, (array((9,)), array((9,))), ALL_RUNS),
        Case("matmul-outer", jnp.outer, (array((4,)), array((5,))), ALL_RUNS),
        Case("matmul-batched", jnp.matmul, (BATCHED, OTHER), ALL_RUNS),
        Case("matmul-relu-chain", lambda a, b: jax.nn.relu(a @ b) @ b.T, (A, B), ALL_RUNS),
        Case("einsum", lambda a, b: jnp.einsum("bij,bjk->kbi", a, b), (BATCHED, OTHER), ALL_RUNS),
        Case("einsum-trace", lambda a: jnp.einsum("ii->", a[:4, :4]), (X,), ALL_RUNS),
        Case(
            "tensordot",
            lambda a, b: jnp.tensordot(a, b, ((1, 0), (0, 1))),
            (A, array((7, 5))),
            ALL_RUNS,
        ),
        Case(
            "dot_general-two-batch",
            lambda a, b: lax.dot_general(a, b, (((3,), (2,)), ((0, 1), (0, 1)))),
            (array((2, 3, 4, 5)), array((2, 3, 5, 6))),
            ALL_RUNS,
        ),
        Case(
            "dot-half-to-float",
            lambda a, b: lax.dot(a, b, preferred_element_type=jnp.float32),
            (A.astype("f2"), B.astype("f2")),
            ("jit",),
        ),
        Case(
            "dot-bfloat16-to-float",
            lambda a, b: lax.dot(a, b, preferred_element_type=jnp.float32),
            (A.astype(dtype_of("bfloat16")), B.astype(dtype_of("bfloat16"))),
            ("jit",),
        ),
        Case(
            "dot-int32",
            jnp.matmul,
            (array((5, 7), "int32", -99, 99), array((7, 3), "int32", -99, 99)),
        ),
        Case(
            "dot-int8-to-int32",
            lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32),
            (array((5, 7), "int8", -99, 99), array((7, 3), "int8", -99, 99)),
            ("jit",),
        ),
        Case(
            "dot-uint32",
            jnp.matmul,
            (array((5, 7), "uint32", 0, 99), array((7, 3), "uint32", 0, 99)),
            ("jit",),
        ),
        Case("dot-empty", jnp.matmul, (np.zeros((3, 0), "f4"), np.zeros((0, 2), "f4")), ("jit",)),
        Case(
            "matmul-64",
            jnp.matmul,
            (array((64, 96)), array((96, 80))),
            ("jit", "grad"),
            rtol=1e-4,
            atol=1e-4,
        ),
    ]


def _convolution_cases() -> list[Case]:
    # Long: a table.
    def conv(strides=(1, 1), padding="SAME", **options):
        return lambda x, k: lax.conv_general_dilated(
            x, k, strides, padding, dimension_numbers=NHWC, **options
        )

    line, taps = array((2, 9, 3)), array((4, 3, 5))
    nchw = ("NCHW", "OIHW", "NCHW")
    return [
        Case("conv-same", conv(), (IMAGE, KERNEL), ALL_RUNS, atol=2e-5),
        Case("conv-valid", conv(padding="VALID"), (IMAGE, KERNEL), ALL_RUNS, atol=2e-5),
        Case("conv-strided", conv((2, 3)), (IMAGE, KERNEL), ALL_RUNS, atol=2e-5),
        Case("conv-dilated", conv(rhs_dilation=(2, 1)), (IMAGE, KERNEL), ALL_RUNS, atol=2e-5),
        Case(
            "conv-transposed",
            lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=NHWC),
            (IMAGE, KERNEL),
            ALL_RUNS,
            atol=2e-5,
        ),
        Case(
            "conv-negative-padding",
            conv(padding=((-1, 2), (0, -2))),
            (IMAGE, KERNEL),
            ("jit", "grad"),
            atol=2e-5,
        ),
        Case(
            "conv-dilated-negative",
            conv(padding=((-1, -2), (-3, 1)), lhs_dilation=(2, 3)),
            (IMAGE, KERNEL),
            ("jit", "grad"),
            atol=2e-5,
        ),
        Case(
            "conv-grouped",
            conv(feature_group_count=3),
            (array((2, 6, 5, 6)), array((3, 3, 2, 9))),
            ALL_RUNS,
            atol=2e-5,
        ),
        Case(
            "conv-depthwise",
            conv(feature_group_count=3),
            (IMAGE, array((3, 3, 1, 3))),
            ALL_RUNS,
            atol=2e-5,
        ),
        Case(
            "conv-batch-groups",
            conv(batch_group_count=2),
            (array((4, 6, 5, 3)), array((3, 3, 3, 4))),
            ("jit", "grad"),
            atol=2e-5,
        ),
        Case(
            "conv-nchw",
            lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=nchw),
            (array((2, 3, 6, 5)), array((4, 3, 3, 3))),
            ALL_RUNS,
            atol=2e-5,
        ),
        Case(
            "conv-1d",
            lambda x, k: lax.conv_general_dilated(
                x, k, (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")
            ),
            (line, taps),
            ALL_RUNS,
            atol=2e-5,
        ),
        Case(
            "conv-3d",
            lambda x, k: lax.conv_general_dilated(
                x, k, (1, 1, 2), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")
            ),
            (array((1, 4, 5, 6, 2)), array((2, 3, 3, 2, 3))),
            ("jit", "grad"),
            atol=5e-5,
        ),
        Case("conv-pointwise", conv(), (IMAGE, array((1, 1, 3, 5))), ALL_RUNS, atol=2e-5),
        Case("conv-half", conv(), (IMAGE.astype("f2"), KERNEL.astype("f2")), ("jit",), atol=2e-2),
        Case(
            "conv-bfloat16",
            conv(),
            (IMAGE.astype(dtype_of("bfloat16")), KERNEL.astype(dtype_of("bfloat16"))),
            ("jit",),
            atol=2e-1,
        ),
        Case(
            "convolve",
            lambda x, y: jnp.convolve(x, y, mode="full"),
            (array((12,)), array((4,))),
            ALL_RUNS,
        ),
    ]


def _reduce_cases() -> list[Case]:
    cube = array((3, 4, 5))
    cases = []
    for name, f in (
        ("sum", jnp.sum),
        ("max", jnp.max),
        ("min", jnp.min),
        ("prod", jnp.prod),
        ("mean", jnp.mean),
    ):
        for axis in (None, 0, 1, (0, 2)):
            cases.append(
                Case(f"{name}-{axis}", lambda x, f=f, a=axis: f(x, a), (cube,), ALL_RUNS, atol=1e-5)
            )
    for dtype in ("float16", "bfloat16", "int32", "uint8", "int16"):
        x = array((6, 5), dtype, 0, 3)
        for name, f in (("sum", jnp.sum), ("max", jnp.max)):
            cases.append(Case(f"{name}-{dtype}", lambda x, f=f: f(x, 1), (x,), ("jit",)))
    special = np.array([[1, np.nan, 3], [np.inf, 2, -np.inf], [0.0, -0.0, 1]], "f4")
    return [
        *cases,
        Case("all", lambda x: jnp.all(x > -1, 1), (X,)),
        Case("any", lambda x: jnp.any(x > 1, 0), (X,)),
        Case("xor-reduce", lambda x: lax.reduce_xor(x, (0,)), (X.astype("i4"),)),
        Case("max-nan", lambda x: jnp.max(x, 1), (special,)),
        Case("min-nan", lambda x: jnp.min(x, 0), (special,)),
        Case("sum-empty", lambda x: jnp.sum(x, 0), (np.zeros((0, 4), "f4"),), ("jit",)),
        Case("argmax", lambda x: jnp.argmax(x, 1), (X,)),
        Case("argmin-all", jnp.argmin, (X,)),
        Case("argmax-nan", lambda x: jnp.argmax(x, 1), (special,)),
        Case("var", lambda x: jnp.var(x, 0), (X,), ALL_RUNS),
        Case("logsumexp", lambda x: jax.nn.logsumexp(x, 1), (X,), ALL_RUNS),
        Case("softmax", lambda x: jax.nn.softmax(x, 1), (X,), ALL_RUNS),
        Case("log_softmax", lambda x: jax.nn.log_softmax(x, 0), (X,), ALL_RUNS),
        Case(
            "reduce-body",
            lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + b + a * b, (1,)),
            (X,),
            ("jit",),
        ),
        Case("reduce-init", lambda x: lax.reduce(x, np.float32(5), lax.add, (0,)), (X,), ("jit",)),
        Case(
            "reduce-pair",
            lambda x, y: lax.reduce(
                (x, y),
                (np.float32(0), np.float32(1)),
                lambda a, b: (a[0] + b[0], a[1] * b[1]),
                (0,),
            ),
            (X, X),
            ("jit",),
        ),
        Case("cumsum", lambda x: jnp.cumsum(x, 1), (X,), ALL_RUNS),
        Case("cumsum-reverse", lambda x: lax.cumsum(x, 0, reverse=True), (X,), ALL_RUNS),
        Case("cumprod", lambda x: jnp.cumprod(x, 0), (X,), ALL_RUNS),
        Case("cummax", lambda x: lax.cummax(x, 1), (X,)),
        Case("cumlogsumexp", lambda x: lax.cumlogsumexp(x, 1), (X,), ("jit",)),
    ]


def _window_cases() -> list[Case]:
    def pool(init, op, window=(1, 2, 2, 1), strides=(1, 2, 2, 1), padding="VALID", **options):
        return lambda x: lax.reduce_window(x, init, op, window, strides, padding, **options)

    low = np.float32(-np.inf)
    return [
        Case("max_pool", pool(low, lax.max), (IMAGE,), ALL_RUNS),
        Case(
            "max_pool-ties-and-nan",
            jax.grad(lambda x: (pool(low, lax.max)(x) * 3).sum()),
            (np.array([[1, 1, 1, 2], [1, 1, 2, np.nan]], "f4").reshape(1, 2, 4, 1),),
            ("jit",),
        ),
        Case("max_pool-overlapping", pool(low, lax.max, (1, 3, 3, 1)), (IMAGE,), ALL_RUNS),
        Case(
            "max_pool-cube",
            lambda x: lax.reduce_window(x, low, lax.max, (2, 2, 1), (2, 2, 1), "VALID"),
            (array((4, 6, 3)),),
            ALL_RUNS,
        ),
        Case("max_pool-same", pool(low, lax.max, (1, 3, 3, 1), padding="SAME"), (IMAGE,), ALL_RUNS),
        Case(
            "avg_pool", pool(np.float32(0), lax.add, (1, 3, 2, 1), (1, 1, 2, 1)), (IMAGE,), ALL_RUNS
        ),
        Case("min_pool", pool(np.float32(np.inf), lax.min), (IMAGE,), ALL_RUNS),
        Case(
            "window-dilated",
            pool(np.float32(0), lax.add, window_dilation=(1, 2, 1, 1)),
            (IMAGE,),
            ("jit",),
        ),
        Case(
            "window-base-dilated",
            pool(np.float32(0), lax.add, base_dilation=(1, 2, 2, 1)),
            (IMAGE,),
            ("jit",),
        ),
        Case("window-body", pool(np.float32(1), lambda a, b: a * b + 0 * a), (IMAGE,), ("jit",)),
        Case(
            "window-int",
            lambda x: lax.reduce_window(x, np.int32(0), lax.add, (2, 3), (1, 1), "SAME"),
            (X.astype("i4"),),
            ("jit",),
        ),
        Case(
            "max_pool-half",
            pool(np.float16(-np.inf), lax.max),
            (IMAGE.astype("f2"),),
            ("jit", "grad"),
        ),
    ]


def _random_cases() -> list[Case]:
    key = np.array([3, 5], "u4")

    def bits(algorithm, dtype, shape=(5, 3)):
        return lambda state: lax.rng_bit_generator(state, shape, dtype, algorithm=algorithm)

    algorithms = lax.RandomAlgorithm
    state = np.array([1, 2, 3, 4], "u4")
    return [
        Case("random-bits", lambda k: jax.random.bits(k, (7, 3)), (key,)),
        Case("random-bits-uint8", lambda k: jax.random.bits(k, (9,), "uint8"), (key,), ("jit",)),
        Case("random-uniform", lambda k: jax.random.uniform(k, (4, 5)), (key,), rtol=0, atol=0),
        Case("random-normal", lambda k: jax.random.normal(k, (33,)), (key,), atol=1e-5),
        Case("random-split", lambda k: jax.random.split(k, 3), (key,)),
        Case("random-fold_in", lambda k: jax.random.fold_in(k, 7), (key,)),
        Case("random-bernoulli", lambda k: jax.random.bernoulli(k, 0.3, (20,)), (key,)),
        Case("random-randint", lambda k: jax.random.randint(k, (20,), -5, 99), (key,)),
        Case(
            "random-categorical",
            lambda k: jax.random.categorical(k, jnp.arange(6.0), shape=(9,)),
            (key,),
        ),
        Case(
            "random-truncated",
            lambda k: jax.random.truncated_normal(k, -1, 1, (9,)),
            (key,),
            ("jit",),
            atol=1e-5,
        ),
        Case("random-half", lambda k: jax.random.normal(k, (9,), "float16"), (key,), ("jit",)),
        Case(
            "dropout",
            lambda k, x: jnp.where(jax.random.bernoulli(k, 0.5, x.shape), x / 0.5, 0),
            (key, X),
        ),
        Case("rng-threefry", bits(algorithms.RNG_THREE_FRY, "uint32"), (state,), ("jit",)),
        Case("rng-default", bits(algorithms.RNG_DEFAULT, "uint32"), (state,), ("jit",)),
        Case("rng-philox", bits(algorithms.RNG_PHILOX, "uint32", (9,)), (state,), ("jit",)),
        Case(
            "random-rbg",
            lambda s: jax.random.uniform(jax.random.wrap_key_data(s, impl="rbg"), (6,)),
            (state,),
            ("jit",),
        ),
    ]


def _layer_cases() -> list[Case]:
    def attention(q, k, v):
        weights = jax.nn.softmax(jnp.where(np.tril(np.ones((5, 5), bool)), q @ k.T / 2, -1e9))
        return weights @ v

    def layer_norm(x, scale, bias):
        centred = x - x.mean(-1, keepdims=True)
        return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + bias

    def cross_entropy(logits):
        labels = jax.nn.one_hot(np.array([1, 0, 5, 2]), 6)
        return -(labels * jax.nn.log_softmax(logits)).sum(-1)

    def lstm(x, w):
        def cell(state, row):
            h, c = state
            i, f, g, o = jnp.split(jnp.concatenate([row, h]) @ w, 4)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        return lax.scan(cell, (jnp.zeros(3), jnp.zeros(3)), x)

    q = array((5, 4))
    return [
        Case("attention", attention, (q, q * 0.5, q + 1), ALL_RUNS),
        Case("layer_norm", layer_norm, (X, array((6,)), array((6,))), ALL_RUNS, atol=2e-5),
        Case("cross_entropy", cross_entropy, (X,), ALL_RUNS),
        Case("lstm", lstm, (X, array((9, 12))), ALL_RUNS),
        Case(
            "hessian",
            lambda x: jax.hessian(lambda v: jnp.sum(jnp.sin(v) ** 3))(x),
            (array((4,)),),
            ("jit",),
        ),
        Case(
            "jacobian",
            lambda x: jax.jacfwd(lambda v: jnp.tanh(v * v.sum()))(x),
            (array((4,)),),
            ("jit",),
        ),
        Case(
            "jvp",
            lambda x: jax.jvp(lambda v: jnp.exp(v).sum(), (x,), (x,)),
            (array((4,)),),
            ("jit",),
        ),
    ]


CASES = [
    *_product_cases(),
    *_convolution_cases(),
    *_reduce_cases(),
    *_window_cases(),
    *_random_cases(),
    *_layer_cases(),
]
