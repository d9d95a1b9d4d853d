"""What `make wheel` compiles has no paths of the machine that built it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pybind11
import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """Of each source file, as pyproject.toml has them built."""
    folder = tmp_path_factory.mktemp("wheel")
    options = {
        "CMAKE_MAKE_PROGRAM": TOOLS / "ninja",
        "Python_EXECUTABLE": sys.executable,
        "pybind11_DIR": pybind11.get_cmake_dir(),
        "IPUJAX_BUILD_EXTENSION": "ON",
        "IPUJAX_BUILD_WHEEL": "ON",
    }
    given = [f"-D{name}={value}" for name, value in options.items()]
    command = [TOOLS / "cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *given]
    subprocess.run(command, check=True, capture_output=True)
    return json.loads((folder / "compile_commands.json").read_text())


def test_names_of_sources_are_relative(commands: list[dict[str, str]]):
    assert len(commands) > 200
    for each in commands:
        assert f"-ffile-prefix-map={ROOT}/=" in each["command"], each["file"]
    headers = [x["command"] for x in commands if "/ipujax_bindings.dir/" in x["file"]]
    assert headers
    for command in headers:
        assert re.search(r"-ffile-prefix-map=\S*pybind11\S*/=", command)


def test_no_definition_is_a_path(commands: list[dict[str, str]]):
    for each in commands:
        definitions = [x for x in each["command"].split() if x.startswith("-D")]
        assert not any(str(ROOT) in x or str(Path.home()) in x for x in definitions), each["file"]
