"""The optimizers against torch.optim's trajectories, NumPy's formulas, and optax."""

from __future__ import annotations

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ipujax as ipu
from tests.optim import reference
from tests.optim.torch_trajectories import CASES, FILE, NUM_STEPS, problem

optim = ipu.optim
TORCH = json.loads(FILE.read_text())["ends"]
NAMES = {"lr": "learning_rate", "alpha": "decay"}


def ours_of(name: str) -> Any:
    """The optimizer of a case of torch.optim."""
    kind, arguments = CASES[name]
    own = {NAMES.get(key, key): value for key, value in arguments.items() if key != "betas"}
    if "betas" in arguments:
        own["b1"], own["b2"] = arguments["betas"]
    return getattr(optim, kind.lower())(**own)


@pytest.mark.parametrize("name", CASES)
def test_a_hundred_steps_of_torch(name: str, device: jax.Device):
    data = {key: jnp.asarray(value, jnp.float32) for key, value in problem().items()}
    tx = ours_of(name)

    def loss_of(params):
        return jnp.mean((jnp.tanh(data["x"] @ params["w"] + params["b"]) - data["y"]) ** 2)

    def step(carry, _):
        params, state = carry
        updates, state = tx.update(jax.grad(loss_of)(params), state, params)
        return (optax.apply_updates(params, updates), state), None

    params = {key: data[key] for key in ("w", "b")}
    start = jax.device_put((params, tx.init(params)), device)
    (end, state), _ = jax.jit(lambda c: jax.lax.scan(step, c, None, NUM_STEPS))(start)
    assert int(state.count) == NUM_STEPS
    got = np.concatenate([np.ravel(end["w"]), np.ravel(end["b"])])
    np.testing.assert_allclose(got, TORCH[name], atol=1e-5)


def run(tx: Any, params: Any, grads: Any, device: Any = None) -> tuple[Any, Any]:
    """Parameters and state after one update for each of the gradients [steps, ...]."""

    def step(carry, grad):
        params, state = carry
        updates, state = tx.update(grad, state, params)
        return (optax.apply_updates(params, updates), state), None

    with jax.default_device(device or jax.devices("ipu")[0]):
        start = (params, tx.init(params))
        return jax.jit(lambda c, g: jax.lax.scan(step, c, g)[0])(start, grads)


PARAMS = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
GRADS = np.random.default_rng(2).normal(size=(12, 5, 3)).astype(np.float32)

