"""`ipu.devices`: devices of chosen IPUs, their order, and when a process attaches to them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import ipujax as ipu
from ipujax.compiler.selection_order import in_order
from ipujax.config import options as config
from ipujax.config.options import MachineConfig
from ipujax.errors import ConfigError

Run = Callable[..., "subprocess.CompletedProcess[str]"]

HEAD = """
import jax, jax.numpy as jnp, numpy as np, ipujax as ipu
from ipujax.host import attached
f = jax.jit(lambda x: x + 1)
x = np.arange(3, dtype=np.float32)
"""


@pytest.fixture
def run(run_python: Run, tmp_path: Path) -> Callable[..., str]:
    def call(code: str, **env: str) -> str:
        env = {"JAX_IPU_DEVICE_COUNT": "", "XDG_RUNTIME_DIR": str(tmp_path), **env}
        done = run_python("-c", HEAD + code, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_ids_are_single_ipus_then_groups():
    found = ipu.devices.ids()
    assert [each.id for each in found] == list(range(31))
    assert [len(each.ipus) for each in found] == [1] * 16 + [2] * 8 + [4] * 4 + [8] * 2 + [16]
    assert found[25].ipus == (4, 5, 6, 7)
    assert [each.id for each in ipu.devices.ids(num_ipus=16)] == [30]


@pytest.mark.parametrize(
    ("values", "ipus", "firsts"),
    [
        ({}, [1, 1, 1, 1], [0, 1, 2, 3]),
        ({"ipus_per_device": 3, "device_count": 2}, [3, 3], [0, 3]),
        ({"ipus_per_device": 2, "visible_devices": "1,3"}, [2, 2], [2, 6]),
        ({"visible_devices": "1,3"}, [1, 1], [1, 3]),
        ({"num_ipus": 4}, [4], [0]),
        ({"num_ipus": (1, 2)}, [1, 2], [0, 2]),
        ({"num_ipus": (3, 1), "auto_round_num_ipus": True}, [4, 1], [0, 4]),
        ({"device_ids": (24, 3)}, [4, 1], [0, 3]),
        ({"device_ids": 25}, [4], [4]),
    ],
)
def test_the_ipus_of_devices(values: dict[str, object], ipus: list[int], firsts: list[int]):
    machine: MachineConfig = ipu.IPUConfig().replace(**values).machine
    assert (machine.ipus, machine.first_ipus, machine.num_devices) == (ipus, firsts, len(ipus))


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        (
            {"IPUJAX_NUM_IPUS": "3"},
            "needs powers of two, which is how IPUs are linked; got 3. Use 4",
        ),
        ({"IPUJAX_NUM_IPUS": "2,0"}, "numbers of IPUs from 1 to 64, comma-separated"),
        ({"IPUJAX_NUM_IPUS": "1;2"}, "numbers of IPUs from 1 to 64"),
        ({"IPUJAX_DEVICE_IDS": "31"}, "device_ids needs ids below 31, as the host has 16 IPUs"),
        ({"IPUJAX_DEVICE_IDS": "1,1"}, "distinct device numbers"),
        ({"IPUJAX_DEVICE_IDS": "0,16"}, "got 0 and 16, which both have IPU 0. Run python"),
        ({"IPUJAX_DEVICE_IDS": "24,2"}, "got 24 and 2, which both have IPU 2. Run python"),
        ({"IPUJAX_SELECTION_ORDER": "spiral"}, "needs one of auto, zigzag, snake, hoof"),
        ({"IPUJAX_CONNECTION": "later"}, "needs one of always, on_demand, pre_compile, never"),
    ],
)
def test_wrong_choices(environment: dict[str, str], says: str):
    with pytest.raises(ConfigError) as caught:
        config.from_environment(environment)
    assert says in str(caught.value)


def test_select_takes_one_of_two(device):
    for arguments in ({}, {"num_ipus": 1, "ids": 1}, {"num_ipus": []}, {"ids": "1"}):
        with pytest.raises(ConfigError, match=r"\[devices.select\]"):
            ipu.devices.select(**arguments)
    with pytest.raises(ConfigError, match="before JAX makes its devices"):
        ipu.devices.select(num_ipus=2)


def test_devices_of_different_numbers_of_ipus(run):
    code = """
one, two = ipu.devices.select(num_ipus=(1, 2))
limits = [each.memory_stats()["bytes_limit"] for each in (one, two)]
print(one.num_ipus, two.num_ipus, limits[1] / limits[0])
def staged(x):
    with ipu.shard(1):
        return x * 2
print(jax.jit(staged)(jax.device_put(x, two)), f(jax.device_put(x, one)))
try:
    jax.jit(staged)(jax.device_put(x, one))
except jax.errors.JaxRuntimeError as error:
    print(str(error)[:80])
try:
    jax.pmap(lambda v: v + 1)(np.zeros((2, 2), np.float32))
except jax.errors.JaxRuntimeError as error:
    print(str(error))
