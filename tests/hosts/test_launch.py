"""`ipujax launch` starts, watches and ends the processes of a job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ipujax.errors import ConfigError
from ipujax.launch.plan import plan_of
from tests.hosts.jobs import ROOT, launch, script

_SHOW = """
import os
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "RESTART_COUNT")
print(*(os.environ[name] for name in names), os.environ["JAX_IPU_VISIBLE_DEVICES"],
      os.environ["IPUJAX_NUM_THREADS"], len(os.sched_getaffinity(0)), os.environ["MINE"])
"""


def test_processes_know_their_rank_ipus_and_cores(tmp_path: Path) -> None:
    ended = launch(["-n", 3, "--replicas", 6, *script(tmp_path, _SHOW)], tmp_path, {"MINE": "kept"})
    assert ended.returncode == 0, ended.stderr
    cores = max(1, len(os.sched_getaffinity(0)) // 3)
    expected = [f"[{r}] {r} {r} 3 3 0 {2 * r},{2 * r + 1} {cores} {cores} kept" for r in range(3)]
    assert sorted(ended.stdout.splitlines()) == expected
    logs = {path.name: path.read_text() for path in (tmp_path / "logs").iterdir()}
    assert logs == {f"{r}.log": f"{expected[r][4:]}\n" for r in range(3)}


def test_jobs_see_all_devices_without_arguments(tmp_path: Path) -> None:
    text = """
import jax
jax.distributed.initialize()
local = [each.id for each in jax.local_devices()]
assert {each.slice_index for each in jax.devices()} == {0}  # one host
print(jax.process_index(), jax.process_count(), jax.device_count(), local)
"""
    ended = launch(["-n", 2, "--replicas", 4, *script(tmp_path, text)], tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.splitlines()) == ["[0] 0 2 4 [0, 1]", "[1] 1 2 4 [2, 3]"]


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        ("raise ValueError('my own mistake')", 1, "ValueError: my own mistake"),
        ("os._exit(7)", 7, "exit code 7"),
        ("os.kill(os.getpid(), 9)", 137, "signal 9"),
    ],
)
def test_the_first_failure_ends_all(tmp_path: Path, failure: str, code: int, said: str) -> None:
    text = f"""
import os, time
if os.environ["RANK"] == "1":
    {failure}
time.sleep(100)
"""
    begin = time.monotonic()
    ended = launch(["-n", 3, *script(tmp_path, text)], tmp_path)
    assert time.monotonic() - begin < 60
    assert ended.returncode == code
    assert "[launch] rank 1 failed first" in ended.stderr
    assert said in ended.stderr


def test_the_rank_that_raised_is_named_though_others_end_before(tmp_path: Path) -> None:
    """It sits in JAX's barrier until the others, which miss it, have ended."""
    text = """
import jax
jax.distributed.initialize()
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((jax.device_count(),), ("x",))
x = jax.device_put(np.ones((jax.device_count(), 2), np.float32), NamedSharding(mesh, P("x")))
f = jax.jit(lambda x: x.sum(0))
f(x).block_until_ready()
if jax.process_index() == 1:
    raise ValueError("my own mistake")
f(x).block_until_ready()
"""
    ended = launch(["-n", 3, *script(tmp_path, text)], tmp_path)
    assert ended.returncode == 1
    assert "[launch] rank 1 failed first" in ended.stderr
    assert ended.stderr.rstrip().endswith("ValueError: my own mistake")


def test_a_job_starts_again_after_a_failure(tmp_path: Path) -> None:
    text = """
import os
print("try", os.environ["RESTART_COUNT"])
assert os.environ["RESTART_COUNT"] == "2" or os.environ["RANK"] == "0"
"""
    command = script(tmp_path, text)
    assert launch(["-n", 2, "--restarts", 1, *command], tmp_path).returncode == 1
    ended = launch(["-n", 2, "--restarts", 2, *command], tmp_path)
    assert ended.returncode == 0
    assert ended.stdout.count("try 2") == 2
    assert ended.stderr.count("failed first") == 2


def test_ctrl_c_ends_all(tmp_path: Path) -> None:
    command = script(tmp_path, "import time\nprint('begun')\ntime.sleep(100)\n")
    given = ["-m", "ipujax", "launch", "-n", "2", "--logs", str(tmp_path), *command]
    begin = time.monotonic()
    with subprocess.Popen(
        [sys.executable, *given], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as launcher:
        assert launcher.stdout is not None
        begun = 0
        while begun < 2:
            begun += b"begun" in launcher.stdout.readline()
        launcher.send_signal(signal.SIGINT)
        rest = launcher.stdout.read()
    assert launcher.returncode == 130
    assert b"ended all processes after Ctrl-C" in rest
    assert time.monotonic() - begin < 60


def test_a_plan_can_be_read_before(tmp_path: Path) -> None:
    options = ["-n", 4, "--replicas", 8, "--ipus-per-replica", 2, "--dry-run"]
    ended = launch([*options, "--hosts", "a,b", "train.py", "--lr", "1"], tmp_path)
    assert ended.stdout.splitlines() == [
        "rank 0: a, 2 devices, IPUs 0 to 3",
        "rank 1: a, 2 devices, IPUs 4 to 7",
        "rank 2: b, 2 devices, IPUs 0 to 3",
        "rank 3: b, 2 devices, IPUs 4 to 7",
        f"each runs: {sys.executable} train.py --lr 1",
    ]
    assert not (tmp_path / "logs").exists()


def test_other_hosts_are_reached_by_mpiexec() -> None:
    plan = plan_of(["train.py"], 4, 4, 1, ["a", "b"])
    (command,) = plan.commands("10.0.0.1:99", 98, 0)
    assert command[:8] == ["mpiexec", "-hosts", "a,b", "-n", "4", "-ppn", "2", "-prepend-rank"]
    assert command[-2:] == [sys.executable, "train.py"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((["a.py"], 0, None, 1), "at least one process, replica and IPU"),
        ((["a.py"], 3, 4, 1), "4 replicas, 3 processes and 1 hosts"),
        ((["a.py"], 3, 3, 1, ["a", "b"]), "3 replicas, 3 processes and 2 hosts"),
        (([], 2, None, 1), "needs a command; got none"),
    ],
)
def test_what_cannot_be_divided_is_refused(arguments: tuple, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        plan_of(*arguments)


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    ended = launch(["-n", 2, "no-such-program"], tmp_path)
    assert ended.returncode == 1
    assert "'no-such-program', which is not found" in ended.stderr


def test_other_hosts_need_mpiexec(tmp_path: Path) -> None:
    ended = launch(["-n", 1, "--hosts", "127.0.0.1", "a.py"], tmp_path, {"PATH": "/nowhere"})
    assert ended.returncode == 1
    assert "needs mpiexec to start processes on other hosts; got none" in ended.stderr
