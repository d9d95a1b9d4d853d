"""What ends one process is an error in all others, with the cause."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.hosts import kills
from tests.hosts.jobs import ROOT, launch, script

_BEGIN = """
import os, signal, sys, time
import jax
jax.distributed.initialize()
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
rank, count = jax.process_index(), jax.process_count()
mesh = jax.make_mesh((jax.device_count(),), ("x",))
values = np.arange(8.0 * jax.device_count(), dtype=np.float32).reshape(-1, 8)
x = jax.make_array_from_callback(
    values.shape, NamedSharding(mesh, P("x")), lambda index: values[index]
)

@jax.jit
def step(x):
    return jnp.sum(x, axis=0)

step(x).block_until_ready()
"""
_END = """
def fails():
    begin = time.monotonic()
    for _ in range(2):
        try:
            step(x).block_until_ready()
            print("ran", flush=True)
        except jax.errors.JaxRuntimeError as error:
            print(f"raised after {time.monotonic() - begin:.0f} s: {error}", flush=True)
fails()
time.sleep(2)  # others may be late
os._exit(0)  # not to wait for those that are gone
"""


def _job(folder: Path, middle: str, size: int = 3, env: dict[str, str] | None = None) -> list[str]:
    """The lines that each rank printed."""
    command = script(folder, _BEGIN + middle + _END)
    launch(["-n", size, *command], folder, env)
    return [(folder / "logs" / f"{rank}.log").read_text() for rank in range(size)]


def test_a_killed_process_is_an_error_at_once(tmp_path: Path) -> None:
    logs = _job(tmp_path, "if rank == 1: os.kill(os.getpid(), signal.SIGKILL)\n")
    for rank in (0, 2):
        lines = [line for line in logs[rank].splitlines() if "raised after 0 s" in line]
        assert len(lines) == 2, logs[rank]
        assert "got a closed connection from process 1" in lines[0]
        assert f"while process {rank} was at jit(step)/reduce_sum" in lines[0]
        assert "job.py:" in lines[0]
        assert "of jit_step. See what process 1 printed" in lines[0]
        assert lines[1] == lines[0]


def test_a_silent_process_is_an_error_in_time(tmp_path: Path) -> None:
    logs = _job(tmp_path, "if rank == 1: time.sleep(6)\n", env={"IPUJAX_HOST_TIMEOUT": "2"})
    for rank in (0, 2):
        assert "raised after 2 s" in logs[rank], logs[rank]
        assert "got no answer from process 1" in logs[rank]


def test_a_process_that_ends_early_says_so(tmp_path: Path) -> None:
    logs = _job(tmp_path, "if rank == 1: sys.exit()\n")
    for rank in (0, 2):
        assert "got the end of process 1, while another one waits for it" in logs[rank]


def test_a_callback_that_raises_is_the_error_of_all(tmp_path: Path) -> None:
    logs = _job(
        tmp_path,
        """
def look(a):
    if rank == 1: raise ValueError("not this one")
    return a

