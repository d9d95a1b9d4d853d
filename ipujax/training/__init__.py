"""Training, evaluation and prediction in loops on the device: pure functions over feeds."""

from ipujax.host.module_help import with_names as _with_names
from ipujax.training.checkpoints import Checkpoint as Checkpoint
from ipujax.training.hooks import EarlyStop as EarlyStop
from ipujax.training.hooks import Evaluate as Evaluate
from ipujax.training.hooks import Hook as Hook
from ipujax.training.hooks import Log as Log
from ipujax.training.hooks import Profile as Profile
from ipujax.training.hooks import ProgressBar as ProgressBar
from ipujax.training.hooks import Summaries as Summaries
from ipujax.training.loop import Loop as Loop
from ipujax.training.run import Run as Run

__doc__ = _with_names(globals())
