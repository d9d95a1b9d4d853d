"""Rows of a host table, with the derivative by which their gradients are handed to the table."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ipujax.api.embed.calls import Ahead, Lookup, Options, Update, spread
from ipujax.api.embed.primitives import lookup_ahead_p, lookup_p, update_p


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def lookup_rows(options: Options, token: jax.Array, rate: jax.Array, ids: jax.Array) -> jax.Array:
    """Rows [n, columns] of ids [n]."""
    columns, num_replicas, replica = spread(options)
    shared = _shared(options, ids)
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
    """Hands in gradients [n, columns] of rows ids [n]; returns what they add to the token."""
    columns, num_replicas, replica = spread(options)
    ids = _shared(options, ids)
    if options.strategy == "token":
        rows = lax.all_gather(rows, options.axis_name)
    elif options.strategy == "encoding":
        rows = rows.reshape(-1, num_replicas, columns)
        rows = lax.all_to_all(rows, options.axis_name, 1, 0)
    function = Update(options.table, options.strategy, num_replicas, options.clip, options.own_rate)
    count = update_p.bind(token, rate, ids, rows, replica, function=function)
    return count if options.axis_name is None else lax.psum(count, options.axis_name)


def begin_ahead(options: Options, ids: jax.Array) -> None:
    """Begins to read the rows for a later `lookup_rows`."""
    if not isinstance(ids, jax.core.Tracer):
        Ahead(options.table, None, 1, options.clip)(np.asarray(ids), np.zeros((), np.int32))
        return
    _, num_replicas, replica = spread(options)
    function = Ahead(options.table, options.strategy, num_replicas, options.clip)
    lookup_ahead_p.bind(_shared(options, ids), replica, function=function)


def _shared(options: Options, ids: jax.Array) -> jax.Array:
    """The ids that one replica looks up: its own [n], or those of all replicas [replicas, n]."""
    return ids if options.strategy is None else lax.all_gather(ids, options.axis_name)
