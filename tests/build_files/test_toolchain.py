"""What the build says where something is missing, and how it links the source tree."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def check(python: str, compiler: str) -> subprocess.CompletedProcess[str]:
    command = [ROOT / ".ci" / "check_toolchain.sh", python, compiler]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_all_there_says_nothing():
    run = check(sys.executable, "c++")
    assert (run.returncode, run.stdout + run.stderr) == (0, "")


def test_what_is_missing_is_named_with_the_command_that_installs_it():
    run = check("no-such-python", "no-such-compiler")
    assert run.returncode == 1
    assert "Python 3.11 to 3.13 (looked for: no-such-python)" in run.stderr
    assert "a C++ compiler (looked for: no-such-compiler)" in run.stderr
    assert "sudo apt-get install -y python3 python3-venv python3-dev g++" in run.stderr


def test_ci_says_so_where_it_may_not_install(tmp_path: Path):
    """Without root and sudo it names what is missing, and tries nothing."""
    for name, line in {"id": "echo 1000", "dirname": 'echo "${1%/*}"'}.items():
        tool = tmp_path / name
        tool.write_text(f"#!/bin/sh\n{line}\n")
        tool.chmod(0o755)
    bash = shutil.which("bash")
    assert bash
    command = [bash, str(ROOT / ".ci" / "run")]
    (tmp_path / "sh").symlink_to("/bin/sh")
    (tmp_path / "env").symlink_to("/usr/bin/env")
    run = subprocess.run(
        command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert "a C++ compiler (looked for: c++)" in run.stderr
    assert "\n  - make" in run.stderr
    assert "needs root or sudo to install what is missing; got neither" in run.stderr


def test_a_compiler_that_is_none_is_named(tmp_path: Path):
    fake = tmp_path / "old-g++"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    run = check(sys.executable, str(fake))
    assert run.returncode == 1
    assert "old-g++ is not one. Set CXX=<a newer one>" in run.stderr


def test_make_alone_lists_every_target():
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = "setup build demo test tiny cpp bench lint format types docs asan tsan wheel clean"
    assert [word for word in targets.split() if f"\n  {word} " not in shown] == []


def test_link_makes_an_importable_distribution_with_the_entry_point(tmp_path: Path):
    tool = runpy.run_path(str(ROOT / ".ci" / "dev_environment.py"))
    scripts = tmp_path / "bin"
    scripts.mkdir()
    for _ in range(2):
        tool["link"](tmp_path, scripts)
    (found,) = metadata.distributions(name="ipujax", path=[str(tmp_path)])
    (point,) = found.entry_points.select(group="jax_plugins")
    assert (point.name, point.value) == ("ipu", "ipujax.plugin")
    assert (tmp_path / "ipujax.pth").read_text().strip() == str(ROOT)
    assert {str(file) for file in found.files or ()} >= {"ipujax.pth", "bin/ipujax"}
    command = [scripts / "ipujax", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "convert" in shown
