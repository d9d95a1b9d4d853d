"""`ipu.runtime`: programs that `ipu.precompile` saved, run without JAX.

Importing it does not import JAX; arrays are NumPy's.
"""

from ipujax.host.module_help import with_names as _with_names
from ipujax.runtime.folder import folder as folder
from ipujax.runtime.session import Batcher as Batcher
from ipujax.runtime.session import Run as Run
from ipujax.runtime.session import Session as Session

__doc__ = _with_names(globals())
