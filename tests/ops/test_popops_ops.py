"""Ops of ipu.ops on popops and poplin, against NumPy, and against their definitions on the CPU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import ipujax as ipu
from ipujax.errors import ConfigError

RANDOM = np.random.default_rng(0)


def on_cpu(fun, *args):
    with jax.default_device(jax.devices("cpu")[0]):
        return jax.tree.map(np.asarray, jax.jit(fun)(*args))


def normal(*shape, dtype=np.float32):
    return RANDOM.normal(size=shape).astype(dtype)


# serialized_matmul -------------------------------------------------------------------------------

DIMENSIONS = ["a_columns", "a_rows_b_columns", "b_rows"]


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("transposed", [(False, False), (True, True)])
def test_serialized_matmul(dimension, transposed):
    a, b = normal(2, 6, 12), normal(2, 12, 18)
    x, y = (v.swapaxes(-1, -2) if t else v for v, t in zip((a, b), transposed, strict=True))

    def fun(x, y):
        return ipu.ops.serialized_matmul(x, y, 3, dimension, *transposed)

    np.testing.assert_allclose(jax.jit(fun)(x, y), a @ b, rtol=2e-5, atol=2e-5)
    got = jax.jit(jax.grad(lambda x, y: jnp.sin(fun(x, y)).sum(), (0, 1)))(x, y)
    cos = np.cos(a @ b)
    da, db = cos @ b.swapaxes(-1, -2), a.swapaxes(-1, -2) @ cos
    want = [v.swapaxes(-1, -2) if t else v for v, t in zip((da, db), transposed, strict=True)]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4)


def test_serialized_matmul_is_a_loop_that_needs_less_memory():
    a, b = normal(32, 512), normal(512, 2048)
    plain = jax.jit(jnp.matmul).lower(a, b).compile()
    serial = jax.jit(lambda a, b: ipu.ops.serialized_matmul(a, b, 8, "reducing_dim"))
    lowered = serial.lower(a, b)
    assert "stablehlo.while" in lowered.as_text()
    np.testing.assert_allclose(serial(a, b), a @ b, rtol=1e-3, atol=1e-3)
    assert lowered.compile().cost_analysis()["cycles"] > plain.cost_analysis()["cycles"]


def test_serialized_matmul_keeps_precision():
    a, b = np.full((2, 512), 1, np.float16), np.full((512, 2), 9.3, np.float16)
    exact = ipu.ops.serialized_matmul(a, b, 128, "reducing_dim", keep_precision=True)
    rounded = ipu.ops.serialized_matmul(a, b, 128, "reducing_dim")
    assert exact.dtype == rounded.dtype == np.float16
    want = np.float16(512 * np.float32(b[0, 0]))
    assert exact[0, 0] == want != rounded[0, 0]


# sequence_slice ----------------------------------------------------------------------------------


def sliced(dst, src, num, from_, to, zero):
    out = np.zeros_like(dst) if zero else dst.copy()
    for n, f, t in zip(num, from_, to, strict=True):
        n = max(0, min(n, len(src) - f, len(dst) - t))
        out[t : t + n] = src[f : f + n]
    return out


@st.composite
def runs(draw):
    rows, width = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    num, from_, to, at = [], [], [], 0
    source = draw(st.integers(1, 12))
    while at < rows and len(num) < 4:
        to.append(at)
        num.append(draw(st.integers(0, 4)))
        from_.append(draw(st.integers(0, source)))
        at += max(1, num[-1])
    return rows, source, width, num, from_, to, draw(st.booleans())


@given(runs())
@settings(max_examples=8, deadline=None, derandomize=True)
def test_sequence_slice(case):
    rows, source, width, num, from_, to, zero = case
    dst, src = normal(rows, width), normal(source, width)
    want = sliced(dst, src, num, from_, to, zero)
    fun = jax.jit(lambda *x: ipu.ops.sequence_slice(*x, zero))
    arrays = [np.array(v, np.int32) for v in (num, from_, to)]
    np.testing.assert_array_equal(fun(dst, src, *arrays), want)
    np.testing.assert_array_equal(on_cpu(lambda *x: fun(*x), dst, src, *arrays), want)


@pytest.mark.parametrize("zero", [True, False])
def test_gradients_of_sequence_slice(zero):
    """Rows of src that several runs copy get the sum; those that other runs cover get nothing."""
    dst, src = normal(9, 3), 2 * normal(7, 3)
    num, from_, to = [3, 4, 9, 0], [1, 2, 5, 0], [0, 2, 7, 1]

    def loss(dst, src):
        return jnp.sum(jnp.sin(ipu.ops.sequence_slice(dst, src, num, from_, to, zero)))

    gradient = jax.grad(loss, (0, 1))
    wanted = on_cpu(jax.jit(gradient), dst, src)
    for got, want in zip(jax.jit(gradient)(dst, src), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    # By hand: which row of src each row of dst is, or none.
    rows = [None] * 9
    for n, start, place in zip(num, from_, to, strict=True):
        for step in range(min(n, 7 - start, 9 - place)):
            rows[place + step] = max(start + step, rows[place + step] or 0)
    made = np.array([dst[i] * (not zero) if r is None else src[r] for i, r in enumerate(rows)])
    by_hand = np.zeros_like(src)
    for i, row in enumerate(rows):
        if row is not None:
            by_hand[row] += np.cos(made[i])
    np.testing.assert_allclose(jax.jit(gradient)(dst, src)[1], by_hand, rtol=1e-5, atol=1e-5)


def test_sequence_slice_transformations():
    dst, src = normal(6, 2, 3), normal(4, 2, 3)
    num, from_, to = [2, 1], [1, 0], [3, 0]

    def fun(dst, src):
        return ipu.ops.sequence_slice(dst, src, num, from_, to, False)

    got = jax.jit(jax.grad(lambda *x: (fun(*x) * dst).sum(), (0, 1)))(dst, src)
    want_src = np.zeros_like(src)
    want_src[1:3], want_src[0] = dst[3:5], dst[0]
    want_dst = dst.copy()
    want_dst[[0, 3, 4]] = 0
    np.testing.assert_array_equal(got[0], want_dst)
    np.testing.assert_array_equal(got[1], want_src)
    batch = jax.jit(jax.vmap(fun))(np.stack([dst, dst]), np.stack([src, 2 * src]))
    np.testing.assert_array_equal(batch[1], sliced(dst, 2 * src, num, from_, to, False))
    assert fun(np.zeros((0, 2, 3), np.float32), src).shape == (0, 2, 3)


def test_sequence_slice_of_sharded_rows():
    """Runs are of whole rows: each device copies its columns, and nothing is gathered."""
    mesh = Mesh(np.array(jax.devices("ipu")[:4]), ("a",))
    dst, src = normal(9, 8, 3), normal(7, 8, 3)
    runs = [[3, 4, 9], [1, 2, 5], [0, 2, 7]]
    place = NamedSharding(mesh, P(None, "a"))

    def loss(dst, src):
        return jnp.sum(jnp.sin(ipu.ops.sequence_slice(dst, src, *runs, False)))

    for fun in (lambda *x: ipu.ops.sequence_slice(*x, *runs, True), jax.grad(loss, (0, 1))):
        sharded = jax.jit(fun, in_shardings=(place, place))
        wanted = on_cpu(fun, dst, src)
        got = sharded(dst, src)
        jax.tree.map(lambda g, w: np.testing.assert_allclose(g, w, atol=1e-6), got, wanted)
        for each in jax.tree.leaves(got):
            assert each.sharding.is_equivalent_to(place, 3)
        assert "all-gather(" not in sharded.lower(dst, src).compile().as_text()


def test_pack_and_unpack():
    src = np.arange(12, dtype=np.float32).reshape(6, 2)
    unpacked = ipu.ops.sequence_slice_unpack(src, [2, 3], [3, 0], 6)
    np.testing.assert_array_equal(unpacked, [*src[3:5], *src[:3], [0, 0]])
    packed = ipu.ops.sequence_slice_pack(
        np.ones((6, 2), np.float32), unpacked, [2, 3], [3, 0], True
    )
    np.testing.assert_array_equal(packed, [*src[:5], [0, 0]])


# top_k and sort ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("order", ["descending", "ascending"])
def test_top_k(dtype, largest, order):
    x = RANDOM.integers(-5, 5, (3, 20)).astype(dtype)
    fun = jax.jit(lambda x: ipu.ops.top_k(x, 7, largest=largest, order=order))
    chosen = np.argsort(-x if largest else x, axis=-1, kind="stable")[:, :7]
    if largest != (order == "descending"):
        chosen = chosen[:, ::-1]
    for got, where in (fun(x), on_cpu(lambda x: fun(x), x)):
        assert got.dtype == dtype
        np.testing.assert_array_equal(where, chosen)
        np.testing.assert_array_equal(got, np.take_along_axis(x, chosen, -1))


def test_top_k_of_special_numbers():
    x = np.array([1, np.nan, -np.inf, np.inf], np.float32)
    np.testing.assert_array_equal(ipu.ops.top_k(x, 2)[1], [1, 3])
    np.testing.assert_array_equal(ipu.ops.top_k(x, 2, largest=False, order="none")[1][:1], [2])
    assert ipu.ops.top_k(x, 0)[0].shape == (0,)
    np.testing.assert_array_equal(ipu.ops.top_k(x[:1], 1)[0], [1])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_top_k_puts_minus_zero_below_zero(dtype):
    for zeros in ([0.0, -0.0, 1.0, 0.0], [-0.0, 0.0, -1.0, -0.0]):
        x = jnp.asarray(zeros, dtype)
        total = [(value, np.copysign(1, value)) for value in zeros]
        for largest in (True, False):
            ranks = sorted(range(4), key=lambda k, t=total: t[k], reverse=largest)
            select = lambda x, b=largest: ipu.ops.top_k(x, 4, largest=b)[1]  # noqa: E731
            wanted = ranks if largest else ranks[::-1]
            np.testing.assert_array_equal(jax.jit(select)(x), wanted)
            np.testing.assert_array_equal(on_cpu(select, x), wanted)


def test_top_k_gradient_and_batch():
    x = normal(4, 9)
    top = jax.jit(jax.vmap(lambda x: ipu.ops.top_k(x, 3)[0]))
    np.testing.assert_array_equal(top(x), -np.sort(-x, -1)[:, :3])
    grad = jax.jit(jax.grad(lambda x: (ipu.ops.top_k(x, 3)[0] * jnp.arange(3.0)).sum()))(x)
    want = np.zeros_like(x)
    np.put_along_axis(want, np.argsort(-x, -1)[:, :3], np.arange(3, dtype=np.float32), -1)
    np.testing.assert_array_equal(grad, want)


def test_sort():
    x = normal(3, 8, 2)
    np.testing.assert_array_equal(jax.jit(lambda x: ipu.ops.sort(x, 1))(x), np.sort(x, 1))
    keys = RANDOM.integers(0, 3, (3, 8))
    values = normal(3, 8)
    got = jax.jit(ipu.ops.sort_key_value)(keys, values)
    want = np.take_along_axis(values, np.argsort(keys, -1, kind="stable"), -1)
    np.testing.assert_array_equal(np.sort(got, -1), np.sort(values, -1))
    np.testing.assert_array_equal(got, want)
    grad = jax.jit(jax.grad(lambda v: (ipu.ops.sort_key_value(keys, v) ** 2).sum()))(values)
    np.testing.assert_allclose(grad, 2 * values, rtol=1e-6)
    special = np.array([np.nan, 1, -np.inf], np.float32)
    np.testing.assert_array_equal(ipu.ops.sort(special), [-np.inf, 1, np.nan])
    assert ipu.ops.sort(np.zeros((0,), np.float32)).shape == (0,)


# multi_conv --------------------------------------------------------------------------------------


def test_multi_conv():
    x, w = normal(2, 4, 8, 8), normal(6, 4, 3, 3)
    y, v = normal(2, 9, 9, 4), normal(2, 2, 2, 8)
    nhwc = ("NHWC", "HWIO", "NHWC")

    def both(x, w, y, v):
        return ipu.ops.multi_conv(
            [
                ipu.ops.Conv(x, w, (2, 1), "SAME", rhs_dilation=(1, 2)),
                ipu.ops.Conv(
                    y,
                    v,
                    padding=[(1, 0), (0, 2)],
                    lhs_dilation=(2, 1),
                    dimension_numbers=nhwc,
                    feature_group_count=2,
                    options={"availableMemoryProportion": 0.3},
                ),
            ],
            {"planType": "serial"},
        )

    def plain(x, w, y, v):
        first = lax.conv_general_dilated(x, w, (2, 1), "SAME", rhs_dilation=(1, 2))
        second = lax.conv_general_dilated(
            y, v, (1, 1), [(1, 0), (0, 2)], (2, 1), None, nhwc, feature_group_count=2
        )
        return first, second

    assert jax.jit(both).lower(x, w, y, v).as_text().count("custom_call") == 1
    for got, want in zip(jax.jit(both)(x, w, y, v), on_cpu(plain, x, w, y, v), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    grads = [jax.jit(jax.grad(lambda *a, f=f: sum(jnp.sin(y).sum() for y in f(*a)), (0, 1, 3)))
             for f in (both, plain)]  # fmt: skip
    for got, want in zip(grads[0](x, w, y, v), on_cpu(grads[1], x, w, y, v), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    half = jax.jit(lambda x, w: ipu.ops.multi_conv([ipu.ops.Conv(x, w)])[0])
    assert half(np.float16(x), np.float16(w)).dtype == np.float16


@pytest.mark.parametrize(
    ("strides", "padding", "groups"),
    [((1, 1), "SAME", 1), ((2, 3), "VALID", 1), ((1, 2), "SAME", 2)],
)
def test_gradients_of_multi_conv(strides, padding, groups):
    """Also of order two; with strides that do not divide, the data is cropped."""
    x, w = normal(2, 4, 8, 9), normal(6, 4 // groups, 3, 2)

    def loss(convolve):
        return lambda x, w: sum(jnp.sin(y).sum() for y in convolve(x, w))

    def multi(x, w):
        conv = ipu.ops.Conv(x, w, strides, padding, feature_group_count=groups)
        return ipu.ops.multi_conv([conv, ipu.ops.Conv(x * 2, w, padding=((0, 1), (2, 0)),
                                                      feature_group_count=groups)])  # fmt: skip

    def plain(x, w):
        pads = ((0, 1), (2, 0))
        return (
            lax.conv_general_dilated(x, w, strides, padding, feature_group_count=groups),
            lax.conv_general_dilated(x * 2, w, (1, 1), pads, feature_group_count=groups),
        )

    gradient = jax.jit(jax.grad(loss(multi), (0, 1)))
    calls = gradient.lower(x, w).as_text().count("custom_call @ipu_multi_conv")
    assert calls == 2  # of the results, and of all four gradients
    wanted = on_cpu(jax.jit(jax.grad(loss(plain), (0, 1))), x, w)
    for got, want in zip(gradient(x, w), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)

    def second(f):
        return jax.jit(jax.grad(lambda w: (jax.grad(loss(f), 1)(x, w) ** 2).sum()))

    np.testing.assert_allclose(second(multi)(w), on_cpu(second(plain), w), rtol=1e-3, atol=2e-2)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("empty", ["batch", "channels", "outputs", "field"])
def test_multi_conv_of_nothing(empty, groups):
    """Results and gradients, beside a convolution that is not empty."""
    x, w = [2, 4, 3, 4], [6, 4 // groups, 3, 2]
    for shape, dim in {
        "batch": [(x, 0)],
        "channels": [(x, 1), (w, 1)],
        "outputs": [(w, 0)],
        "field": [(x, 2)],
    }[empty]:
        shape[dim] = 0
    x, w = jnp.ones(x), jnp.ones(w)
    pads, left = [(1, 2), (2, 0)], (2, 1)

    other = jnp.ones((1, 4, 3, 3)), jnp.ones((2, 4 // groups, 2, 2))

    def multi(x, w):
        return ipu.ops.multi_conv(
            [
                ipu.ops.Conv(*each, (1, 2), pads, left, feature_group_count=groups)
                for each in [(x, w), other]
            ]
        )

    def plain(x, w):
        return [
            lax.conv_general_dilated(*each, (1, 2), pads, left, feature_group_count=groups)
            for each in [(x, w), other]
        ]

    def all_of(f):
        loss = lambda x, w: sum(y.sum() for y in f(x, w))  # noqa: E731
        return jax.jit(lambda x, w: (f(x, w), jax.grad(loss, (0, 1))(x, w)))

    found = jax.tree.leaves(all_of(multi)(x, w))
    for got, want in zip(found, jax.tree.leaves(all_of(plain)(x, w)), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_kernel_without_elements_along_the_field_is_refused():
    with pytest.raises(ConfigError, match="one or more elements along each dimension"):
        ipu.ops.multi_conv([ipu.ops.Conv(jnp.ones((1, 2, 4, 4)), jnp.ones((3, 2, 0, 3)))])


@pytest.mark.parametrize("count", [4, 3])
def test_multi_conv_of_a_sharded_batch(count):
    """Each device convolves its part of the batch, which 3 devices pad; gradients are summed."""
    mesh = Mesh(np.array(jax.devices("ipu")[:count]), ("a",))
    x, w, u = normal(8, 4, 5, 5), normal(6, 4, 3, 3), normal(3, 4, 2, 2)

    def step(convolve):
        def loss(x, w, u):
            x = lax.with_sharding_constraint(x, NamedSharding(mesh, P("a"))) if convolve else x
            pair = (ipu.ops.Conv(x, w), ipu.ops.Conv(2 * x, u, padding="SAME"))
            y, z = convolve(pair) if convolve else plain(x, w, u)
            return jnp.sin(y).sum() + (z**2).sum()

        return jax.value_and_grad(loss, (0, 1, 2))

    def plain(x, w, u):
        return lax.conv(x, w, (1, 1), "VALID"), lax.conv(2 * x, u, (1, 1), "SAME")

    sharded = jax.jit(step(ipu.ops.multi_conv), out_shardings=NamedSharding(mesh, P()))
    got, wanted = sharded(x, w, u), on_cpu(step(None), x, w, u)
    jax.tree.map(lambda g, w: np.testing.assert_allclose(g, w, rtol=2e-4, atol=2e-4), got, wanted)
    text = sharded.lower(x, w, u).compile().as_text()
    if count == 4:
        assert text.count("all-gather(") == 1  # of the gradient that is wanted whole


# print_tensor, nop, identity_loss ----------------------------------------------------------------


def test_print_tensor(capfd):
    def fun(x):
        return (ipu.ops.print_tensor(x, "my title", print_gradient=True) ** 2).sum()

    got = jax.block_until_ready(jax.jit(jax.grad(fun))(np.float32([3, 4])))
    np.testing.assert_array_equal(got, [6, 8])
    printed = capfd.readouterr().err
    assert "my title" in printed
    assert "gradient of my title" in printed
    assert "6" in printed
    on_cpu(lambda x: ipu.ops.print_tensor(x, "there"), np.float32([7]))
    jax.effects_barrier()
    assert "there: [7.]" in capfd.readouterr().err


def test_print_tensor_of_a_sharded_array(capfd):
    """Each device prints its block; the array stays where it is."""
    mesh = Mesh(np.array(jax.devices("ipu")[:2]), ("a",))
    place = NamedSharding(mesh, P("a"))
    fun = jax.jit(lambda x: ipu.ops.print_tensor(x, "block") + 1, in_shardings=place)
    got = jax.block_until_ready(fun(np.float32([3, 4])))
    assert got.sharding.is_equivalent_to(place, 1)
    np.testing.assert_array_equal(got, [4, 5])
    printed = sorted(line for line in capfd.readouterr().err.splitlines() if "block" in line)
    assert [line[: len("block: [3.0")] for line in printed] == ["block: [3.0", "block: [4.0"]


def test_print_tensor_of_a_batch(capfd):
    """The batch is one tensor, which the device prints without the host."""
    fun = jax.jit(jax.vmap(lambda x: ipu.ops.print_tensor(x, "row")))
    np.testing.assert_array_equal(fun(np.float32([[3], [4]])), [[3], [4]])
    assert capfd.readouterr().err.count("row") == 1


def test_nop_and_identity_loss():
    x = normal(5)
    assert "optimization_barrier" in jax.jit(ipu.ops.nop).lower(x).as_text()
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: ipu.ops.nop(x).sum()))(x), np.ones(5))
    for reduction, scale in (("sum", 1), ("mean", 1 / 5)):
        grad = jax.jit(jax.grad(lambda x, r=reduction: ipu.ops.identity_loss(x, r)))(x)
        np.testing.assert_allclose(grad, np.full(5, scale), rtol=1e-6)
    np.testing.assert_array_equal(ipu.ops.identity_loss(x, "none"), x)


ONE = np.zeros((4, 4), np.float32)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ipu.ops.serialized_matmul(ONE, ONE, 3, "b_rows"), "divides 4.*got 3"),
        (lambda: ipu.ops.serialized_matmul(ONE, ONE, 0, "b_rows"), "divides 4.*got 0"),
        (lambda: ipu.ops.serialized_matmul(ONE, ONE, 2, "rows"), "a_columns.*got 'rows'"),
        (lambda: ipu.ops.serialized_matmul(ONE, ONE[:3], 2, "b_rows"), "\\[3, 4\\]"),
        (lambda: ipu.ops.sequence_slice(ONE, ONE[:, :2], [1], [0], [0], True), "equal rows"),
        (lambda: ipu.ops.sequence_slice(ONE, ONE, [1], [0, 1], [0], True), "got 1, 2 and 1"),
        (lambda: ipu.ops.sequence_slice(ONE, ONE, [1.0], [0], [0], True), "num_elems .*integers"),
        (lambda: ipu.ops.top_k(ONE, 5), "got 5 for float32"),
        (lambda: ipu.ops.top_k(ONE, 1, order="up"), "got 'up'"),
        (lambda: ipu.ops.sort(ONE, 2), "got 2 for float32"),
        (lambda: ipu.ops.sort_key_value(ONE, ONE[0]), "one shape; got \\[4, 4\\] and \\[4\\]"),
        (lambda: ipu.ops.multi_conv([]), "needs a list of ipu.ops.Conv"),
        (lambda: ipu.ops.multi_conv([ipu.ops.Conv(ONE[None, None], ONE)]), "in number 0"),
        (lambda: ipu.ops.identity_loss(ONE, "max"), "sum, mean, none; got 'max'"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ConfigError, match=words):
        call()