#: ours, and the formula in NumPy
FORMULAS = {
    "sgd": (
        optim.sgd(0.1, 0.9, 0.5, 0.01),
        lambda w, g: reference.sgd(w, g, 0.1, 0.9, 0.5, 0.01),
    ),
    "sgd_without_momentum": (
        optim.sgd(0.1, weight_decay=0.01),
        lambda w, g: reference.sgd(w, g, 0.1, decay=0.01),
    ),
    "sgd_velocity_scaling": (
        optim.sgd(0.1, 0.9, 0.5, 0.01, velocity_scaling=64.0),
        lambda w, g: reference.sgd(w, g, 0.1, 0.9, 0.5, 0.01),
    ),
    "sgd_combined": (
        optim.sgd(0.1, 0.9, 0.5, 0.01, velocity_scaling=4.0, combined_accumulation=True),
        lambda w, g: reference.sgd(w, g, 0.1, 0.9, 0.5, 0.01),
    ),
    "sgd_combined_nesterov": (
        optim.sgd(0.1, 0.9, 0, 0.01, True, velocity_scaling=4.0, combined_accumulation=True),
        lambda w, g: reference.sgd(w, g, 0.1, 0.9, decay=0.01, nesterov=True),
    ),
    "adam_without_bias_correction": (
        optim.adam(0.01, weight_decay=0.1, bias_correction=False),
        lambda w, g: reference.adam(w, g, 0.01, decay=0.1, corrected=False),
    ),
    "adam_without_averages": (
        optim.adam(0.01, b1=0.0, b2=0.0),
        lambda w, g: reference.adam(w, g, 0.01, 0.0, 0.0),
    ),
    "adamw": (
        optim.adamw(0.01, weight_decay=0.1),
        lambda w, g: reference.adam(w, g, 0.01, decay=0.1, decoupled=True),
    ),
    "adamax_without_bias_correction": (
        optim.adamax(0.01, weight_decay=0.1, bias_correction=False),
        lambda w, g: reference.adamax(w, g, 0.01, decay=0.1, corrected=False),
    ),
    "lamb": (
        optim.lamb(0.01, weight_decay=0.1, max_weight_norm=2.0),
        lambda w, g: reference.lamb(w, g, 0.01, decay=0.1, bound=2.0),
    ),
    "lamb_without_bias_correction": (
        optim.lamb(0.01, bias_correction=False),
        lambda w, g: reference.lamb(w, g, 0.01, corrected=False),
    ),
    "rmsprop_tf": (
        optim.rmsprop(0.01, 0.9, 1e-6, 0.1, 0.8, tf_variant=True),
        lambda w, g: reference.rmsprop(w, g, 0.01, 0.9, 1e-6, 0.1, 0.8, tensorflow=True),
    ),
    "rmsprop_tf_centered": (
        optim.rmsprop(0.01, 0.9, 1e-3, 0.1, centered=True, tf_variant=True),
        lambda w, g: reference.rmsprop(w, g, 0.01, 0.9, 1e-3, 0.1, 0, True, True),
    ),
    "variables": (
        optim.adamw(*map(optim.variable, (0.01, 0.9, 0.99, 1e-6, 0.1))),
        lambda w, g: reference.adam(w, g, 0.01, 0.9, 0.99, 1e-6, decay=0.1, decoupled=True),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formula(name: str):
    tx, formula = FORMULAS[name]
    got, _ = run(tx, PARAMS, GRADS)
    want = formula(PARAMS.astype(np.float64), GRADS.astype(np.float64))
    assert abs(want - PARAMS).max() > 0.01
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=4e-6)


OPTAX = {
    "adam": (optim.adam(0.01), optax.adam(0.01)),
    "adamw": (optim.adamw(0.01, weight_decay=0.1), optax.adamw(0.01, weight_decay=0.1)),
    "lamb": (optim.lamb(0.01, weight_decay=0.1), optax.lamb(0.01, eps=1e-8, weight_decay=0.1)),
    "adamax": (optim.adamax(0.01), optax.adamax(0.01)),
    "sgd": (optim.sgd(0.1, 0.9, nesterov=True), optax.sgd(0.1, 0.9, nesterov=True)),
    "rmsprop": (
        optim.rmsprop(0.01, 0.9, centered=True),
        optax.rmsprop(0.01, 0.9, centered=True, eps_in_sqrt=False),
    ),
    "schedule": (
        optim.adam(optax.cosine_decay_schedule(0.1, 8)),
        optax.adam(optax.cosine_decay_schedule(0.1, 8)),
    ),
}


@pytest.mark.parametrize("name", OPTAX)
def test_same_as_optax(name: str):
    ours, theirs = (run(tx, PARAMS, GRADS)[0] for tx in OPTAX[name])
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


STATEFUL = {
    "sgd": lambda **k: optim.sgd(0.01, 0.9, velocity_dtype=k.pop("first_moment_dtype", None), **k),
    "adam": lambda **k: optim.adam(0.01, **k),
    "adamw": lambda **k: optim.adamw(0.01, **k),
    "adamax": lambda **k: optim.adamax(0.01, **k),
    "rmsprop": lambda **k: optim.rmsprop(0.01, centered=True, **k),
    "lamb": lambda **k: optim.lamb(0.01, **k),
}


@pytest.mark.parametrize("name", STATEFUL)
def test_loss_scaling_is_divided_out(name: str):
    plain, scaled = STATEFUL[name](), STATEFUL[name](loss_scaling=1024.0)
    want, _ = run(plain, PARAMS, GRADS)
    got, _ = run(scaled, PARAMS, GRADS * 1024)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", STATEFUL)
def test_micro_batches_act_as_their_mean(name: str):
    want, _ = run(STATEFUL[name](), PARAMS, GRADS.reshape(3, 4, 5, 3).mean(1))
    got, state = run(STATEFUL[name](num_micro_batches=4), PARAMS, GRADS)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)
    assert int(state.micro_step) == 0


