"""What random programs once found, each as small as it could be made."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.fuzz.check import check, on_platform
from tests.fuzz.generator import RandomProgram
from tests.fuzz.lowering import lower

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
ONE = np.array([7], np.int32)


def remainder_of_reshaped(n):
    """A scalar constant combined with a reshaped [1]."""
    return jnp.remainder(lax.reshape(n, ()) + 0, 5) + 1


def overlapping_windows(x):
    """The gradient of max-pooling with stride 1: such windows share elements."""

    def pooled(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID")

    return jax.vjp(pooled, x)[1](jnp.ones((2, 3), x.dtype))[0]


def convolution_without_its_input(x):
    """Negative padding that cuts away every element of a dilated input."""
    image = lax.reshape(x, (2, 2, 3, 1))
    return lax.conv_general_dilated(
        image,
        jnp.ones((1, 2, 2, 1), x.dtype),
        (1, 1),
        ((1, 2), (-1, 1)),
        lhs_dilation=(1, 2),
        rhs_dilation=(2, 1),
    )


CASES: list[tuple[Callable, tuple[np.ndarray, ...]]] = [
    (remainder_of_reshaped, (ONE,)),
    (overlapping_windows, (X,)),
    (convolution_without_its_input, (X,)),
]


@pytest.mark.parametrize(("f", "arguments"), CASES, ids=lambda item: getattr(item, "__name__", ""))
def test_once_wrong(f: Callable, arguments: tuple[np.ndarray, ...]):
    code, text = lower(f, arguments)
    num_results = len(jax.tree.leaves(jax.eval_shape(f, *arguments)))
    program = RandomProgram(0, code, text, list(arguments), [0.0] * num_results, [f.__name__])
    assert check(program, {"cpu": on_platform("cpu")}).differences == []
