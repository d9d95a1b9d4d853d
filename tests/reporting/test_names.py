"""Names of scopes, arguments and files are shown as they were written."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import ipujax as ipu

X = jax.ShapeDtypeStruct((64, 64), jnp.float32)
#: Quotes, backslashes and other alphabets are escapes in MLIR's text.
NAMES = ("größe", "層", "naïve\\C3", 'say "no"', "tab\there", "𝛼β")


@pytest.mark.parametrize("name", NAMES)
def test_a_named_scope_is_shown_as_it_was_written(name):
    def f(größe):
        with jax.named_scope(name):
            return jnp.tanh(größe)

    found = ipu.report(f, X)
    assert {step.scope for step in found.steps} == {name}
    assert {step.name for step in found.steps} == {f"jit(f)/{name}/tanh"}
    assert "größe" in {tensor.name for tensor in found.tensors}


def test_a_file_is_named_as_it_was_written(tmp_path):
    place: dict[str, object] = {"jnp": jnp}
    code = compile("def f(x):\n    return jnp.tanh(x)\n", str(tmp_path / "maße.py"), "exec")
    exec(code, place)
    assert ipu.report(place["f"], X).steps[0].source == "maße.py:2"
