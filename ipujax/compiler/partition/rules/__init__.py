"""How each op is made local. Importing this package registers all rules."""

import importlib
import pkgutil

for _room in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_room.name}")
