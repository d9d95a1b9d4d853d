"""Files that are complete or absent, also of processes that are killed."""

from __future__ import annotations

import fcntl
import os
import platform
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import ipujax as ipu
from ipujax.host import array_files
from ipujax.host.new_files import replacing


def test_a_file_appears_when_it_is_complete(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["file"]  # this file system has files without a name
    assert path.read_bytes() == b"new"
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(b"other" + b"x" * (1 // 0))
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_errors_name_the_file(tmp_path: Path):
    absent = tmp_path / "none" / "file"
    with pytest.raises(FileNotFoundError, match="none/file"), replacing(absent):
        pass
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="folder"), replacing(tmp_path / "folder"):
        pass
    assert os.listdir(tmp_path) == ["folder"]


def test_descriptors_are_closed(tmp_path: Path):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with replacing(tmp_path / "file"):
            pass
        with pytest.raises(FileNotFoundError), replacing(tmp_path / "none" / "file"):
            pass
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_killed_processes_left_is_removed(tmp_path: Path):
    """As on file systems that have no files without a name."""
    abandoned = tmp_path / ".a.0123456789abcdef.ipujax-partial"
    in_use = tmp_path / ".b.0123456789abcdef.ipujax-partial"
    other = tmp_path / ".a.0123456789abcdef.tmp"
    link = tmp_path / ".c.0123456789abcdef.ipujax-partial"
    for path in (abandoned, in_use, other):
        path.write_bytes(b"x")
    link.symlink_to(other)
    with in_use.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with replacing(tmp_path / "a") as new:
            new.write(b"y")
    assert set(tmp_path.iterdir()) == {tmp_path / "a", in_use, other, link}
    assert other.read_bytes() == b"x"


SAVING = """
    import sys
    from pathlib import Path
    import numpy as np
    import ipujax as ipu
    from ipujax.host import array_files

    kind, path = sys.argv[1], Path(sys.argv[2])
    rows = np.ones((1 << 12, 1 << 10), np.float32)  # 16 MB
    table = ipu.HostEmbedding(rows)
    program = ipu.precompile(lambda w: w[0], rows)
    save = {
        "arrays": lambda: array_files.write(path, {"rows": rows}, None),
        "program": lambda: program.save(path, weights={"w": rows}),
        "table": lambda: table.save(0, path),
    }[kind]
    save()
    print("saved", flush=True)
    while True:
        save()
"""

READING = {
    "arrays": lambda path: array_files.read(path)[0]["rows"],
    "program": lambda path: ipu.runtime.Session(path).weights["w"],
    "table": lambda path: ipu.HostEmbedding.load(path).read(0),
}


@pytest.mark.parametrize("kind", READING)
def test_a_process_killed_while_it_saves_leaves_a_whole_file(tmp_path: Path, kind: str):
    path = tmp_path / "file"
    code = textwrap.dedent(SAVING)
    with subprocess.Popen(
        [sys.executable, "-c", code, kind, str(path)], stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"saved\n"
        time.sleep(random.Random(kind).uniform(0, 0.1))
        child.send_signal(signal.SIGKILL)
    np.testing.assert_array_equal(READING[kind](path), np.ones((1 << 12, 1 << 10), np.float32))
    # Killed between two system calls it may have left a name.
    with replacing(path):
        pass
    assert os.listdir(tmp_path) == ["file"]


#: Makes open() fail for files without a name, as on NFS and FAT: a filter of system calls.
WITHOUT_NAMELESS = """
    import ctypes, errno, os, struct, sys, threading
    from pathlib import Path
    from ipujax.host.new_files import replacing

    LOAD, EQUAL, HAS_BIT, RETURN = 0x20, 0x15, 0x45, 0x06  # LD, JEQ, JSET, RET of BPF
    OPENAT, ALLOW, FAIL = 257, 0x7FFF0000, 0x00050000
    TMPFILE = os.O_TMPFILE & ~os.O_DIRECTORY
    filter_ = [
        (LOAD, 0, 0, 0),  # the number of the call
        (EQUAL, 0, 3, OPENAT),
        (LOAD, 0, 0, 16 + 8 * 2),  # its third argument: flags
        (HAS_BIT, 0, 1, TMPFILE),
        (RETURN, 0, 0, FAIL | errno.EOPNOTSUPP),
        (RETURN, 0, 0, ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in filter_))
    program = struct.pack("HxxxxxxQ", len(filter_), ctypes.addressof(code))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(38, 1, 0, 0, 0) or prctl(22, 2, program, 0, 0):  # no new privileges; seccomp
        sys.exit("no filter")
    try:
        os.open(".", os.O_TMPFILE | os.O_RDWR)
    except OSError as error:
        assert error.errno == errno.EOPNOTSUPP

    path = Path(sys.argv[1]) / "file"
    path.write_bytes(b"old")

    def names():
        return sorted(each.name for each in path.parent.iterdir())

    with replacing(path) as file:
        file.write(b"new")
        (partial,) = set(names()) - {"file"}
        assert partial.startswith(".file.") and partial.endswith(".ipujax-partial"), partial
        with replacing(path.parent / "other"):  # takes no file that is in use for abandoned
            assert partial in names()
        assert path.read_bytes() == b"old"
    assert (path.read_bytes(), names()) == (b"new", ["file", "other"])
    try:
        with replacing(path) as file:
            file.write(b"x" * (1 // 0))
    except ZeroDivisionError:
        pass
    assert (path.read_bytes(), names()) == (b"new", ["file", "other"])

    def write(number):
        for _ in range(100):
            with replacing(path.parent / f"{number % 2}") as file:
                file.write(bytes([number]) * 1000)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names() == ["0", "1", "file", "other"], names()
    for each in "01":
        content = (path.parent / each).read_bytes()
        assert len(content) == 1000 and len(set(content)) == 1
    print("passed")
"""


def test_on_file_systems_without_nameless_files(tmp_path: Path):
    if platform.machine() != "x86_64":
        pytest.skip("the filter has the numbers of system calls on x86-64")
    code = textwrap.dedent(WITHOUT_NAMELESS)
    command = [sys.executable, "-c", code, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    if ran.stderr == "no filter\n":
        pytest.skip("this machine lets no process filter its system calls (seccomp)")
    assert (ran.stdout, ran.returncode) == ("passed\n", 0), ran.stderr
