"""Checks the installation for commands that run or compile programs."""

from __future__ import annotations

import os
from importlib import import_module

from ipujax.config import options as config
from ipujax.config.process_variables import check_process_variables
from ipujax.errors import missing_extension


def check_installation() -> None:
    """Checks what would otherwise fail late, or inside JAX with a traceback.

    Raises:
        IpuError: an environment variable has a wrong value, or there is no extension.
    """
    check_process_variables(os.environ)  # the extension reads some as it is loaded
    try:
        import_module("ipujax._poplar._poplar")
    except ImportError as error:
        raise missing_extension(error) from None
    config.from_environment()
