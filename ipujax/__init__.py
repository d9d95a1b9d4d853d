"""JAX on Graphcore IPUs: `import jax` is enough, this package is found by its entry point."""

from ipujax.api.precision import precision as precision
from ipujax.api.verify import VerifyReport as VerifyReport
from ipujax.api.verify import verify as verify
from ipujax.config import IPUConfig as IPUConfig
from ipujax.errors import ConfigError as ConfigError
from ipujax.errors import IpuError as IpuError
from ipujax.errors import MismatchError as MismatchError
from ipujax.errors import OracleError as OracleError
from ipujax.errors import OutOfMemoryError as OutOfMemoryError
from ipujax.errors import UnsupportedDtypeError as UnsupportedDtypeError
from ipujax.errors import UnsupportedOpError as UnsupportedOpError

__version__ = "0.1.0"
