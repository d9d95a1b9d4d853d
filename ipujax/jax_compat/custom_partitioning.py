"""`jax.experimental.custom_partitioning`: functions that say how they run on blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ipujax.errors import CallbackError
from ipujax.jax_compat.callbacks import collected
from ipujax.jax_compat.shardings import hlo_sharding

CUSTOM_PARTITIONING_TARGET = "CustomSPMDPartitioning"


class Sharded(NamedTuple):
    """A whole array's shape and dtype, and its serialised xla.OpSharding."""

    shape: tuple[int, ...]
    dtype: np.dtype
    sharding: bytes


def partition_custom(
    key: str, operands: Sequence[Sharded], results: Sequence[Sharded]
) -> tuple[bytes, list[bytes], list[bytes]]:
    """Calls the user's `partition`.

    Args:
        key: the backend_config of the custom call that JAX makes.
        operands, results: their shapes and dtypes, and how they would be sharded.
    Returns:
        the program of one device as MLIR bytecode, whose main function takes blocks of the operands
        and returns blocks of the results; and the shardings that both must have.
    Raises:
        CallbackError: the function is another process's, or fails.
    """
    from jax._src import custom_partitioning as theirs
    from jax._src.lib import xla_client

    name = key.encode()
    if name not in theirs._sharding_callbacks:
        raise CallbackError(
            f"[custom_partitioning] needs a function of this process; got {key!r}, which is not "
            "registered. Jit the function again."
        )
    (shapes, shardings), (result_shapes, result_shardings) = (
        (
            [xla_client.Shape.array_shape(each.dtype, each.shape) for each in arrays],
            [hlo_sharding(each.sharding) for each in arrays],
        )
        for arrays in (operands, results)
    )
    shape, sharding = result_shapes[0], result_shardings[0]
    if len(results) > 1:
        shape = xla_client.Shape.tuple_shape(result_shapes)
        sharding = xla_client.HloSharding.tuple_sharding(shape, result_shardings)
    handles: deque[Any] = deque()
    token = collected.set(handles)
    try:
        code, needed, made = theirs._custom_partitioning_partition(
            shapes, shardings, shape, sharding, name
        )
    except Exception as error:  # whatever the user's function raises
        raise CallbackError(
            "[custom_partitioning] needs a partition whose function returns blocks of the results; "
            f"got {type(error).__name__}: {error} Correct the partition."
        ) from error
    finally:
        collected.reset(token)
    # The executable keeps this object; callbacks in the user's program live as long.
    theirs._sharding_callbacks[name].ipu_callbacks = handles
    each = made.tuple_elements() if len(results) > 1 else [made]
    return code, _serialised(needed), _serialised(each)


def _serialised(shardings: Sequence[Any]) -> list[bytes]:
    return [bytes(each.to_proto().SerializeToString()) for each in shardings]