@pytest.mark.parametrize("nesterov", [False, True])
def test_combined_accumulation_is_separate_accumulation(nesterov: bool):
    arguments = (0.1, 0.9, 0.0, 0.01, nesterov)
    want, _ = run(optim.sgd(*arguments, num_micro_batches=4), PARAMS, GRADS)
    tx = optim.sgd(*arguments, num_micro_batches=4, combined_accumulation=True)
    got, state = run(tx, PARAMS, GRADS)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    arrays = [leaf for leaf in jax.tree.leaves(state) if leaf.shape == PARAMS.shape]
    assert len(arrays) == (2 if nesterov else 1)


@pytest.mark.parametrize("name", STATEFUL)
def test_dtypes_of_moments(name: str):
    params = {"half": jnp.ones(3, jnp.float16), "single": jnp.ones(3)}
    grads = jax.tree.map(lambda p: jnp.full((2, *p.shape), 0.5, p.dtype), params)
    for dtype, wanted in ((None, jnp.float32), ("float16", jnp.float16)):
        new, state = run(STATEFUL[name](first_moment_dtype=dtype), params, grads)
        moment = state.velocity if name == "sgd" else state.mu
        assert {leaf.dtype for leaf in jax.tree.leaves(moment)} == {np.dtype(wanted)}
        if name != "sgd":
            assert {leaf.dtype for leaf in jax.tree.leaves(state.nu)} == {np.dtype(np.float32)}
        assert new["half"].dtype == jnp.float16
        assert new["single"].dtype == jnp.float32
        np.testing.assert_allclose(new["half"], new["single"], rtol=1e-3)


FAMILY = ("adam", "adamw", "adamax", "lamb")


@pytest.mark.parametrize("name", FAMILY)
def test_gradients_are_clipped_to_a_norm(name: str):
    """As by optax, before the moments and after the loss scale is divided out."""
    tree, grads = {"a": PARAMS, "b": PARAMS[0]}, {"a": GRADS * 8, "b": GRADS[:, 0] * 8}
    make = getattr(optim, name)
    got, _ = run(make(0.1, loss_scaling=8.0, max_grad_norm=1.5), tree, grads)
    plain = jax.tree.map(lambda g: g / 8, grads)
    want, _ = run(optax.chain(optax.clip_by_global_norm(1.5), make(0.1)), tree, plain)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), got, want)
    state = run(make(0.1, max_grad_norm=optim.variable(1e3)), tree, plain)[1]
    assert float(state.hyperparameters.variables["max_grad_norm"]) == 1e3
    unbounded, bounded = (run(make(0.1, max_grad_norm=n), tree, plain)[0] for n in (None, 1e3))
    jax.tree.map(np.testing.assert_array_equal, unbounded, bounded)


@pytest.mark.parametrize("name", FAMILY)
def test_a_scaled_state_is_another_form_of_the_plain_one(name: str):
    """Also where the scale changes between two updates."""
    make = getattr(optim, name)
    plain = make(0.1, weight_decay=0.01)
    want, state = run(plain, PARAMS, GRADS)
    power = 1 if name == "adamax" else 2
    scaled = make(0.1, weight_decay=0.01, loss_scaling=64.0, scaled_optimizer_state=True)
    got, mine = run(scaled, PARAMS, GRADS * 64)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mine.mu, state.mu * 64, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mine.nu, state.nu * 64**power, rtol=1e-5, atol=1e-4)
    scale = optim.variable(64.0)
    tx = make(0.1, weight_decay=0.01, loss_scaling=scale, scaled_optimizer_state=True)
    params, state = jnp.asarray(PARAMS), tx.init(PARAMS)
    step = jax.jit(tx.update)
    for number, grad in enumerate(GRADS):
        if number == 5:
            state = optim.set_hyperparameters(state, loss_scaling=512.0)
        now = 64 if number < 5 else 512
        updates, state = step(grad * now, state, params)
        params = optax.apply_updates(params, updates)
    np.testing.assert_allclose(params, want, rtol=1e-5, atol=1e-5)
    assert float(state.scaling) == 512


