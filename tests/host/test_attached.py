"""IPUs that one process has for itself: other processes wait, fail, or get others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ipujax.errors import AttachError
from ipujax.host import attached

Run = Callable[..., "subprocess.CompletedProcess[str]"]

HOLD = """
import sys, time
from ipujax.host import attached
from ipujax.errors import AttachError
print(attached.attach([{count}], 4), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def private_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    yield tmp_path
    attached.detach()


@pytest.fixture
def other() -> Iterator[Callable[[int], subprocess.Popen[str]]]:
    """Starts a process that has so many of four IPUs, until it is killed or its input ends."""
    processes: list[subprocess.Popen[str]] = []

    def start(count: int) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD.format(count=count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stdout is not None
        process.first = process.stdout.readline().strip()  # type: ignore[attr-defined]
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_groups_begin_at_multiples_and_share_no_ipu():
    assert attached.attach([1, 2, 1], 8) == [0, 2, 1]
    assert attached.held() == [0, 1, 2, 3]
    assert attached.attach([2], 8, groups=[(6, 2)]) == [6]
    assert attached.held() == [6, 7]  # what it had before is given back
    attached.detach()
    assert attached.held() == []


def test_more_than_there_are():
    with pytest.raises(AttachError, match="needs at most the 4 IPUs of the host; got devices of 5"):
        attached.attach([4, 1], 4)


def test_two_processes_have_different_ipus_and_the_third_none(other):
    assert other(2).first == "[0]"
    assert attached.attach([1], 4) == [2]
    with pytest.raises(AttachError) as caught:
        attached.attach([2, 1], 4)
    assert "needs 2 + 1 free IPUs of 4; got these attached: IPU 0 (process" in str(caught.value)
    assert attached.held() == []  # all or nothing
    with pytest.raises(AttachError, match="needs IPUs 0 to 1 of 4"):
        attached.attach([2], 4, groups=[(0, 2)])


def test_the_owners_are_known(other):
    process = other(2)
    attached.attach([1], 4)
    assert attached.owners(4) == {0: process.pid, 1: process.pid, 2: os.getpid()}


def test_a_killed_process_gives_its_ipus_back(other):
    process = other(4)
    with pytest.raises(AttachError):
        attached.attach([1], 4)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert attached.attach([4], 4) == [0]


def test_waiting_ends_when_ipus_are_free_or_time_is_up(other):
    process = other(4)
    begin = time.monotonic()
    with pytest.raises(AttachError, match=r"attached after 0.2 s"):
        attached.attach([1], 4, wait=True, seconds=0.2)
    assert 0.2 <= time.monotonic() - begin < 5
    process.terminate()  # it ends a little later
    assert attached.attach([4], 4, wait=True, seconds=60) == [0]


FORK = """
import os, time
from ipujax.host import attached
from ipujax.errors import AttachError
attached.attach([2], 4)
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
attached.detach()
print(attached.attach([4], 4))
os.kill(child, 9)
os.waitpid(child, 0)
"""


def test_a_forked_child_does_not_keep_its_parents_ipus(run_python: Run):
    run = run_python("-c", FORK)
    assert run.stdout.strip() == "[0]", run.stderr


def test_a_folder_that_others_may_enter_is_refused(private_folder: Path):
    folder = private_folder / f"ipujax-{os.getuid()}"
    folder.mkdir(mode=0o755)
    with pytest.raises(AttachError, match=r"that no other may enter; got mode drwxr-xr-x"):
        attached.attach([1], 4)
    folder.rmdir()
    (private_folder / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(private_folder / "elsewhere")
    with pytest.raises(AttachError, match=r"needs .* as a folder of this user"):
        attached.attach([1], 4)


def test_a_lock_file_that_is_a_link_is_not_followed(private_folder: Path):
    attached.attach([1], 4)
    attached.detach()
    lock = private_folder / f"ipujax-{os.getuid()}" / "ipu0.lock"
    lock.unlink()
    (private_folder / "precious").write_text("keep")
    lock.symlink_to(private_folder / "precious")
    with pytest.raises(AttachError, match="symbolic links"):
        attached.attach([1], 4)
    assert (private_folder / "precious").read_text() == "keep"
