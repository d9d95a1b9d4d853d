"""Views without elements, which may begin outside of their variable."""

from __future__ import annotations

import jax
import numpy as np


def test_an_array_that_padding_crops_to_nothing_is_padded() -> None:
    def cropped(x: jax.Array) -> jax.Array:
        return jax.lax.pad(x[:, :, 6:9], np.float32(2), ((1, 2, 0), (-1, 3, 0), (1, 2, 0)))

    x = np.ones((1, 1, 33), np.float32)
    np.testing.assert_array_equal(jax.jit(cropped)(x), np.full((4, 3, 6), 2, np.float32))
