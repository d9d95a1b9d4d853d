"""The built extension `_poplar`: the Poplar API in Python and the PJRT plugin, in one library.

`IPUJAX_EXTENSION` names the folder of another one: of a build against a Poplar SDK.
"""

import os

if os.environ.get("IPUJAX_EXTENSION"):
    __path__.insert(0, os.environ["IPUJAX_EXTENSION"])
