"""The built extension `_poplar`: the Poplar API bound to Python, and the PJRT plugin, in one library."""
