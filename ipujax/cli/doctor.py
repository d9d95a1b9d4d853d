"""Reports what is installed and found, and tests that a program compiles and computes correctly."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from ipujax.errors import missing_extension

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
    try:
        from ipujax._poplar import _poplar
    except ImportError as error:
        raise missing_extension(error) from None
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


def processes() -> str:
    """Whether programs can span processes; never fails, as one process needs nothing for it."""
    from ipujax._poplar import _poplar

    if _poplar.can_connect_processes():
        return "programs can span processes, by gloo"
    return "programs cannot span processes: no gloo (apt-get install libgloo-dev, make build)"


def options() -> str:
    from ipujax.config import options as config

    tree = config.from_environment()
    return f"{tree.machine}, {tree.compile}"


def devices() -> str:
    from ipujax.cli.devices import describe

    found = describe()
    return f"{len(found)} x {found[0]['kind']}, {found[0]['num_tiles']} tiles each"


def default_platform() -> str:
    """Where JAX runs programs that name no device; never fails, as it may be intended."""
    import jax

    found = jax.default_backend()
    if found == "ipu":
        return "ipu; libraries that set jax_platform_name on import, as veros and sax do, change it"
    return f"{found}, not ipu: unset JAX_PLATFORM_NAME, JAX_PLATFORMS and jax_platform_name"


def self_test() -> str:
    """Compares a jitted gradient step on the first IPU with NumPy; returns its cost."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, 16)).astype(np.float32)
    w = rng.standard_normal((16, 8)).astype(np.float32)

    def loss(weights: jax.Array, inputs: jax.Array) -> jax.Array:
        return jnp.mean(jnp.tanh(inputs @ weights) ** 2)

    device = jax.local_devices(backend="ipu")[0]
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
    "processes": processes,
    "options": options,
    "devices": devices,
    "default": default_platform,
    "self-test": self_test,
}


class Outcome(NamedTuple):
    """The result of a check."""

    check: str
    passed: bool
    message: str


def outcomes() -> Iterator[Outcome]:
    """Runs the checks, one after another; every kind of failure is an outcome."""
    for name, check in CHECKS.items():
        try:
            yield Outcome(name, True, check())
        except Exception as error:
            first = (str(error).splitlines() or [""])[0]
            yield Outcome(name, False, f"{type(error).__name__}: {first}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    found = []
    for outcome in outcomes():
        found.append(outcome)
        if not arguments.json:
            verdict = "ok  " if outcome.passed else "FAIL"
            print(f"{verdict}  {outcome.check:12} {outcome.message}", flush=True)
    failed = sum(not outcome.passed for outcome in found)
    if arguments.json:
        checks = [outcome._asdict() for outcome in found]
        print(json.dumps({"passed": not failed, "checks": checks}, indent=2))
    else:
        print("all checks passed" if not failed else f"{failed} of {len(CHECKS)} checks failed")
    return 1 if failed else 0
