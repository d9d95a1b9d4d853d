"""Which ways of writing a GELU are found, and what is none."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

from ipujax.convert import gelu
from ipujax.convert.changes import Names
from ipujax.convert.importer import Importer

X = np.linspace(-4, 4, 64, dtype=np.float32).reshape(8, 8)
WRITTEN = {
    "jax, erf": (lambda x: jax.nn.gelu(x, approximate=False), False),
    "jax, tanh": (lambda x: jax.nn.gelu(x), True),
    "BERT": (lambda x: x * 0.5 * (1.0 + jax.lax.erf(x / math.sqrt(2.0))), False),
    "factors apart": (lambda x: 0.5 * (x + x * jax.lax.erf(x * 0.70710678)), False),
    "GPT-2": (
        lambda x: 0.5 * x * (1 + jnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))),
        True,
    ),
}
OTHERS = {
    "quick": lambda x: x * jax.nn.sigmoid(1.702 * x),
    "tanh": jnp.tanh,
    "wrong factor": lambda x: x * 0.5 * (1.0 + jax.lax.erf(x / 1.5)),
    "of two values": lambda x: x * 0.5 * (1.0 + jax.lax.erf(x[::-1] / math.sqrt(2.0))),
    "of a row": lambda x: x * 0.5 * (1.0 + jax.lax.erf(x[:1] / math.sqrt(2.0))),
}


def importer(function: Any) -> Importer:
    return Importer(jax.export.export(jax.jit(function), platforms=["ipu"])(X))


@pytest.mark.parametrize("name", WRITTEN)
def test_found(name: str):
    function, approximate = WRITTEN[name]
    program = importer(lambda x: jnp.sin(function(jnp.cos(x) * 3)))
    (found,) = gelu.find(program.block)
    assert found.approximate is approximate
    # make_jaxpr keeps what it traced of one function.
    unchanged = str(jax.make_jaxpr(lambda x: program(x))(X))
    program.changes = (gelu.Replaced([found]),)
    assert str(jax.make_jaxpr(lambda x: program(x))(X)) != unchanged
    wanted = jnp.sin(function(jnp.cos(X) * 3))
    np.testing.assert_allclose(jax.jit(program)(X), wanted, atol=2e-6)


@pytest.mark.parametrize("name", OTHERS)
def test_not_found(name: str):
    program = importer(OTHERS[name])
    assert gelu.find(program.block) == []


def test_names_restrict():
    def two(x: Any) -> Any:
        for layer in range(2):
            with jax.named_scope(f"layer_{layer}"):
                x = jax.nn.gelu(jnp.sin(x))
        return jnp.cos(x)

    program = importer(two)
    block = program.block
    assert len(gelu.find(block)) == 2
    found = gelu.Replaced(gelu.find(block), inside=Names(["layer_1"], "nodes"))
    assert len(found.found) == 1
    found = gelu.Replaced(gelu.find(block), outputs=Names(["cos$"], "outputs"))
    assert len(found.found) == 1
    found = gelu.Replaced(gelu.find(block), inputs=Names(["layer_./sin"], "inputs"))
    assert len(found.found) == 2
