"""`ipu.remedies`: what is tried, that it is what the change itself gives, and bad input."""

from __future__ import annotations

import textwrap
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import SingleDeviceSharding

import ipujax as ipu
from ipujax.api.cost import changed_programs

WEIGHTS = [jax.ShapeDtypeStruct((1024, 1024), jnp.float32)] * 24
X = jax.ShapeDtypeStruct((4096, 1024), jnp.float32)
TX = optax.adam(1e-3)
STATE = jax.eval_shape(TX.init, WEIGHTS)


def loss(weights: Any, x: jax.Array) -> jax.Array:
    for w in weights:
        x = jax.nn.gelu(x @ w)
    return jnp.mean(x**2)


def step(weights: Any, state: Any, x: jax.Array) -> Any:
    updates, state = TX.update(jax.grad(loss)(weights, x), state, weights)
    return optax.apply_updates(weights, updates), state


def test_what_fits_needs_nothing() -> None:
    found = ipu.remedies(jnp.tanh, jax.ShapeDtypeStruct((8,), jnp.float32))
    assert found.before.fits
    assert found.tried == found.fitting == ()


def test_each_change_gives_what_it_gives_by_hand(device: jax.Device) -> None:
    found = ipu.remedies(jax.jit(step, donate_argnums=(0, 1)), WEIGHTS, STATE, X, batch=2, state=1)
    assert not found.before.fits
    by_text = {each.text: each for each in found.tried}

    recomputed = by_text["ipu_allow_recompute=True"]
    lowered = (
        jax.jit(step, donate_argnums=(0, 1))
        .trace(WEIGHTS, STATE, X)
        .lower(lowering_platforms=("ipu",))
    )
    by_hand = lowered.compile(dict(recomputed.options)).cost_analysis()
    assert recomputed.cost.analysis == by_hand
    assert recomputed.keeps_results

    smaller = by_text["ipu.accumulate over 4 micro-batches"]

    def accumulating(weights: Any, state: Any, x: jax.Array) -> Any:
        gradient = ipu.accumulate(jax.grad(loss), micro_batches=4)
        parts = x.reshape(4, x.shape[0] // 4, *x.shape[1:])
        updates, state = TX.update(gradient(weights, parts), state, weights)
        return optax.apply_updates(weights, updates), state

    by_hand = ipu.cost(jax.jit(accumulating, donate_argnums=(0, 1)), WEIGHTS, STATE, X)
    assert smaller.cost.fullest_tile_bytes == pytest.approx(by_hand.fullest_tile_bytes, rel=0.02)
    assert smaller.cycles == pytest.approx(by_hand.cycles, rel=0.02)
    assert smaller.runs == 1
    assert not smaller.keeps_results

    waiting = by_text["argument 1 in streaming memory"]
    host = SingleDeviceSharding(device, memory_kind="pinned_host")
    far = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=host), STATE)
    tx = ipu.optim.offload_state(TX, minimum_remote_tensor_size=1)

    def offloading(weights: Any, state: Any, x: jax.Array) -> Any:
        updates, state = tx.update(jax.grad(loss)(weights, x), state, weights)
        return optax.apply_updates(weights, updates), state

    by_hand = ipu.cost(jax.jit(offloading, donate_argnums=(0, 1)), WEIGHTS, far, X)
    assert waiting.cost.parts["state"] < found.before.parts["state"]
    assert waiting.cost.fullest_tile_bytes == pytest.approx(by_hand.fullest_tile_bytes, rel=0.05)


def test_those_that_fit_come_first_and_the_fastest_of_them() -> None:
    found = ipu.remedies(step, WEIGHTS[:8], jax.eval_shape(TX.init, WEIGHTS[:8]), X, batch=2)
    assert 0 < len(found.fitting) < len(found.tried)
    assert found.tried[: len(found.fitting)] == found.fitting
    cycles = [each.cycles for each in found.fitting]
    assert cycles == sorted(cycles)
    lines = str(found).splitlines()
    assert lines[1].split()[0] == f"{found.before.fullest_tile_bytes:,}"
    assert sum(" fits " in line for line in lines) == len(found.fitting)