def test_a_scaled_state_keeps_small_moments_in_half():
    grads = np.full((4, 3), 1e-8, np.float32)
    ends = [
        run(
            optim.adam(
                0.1,
                eps=1e-12,
                loss_scaling=2.0**14,
                scaled_optimizer_state=scaled,
                first_moment_dtype="float16",
            ),
            jnp.zeros(3),
            grads * 2.0**14,
        )
        for scaled in (False, True)
    ]
    np.testing.assert_array_equal(ends[0][0], 0)
    np.testing.assert_allclose(ends[1][0], -0.4, rtol=1e-2)


def test_a_velocity_in_half_needs_its_scaling():
    """Gradients of 1e-8 round to zero in float16, times 4096 they do not."""
    grads = np.full((4, 3), 1e-8, np.float32)
    ends = [
        run(optim.sgd(1e6, 0.5, velocity_scaling=s, velocity_dtype="float16"), jnp.zeros(3), grads)
        for s in (1.0, 2.0**14)
    ]
    np.testing.assert_array_equal(ends[0][0], 0)
    want = reference.sgd(np.zeros(3), grads.astype(np.float64), 1e6, 0.5)
    np.testing.assert_allclose(ends[1][0], want, rtol=2e-3)


def test_a_batch_of_models():
    tx = optim.lamb(0.01, weight_decay=0.1)
    params, grads = np.stack([PARAMS, 2 * PARAMS]), np.stack([GRADS[0], GRADS[1]])

    def one(params, grad):
        return tx.update(grad, tx.init(params), params)[0]

    got = jax.jit(jax.vmap(one))(params, grads)
    want = [jax.jit(one)(params[i], grads[i]) for i in range(2)]
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_zeros_and_empty_arrays():
    params = {"zero": jnp.zeros(2), "empty": jnp.zeros((0, 3))}
    grads = {"zero": jnp.ones((1, 2)), "empty": jnp.zeros((1, 0, 3))}
    for name, make in STATEFUL.items():
        new, _ = run(make(), params, grads)
        assert np.isfinite(new["zero"]).all(), name
        assert new["empty"].shape == (0, 3), name
    none, _ = run(optim.adamax(0.01, eps=0.0), jnp.ones(2), jnp.zeros((1, 2)))
    np.testing.assert_array_equal(none, 1)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(["adamw", "lamb", "adamax", "rmsprop", "sgd"]),
    shape=st.lists(st.integers(1, 7), max_size=3),
    rate=st.floats(1e-4, 0.1),
    decay=st.sampled_from([0.0, 0.1]),
    seed=st.integers(0, 1000),
)
def test_random_shapes(name: str, shape: list[int], rate: float, decay: float, seed: int):
    rng = np.random.default_rng(seed)
    params = rng.normal(size=shape).astype(np.float32)
    grads = rng.normal(size=(3, *shape)).astype(np.float32)
    ours = {"adamw": optim.adamw, "lamb": optim.lamb, "adamax": optim.adamax}.get(name)
    if ours is not None:
        tx = ours(rate, weight_decay=decay)
    elif name == "rmsprop":
        tx = optim.rmsprop(rate, 0.9, 1e-3, decay, 0.5, centered=True)
    else:
        tx = optim.sgd(rate, 0.9, weight_decay=decay, combined_accumulation=seed % 2 == 0)
    formulas = {
        "adamw": lambda w, g: reference.adam(w, g, rate, decay=decay, decoupled=True),
        "lamb": lambda w, g: reference.lamb(w, g, rate, decay=decay),
        "adamax": lambda w, g: reference.adamax(w, g, rate, decay=decay),
        "rmsprop": lambda w, g: reference.rmsprop(w, g, rate, 0.9, 1e-3, decay, 0.5, True),
        "sgd": lambda w, g: reference.sgd(w, g, rate, 0.9, decay=decay),
    }
    got, _ = run(tx, params, grads)
    want = formulas[name](params.astype(np.float64), grads.astype(np.float64))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
