"""Failures of devices: typed on both sides of jit, and what recovers from them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu


@jax.jit
def double(x):
    return 2 * x


@pytest.mark.parametrize(
    ("kind", "actions"),
    [
        ("ecc", ["ipu_reset", "partition_reset", "full_reset"]),
        ("exchange_parity", ["ipu_reset", "partition_reset", "full_reset"]),
        ("link_error", ["partition_reset", "full_reset"]),
        ("host_link_timeout", ["full_reset"]),
    ],
)
def test_a_failed_device_works_again_after_a_reset_that_is_enough(kind: str, actions: list[str]):
    x = jnp.ones(3)
    with ipu.testing.inject(kind, at_step=2, program="double"):
        np.testing.assert_array_equal(double(x), [2, 2, 2])
        for _ in range(2):
            with pytest.raises(ipu.RecoverableError) as caught, ipu.typed_errors():
                jax.block_until_ready(double(x))
        error = caught.value
        assert error.recovery_action == actions[0]
        assert error.type == "recoverable_runtime_error"
        assert error.location == "ipu device"
        assert error.message.startswith("needs ")
        assert "in a run of jit_double" in error.message
        assert isinstance(error.__cause__, jax.errors.JaxRuntimeError)
        assert str(error.__cause__).startswith("UNAVAILABLE")
        for action in ("ipu_reset", "partition_reset", "full_reset"):
            if action not in actions:
                ipu.reset_device(action)
                with pytest.raises(jax.errors.JaxRuntimeError, match=actions[0]):
                    jax.block_until_ready(double(x))
        ipu.reset_device(actions[-1])
        np.testing.assert_array_equal(double(x), [2, 2, 2])


def test_a_device_without_power_stays_failed():
    with ipu.testing.inject("power"):
        for _ in range(2):
            with (
                pytest.raises(ipu.UnrecoverableError, match="machine repaired"),
                ipu.typed_errors(),
            ):
                jax.block_until_ready(double(jnp.ones(3)))
            ipu.reset_device("full_reset")
    np.testing.assert_array_equal(double(jnp.ones(3)), [2, 2, 2])


def test_a_loop_that_recovers_gives_the_same_result():
    def step(state, batch):
        w, momentum = state
        gradient = jax.grad(lambda w: jnp.mean((batch @ w - 1) ** 2))(w)
        momentum = 0.9 * momentum + gradient
        return w - 0.1 * momentum, momentum

    batches = np.random.default_rng(0).normal(size=(12, 8, 4)).astype(np.float32)
    run = jax.jit(step, donate_argnums=0)

    def train() -> tuple[list[np.ndarray], list[str]]:
        saved = (0, [np.zeros(4, np.float32), np.zeros(4, np.float32)])
        i, state, actions = 0, tuple(jnp.asarray(x) for x in saved[1]), []
        while i < len(batches):
            try:
                with ipu.typed_errors():
                    state = jax.block_until_ready(run(state, batches[i]))
            except ipu.RecoverableError as error:
                actions.append(error.recovery_action)
                ipu.reset_device(error.recovery_action)
                i, state = saved[0], tuple(jnp.asarray(x) for x in saved[1])
                continue
            i += 1
            if i % 4 == 0:
                saved = (i, [np.array(x) for x in state])
        return [np.array(x) for x in state], actions

    wanted, no_actions = train()
    with (
        ipu.testing.inject("link_error", at_step=3, program="step"),
        ipu.testing.inject("ecc", at_step=9, program="step"),
    ):
        found, actions = train()
    assert (no_actions, actions) == ([], ["partition_reset", "ipu_reset"])
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def test_errors_of_the_compiler_come_back_as_they_were():
    with pytest.raises(ipu.ConfigError, match="names of options") as caught, ipu.typed_errors():
        jax.jit(jnp.sin, compiler_options={"ipu_no_such": 1})(1.0)
    assert caught.value.type == "ConfigError"
    assert caught.value.location == "config"


def test_errors_of_runs_keep_their_text():
    error = ipu.Error.from_exception(RuntimeError("INTERNAL: [Session] needs x; got y. Use x."))
    assert (type(error), error.location, error.message) == (
        ipu.Error,
        "Session",
        "needs x; got y. Use x.",
    )
    assert ipu.Error.from_exception(error) is error
    assert ipu.Error.from_exception(ValueError("no brackets")).location == ""
    assert issubclass(ipu.RecoverableError, ipu.Error)
    assert issubclass(ipu.UnrecoverableError, ipu.Error)


def test_other_exceptions_pass_through():
    with pytest.raises(KeyError), ipu.typed_errors():
        raise KeyError("mine")


def test_actions_have_poptorchs_names_too():
    with ipu.testing.inject("ecc"):
        with pytest.raises(ipu.RecoverableError) as caught, ipu.typed_errors():
            jax.block_until_ready(jax.jit(jnp.tanh)(1.0))
        ipu.reset_device(caught.value.recovery_action.upper())
    jax.block_until_ready(jax.jit(jnp.tanh)(1.0))


def test_what_is_refused():
    with pytest.raises(ipu.ConfigError, match="needs one of ipu_reset"):
        ipu.reset_device("reboot")
    with pytest.raises(ipu.ConfigError, match="needs kind to be one of link_error"):
        ipu.testing.inject("fire").__enter__()
    with pytest.raises(ipu.ConfigError, match="at_step of 1 or more"):
        ipu.testing.inject("ecc", at_step=0).__enter__()