def test_changes_are_joined_when_one_is_not_enough() -> None:
    weights = [jax.ShapeDtypeStruct((2048, 2048), jnp.float32)] * 12
    x = jax.ShapeDtypeStruct((4096, 2048), jnp.float32)
    state = jax.eval_shape(TX.init, weights)
    found = ipu.remedies(step, weights, state, x, batch=2, state=1, seconds=300)
    assert found.fitting
    assert all("; " in each.text for each in found.fitting)


def test_half_partials_are_only_for_half_products() -> None:
    def texts(dtype: Any) -> list[str]:
        x = jax.ShapeDtypeStruct((16384, 16384), dtype)
        return [each.text for each in ipu.remedies(lambda x: x @ x, x).tried]

    assert "ipu_partials_type=half" in texts(jnp.float16)
    assert "ipu_partials_type=half" not in texts(jnp.float32)


def test_trials_end_in_time() -> None:
    assert len(ipu.remedies(jax.grad(loss), WEIGHTS, X, seconds=0).tried) == 1


def test_bad_input_is_refused() -> None:
    with pytest.raises(ipu.ConfigError, match=r"\[remedies\] needs a function; got int"):
        ipu.remedies(3)  # type: ignore[arg-type]
    with pytest.raises(ipu.ConfigError, match="needs batch to name arguments from 0 to 1; got 2"):
        ipu.remedies(loss, WEIGHTS, X, batch=2)
    with pytest.raises(ipu.ConfigError, match="needs state to name arguments from 0 to 1; got -1"):
        ipu.remedies(loss, WEIGHTS, X, state=-1)
    with pytest.raises(ipu.ConfigError, match="a first axis of samples; got a number in argument"):
        ipu.remedies(lambda x, n: x * n, X, 3.0, batch=1)
    with pytest.raises(ipu.ConfigError, match="needs names of options"):
        ipu.remedies(jax.grad(loss), WEIGHTS, X, options={"ipu_what": 1})
    jitted = jax.jit(jax.grad(loss), compiler_options={"ipu_outline": "auto"})
    with pytest.raises(ipu.ConfigError, match="a function without compiler options"):
        ipu.remedies(jitted, WEIGHTS, X, batch=1)


def deep(weights: Any, x: jax.Array) -> jax.Array:
    for i, w in enumerate(weights):
        with jax.named_scope(f"layer{i}"):
            x = jax.nn.gelu(x @ w)
    return jnp.mean(x**2)


def deep_step(weights: Any, state: Any, x: jax.Array) -> Any:
    updates, state = TX.update(jax.grad(deep)(weights, x), state, weights)
    return optax.apply_updates(weights, updates), state


@pytest.fixture(scope="module")
def found() -> ipu.Remedies:
    return ipu.remedies(deep_step, WEIGHTS, STATE, X, batch=2, loss=deep, seconds=300)


def test_every_kind_of_change_is_tried(found: ipu.Remedies) -> None:
    for part in (
        "ipu_outline=auto",
        "ipu_allow_recompute=True",
        "ipu_recompute_layers=layer*",
        '"outChanSplit": {"serial": 4}',
        "ipu_available_memory_proportion=0.1",
        "argument 1 in streaming memory",
        "ipu.accumulate over 8 micro-batches",
        "ipu.pipeline over 2 IPUs",
        "ipu.pipeline over 4 IPUs",
    ):
        assert any(part in each.text for each in found.tried), part
    assert [each.cycles for each in found.fitting] == sorted(each.cycles for each in found.fitting)


def test_options_give_what_they_say(found: ipu.Remedies) -> None:
    lowered = jax.jit(deep_step).trace(WEIGHTS, STATE, X).lower(lowering_platforms=("ipu",))
    by_options = [each for each in found.tried if each.options and "argument" not in each.text]
    by_options = [each for each in by_options if "ipu.acc" not in each.text]
    assert len(by_options) > 8
    for each in by_options:
        pairs = (part.split("=", 1) for part in each.text.split("; "))  # as the text says it
        cost = lowered.compile(dict(pairs)).cost_analysis()
        assert cost["worst tile bytes"] == each.cost.fullest_tile_bytes, each.text
        assert cost["cycles"] == each.cost.cycles, each.text


