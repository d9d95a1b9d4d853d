"""ipu.autocast: the dtype of every operation, inside loops, branches, calls and derivatives."""

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import ipujax as ipu
from ipujax import jax_compat
from ipujax.errors import ConfigError

F16, F32 = jnp.dtype(jnp.float16), jnp.dtype(jnp.float32)
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(4, 8)).astype(np.float32)
W = RANDOM.normal(size=(8, 8)).astype(np.float32)


def equations(jaxpr):
    """All equations, those of inner jaxprs included."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jax_compat.inner_jaxprs(eqn):
            yield from equations(getattr(inner, "jaxpr", inner))


def operand_dtypes(fun, *args, name="dot_general"):
    """The dtypes of the first operands of a primitive in a function, in order."""
    found = equations(jax.make_jaxpr(fun)(*args).jaxpr)
    return [eqn.invars[0].aval.dtype for eqn in found if eqn.primitive.name == name]


def half_product(x, w):
    return np.float32(x.astype(np.float16)) @ np.float32(w.astype(np.float16))


def test_products_are_half_and_results_keep_their_dtype():
    fun = ipu.autocast(lambda w, x: x @ w)
    assert operand_dtypes(fun, W, X) == [F16]
    got = jax.jit(fun)(W, X)
    assert got.dtype == F32
    np.testing.assert_array_equal(got, np.float32(half_product(X, W).astype(np.float16)))
    assert ipu.autocast(lambda w, x: x @ w, results="computed")(W, X).dtype == F16


def test_gradients_have_the_dtypes_of_the_arguments():
    def loss(w, x):
        return jnp.tanh(x @ w).sum()

    for fun in (jax.grad(ipu.autocast(loss)), ipu.autocast(jax.grad(loss))):
        got = jax.jit(fun)(W, X)
        assert got.dtype == F32
        np.testing.assert_allclose(got, jax.grad(loss)(W, X), rtol=0.03, atol=0.02)
    assert operand_dtypes(jax.grad(ipu.autocast(loss)), W, X) == [F16, F16]


def test_without_policy_lists_nothing_changes():
    policy = ipu.CastPolicy(fp16=(), fp32=(), promote=(), demote=())

    def fun(w, x):
        c, y = lax.scan(lambda c, a: (c + a @ w, jnp.sin(c)), x[0], x)
        return c, jax.nn.softmax(y), x.at[1:].add(1.0).sum()

    plain, cast = jax.make_jaxpr(fun)(W, X), jax.make_jaxpr(ipu.autocast(fun, policy))(W, X)
    assert not operand_dtypes(ipu.autocast(fun, policy), W, X, name="convert_element_type")
    for a, b in zip(jax.jit(fun)(W, X), jax.jit(ipu.autocast(fun, policy))(W, X), strict=True):
        np.testing.assert_array_equal(a, b)
    assert [v.aval.dtype for v in plain.jaxpr.outvars] == [v.aval.dtype for v in cast.jaxpr.outvars]


@pytest.mark.parametrize(
    ("name", "fun"),
    {
        "scan": lambda w, x: lax.scan(lambda c, a: (jnp.tanh(a @ w + c), c), x[0], x),
        "while": lambda w, x: lax.while_loop(lambda c: c.sum() < 50, lambda c: c + abs(c @ w), x),
        "cond": lambda w, x: lax.cond(x[0, 0] > 0, lambda a: a @ w, lambda a: a, x),
        "jit": lambda w, x: jax.jit(lambda a: a @ w)(x),
        "checkpoint": lambda w, x: jax.checkpoint(lambda a: jnp.sin(a @ w))(x),
        "remat": lambda w, x: ipu.remat(lambda a: jnp.sin(a @ w))(x),
        "stage": lambda w, x: ipu.stage(lambda a: jnp.sin(a @ w), ipu=0)(x),
        "vmap": lambda w, x: jax.vmap(lambda a: a @ w)(x),
        "fori": lambda w, x: lax.fori_loop(0, 3, lambda _, c: jnp.tanh(c @ w), x),
        "map": lambda w, x: lax.map(lambda a: a @ w, x),
    }.items(),
)
def test_operations_inside_are_cast(name, fun):
    cast = ipu.autocast(fun)
    assert operand_dtypes(cast, W, X) == [F16]
    for got, want in zip(
        jax.tree.leaves(jax.jit(cast)(W, X)), jax.tree.leaves(fun(W, X)), strict=True
    ):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=0.02, atol=0.03)
    if name != "while":
        grad = jax.grad(lambda w: sum(y.sum() for y in jax.tree.leaves(cast(w, X))))
        want = jax.grad(lambda w: sum(y.sum() for y in jax.tree.leaves(fun(w, X))))(W)
        got = jax.jit(grad)(W)
        assert got.dtype == F32
        np.testing.assert_allclose(got, want, rtol=0.1, atol=0.1)


def test_shard_map_inside():
    mesh = jax.make_mesh((1,), ("d",))
    spec = jax.sharding.PartitionSpec("d")
    fun = jax.shard_map(lambda x: lax.psum(x @ W, "d"), mesh=mesh, in_specs=spec, out_specs=jax.P())
    x = jax.device_put(X, jax.NamedSharding(mesh, spec))
    assert operand_dtypes(ipu.autocast(fun), x) == [F16]
    np.testing.assert_allclose(jax.jit(ipu.autocast(fun))(x), X @ W, atol=0.03)


def test_backward_functions_of_their_own_inside_a_shard_map():
    """What is saved varies over the axis, as what the gradient is of does."""

    @jax.custom_vjp
    def sine(x):
        return jnp.sin(x)

    sine.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: jax.vjp(jnp.sin, x)[1](ct))
    mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("d")
    mapped = jax.shard_map(ipu.autocast(sine), mesh=mesh, in_specs=spec, out_specs=spec)
    found = jax.jit(jax.grad(lambda x: mapped(x).sum()))(X)
    np.testing.assert_allclose(found, np.cos(X), rtol=1e-5, atol=1e-6)


@jax.custom_vjp
def scaled_product(w, x, scale):
    return (x @ w) * scale


def _forward(w, x, scale):
    return scaled_product(w, x, scale), (w, x, scale)


def _backward(kept, ct):
    w, x, scale = kept
    return 10 * (x.T @ ct) * scale, ct @ w.T, None  # ten times the gradient shows that it is used


scaled_product.defvjp(_forward, _backward)


def test_custom_vjp_keeps_its_rule_and_is_cast():
    def loss(w):
        return scaled_product(w, X, 2).sum()

    grad = jax.grad(ipu.autocast(loss))
    assert set(operand_dtypes(grad, W)) == {F16}
    np.testing.assert_allclose(jax.jit(grad)(W), jax.grad(loss)(W), rtol=0.02, atol=0.05)
    np.testing.assert_allclose(jax.grad(loss)(W)[0], 20 * X.sum(0)[0], rtol=1e-4)


def test_custom_jvp_keeps_its_rule_and_is_cast():
    @jax.custom_jvp
    def product(w, x):
        return x @ w

    @product.defjvp
    def _(primals, tangents):
        return product(*primals), 10 * product(tangents[0], primals[1])

    grad = jax.grad(lambda w: ipu.autocast(product)(w, X).sum())
    assert set(operand_dtypes(grad, W)) == {F16}
    np.testing.assert_allclose(grad(W)[0], 10 * X.sum(0)[0], rtol=0.02)
    relu = jax.grad(lambda x: ipu.autocast(jax.nn.relu)(x).sum())
    np.testing.assert_array_equal(relu(jnp.array([-1.0, 0.0, 2.0])), [0, 0, 1])


def test_second_derivatives_of_a_cast_function():
    fun = ipu.autocast(lambda x: jnp.sin(x) * jnp.dot(x, x))
    want = jax.hessian(lambda x: (jnp.sin(x) * jnp.dot(x, x)).sum())(X[0, :3])
    got = jax.hessian(lambda x: fun(x).sum())(X[0, :3])
    np.testing.assert_allclose(got, want, rtol=0.02, atol=0.02)


def test_scopes_that_do_not_cast():
    def fun(w, x):
        y = x @ w
        with ipu.autocast(enabled=False):
            z = jnp.dot(y, w)
        return off(w, z) @ w

    @ipu.autocast(enabled=False)
    def off(w, x):
        return jax.jit(jnp.dot)(x, w)

    assert operand_dtypes(ipu.autocast(fun), W, X) == [F16, F32, F32, F16]
    gradient = jax.grad(lambda w: ipu.autocast(fun)(w, X).sum())
    assert F32 in operand_dtypes(gradient, W)
    assert jax.jit(gradient)(W).dtype == F32


def test_an_autocast_function_inside_of_one_that_does_not_cast():
    inner = ipu.autocast(lambda w, x: x @ w)
    assert operand_dtypes(ipu.autocast(inner, enabled=False), W, X) == [F16]
    assert operand_dtypes(ipu.autocast(ipu.autocast(inner, enabled=False)), W, X) == [F16]

    def scoped(w, x):
        with ipu.autocast(enabled=False):
            return inner(w, x) + x @ w

    assert operand_dtypes(scoped, W, X) == [F16, F32]
    assert operand_dtypes(ipu.autocast(scoped), W, X) == [F16, F32]


@pytest.mark.parametrize("outputs", ["all", "last", "mean", ("sum", jnp.float32)])
def test_micro_batches_inside(outputs):
    def fun(w, x):
        pipe = [lambda w, a: jnp.tanh(a @ w), lambda _, a: a]
        return ipu.pipeline(pipe, micro_batches=4, outputs=outputs, device_mapping=(0, 0))(
            [w, ()], x[:, None]
        )

    cast = ipu.autocast(fun)
    assert operand_dtypes(cast, W, X) == [F16]
    got, want = jax.jit(cast)(W, X), fun(W, X)
    assert got.dtype == F32
    np.testing.assert_allclose(got, want, rtol=0.02, atol=0.01)
    gradient = jax.jit(jax.grad(lambda w: cast(w, X).sum()))(W)
    wanted = jax.grad(lambda w: fun(w, X).sum())(W)
    np.testing.assert_allclose(gradient, wanted, rtol=0.1, atol=0.05)


def test_accumulators_inside_keep_their_dtypes():
    """A sum that float16 cannot hold."""
    x, w = jnp.full((4, 2, 8), 64.0), jnp.full((8, 2), 64.0)

    def accumulated(w, x):
        return ipu.accumulate(lambda w, a: a @ w, micro_batches=4, reduction="sum")(w, x)

    assert operand_dtypes(ipu.autocast(accumulated), w, x) == [F16]
    np.testing.assert_array_equal(jax.jit(ipu.autocast(accumulated))(w, x), x.sum(0) @ w)


def test_carried_state_inside_keeps_its_dtype():
    def step(w, state, x):
        y = x @ w
        return y, state + y.sum()

    def fun(w, x):
        run = ipu.pipeline(step, micro_batches=4, in_axes=(None, "carried", 0))
        return run(w, jnp.float32(0), x)

    y, total = jax.jit(ipu.autocast(fun))(W, X)
    np.testing.assert_allclose(y, X @ W, atol=0.02)
    np.testing.assert_allclose(total, (X @ W).sum(), atol=0.1)


def test_a_policy_inside_of_another():
    exact = ipu.CastPolicy(fp32=["dot_general"])
    inner = ipu.autocast(lambda w, x: x @ w, exact)

    def fun(w, x):
        y = inner(w, x @ w)
        with ipu.autocast(policy=exact):
            return y @ w

    assert operand_dtypes(ipu.autocast(fun), W, X) == [F16, F32, F32]
    jitted = jax.jit(lambda w, x: ipu.autocast(jnp.dot)(x, w))
    assert operand_dtypes(ipu.autocast(jitted), W, X) == [F16]
    assert operand_dtypes(jitted, W, X) == [F16]  # not what the caches have from inside


def test_mixed_operands():
    def fun(w, x):
        half = x @ w
        return half + x, jnp.arctan2(half, x)

    computed = ipu.autocast(fun, results="computed")
    added, angle = computed(W, X)
    assert (added.dtype, angle.dtype) == (F16, F32)
    up = ipu.CastPolicy(mixed="float", demote=["atan2"])
    added, angle = ipu.autocast(fun, up, results="computed")(W, X)
    assert (added.dtype, angle.dtype) == (F32, F16)


def test_numbers_in_programs_take_any_dtype_and_stay_finite():
    def fun(w, x):
        y = x @ w * 2.0
        return jnp.where(y > 0, y, -1e30), jnp.where(y > 0, y, -jnp.inf)

    policy = ipu.CastPolicy(mixed="float")
    large, infinite = ipu.autocast(fun, policy, results="computed")(W, X)
    assert large.dtype == infinite.dtype == F16
    assert float(large.min()) == -65504
    assert float(infinite.min()) == -np.inf


def test_conversions_and_other_dtypes_stay():
    def fun(x):
        y = (x.astype(jnp.float16) + 1).astype(jnp.float32)
        bits = lax.bitcast_convert_type(jnp.sin(jnp.dot(x, x)), jnp.int32)
        b = jnp.dot(x.astype(jnp.bfloat16), x.astype(jnp.bfloat16))
        return y, bits, b, jnp.argmax(x), jnp.linalg.cholesky(jnp.eye(2) * (1 + x[0] ** 2))

    got = jax.jit(ipu.autocast(fun, results="computed"))(X[0])
    want = fun(X[0])
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(np.float32(a), np.float32(b), rtol=0.3)


def test_scatter_and_reductions_in_half():
    policy = ipu.CastPolicy(fp16=["dot", "scatter_add", "reduce_sum", "cumsum"], fp32=["exp"])

    def fun(x):
        y = jnp.asarray(x).at[jnp.array([0, 0, 2])].add(1.5)
        return y, jnp.cumsum(x), jnp.exp(x.sum())

    assert operand_dtypes(ipu.autocast(fun, policy), X[0], name="exp") == [F32]
    assert operand_dtypes(ipu.autocast(fun, policy), X[0], name="scatter-add") == [F16]
    for got, want in zip(jax.jit(ipu.autocast(fun, policy))(X[0]), fun(X[0]), strict=True):
        np.testing.assert_allclose(got, want, rtol=0.02, atol=0.01)


def test_arguments_that_are_no_arrays_stay():
    def fun(params, x, *, train, scale):
        y = x @ params["w"]
        return {"y": y * 2 if train else y, "name": scale[0]}

    got = ipu.autocast(fun)({"w": W}, X, train=True, scale=("s", 2))
    assert got["name"] == "s"
    np.testing.assert_allclose(got["y"], 2 * X @ W, rtol=0.02, atol=0.02)


class Dense(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool = False):
        x = nn.LayerNorm()(nn.Dense(8)(x))
        return self.head(nn.relu(x))

    @ipu.autocast(enabled=False)
    @nn.compact
    def head(self, x):
        return nn.Dense(3)(x)


def test_flax_modules():
    model = Dense()
    params = model.init(jax.random.key(0), X)
    assert operand_dtypes(ipu.autocast(model.apply), params, X) == [F16, F32]
    got = jax.jit(ipu.autocast(lambda p, x: model.apply(p, x, train=True)))(params, X)
    np.testing.assert_allclose(got, model.apply(params, X), rtol=0.02, atol=0.02)
    grads = jax.jit(jax.grad(lambda p: ipu.autocast(model.apply)(p, X).sum()))(params)
    assert {leaf.dtype for leaf in jax.tree.leaves(grads)} == {F32}


def test_equinox_modules():
    model = eqx.nn.MLP(8, 3, 16, 2, key=jax.random.key(0))
    assert operand_dtypes(lambda x: ipu.autocast(model)(x), X[0]) == [F16] * 3
    loss = eqx.filter_jit(eqx.filter_grad(lambda m, x: ipu.autocast(jax.vmap(m))(x).sum()))
    grads = loss(model, X)
    assert grads.layers[0].weight.dtype == F32
    want = eqx.filter_grad(lambda m, x: jax.vmap(m)(x).sum())(model, X)
    np.testing.assert_allclose(grads.layers[0].weight, want.layers[0].weight, rtol=0.05, atol=0.02)


def test_ops_of_this_package():
    policy = ipu.CastPolicy(fp16=["dot"], fp32=["top_k", ipu.ops.sort])
    assert policy.fp32 == ("top_k", "ipu_sort")

    def fun(w, x):
        y = x @ w
        return ipu.ops.sort(y), ipu.ops.print_tensor(y)

    assert operand_dtypes(ipu.autocast(fun, policy), W, X, name="ipu_sort") == [F32]
    assert operand_dtypes(ipu.autocast(fun), W, X, name="ipu_print_tensor") == [F16]
    conv = ipu.autocast(lambda x, w: ipu.ops.multi_conv([ipu.ops.Conv(x, w)])[0])
    arrays = np.ones((1, 2, 5, 5), np.float32), np.ones((3, 2, 2, 2), np.float32)
    assert operand_dtypes(conv, *arrays, name="ipu_multi_conv") == [F16]
    np.testing.assert_array_equal(conv(*arrays), np.full((1, 3, 4, 4), 8))


def test_operands_that_were_mixed_on_purpose_stay_so():
    def fun(x):
        return lax.dot_general(x.astype(jnp.float16), x, (((0,), (0,)), ((), ())))

    policy = ipu.CastPolicy(fp16=())
    assert operand_dtypes(ipu.autocast(fun, policy), X[0]) == [F16]
    assert ipu.autocast(fun, policy)(X[0]).dtype == F32


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ipu.CastPolicy(fp16=["dot_genral"]), "Did you mean 'dot_general'"),
        (lambda: ipu.CastPolicy(fp32=["cholesky"]), "needs operations in fp32 that exist in fl"),
        (lambda: ipu.CastPolicy(fp16="exp"), "Pass \\['exp'\\]"),
        (lambda: ipu.CastPolicy(fp16=["exp"], demote=[lax.exp]), "'exp' in fp16 and demote"),
        (lambda: ipu.CastPolicy(mixed="none"), 'mixed="half" or "float"; got \'none\''),
        (lambda: ipu.CastPolicy(fp16=[3]), "got '3'"),
        (lambda: ipu.autocast(jnp.sin, "fp16"), "needs an ipu.CastPolicy; got 'fp16'"),
        (lambda: ipu.autocast(ipu.CastPolicy()), "needs a function"),
        (lambda: ipu.autocast(jnp.sin, results="x"), 'results="original" or "computed"; got \'x\''),
        (lambda: ipu.autocast(results="computed").__enter__(), "in a `with` statement"),
    ],
)
def test_bad_input(make, words):
    with pytest.raises(ConfigError, match=words):
        make()


def test_defaults_give_way_to_other_lists():
    policy = ipu.CastPolicy(fp32=[lax.dot_general_p, "where"])
    assert policy.fp16 == ("conv_general_dilated", "ipu_multi_conv")
    assert policy.fp32 == ("dot_general", "select_n")
    assert policy.promote == ("atan2", "concatenate", "eq", "scatter")
    assert hash(policy) == hash(ipu.CastPolicy(fp32=["matmul", "select_n"]))
