"""One rule per op: StableHLO op -> Poplar calls. Importing this package registers all of them.

A new file here needs no registration.
"""

import importlib
import pkgutil

for _room in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_room.name}")
