"""Wrappers of optax optimizers; optax is imported when one is called."""

from ipujax.optim.cross_replica import cross_replica as cross_replica
from ipujax.optim.cross_replica_gradient_accumulation import (
    cross_replica_gradient_accumulation as cross_replica_gradient_accumulation,
)
from ipujax.optim.gradient_accumulation import (
    GradientAccumulationState as GradientAccumulationState,
)
from ipujax.optim.gradient_accumulation import gradient_accumulation as gradient_accumulation
from ipujax.optim.map_gradient import map_gradient as map_gradient
from ipujax.optim.offload_state import offload_state as offload_state
from ipujax.optim.shard_state import shard_state as shard_state
