"""Conversions: each result against the program that was given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.convert.conversion import Conversion
from ipujax.convert.settings import settings_of
from ipujax.errors import ConvertError

X = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
WEIGHTS = [np.random.default_rng(i + 1).normal(size=(8, 8)).astype(np.float32) / 3 for i in (0, 1)]


def model(x: Any) -> Any:
    for layer, weight in enumerate(WEIGHTS):
        with jax.named_scope(f"layer_{layer}"):
            x = jax.nn.gelu(x @ weight)
    return x


def exported(function: Any = model, *args: Any) -> jax.export.Exported:
    return jax.export.export(jax.jit(function), platforms=["ipu"])(*(args or (X,)))


def converted(settings: Any, program: jax.export.Exported | None = None) -> jax.export.Exported:
    """The converted program after a round trip through bytes."""
    made = Conversion(program or exported(), settings_of(settings)).program
    return jax.export.deserialize(bytearray(made.serialize()))


def dtypes_of_products(program: jax.export.Exported) -> list[str]:
    text = program.mlir_module()
    lines = [line for line in text.splitlines() if "stablehlo.dot_general" in line]
    return ["f16" if "xf16>" in line.split(":", 1)[1] else "f32" for line in lines]


def test_without_settings_it_is_the_program():
    assert np.array_equal(converted({}).call(X), exported().call(X))


def test_half_precision_but_for_excluded_ops():
    settings = {"precision_mode": "FP16", "precision_conversion_excluded_nodes": ["layer_1/dot"]}
    program = converted(settings)
    assert dtypes_of_products(program) == ["f16", "f32"]
    assert [str(aval.dtype) for aval in (*program.in_avals, *program.out_avals)] == ["float32"] * 2
    difference = np.abs(program.call(X) - exported().call(X)).max()
    assert 0 < difference < 3e-3


def test_ops_of_functions_are_named_in_the_scope_of_their_call():
    def outer(x: Any) -> Any:
        with jax.named_scope("head"):
            x = jax.jit(lambda y: jnp.sort(y @ WEIGHTS[0]))(x)
        return x @ WEIGHTS[1]

    settings = {"precision_mode": "FP16", "precision_conversion_excluded_nodes": ["^head/dot"]}
    assert dtypes_of_products(converted(settings, exported(outer))) == ["f32", "f16"]


def test_large_constants_stay_finite_in_half():
    masked = exported(lambda x: jnp.where(x > 0, x, -1e9))
    assert np.isfinite(converted({"precision_mode": "FP16"}, masked).call(X)).all()


def test_whole_numbers_become_narrow():
    with jax.enable_x64(True):
        program = exported(lambda i: i * 2 + jnp.arange(3, dtype=jnp.int64), np.arange(3))
        assert program.in_avals[0].dtype == np.int64
    made = converted({"int64_to_int32_conversion": True}, program)
    assert made.in_avals[0].dtype == np.int32
    assert made.call(np.arange(3, dtype=np.int32)).tolist() == [0, 3, 6]


def test_gelus_are_replaced():
    conversion = Conversion(exported(), settings_of({"gelu_replacement": True}))
    assert conversion.notes == ["2 GELUs replaced"]
    np.testing.assert_allclose(conversion.program.call(X), exported().call(X), atol=2e-6)


def test_excluded_ops_are_removed():
    settings = {"excluded_nodes": ["tanh$"], "remove_excluded_nodes": True}
    made = converted(settings, exported(lambda x: jnp.tanh(x * 2)))
    assert np.array_equal(made.call(X), X * 2)


def test_ops_that_cannot_be_removed_are_named():
    settings = {"excluded_nodes": ["reduce_sum"], "remove_excluded_nodes": True}
    with pytest.raises(ConvertError, match=r"result is like .*'reduce_sum'"):
        converted(settings, exported(lambda x: jnp.sum(x)))


def test_micro_batches_of_one_call():
    def scaled(scale: Any, x: Any) -> Any:
        return {"y": x * scale, "sum": jnp.sum(x)}

    program = exported(scaled, np.float32(3), X)
    made = converted({"batch_per_step": 3, "batch_size": 4, "batched": ["^x$"]}, program)
    batches = np.stack([X, X + 1, X + 2])
    found = made.call(np.float32(3), batches)
    assert np.array_equal(found["y"], batches * 3)
    assert found["sum"].shape == (3,)


def test_arguments_keep_their_names():
    from ipujax.api.deploy.exported import argument_names

    program = exported(lambda params, x: x @ params["kernel"], {"kernel": WEIGHTS[0]}, X)
    assert argument_names(program) == ["params['kernel']", "x"]
    assert argument_names(converted({}, program)) == ["params['kernel']", "x"]


def test_arguments_keep_their_names_beside_unused_ones():
    from ipujax.api.deploy.exported import argument_names

    def apply(params, unused, x):
        return x @ params["kernel"]

    params = {"bias": jnp.ones(3), "kernel": jnp.ones((4, 3))}
    args = (params, jnp.ones(2), jnp.ones((2, 4)))
    program = jax.export.export(jax.jit(apply))(*args)
    names = ["params['bias']", "params['kernel']", "1", "x"]
    assert argument_names(program) == names
    made = converted({}, program)
    assert argument_names(made) == names
    assert argument_names(converted({}, made)) == names
    np.testing.assert_array_equal(made.call(*args), apply(*args))


@pytest.mark.parametrize("taken", ["argument_0", "_argument_0"])
def test_names_of_unused_arguments_do_not_clash(taken):
    from ipujax.api.deploy.exported import argument_names

    scope: dict = {}
    exec(f"def apply(unused, {taken}): return {taken} + 1", scope)
    program = jax.export.export(jax.jit(scope["apply"]))(jnp.ones(2), jnp.ones(3))
    assert argument_names(converted({}, program)) == ["0", taken]


def test_names_without_a_match_are_noted():
    settings = {"precision_mode": "FP16", "precision_conversion_excluded_nodes": ["nothing"]}
    notes = Conversion(exported(), settings_of(settings)).notes
    assert notes == ["precision_conversion_excluded_nodes: no op matches nothing"]


def test_product_options_reach_the_products():
    """Half partials change what a product of halves costs, and its last bits."""
    settings = {"precision_mode": "FP16", "matmul_partial_type": "half"}
    x = np.random.default_rng(0).normal(size=(64, 512)).astype(np.float32)
    w = np.random.default_rng(1).normal(size=(512, 64)).astype(np.float32)
    program = exported(lambda x: x @ w, x)
    plain = ipu.cost(converted({"precision_mode": "FP16"}, program), x)
    half = ipu.cost(converted(settings, program), x)
    assert half.cycles != plain.cycles


@pytest.fixture(scope="module")
def on_two_ipus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("plans")
    command = [sys.executable, "-m", "tests.convert.several_ipus", str(folder)]
    environment = {**os.environ, "JAX_IPU_IPUS_PER_DEVICE": "2", "JAX_PLATFORMS": "ipu"}
    output = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
    found = json.loads(output.splitlines()[-1])
    found["files"] = sorted(path.name for path in folder.iterdir())
    return found


@pytest.mark.parametrize("how", ["sharded", "auto", "manual", "load"])
def test_two_ipus(on_two_ipus: dict[str, Any], how: str):
    assert on_two_ipus[how]["difference"] < 1e-6
    assert on_two_ipus[how]["ipus"] == 2


def test_pipelines_write_plans_and_reports(on_two_ipus: dict[str, Any]):
    assert on_two_ipus["files"] == ["program.json", "program.plan.json"]
    assert any("compiled" in note for note in on_two_ipus["auto"]["notes"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": "FP16"}, "names from .*precision_mode"),
        ({"precision_mode": "FP8"}, "FP32 or FP16; got 'FP8'"),
        ({"matmul_amp": 2}, "above 0, at most 1; got 2"),
        ({"batch_size": 0}, "at least 1; got 0"),
        ({"batch_size": True}, "type int; got True"),
        ({"remove_excluded_nodes": True}, "excluded_nodes to remove"),
        ({"embedded_runtime_save_config": {}}, "the executable's folder"),
        (
            {
                "excluded_nodes": ["x"],
                "embedded_runtime_save_config": {"embedded_runtime_exec_cachedir": "x"},
            },
            "runs by itself",
        ),
        (
            {
                "embedded_runtime_save_config": {
                    "embedded_runtime_exec_cachedir": "x",
                    "runtime_api_timeout_us": -1,
                }
            },
            "microseconds from 0",
        ),
        ({"manual_sharding": [["x"]], "num_ipus": 2}, "one list for each of num_ipus=2; got 1"),
        ({"manual_sharding": ["x"]}, "a list of lists"),
        ({"pipeline_cfg": {"converter": "auto"}}, "batch_per_step"),
        ({"pipeline_cfg": {"converter": "load"}, "batch_per_step": 2}, "solution_path"),
        ({"pipeline_cfg": {"converter": "manual"}, "batch_per_step": 2}, "device_info"),
        ({"pipeline_cfg": {"priority": "x"}, "batch_per_step": 2}, "cycle or memory"),
        ({"pipeline_cfg": {"x": 1}}, "names from converter"),
        ([], "a JSON object"),
    ],
)
def test_bad_settings_are_refused(settings: Any, message: str):
    with pytest.raises(ConvertError, match=message):
        settings_of(settings)


def test_bad_expressions_and_shapes_are_refused():
    with pytest.raises(ConvertError, match=r"regular expressions for precision.*'\('"):
        converted({"precision_mode": "FP16", "precision_conversion_excluded_nodes": ["("]})
    with pytest.raises(ConvertError, match=r"first dimension of batch_size=1 .* shape \(4, 8\)"):
        converted({"batch_per_step": 2})
