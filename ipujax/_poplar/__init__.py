"""The built extension `_poplar`: the Poplar API in Python and the PJRT plugin, in one library.

`IPUJAX_EXTENSION` names the folder of another one: of a build against a Poplar SDK.
"""

import importlib.machinery
import os

if os.environ.get("IPUJAX_EXTENSION"):
    __path__.insert(0, os.environ["IPUJAX_EXTENSION"])

# Without the library, Python would import the folder of its type stubs as an empty package.
_found = importlib.machinery.PathFinder.find_spec(f"{__name__}._poplar", __path__)
if _found is None or _found.origin is None:
    raise ImportError(
        f"no {'_poplar' + importlib.machinery.EXTENSION_SUFFIXES[0]} in {__path__[0]}"
    )