def test_a_pipeline_gives_what_it_says(found: ipu.Remedies, tmp_path: Any, run_python: Any) -> None:
    each = next(each for each in found.tried if "over 2 IPUs" in each.text)
    assert each.plan is not None
    each.plan.save(tmp_path / "plan.json")
    code = f"""
        import jax, ipujax as ipu
        from tests.api.cost.test_remedies import WEIGHTS, X, deep
        plan = ipu.Plan.load({str(tmp_path / "plan.json")!r}, deep)
        x = jax.ShapeDtypeStruct((16, 256, 1024), X.dtype)
        cost = plan.measure([WEIGHTS, x])
        print(cost["cycles"], cost["worst tile bytes"])
    """
    run = run_python("-c", textwrap.dedent(code), env={"JAX_IPU_IPUS_PER_DEVICE": "2"})
    assert run.returncode == 0, run.stderr
    cycles, size = map(float, run.stdout.split())
    assert each.cost.fullest_tile_bytes == size
    assert each.cost.cycles == pytest.approx(cycles)


def test_results_that_are_said_to_stay_do(found: ipu.Remedies) -> None:
    """The same options on smaller arrays."""
    key = jax.random.key(0)
    weights = [jax.random.normal(jax.random.fold_in(key, i), (32, 32)) / 6 for i in range(24)]
    x = jax.random.normal(key, (64, 32))
    args = weights, TX.init(weights), x
    wanted = jax.jit(deep_step)(*args)
    for each in found.tried:
        serial = "serial" in str(each.options)  # more slices than a small product has
        if each.keeps_results and each.options and not serial:
            got = jax.jit(deep_step, compiler_options=dict(each.options))(*args)
            jax.tree.map(np.testing.assert_array_equal, got, wanted)


def test_what_was_found_is_not_compiled_again(found: ipu.Remedies, monkeypatch: Any) -> None:
    def refused(*_: Any) -> Any:
        raise AssertionError("compiled again")

    monkeypatch.setattr(changed_programs, "of_compiled", refused)
    monkeypatch.setattr(changed_programs, "cost_of", refused)
    again = ipu.remedies(deep_step, WEIGHTS, STATE, X, batch=2, loss=deep, seconds=300)
    assert again.rows == found.rows


def test_a_report_lists_them(found: ipu.Remedies, tmp_path: Any) -> None:
    report = ipu.report(deep_step, WEIGHTS, STATE, X, remedies=found)
    assert report.remedies == found.rows
    assert "ipu.accumulate over 8 micro-batches *" in str(report)
    report.save(tmp_path / "step.json")
    assert ipu.load_report(tmp_path / "step.json") == report
    report.save(tmp_path / "step.html")
    page = (tmp_path / "step.html").read_text()
    assert "Changes that were tried" in page
    assert "ipu.pipeline over 2 IPUs" in page


def test_a_report_of_what_does_not_fit_finds_some() -> None:
    report = ipu.report(deep_step, WEIGHTS, STATE, X, remedies=300)
    assert any(each.fits for each in report.remedies)
    assert any("argument 1" in each.text for each in report.remedies)
    assert ipu.report(deep, WEIGHTS[:2], X).remedies == ()
    for wrong in (-1, "3", True, None):
        with pytest.raises(ipu.ConfigError, match="needs remedies to be seconds from 0"):
            ipu.report(deep, WEIGHTS, X, remedies=wrong)  # type: ignore[arg-type]


def test_options_of_the_function_stay_with_it() -> None:
    jitted = jax.jit(jax.grad(loss), compiler_options={"ipu_outline": "auto"})
    assert ipu.report(jitted, WEIGHTS, X).remedies
    assert ipu.remedies(jitted, WEIGHTS, X).tried


def test_exported_programs_have_remedies() -> None:
    exported = jax.export.export(jax.jit(jax.grad(loss)), platforms=["ipu"])(WEIGHTS, X)
    tried = ipu.remedies(exported).tried
    assert "ipu_allow_recompute=True" in {each.text for each in tried}
    assert not ipu.cost(exported).fits
    with pytest.raises(ipu.FitError):
        ipu.assert_fits(exported)
