"""Settings and fixtures for all tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import jax
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent

# Inherited settings must not affect the tests; tests/sdk runs some of them with another extension.
KEPT = {"IPUJAX_CPP_TESTS"}
if "IPUJAX_TESTS_ON_SDK" in os.environ:
    KEPT |= {"IPUJAX_EXTENSION", "IPUJAX_MODEL_AS_IPU", "IPUJAX_TESTS_ON_SDK"}
for name in [n for n in os.environ if n.startswith(("IPUJAX_", "JAX_IPU_"))]:
    if name not in KEPT:
        del os.environ[name]

# The compiler's closer checks between its stages are always on in tests.
os.environ["IPUJAX_VERIFY"] = "1"

# Programs over several devices are compared with, or run on, as many CPU devices.
os.environ["JAX_IPU_DEVICE_COUNT"] = "8"
jax.config.update("jax_num_cpu_devices", 8)
#: The platforms of tests of replicated programs.
REPLICA_PLATFORMS = ("cpu", "ipu")

RunPython = Callable[..., "subprocess.CompletedProcess[str]"]

# Shells have background jobs ignore Ctrl-C, and so would the processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first: begun last, one would run while other processes idle."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(autouse=True)
def numbers_of_each_test(request: pytest.FixtureRequest) -> None:
    """A module's RNG begins anew for each test, so that its numbers depend on no other test."""
    rng = getattr(request.module, "RNG", None)
    if isinstance(rng, np.random.Generator):
        seed = zlib.crc32(request.node.name.encode())
        rng.bit_generator.state = np.random.default_rng(seed).bit_generator.state


@pytest.fixture(scope="session")
def run_python() -> RunPython:
    """Runs Python in a child process, with a changed environment."""

    def run(
        *arguments: str | Path, env: Mapping[str, str] | None = None, timeout: float = 300
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            env={**os.environ, **(env or {})},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run


@pytest.fixture
def device() -> jax.Device:
    return jax.devices("ipu")[0]


@pytest.fixture
def stats() -> Callable[..., int]:
    """`stats(name, device_id=0)`: a counter of the plugin."""
    jax.devices("ipu")
    from ipujax._poplar import _poplar

    def read(name: str, device_id: int = 0) -> int:
        return int(_poplar.device_stats()[device_id][name])

    return read


@pytest.fixture(params=REPLICA_PLATFORMS)
def replicas(request: pytest.FixtureRequest) -> Callable[[int], list[jax.Device]]:
    """`replicas(n)`: n devices of the platform under test."""

    def devices(count: int) -> list[jax.Device]:
        return jax.devices(request.param)[:count]

    return devices
