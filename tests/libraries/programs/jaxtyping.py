"""Jaxtyping: shapes and dtypes in annotations, checked by beartype while JAX traces."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from beartype import beartype
from jaxtyping import Array, Float, Int, TypeCheckError, jaxtyped

from tests.libraries.program import program

LIBRARIES = ("jaxtyping", "beartype")


@jaxtyped(typechecker=beartype)
def _attention(
    query: Float[Array, "*batch q d"],
    key: Float[Array, "*batch k d"],
    value: Float[Array, "*batch k v"],
    lengths: Int[Array, " *batch"],
) -> Float[Array, "*batch q v"]:
    scores = jnp.einsum("...qd,...kd->...qk", query, key) / query.shape[-1] ** 0.5
    valid = jnp.arange(key.shape[-2]) < lengths[..., None, None]
    return jax.nn.softmax(jnp.where(valid, scores, -1e9)) @ value


@program(1e-5, "one gradient of an attention over four keys")
def annotated_attention():
    query = jax.random.normal(jax.random.key(0), (2, 3, 8))
    key, value = jax.random.normal(jax.random.key(1), (2, 2, 4, 8))
    lengths = jnp.array([4, 2])
    try:
        jax.jit(_attention)(query, key, value[:, :3], lengths)
        refused = False
    except TypeCheckError:
        refused = True
    gradient = jax.grad(lambda q: jnp.sum(_attention(q, key, value, lengths) ** 2))
    return {"gradient": jax.jit(gradient)(query), "refused": jnp.asarray(refused)}
