"""The built extension `_poplar`: the Poplar API in Python and the PJRT plugin, in one library."""
