"""Optimizer state in the host's memory between steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from ipujax.api.pipeline.offload import check_minimum
from ipujax.optim.wrap import extended, on_arrays

if TYPE_CHECKING:
    import optax

WHERE = "ipu.optim.offload_state"


def offload_state(
    tx: optax.GradientTransformation, *, minimum_remote_tensor_size: int = 128
) -> optax.GradientTransformationExtraArgs:
    """Keeps the state of an optimizer in streaming memory between two steps.

    `init` and `update` return state whose arrays are in the memory kind "pinned_host"; `update`
    brings them to the device first. Donate the state to the jitted step, so that it is updated in
    place.

    Args:
        tx: an optax transformation.
        minimum_remote_tensor_size: bytes; smaller arrays stay on the IPU.
    Returns:
        A transformation with the same updates as `tx`.
    Raises:
        ConfigError: `tx` is not an optax transformation.
        PipelineError: minimum_remote_tensor_size is not a positive number of bytes.

    Example:
        >>> tx = ipu.optim.offload_state(optax.adam(1e-3))
        >>> state = tx.init({"w": jnp.ones((64, 64))})
        >>> state[0].mu["w"].sharding.memory_kind
        'pinned_host'
    """
    least = check_minimum(WHERE, minimum_remote_tensor_size)
    inner = extended(WHERE, tx)

    def put(state: Any, memory: Any) -> Any:
        def one(x: Any) -> Any:
            is_large = jnp.size(x) * jnp.result_type(x).itemsize >= least
            return jax.device_put(x, memory) if is_large else x

        return jax.tree.map(one, state)

    def init(params: Any) -> Any:
        return put(inner.init(params), jax.memory.Space.Host)

    def update(grads: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        near = put(state, jax.memory.Space.Device)
        updates, new = inner.update(grads, near, params, **extra)
        return updates, put(new, jax.memory.Space.Host)

    return on_arrays(WHERE, inner._replace(init=init, update=update))
