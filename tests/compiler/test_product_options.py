"""PopLibs' options for products and convolutions: for all, by layer, by line, in a block."""

from __future__ import annotations

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.config.product_options import check_product_options, flags_of, in_scope
from ipujax.reporting.profile import read_profile

SERIAL = {"planConstraints": {"0": {"partition": {"outChanSplit": {"serial": 4}}}}}
W = jax.ShapeDtypeStruct((512, 512), jnp.float32)
IMAGE = jax.ShapeDtypeStruct((8, 16, 16, 32), jnp.float16)
KERNEL = jax.ShapeDtypeStruct((3, 3, 32, 64), jnp.float16)


def two_layers(w: Any, x: Any) -> Any:
    with jax.named_scope("a"):
        x = x @ w
    with jax.named_scope("b"):
        return x @ w


def convolved(x: Any, w: Any) -> Any:
    return jax.lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def plans(fun: Any, *args: Any, **options: Any) -> dict[str, str]:
    """The plans of products by layer."""
    named = {f"ipu_{name}": json.dumps(value) for name, value in options.items()}
    lowered = jax.jit(fun).trace(*args).lower(lowering_platforms=("ipu",))
    compiled = lowered.compile({**named, "ipu_profile": True})
    image = bytes(compiled.runtime_executable().serialize())
    report = read_profile(image[image.index(b"IPUJAXEX") :])
    return {step.scope: step.plan for step in report.steps if step.plan}


def test_options_are_for_all_products() -> None:
    found = plans(two_layers, W, W, matmul_options=SERIAL)
    assert all("output channels 4;" in plan for plan in found.values())
    assert plans(two_layers, W, W, convolution_options=SERIAL) == plans(two_layers, W, W)


def test_options_are_for_a_layer_or_a_line() -> None:
    plain = plans(two_layers, W, W)
    for scope in ("b", f"test_product_options.py:{two_layers.__code__.co_firstlineno + 4}"):
        found = plans(two_layers, W, W, matmul_options={"scopes": {scope: SERIAL}})
        assert found["a"] == plain["a"]
        assert "output channels 4;" in found["b"]


class Product:
    def __call__(self, w: Any, x: Any) -> Any:
        return x @ w


class Model:
    def __init__(self) -> None:
        self.first, self.second = Product(), Product()

    def __call__(self, w: Any, x: Any) -> Any:
        return self.second(w, jnp.tanh(self.first(w, x)))


def test_options_are_for_a_module() -> None:
    plain = plans(Model(), W, W)
    found = plans(Model(), W, W, matmul_options={"scopes": {"Model/second": SERIAL}})
    assert found["Model/first"] == plain["Model/first"]
    assert "output channels 4;" in found["Model/second"]


def test_later_scopes_and_inner_layers() -> None:
    text = json.dumps({"x": "1", "scopes": {"a": {"x": "2"}, "a/b": {"x": "3", "y": True}}})
    assert flags_of(in_scope(text, "c", "")) == {"x": "1"}
    assert flags_of(in_scope(text, "a/c", "")) == {"x": "2"}
    assert flags_of(in_scope(text, "a/b", "")) == {"x": "3", "y": "true"}
    assert flags_of(in_scope(text, "ab", "")) == {"x": "1"}


def test_options_of_convolutions() -> None:
    (plain,) = plans(convolved, IMAGE, KERNEL).values()
    (found,) = plans(
        convolved,
        IMAGE,
        KERNEL,
        convolution_options={"planConstraints": {"0": {"transform": {"expandDims": []}}}},
    ).values()
    assert "expanded" not in found
    (tapped,) = plans(
        convolved, IMAGE, KERNEL, convolution_options={"planConstraints": {"method": "HMAC"}}
    ).values()
    assert "vertex HMAC" in tapped
    assert "vertex HMAC" not in plain


def test_options_of_a_block_reach_the_gradient() -> None:
    def loss(w: Any, x: Any) -> Any:
        with jax.named_scope("inside"), ipu.precision(matmul_options=SERIAL):
            x = x @ w
        with jax.named_scope("outside"):
            return jnp.sum(x @ w)

    found = plans(jax.grad(loss), W, W)
    assert "output channels 4;" in found["inside"]
    assert "output channels 1;" in found["outside"]


def test_equal_layers_with_other_options_are_not_outlined_together() -> None:
    layer = ipu.outlined(lambda w, x: jnp.tanh(x @ w))

    def fun(w: Any, x: Any) -> Any:
        for name in ("a", "b", "c"):
            with jax.named_scope(name):
                x = layer(w, x)
        return x

    found = plans(fun, W, W, matmul_options={"scopes": {"b": SERIAL}})
    assert ["output channels 4;" in plan for plan in found.values()].count(True) == 1


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float16])
def test_numbers_stay_the_same(dtype: Any) -> None:
    x = jax.random.normal(jax.random.key(0), (96, 96)).astype(dtype)
    wanted = jax.jit(lambda x: x @ x)(x)
    for constraints in (
        {"method": "HMAC"},
        {"method": "AMP", "0": {"partition": {"inChanSplit": {"parallel": 3}}}},
        {"0": {"transform": {"swapOperands": True}, "partition": {"fieldSplit": {"0": 8}}}},
        {"0": {"partition": {"inChanSplit": {"serial": 2}}}},
    ):
        options = {"ipu_matmul_options": json.dumps({"planConstraints": constraints})}
        found = jax.jit(lambda x: x @ x, compiler_options=options)(x)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "3", '{"a": {}}', '{"planConstraints": "AMP"}', '{"scopes": 1}', "[" * 99999],
)
def test_other_text_is_refused(text: str) -> None:
    assert "a JSON object of PopLibs' options" in str(check_product_options(text))
    with pytest.raises(ipu.ConfigError, match="a JSON object of PopLibs' options"):
        ipu.precision(matmul_options=text).__enter__()


def test_errors_name_the_option_and_the_line() -> None:
    line = f"test_product_options.py:{two_layers.__code__.co_firstlineno + 2}"
    for options, text in (
        ({"what": 1}, "got 'what'"),
        ({"planConstraints": {"method": "SLIC"}}, "planConstraints that a plan can meet"),
        ({"planConstraints": {"method": "FFT"}}, "method to be AMP"),
    ):
        named = {"ipu_matmul_options": json.dumps(options)}
        with pytest.raises(jax.errors.JaxRuntimeError, match=text) as caught:
            jax.jit(two_layers, compiler_options=named)(jnp.eye(512), jnp.eye(512))
        assert f"It is for dot_general at {line}." in str(caught.value)
