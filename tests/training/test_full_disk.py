"""Checkpoints and JAX's cache on a full disk: an error, and what was there before is whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: A small disk in memory, which only the process that is started sees.
MOUNT = 'mount -t tmpfs -o size=$1 tmpfs "$2" && shift 2 && exec "$@"'
UNSHARE = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNT, "sh"]


def _with_disk(folder: Path, size: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*UNSHARE, size, str(folder), *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.parametrize(("what", "size"), [("files", "7m"), ("orbax", "7m"), ("cache", "300k")])
def test_a_full_disk_is_an_error_and_nothing_is_lost(what: str, size: str, tmp_path: Path):
    if sys.platform != "linux" or _with_disk(tmp_path, "1m", "true").returncode:
        pytest.skip("this machine does not let users mount a small disk (unshare --user --mount)")
    done = _with_disk(
        tmp_path, size, sys.executable, "-m", "tests.training.on_full_disk", str(tmp_path), what
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert done.stdout.endswith("passed\n")
