"""Rows of a host table, with the derivative by which their gradients are handed to the table."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ipujax.api.host_table_calls import Lookup, Options, Update, spread
from ipujax.api.host_table_primitives import lookup_p, update_p
from ipujax.host_table.table import Part


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def lookup_rows(options: Options, token: jax.Array, rate: jax.Array, ids: jax.Array) -> jax.Array:
    """Rows [n, columns] of ids [n]."""
    columns, num_replicas, replica = spread(options)
    shared = ids if options.strategy is None else lax.all_gather(ids, options.axis_name)
    rows = lookup_p.bind(
        token,
        shared,
        replica,
        function=Lookup(options.table, options.strategy, num_replicas, options.clip),
        columns=columns,
        dtype=options.dtype,
    )
    if options.strategy == "token":  # zeros but for one replica
        return lax.psum_scatter(rows, options.axis_name, scatter_dimension=0)
    if options.strategy == "encoding":
        rows = lax.all_to_all(rows, options.axis_name, 0, 1)  # [n, replicas, columns of one]
    return rows.reshape(*ids.shape, options.columns)


def _save(options: Options, token: Any, rate: Any, ids: Any) -> tuple[Any, Any]:
    return lookup_rows(options, token, rate, ids), (token, rate, ids)


def _backward(options: Options, saved: Any, cotangent: Any) -> tuple[Any, ...]:
    token, rate, ids = saved
    if not options.is_trained:
        return jnp.zeros_like(token), jnp.zeros_like(rate), None
    return hand_in(options, token, rate, ids, cotangent), jnp.zeros_like(rate), None


lookup_rows.defvjp(_save, _backward)


def hand_in(
    options: Options, token: jax.Array, rate: jax.Array, ids: jax.Array, rows: jax.Array
) -> jax.Array:
    """What the gradients rows [n, columns] of ids [n] add to the token."""
    columns, num_replicas, replica = spread(options)
    if options.strategy is not None:
        ids = lax.all_gather(ids, options.axis_name)
    if options.strategy == "token":
        rows = lax.all_gather(rows, options.axis_name)
    elif options.strategy == "encoding":
        rows = rows.reshape(-1, num_replicas, columns)
        rows = lax.all_to_all(rows, options.axis_name, 1, 0)
    part = Part(options.strategy or "", 0, num_replicas)
    function = Update(options.table, part.strategy, num_replicas, options.clip, options.own_rate)
    count = update_p.bind(token, rate, ids, rows, replica, function=function)
    return count if options.axis_name is None else lax.psum(count, options.axis_name)
