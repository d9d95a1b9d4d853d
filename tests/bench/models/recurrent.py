"""An LSTM by lax.scan."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def lstm(x: jax.Array, h: jax.Array, w: jax.Array, u: jax.Array) -> jax.Array:
    """x [time, batch, in], h [batch, hidden] to the hidden states [time, batch, hidden]."""

    def cell(state: Any, step: jax.Array) -> tuple[Any, jax.Array]:
        hidden, memory = state
        i, f, g, o = jnp.split(step @ w + hidden @ u, 4, -1)
        memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(memory)
        return (hidden, memory), hidden

    return lax.scan(cell, (h, h), x)[1]
