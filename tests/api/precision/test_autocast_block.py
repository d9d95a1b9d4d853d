"""`with ipu.autocast():` around operations that are traced or run inside."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu

CPU = jax.devices("cpu")[0]  # casts are traced, on any platform; the last test runs them on an IPU
KEYS = jax.random.split(jax.random.key(0), 2)
W = jax.device_put(jax.random.normal(KEYS[0], (8, 8)), CPU)
X = jax.device_put(jax.random.normal(KEYS[1], (4, 8)), CPU)


@jax.custom_vjp
def scaled(x):
    return x * 3


scaled.defvjp(lambda x: (scaled(x), None), lambda _, ct: (ct * 3,))


def model(w, x):
    y = scaled(jax.nn.relu(jnp.dot(x, w)) * 2.0)
    y, _ = jax.lax.scan(lambda c, _: (jnp.tanh(jnp.dot(c, w)), None), y, None, length=2)
    return jax.nn.softmax(jnp.dot(y, w))


def in_block(w, x):
    with ipu.autocast():
        y = model(w, x)
    return y


def wrapped(w, x):
    return ipu.autocast(model)(w, x)


@pytest.mark.parametrize("run", [jax.jit, lambda fun: fun], ids=["jit", "eager"])
def test_it_computes_what_the_wrapped_function_does(run):
    found, wanted = run(in_block)(W, X), jax.jit(wrapped)(W, X)
    assert found.dtype == wanted.dtype == jnp.float32
    assert np.array_equal(found, wanted)
    assert not np.array_equal(found, jax.jit(model)(W, X))


def test_gradients_are_those_of_the_wrapped_function():
    def gradient(fun):
        return jax.jit(jax.grad(lambda w: jnp.square(fun(w, X)).sum()))(W)

    found = gradient(in_block)
    assert np.array_equal(found, gradient(wrapped))
    assert not np.array_equal(found, gradient(model))


def test_operations_take_what_was_computed():
    """Casts back to float32 are for Python alone: products follow each other in float16."""

    def chain(w, x):
        with ipu.autocast():
            y = jnp.dot(x, w)
            assert y.dtype == jnp.float32
            return jnp.dot(-y, w)

    equations = jax.make_jaxpr(chain)(W, X).eqns
    (negation,) = (eqn for eqn in equations if eqn.primitive.name == "neg")
    assert negation.invars[0].aval.dtype == jnp.float16
    assert [str(eqn.invars[0].aval.dtype) for eqn in equations if "dot" in eqn.primitive.name] == [
        "float16",
        "float16",
    ]


def test_inner_scopes_and_the_code_around_are_not_cast():
    def fun(w, x):
        before = jnp.dot(x, w)
        with ipu.autocast():
            with ipu.autocast(enabled=False):
                off = jnp.dot(x, w)
            with ipu.autocast(policy=ipu.CastPolicy(fp16=(), fp32=["dot_general"])):
                other = jnp.dot(x, w)
            cast = jnp.dot(x, w)
        return before, off, other, jnp.dot(x, w), cast

    *plain, cast = jax.jit(fun)(W, X)
    wanted = jax.jit(jnp.dot)(X, W)
    assert all(np.array_equal(each, wanted) for each in plain)
    assert not np.array_equal(cast, wanted)


def test_transformations_inside_and_outside_compose():
    def fun(w, x):
        with ipu.autocast():
            rows = jax.vmap(lambda row: jnp.dot(row, w))(x)
            gradient = jax.grad(lambda w: jnp.dot(x, w).sum())(w)
            jitted = jax.jit(jnp.dot)(x, w)
            again = jax.checkpoint(jnp.dot)(x, w)
        return rows, gradient, jitted, again

    rows, gradient, jitted, again = jax.jit(fun)(W, X)
    wanted = jax.jit(lambda w, x: jnp.dot(x.astype("float16"), w.astype("float16")))(W, X)
    assert all(np.array_equal(each, wanted.astype("float32")) for each in (rows, jitted, again))
    assert gradient.dtype == jnp.float32
    batched = jax.jit(jax.vmap(in_block, (None, 0)))(W, jnp.stack([X, 2 * X]))
    assert np.allclose(batched[0], in_block(W, X), atol=2e-3)


def test_an_error_ends_the_block():
    with pytest.raises(ZeroDivisionError), ipu.autocast():
        raise ZeroDivisionError
    assert np.array_equal(jnp.dot(X, W), jax.jit(jnp.dot)(X, W))


def test_it_works_on_an_ipu():
    device = jax.devices("ipu")[0]
    w, x = (jax.device_put(each, device) for each in (W, X))
    found, wanted = jax.jit(in_block)(w, x), jax.jit(wrapped)(w, x)
    assert np.array_equal(found, wanted)
