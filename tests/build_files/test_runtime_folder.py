"""What runs saved programs without Python, as installed: `make runtime` makes the folder."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "build" / "runtime"


@pytest.fixture(autouse=True)
def _needs_the_folder() -> None:
    assert (RUNTIME / "lib").is_dir(), f"{RUNTIME} is not there: run make runtime"


def test_a_program_in_c_gives_what_jax_does(run_python):
    """The example: built by the host's compiler against the installed header and library."""
    ran = run_python(ROOT / "examples" / "deploying" / "run.py", RUNTIME)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    accuracies = re.findall(r"test accuracy in (\w+): ([\d.]+)", ran.stdout)
    assert [name for name, _ in accuracies] == ["JAX", "C"]
    assert float(accuracies[1][1]) == pytest.approx(float(accuracies[0][1]), abs=1e-3)
    assert float(accuracies[1][1]) > 0.95
    assert "takes points: float32[100, 2], 800 bytes" in ran.stdout


def test_the_library_shows_what_its_header_declares_and_nothing_else():
    library = RUNTIME / "lib" / "libipujax_runtime.so"
    shown = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout
    names = {line.split()[2] for line in shown.splitlines()}
    header = (RUNTIME / "include" / "ipujax_runtime.h").read_text()
    declared = set(re.findall(r"\b(ipujax_\w+)\(", header))
    assert len(declared) > 20
    assert names == declared


def test_the_library_needs_no_python():
    needed = subprocess.run(
        ["ldd", RUNTIME / "lib" / "libipujax_runtime.so"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "python" not in needed


def test_cmake_finds_it(tmp_path: Path):
    (tmp_path / "main.cpp").write_text(
        "#include <ipujax_runtime.h>\n#include <cstdio>\n"
        "int main() {\n  ipujax_session* s = nullptr;\n"
        '  const int status = ipujax_open("none", nullptr, &s);\n'
        '  std::printf("%s %d %s\\n", ipujax_version(), status, ipujax_last_message());\n}\n'
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES CXX)\n"
        "find_package(ipujax-runtime REQUIRED)\nadd_executable(p main.cpp)\n"
        "target_link_libraries(p PRIVATE ipujax::ipujax_runtime)\n"
    )
    cmake = ROOT / ".venv" / "bin" / "cmake"
    for command in (
        [cmake, "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={RUNTIME}"],
        [cmake, "--build", tmp_path / "build"],
    ):
        subprocess.run([*map(str, command)], check=True, capture_output=True)
    ran = subprocess.run([tmp_path / "build" / "p"], capture_output=True, text=True, check=True)
    assert re.match(
        r"0\.1\.0 2 \[load\] needs a file that can be read; got No such file", ran.stdout
    )
