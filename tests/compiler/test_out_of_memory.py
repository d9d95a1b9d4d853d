"""What is said of a program that does not fit."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import pytest

X = jax.ShapeDtypeStruct((3000, 3000), jnp.float32)
OPTIONS = {"ipu_fit": "off", "ipu_out_of_memory": "error"}


@pytest.mark.parametrize("count", [12, 30])
def test_equal_tensors_are_listed_once_with_their_number(count):
    def products(x):
        return jnp.stack([(y := jnp.sin(x + i)) @ y.T for i in range(count)])

    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.jit(products, compiler_options=OPTIONS).lower(X).compile()
    text = str(caught.value)
    listed = re.search(r"Largest tensors there: (.*)\. Use ", text)
    assert listed
    tensors = listed[1].split("; ")
    assert len(set(tensors)) == len(tensors) <= 10
    assert sum("dot_general" in each for each in tensors) == 1
    assert re.search(rf"dot_general \S+ \d+ of 36000000 bytes each, {count} tensors", text)
    assert "x 24464 of 36000000 bytes" in tensors  # a tensor by itself has no count