"""
    lines = run(code).splitlines()
    assert lines[0] == "1 2 2.0"
    assert lines[1] == "[0. 2. 4.] [1. 2. 3.]"
    assert "needs IPUs of the device, 0 to 0; got IPU 1" in lines[2]
    assert (
        "needs devices with equally many IPUs for one program; got 1 IPUs in device 0" in lines[3]
    )


def test_before_an_ipu_is_there(run, tmp_path: Path):
    """Compiled without IPUs, then run with them from the cache: nothing is compiled again."""
    cache = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")}
    cache["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    cache["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
    zeros = "ipu.devices.select(num_ipus=1, connection='pre_compile')\nprint(f(x), f(x + 1))"
    assert run(zeros, **cache) == "[0. 0. 0.] [0. 0. 0.]\n"
    entries = sorted(each.name for each in (tmp_path / "cache").iterdir())
    assert run("ipu.devices.select(num_ipus=1)\nprint(f(x))", **cache) == "[1. 2. 3.]\n"
    assert sorted(each.name for each in (tmp_path / "cache").iterdir()) == entries
    never = """
ipu.devices.select(num_ipus=1, connection="never", target="ipu21")
print(jax.devices()[0].device_kind, f.lower(x).compile().cost_analysis()["cycles"] > 0)
try:
    f(x).block_until_ready()
except jax.errors.JaxRuntimeError as error:
    print(error)
"""
    lines = run(never).splitlines()
    assert lines[0] == "IPU C600 Model True"
    assert 'needs IPUs to run on; got the connection "never"' in lines[1]


def test_a_target_without_streaming_memory(run):
    code = """
ipu.devices.select(num_ipus=1, connection="on_demand", remote_buffers=False)
host = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
try:
    jax.jit(lambda x: jax.device_put(x + 1, host))(x)
except jax.errors.JaxRuntimeError as error:
    print(error)
ipu.devices.select(num_ipus=1, remote_buffers=False, reset=True)
host = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
print(jax.jit(lambda x: jax.device_put(x + 1, host))(x))
"""
    lines = run(code).splitlines()
    assert "needs IPUs with streaming memory" in lines[0]
    assert lines[1] == "[1. 2. 3.]"


def test_orders_of_eight_ipus():
    assert in_order("zigzag", 8) == in_order("auto", 8) == list(range(8))
    assert in_order("snake", 16) == [0, 1, 3, 2, 4, 5, 7, 6, 8, 9, 11, 10, 12, 13, 15, 14]
    assert in_order("hoof", 16) == [0, 2, 4, 6, 8, 10, 12, 14, 15, 13, 11, 9, 7, 5, 3, 1]
    for name in ("zigzag", "snake", "hoof"):
        for count in (1, 2, 3, 4, 7):
            assert sorted(in_order(name, count)) == list(range(count))


def test_the_order_changes_what_copies_cost_and_not_the_result(run):
    """In the hoof IPUs 0 and 3 of a program are a pair, which twice as many links join."""
    code = """
def ends(x):
    with ipu.shard(0):
        a = x + 1
    with ipu.shard(3):
        return a * 2
big = np.arange(40_000, dtype=np.float32)
for order in ("zigzag", "snake", "hoof"):
    ipu.devices.select(num_ipus=4, order=order, reset=True)
    made = jax.jit(ends).lower(big).compile()
    assert (made(big) == (big + 1) * 2).all()
    print(made.cost_analysis()["cycles"])
"""
    zigzag, snake, hoof = map(float, run(code).split())
    assert hoof < 0.8 * zigzag
    assert snake <= zigzag


def test_processes_share_ipus_unless_asked(run):
    holds = "import subprocess, sys\nprint(len(jax.devices()), attached.held())\n"
    nested = holds + (
        "print(subprocess.run([sys.executable, '-c', 'import jax; print(len(jax.devices()))'],"
        " capture_output=True, text=True).stdout)"
    )
    assert run(nested).split() == ["4", "[]", "4"]


def test_processes_that_ask_contend(run):
    code = """
import os, subprocess, sys
ipu.devices.select(num_ipus=(2, 1), exclusive=True)
print(attached.held())
def other(**env):
    child = "import jax; from ipujax.host import attached; jax.devices(); print(attached.held())"
    return subprocess.run([sys.executable, "-c", child], capture_output=True, text=True,
                          env={**os.environ, **env})
shared = {"IPUJAX_EXCLUSIVE": "1", "IPUJAX_NUM_IPUS_IN_HOST": "4", "IPUJAX_NUM_IPUS": "1"}
print(other(**shared).stdout.strip())
failed = other(**shared, IPUJAX_DEVICE_IDS="1")
print("IPU 1 (process" in failed.stderr and "AttachError" in failed.stderr, failed.returncode)
print([each.processes == (os.getpid(),) for each in ipu.devices.ids()[:4]])
ipu.reset_config()
print(attached.held(), other(**shared).stdout.strip())
"""
    assert run(code).splitlines() == [
        "[0, 1, 2]",
        "[3]",
        "True 1",
        "[True, True, True, False]",
        "[] [0]",
    ]


def test_on_demand_attaches_before_the_first_program(run):
    code = """
ipu.devices.select(num_ipus=2, exclusive=True, connection="on_demand")
print(attached.held())
f(x)
print(attached.held())
"""
    assert run(code).splitlines() == ["[]", "[0, 1]"]


def test_the_command_lists_ids(run_python: Run, tmp_path: Path):
    env = {"XDG_RUNTIME_DIR": str(tmp_path), "IPUJAX_NUM_IPUS_IN_HOST": "4"}
    listed = run_python("-m", "ipujax", "devices", "--ids", env=env).stdout.splitlines()
    assert len(listed) == 7
    assert listed[4].split() == ["id", "4", "2", "IPU", "0,", "1"]
    found = json.loads(run_python("-m", "ipujax", "devices", "--ids", "--json", env=env).stdout)
    assert found[6] == {"id": 6, "ipus": [0, 1, 2, 3], "processes": []}
