"""Reports what is installed and found, and tests that a program compiles and computes correctly."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

PACKAGES = ("ipujax", "jax", "jaxlib", "numpy", "scipy-openblas32")


def versions() -> str:
    """Versions of Python and the main packages; raises for an untested series of jax."""
    from ipujax import jax_compat

    found = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    jax_compat.check_versions()
    return f"Python {platform.python_version()}, {found}"


def entry_point() -> str:
    """How JAX finds the plugin."""
    points = metadata.entry_points(group="jax_plugins")
    values = [point.value for point in points if point.name == "ipu"]
    if values != ["ipujax.plugin"]:
        raise LookupError(
            f"[doctor] needs the entry point jax_plugins: ipu = ipujax.plugin; got {values}. "
            "Install ipujax with pip, or run make setup."
        )
    return "jax_plugins: ipu = ipujax.plugin"


def extension() -> str:
    from ipujax._poplar import _poplar

    return f"{_poplar.__file__}, built for the {_poplar.backend}"


def poplar_sdk() -> str:
    """Never fails: the IPU Model does not need the SDK."""
    from ipujax._poplar import _poplar

    uses = f"this build uses the {_poplar.backend}"
    root = os.environ.get("POPLAR_SDK_ENABLED")
    compiler = shutil.which("popc")
    if root and not (Path(root) / "include" / "poplar" / "Graph.hpp").is_file():
        return f"no headers in POPLAR_SDK_ENABLED={root}; {uses}"
    if root or compiler:
        return f"found at {root or compiler}; {uses}"
    return f"not found; {uses}"


def options() -> str:
    from ipujax import config

    tree = config.from_environment()
    return f"{tree.machine}, {tree.compile}"


def devices() -> str:
    from ipujax.cli.devices import describe

    found = describe()
    return f"{len(found)} x {found[0]['kind']}, {found[0]['num_tiles']} tiles each"


def self_test() -> str:
    """A jitted gradient step against NumPy, on the first IPU, with its cost."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, 16)).astype(np.float32)
    w = rng.standard_normal((16, 8)).astype(np.float32)

    def loss(weights: jax.Array, inputs: jax.Array) -> jax.Array:
        return jnp.mean(jnp.tanh(inputs @ weights) ** 2)

    device = jax.devices("ipu")[0]
    step = jax.jit(jax.value_and_grad(loss))
    value, gradient = step(jax.device_put(w, device), jax.device_put(x, device))
    hidden = np.tanh(x @ w)
    wanted = x.T @ (2 * hidden * (1 - hidden**2)) / hidden.size
    np.testing.assert_allclose(value, np.mean(hidden**2), rtol=1e-5)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-4, atol=1e-6)
    compiled = step.lower(jax.device_put(w, device), jax.device_put(x, device)).compile()
    cycles = compiled.cost_analysis().get("cycles")
    known = f"{cycles:,.0f} cycles a step" if cycles else "cycles not known"
    return f"correct; {known} on {device}"


CHECKS: dict[str, Callable[[], str]] = {
    "versions": versions,
    "entry point": entry_point,
    "extension": extension,
    "Poplar SDK": poplar_sdk,
    "options": options,
    "devices": devices,
    "self-test": self_test,
}


def run(arguments: argparse.Namespace) -> int:
    del arguments
    failed = 0
    for name, check in CHECKS.items():
        try:
            print(f"ok    {name:12} {check()}")
        # Every kind of failure is reported, and the next check runs.
        except Exception as error:
            failed += 1
            first = (str(error).splitlines() or [""])[0]
            print(f"FAIL  {name:12} {type(error).__name__}: {first}")
        sys.stdout.flush()
    print("all checks passed" if not failed else f"{failed} of {len(CHECKS)} checks failed")
    return 1 if failed else 0
