"""Optimizers and wrappers of optax optimizers; optax is imported when one is called."""

from ipujax.host.module_help import with_names as _with_names
from ipujax.optim.adam import AdamState as AdamState
from ipujax.optim.adam import adam as adam
from ipujax.optim.adamax import adamax as adamax
from ipujax.optim.adamw import adamw as adamw
from ipujax.optim.cross_replica import cross_replica as cross_replica
from ipujax.optim.cross_replica_gradient_accumulation import (
    cross_replica_gradient_accumulation as cross_replica_gradient_accumulation,
)
from ipujax.optim.gradient_accumulation import (
    GradientAccumulationState as GradientAccumulationState,
)
from ipujax.optim.gradient_accumulation import gradient_accumulation as gradient_accumulation
from ipujax.optim.hyperparameters import Hyperparameters as Hyperparameters
from ipujax.optim.hyperparameters import Variable as Variable
from ipujax.optim.hyperparameters import set_hyperparameters as set_hyperparameters
from ipujax.optim.hyperparameters import variable as variable
from ipujax.optim.lamb import lamb as lamb
from ipujax.optim.loss_scale import LossScaleState as LossScaleState
from ipujax.optim.loss_scale import loss_scale as loss_scale
from ipujax.optim.loss_scale import scale_loss as scale_loss
from ipujax.optim.map_gradient import map_gradient as map_gradient
from ipujax.optim.offload_state import offload_state as offload_state
from ipujax.optim.rmsprop import RmspropState as RmspropState
from ipujax.optim.rmsprop import rmsprop as rmsprop
from ipujax.optim.sgd import SgdState as SgdState
from ipujax.optim.sgd import sgd as sgd
from ipujax.optim.sgd_combined import CombinedSgdState as CombinedSgdState
from ipujax.optim.shard_state import shard_state as shard_state

__doc__ = _with_names(globals())