def mapped(x):
    seen = jax.pure_callback(look, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    return jax.lax.psum(seen, "x")

step = jax.jit(jax.shard_map(mapped, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False))
""",
    )
    assert "not this one" in logs[1]
    for rank in (0, 2):
        assert "got a failure of process 1" in logs[rank], logs[rank]
        assert "not this one" in logs[rank]


def test_programs_that_differ_are_named_on_both_sides(tmp_path: Path) -> None:
    logs = _job(
        tmp_path,
        "if rank == 1:\n    @jax.jit\n    def step(x):\n        return jnp.max(x, axis=0)\n",
        2,
    )
    for rank, log in enumerate(logs):
        assert "needs all processes to run the same programs in the same order" in log
        assert f"on process {rank} and jit(step)" in log
        assert f"on process {1 - rank}" in log
        assert "reduce_max" in log
        assert "raised after 0 s" in log


def test_constants_that_differ_are_noticed(tmp_path: Path) -> None:
    """As from a random seed that each process draws: its program would be another one."""
    logs = _job(tmp_path, "step = jax.jit(lambda x: jnp.sum(x, 0) + jnp.arange(8.0) * rank)\n", 2)
    for log in logs:
        assert "needs all processes to run the same programs" in log
        assert "which differ in other parts" in log


def test_a_call_inside_of_a_callback_is_refused(tmp_path: Path) -> None:
    logs = _job(
        tmp_path,
        """
def inside(a):
    try:
        step(x)
        print("called")
    except Exception as error:
        print("refused:", error, flush=True)
    return a

local = jax.jit(lambda a: jax.pure_callback(inside, jax.ShapeDtypeStruct((), a.dtype), a))
local(jax.device_put(np.float32(1), jax.local_devices()[0])).block_until_ready()
""",
        2,
    )
    for log in logs:
        assert "needs programs over several processes to be called outside of host callbacks" in log
        assert log.count("ran") == 2


def test_processes_with_other_options_do_not_begin(tmp_path: Path) -> None:
    command = script(
        tmp_path,
        """
import os
import random
if os.environ["RANK"] == "1":
    os.environ["IPUJAX_X64"] = "demote"
import jax
jax.distributed.initialize()
try:
    jax.devices()
except RuntimeError as error:
    print(error, flush=True)
os._exit(0)
""",
    )
    ended = launch(["-n", 2, *command], tmp_path)
    for rank in (0, 1):
        text = (tmp_path / "logs" / f"{rank}.log").read_text()
        assert "needs all processes to have the same options of programs" in text, ended
        assert '"defaults" in process 0' in text
        assert '"x64=demote" in process 1' in text


def test_processes_may_have_unequal_numbers_of_devices(tmp_path: Path) -> None:
    command = script(
        tmp_path,
        """
import os
import random
os.environ["JAX_IPU_VISIBLE_DEVICES"] = "0" if os.environ["RANK"] == "0" else "1,2,3"
"""
        + _BEGIN
        + """
devices = [(each.id, each.process_index) for each in jax.devices()]
print(devices, len(jax.local_devices()), np.asarray(step(x)).tolist())
""",
    )
    ended = launch(["-n", 2, *command], tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    total = [48.0, 52.0, 56.0, 60.0, 64.0, 68.0, 72.0, 76.0]
    for rank, own in ((0, 1), (1, 3)):
        line = f"[{rank}] [(0, 0), (1, 1), (2, 1), (3, 1)] {own} {total}"
        assert line in ended.stdout.splitlines(), ended.stdout


def test_two_processes_with_one_id_are_refused(tmp_path: Path) -> None:
    """By JAX's coordinator; nothing hangs."""
    text = """
import sys, jax
jax.distributed.initialize(sys.argv[1], 2, 0, initialization_timeout=8)
print("met", jax.devices())
"""
    command = script(tmp_path, text)
    with socket.socket() as probe:
        probe.bind(("", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    both = [
        subprocess.Popen(
            [*command, address], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for _ in range(2)
    ]
    begin = time.monotonic()
    outputs = [each.communicate(timeout=120)[0] for each in both]
    assert time.monotonic() - begin < 100
    assert all(each.returncode != 0 for each in both), outputs


def test_ctrl_c_ends_a_process_that_waits(tmp_path: Path) -> None:
    logs = _job(
        tmp_path,
        """
if rank == 0:
    import threading
    threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    try:
        step(x).block_until_ready()
    except KeyboardInterrupt:
        print(f"interrupted after {time.monotonic() - begin:.0f} s", flush=True)
    time.sleep(5)
else:
    time.sleep(4)
""",
        2,
    )
    assert "interrupted after" in logs[0], logs
    seconds = int(logs[0].split("interrupted after ")[1].split(" ")[0])
    assert seconds <= 3
    assert "got a failure of process 0" in logs[1], logs[1]


def test_no_process_outlives_its_launcher(tmp_path: Path) -> None:
    marker = f"outlives-{os.getpid()}"
    command = script(tmp_path, "import time\nprint('begun', flush=True)\ntime.sleep(60)\n")
    given = ["-m", "ipujax", "launch", "-n", "2", "--logs", str(tmp_path), *command, marker]
    with subprocess.Popen([sys.executable, *given], cwd=ROOT, stdout=subprocess.PIPE) as launcher:
        assert launcher.stdout is not None
        for _ in range(2):
            assert b"begun" in launcher.stdout.readline()
        launcher.kill()
    deadline = time.monotonic() + 10
    while _running(marker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _running(marker)


def _running(marker: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if marker.encode() in words:
            found.append(path.parent.name)
    return found


def test_a_job_that_loses_a_process_ends_with_the_same_bits(tmp_path: Path) -> None:
    wanted, _ = kills.run(tmp_path / "whole")
    found, killed = kills.run(tmp_path / "killed", random.Random(3))
    assert killed
    assert found == wanted
