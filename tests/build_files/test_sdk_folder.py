"""The IPU Model as a folder shaped like the Poplar SDK, and what is built against it.

`make sdk` makes the folder.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from tests.api.custom import test_custom_op_interface as interface

ROOT = Path(__file__).resolve().parents[2]
SDK = ROOT / "build" / "sdk"
PROGRAM = Path(__file__).parent / "sdk_program"
LIBRARIES = (
    "poputil",
    "popops",
    "poplin",
    "popnn",
    "poprand",
    "popsparse",
    "popfloat",
    "popsys",
    "gcl",
    "pvti",
    "pva",
)
#: ([[1, 2], [3, 4]] * 2) squared, plus 1
ANSWER = ["29", "41", "61", "89"]
LINK = [f"-l{name}" for name in (*reversed(LIBRARIES), "poplar")]
TIMEOUT_SECONDS = 550


@pytest.fixture(autouse=True)
def _needs_the_folder() -> None:
    assert (SDK / "lib").is_dir(), f"{SDK} is not there: run make sdk"


def run(*command: str | Path, folder: Path = ROOT) -> str:
    """What a command prints in a shell that has sourced the folder's enable.sh."""
    script = f'. "{SDK}/enable.sh" && exec "$@"'
    environment = {k: v for k, v in os.environ.items() if k != "IPUJAX_CODELET_INCLUDE"}
    done = subprocess.run(
        ["bash", "-c", script, "bash", *map(str, command)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def configure(source: Path, folder: Path, *options: str, build: bool = True) -> None:
    """Configures a project with CMake, and builds it."""
    tools = Path(sys.executable).parent
    ninja = [f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}"] if (tools / "ninja").exists() else []
    cmake = tools / "cmake" if (tools / "cmake").exists() else "cmake"
    cache = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    run(cmake, "-S", source, "-B", folder, "-G", "Ninja", *ninja, *cache, *options)
    if build:
        run(cmake, "--build", folder)


def test_headers_need_no_others_and_no_private_ones() -> None:
    include = SDK / "include"
    headers = [path for path in include.rglob("*") if path.is_file()]
    assert not [path for path in headers if "internal" in path.parts]
    for library in ("poplar", *LIBRARIES):
        public = {p.name for p in (ROOT / "cpp" / "model" / library).glob("*.hpp")}
        assert {p.name for p in (include / library).glob("*.hpp")} == public
    named = {
        (path, name)
        for path in headers
        for name in re.findall(r'^#include "(.*)"', path.read_text(), re.M)
    }
    beside = {(path, name) for path, name in named if (path.parent / name).exists()}
    assert not [(path, name) for path, name in named - beside if not (include / name).exists()]
    engine = {str(p.relative_to(include)) for p in (include / "engine").rglob("*") if p.is_file()}
    by_codelets = {
        name
        for path in headers
        for name in re.findall(r"^#include <(engine/.*)>", path.read_text(), re.M)
    }
    assert engine <= {name for _, name in named} | by_codelets


def test_the_extension_shows_python_jax_and_libraries_of_custom_ops() -> None:
    from ipujax._poplar import _poplar

    shown = set(run("nm", "-D", "--defined-only", _poplar.__file__).split()[2::3])
    assert {"PyInit__poplar", "GetPjrtApi"} <= shown
    names = run("c++filt", *sorted(shown - {"PyInit__poplar", "GetPjrtApi"})).splitlines()
    libraries = "|".join(("poplar", "poplibs", *LIBRARIES))  # poplibs: poputil/OptionParsing.hpp
    of_data = r"(?:typeinfo for|typeinfo name for|vtable for|guard variable for) "
    called_by_headers = r"ipujax::engine::(?:nameOf|reducerOf|machine)"
    public = re.compile(rf"(?:{of_data})?(?:.*? )?(?:(?:{libraries})::|{called_by_headers})")
    assert not [name for name in names if not public.match(name)]
    assert any(name.startswith("poplar::Graph::addVariable(") for name in names)


def test_a_program_is_found_by_cmake(tmp_path: Path) -> None:
    configure(PROGRAM, tmp_path)
    assert run(tmp_path / "program", PROGRAM / "double.cpp").split() == ANSWER


def test_a_program_is_linked_by_names_and_the_folder_moves(tmp_path: Path) -> None:
    run("c++", "-std=c++17", PROGRAM / "program.cpp", *LINK, "-o", tmp_path / "program")
    moved = tmp_path / "moved"
    shutil.copytree(SDK, moved, symlinks=True)
    environment = f"LD_LIBRARY_PATH={moved / 'lib'}"
    command = ["env", environment, tmp_path / "program", PROGRAM / "double.cpp"]
    assert run(*command).split() == ANSWER


def test_popc_makes_files_that_programs_load(tmp_path: Path) -> None:
    library = tmp_path / "a folder"
    library.mkdir()
    (library / "number.hpp").write_text("constexpr int kTwo = 2;\n")
    text = (PROGRAM / "double.cpp").read_text()
    (tmp_path / "double.cpp").write_text(
        f"#include <number.hpp>\nstatic_assert(kTwo == TWO);\n{text}"
    )
    made = tmp_path / "double.gp"
    options = ["-I", library, "-DTWO=2", "-O3", "--target=ipu2", "-o", made]
    assert run("popc", *options, tmp_path / "double.cpp") == ""
    run("c++", "-std=c++17", PROGRAM / "program.cpp", *LINK, "-o", tmp_path / "program")
    assert run(tmp_path / "program", made).split() == ANSWER
    assert "ipu21" in run("popc", "--list-targets").split()

    def refused(*command: str | Path) -> str:
        with pytest.raises(AssertionError) as caught:
            run(*command)
        return str(caught.value)

    assert "popc needs options of --help; got --fast. See" in refused("popc", "--fast")
    assert "popc needs a source; got none" in refused("popc")
    for option in ("-S", "-c", "-E"):
        assert f"popc needs no {option}: " in refused("popc", option)
    assert "a name of --list-targets for -march" in refused("popc", "-march=native")
    assert run("popc", "-march=ipu2", *options, tmp_path / "double.cpp") == ""
    assert "static assertion failed" in refused(
        "popc", "-DTWO=3", "-I", library, tmp_path / "double.cpp"
    )
    damaged = bytearray(made.read_bytes())
    damaged[-5] ^= 1
    for content in (damaged, made.read_bytes()[:-9], b"ELF", b""):
        made.write_bytes(content)
        found = refused(tmp_path / "program", made)
        assert "needs a .gp file of the IPU Model's popc" in found


def test_popc_takes_codelets_whose_assembly_hosts_leave_out(tmp_path: Path) -> None:
    (tmp_path / "double.cpp").write_text((PROGRAM / "double.cpp").read_text())
    for name in ("double.S", "fast.s"):
        (tmp_path / name).write_text("setzi $m0, 1\n")
    run("c++", "-std=c++17", PROGRAM / "program.cpp", *LINK, "-o", tmp_path / "program")
    for number, names in enumerate((["double.S"], ["double.cpp", "double.S", "fast.s"])):
        made = tmp_path / f"{number}.gp"
        sources = [tmp_path / name for name in names]
        popc = ("popc", "-O3", "-fno-exceptions", *sources, "-o", made)
        said = run("sh", "-c", 'exec "$0" "$@" 2>&1', *popc)
        left_out = f"popc leaves out {tmp_path / 'fast.s'}: there is no {tmp_path / 'fast.cpp'}"
        assert (left_out in said) == (number == 1)
        assert run(tmp_path / "program", made).split() == ANSWER


def test_custom_ops_take_gp_files(tmp_path: Path) -> None:
    (tmp_path / "two.hpp").write_text("constexpr int kTwo = 2;\n")
    (tmp_path / "add.cpp").write_text(interface.CODELETS)
    run("popc", "-o", tmp_path / "add.gp", tmp_path / "add.cpp")
    source = interface.HEADERS + interface.level_of(5) + interface.USES_CODELETS
    add = ipu.custom_op(source, outputs=lambda x, y: x, codelets=tmp_path / "add.gp")
    np.testing.assert_array_equal(jax.jit(add)(jnp.arange(6.0), jnp.ones(6)), np.arange(6) + 2)


def test_programs_of_users_need_the_folder_alone() -> None:
    """Those of cpp/model/tests/public, linked with its libraries: nothing else of ours."""
    tests = ROOT / "cpp" / "model" / "tests"
    programs = [*(tests / "public").iterdir(), tests / "Check.hpp"]
    named = {
        name
        for p in programs
        for name in re.findall(r"^#include [<\"](.*/.*)[>\"]", p.read_text(), re.M)
    }
    assert "poplar/Graph.hpp" in named
    assert sorted(name for name in named if not (SDK / "include" / name).exists()) == []


def test_popx_alone_needs_no_python(tmp_path: Path) -> None:
    configure(
        ROOT, tmp_path, f"-DIPUJAX_POPLAR_SDK={SDK}", "-DIPUJAX_BUILD_EXTENSION=OFF", build=False
    )
    assert "Python_EXECUTABLE" not in (tmp_path / "CMakeCache.txt").read_text()
