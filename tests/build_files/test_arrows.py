"""Includes and imports point one way, from the public API down to the model, without cycles."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CPP = ROOT / "cpp"
MODEL = CPP / "model"

# A folder may include those of a lower rank and itself. poprand, gcl and poplin stand side by side.
CPP_RANKS = {
    "support": -2,
    "runtime": -1,
    "engine": 0,
    "pvti": 0,
    "poplar": 1,
    "graphcore_target_access": 2,
    "pva": 2,
    "poputil": 2,
    "popops": 3,
    "poplin": 4,
    "poprand": 4,
    "gcl": 4,
    "gccs": 4,
    "popsparse": 5,
    "popfloat": 5,
    "popsys": 5,
    "popnn": 5,
    "popx": 6,
    "backends": 7,
    "embedded": 0,
    "hosts": -1,
    "bindings": 8,
    "popc": 8,
}
# The one header through which popx reaches what is not public, and the rows of its expressions.
SEAM = "popx/Native.hpp"
MODEL_ONLY = {SEAM, "popx/MatrixBatch.hpp", "popx/ReduceBody.hpp"}
TABLE = "engine/ops/ElementwiseOps.def"

# From the top down: a file may import rooms below its own.
PYTHON_ROOMS = (
    "__main__",
    "cli",
    "launch",
    "plugin",
    "__init__",
    "testing",
    "convert",
    "training",
    "distributed",
    "data",
    "optim",
    "nn",
    "tile",
    "ops",
    "api",
    "planner",
    "verification",
    "compiler",
    "reporting",
    "config",
    "jax_compat",
    "runtime",
    "host",
    "annotations",
    "_poplar",
    "errors",
    "types",
)

INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([\w./]+\.(?:hpp|h|def))[">]', re.MULTILINE)
LIBRARY_KERNEL = re.compile(r'"(?:popx|popops|poplin|popnn|poprand|gcl|poplar)\.\w')
REGISTRATION = re.compile(r"const (?:engine::)?RegisterKernel \w+\{[^;]*;")


def _cpp_includes() -> dict[str, list[str]]:
    """Of each file below cpp/, tests apart: the files below cpp/ that it includes."""
    suffixes = {".hpp", ".h", ".cpp", ".def"}
    files = [p for p in CPP.rglob("*") if p.suffix in suffixes and MODEL / "tests" not in p.parents]
    assert len(files) > 300
    return {
        _name(path): [
            name
            for name in INCLUDE.findall(path.read_text())
            if (CPP / name).exists() or (MODEL / name).exists()
        ]
        for path in files
    }


def _name(path: Path) -> str:
    """As others include it."""
    return path.relative_to(MODEL if MODEL in path.parents else CPP).as_posix()


def _room(file: str) -> str:
    return file.split("/")[0]


def test_includes_point_from_the_libraries_down_to_the_engine():
    upward = [
        f"{file} -> {name}"
        for file, names in _cpp_includes().items()
        for name in names
        if _room(file) != _room(name) and CPP_RANKS[_room(name)] >= CPP_RANKS[_room(file)]
    ]
    assert upward == []


def test_the_model_includes_nothing_outside_of_its_root():
    """Nor do its tests: cpp/model builds alone."""
    named = {
        f"{path.relative_to(MODEL)} -> {name}"
        for path in MODEL.rglob("*")
        if path.suffix in {".hpp", ".h", ".cpp", ".def"}
        for name in INCLUDE.findall(path.read_text())
        if (CPP / name).exists() and not (MODEL / name).exists()
    }
    assert named == set()


def test_popx_includes_public_headers_and_its_seam_alone():
    """Headers of the engine and in a library's internal/ are not public."""
    private = [
        f"{file} -> {name}"
        for file, names in _cpp_includes().items()
        if _room(file) == "popx" and file != SEAM
        for name in names
        if (_room(name) == "engine" and name != TABLE) or "/internal/" in name
    ]
    assert private == []


def test_popx_for_hardware_sees_public_names_alone():
    """What cpp/popx/hardware includes, and those headers of popx in turn, knows no model."""
    includes = _cpp_includes()
    pending = [file for file in includes if re.match(r"popx/(?:hardware|checks)/", file)]
    assert len(pending) > 20
    seen: set[str] = set()
    private = []
    while pending:
        file = pending.pop()
        if file in seen:
            continue
        seen.add(file)
        for name in includes[file]:
            if name == TABLE:
                continue
            if _room(name) == "engine" or "/internal/" in name or name in MODEL_ONLY:
                private.append(f"{file} -> {name}")
            elif _room(name) == "popx":
                pending.append(name)
    assert private == []


def test_codelets_of_popx_need_nothing_but_their_folder_and_the_sdk():
    for path in (CPP / "popx" / "codelets").iterdir():
        names = set(INCLUDE.findall(path.read_text()))
        local = {name for name in names if (path.parent / name).exists()}
        assert names - local <= {"poplar/Vertex.hpp", "math.h"}, path


def test_public_headers_show_nothing_that_is_internal():
    """Headers that users' programs include must not need the internal ones."""
    shown = [
        f"{file} -> {name}"
        for file, names in _cpp_includes().items()
        if file.endswith(".hpp")
        and "/internal/" not in file
        and _room(file) not in {"engine", "popx"}
        for name in names
        if "/internal/" in name
    ]
    assert shown == []


def test_the_plugin_knows_what_runs_programs_by_its_interface_alone():
    """Of cpp/ it includes runtime/, hosts/ and what these stand on."""
    outside = [
        f"{path.name} -> {name}"
        for path in (ROOT / "xla_plugin").iterdir()
        if path.suffix in {".hpp", ".cpp"}
        for name in INCLUDE.findall(path.read_text())
        if ((CPP / name).exists() or (MODEL / name).exists())
        if _room(name) not in {"runtime", "hosts", "support"}
    ]
    assert outside == []


def test_what_is_built_against_an_sdk_sees_public_names_alone():
    """Of the bindings and backends, all but the model's folders include no header of the model."""
    private = [
        f"{file} -> {name}"
        for file, names in _cpp_includes().items()
        if _room(file) in {"runtime", "backends", "bindings"} and "/model/" not in file
        for name in names
        if (_room(name) == "engine" and name != TABLE)
        or "/internal/" in name
        or "/model/" in name
        or name in MODEL_ONLY
    ]
    assert private == []


def test_headers_include_no_header_in_a_circle():
    includes = _cpp_includes()
    headers = {file: names for file, names in includes.items() if file.endswith(".hpp")}
    assert _circles(headers) == []


def test_the_rooms_of_the_engine_include_each_other_one_way():
    """From values over images, kernels, graphs and codelets to what runs and builds programs."""
    rooms: dict[str, set[str]] = {}
    for file, names in _cpp_includes().items():
        if _room(file) == "engine":
            room = file.rpartition("/")[0]
            others = {n.rpartition("/")[0] for n in names if _room(n) == "engine"}
            rooms.setdefault(room, set()).update(others - {room})
    assert len(rooms) > 15
    assert _circles(rooms) == []


def test_few_files_include_each_other():
    """A header and its source count as one file."""
    files: dict[str, set[str]] = {}
    for file, names in (_cpp_includes() | _plugin_includes()).items():
        files.setdefault(_stem(file), set()).update(set(map(_stem, names)) - {_stem(file)})
    assert max(map(len, _knots(files))) < 5


def _plugin_includes() -> dict[str, list[str]]:
    files = [p for p in (ROOT / "xla_plugin").iterdir() if p.suffix in {".hpp", ".cpp"}]
    quoted = re.compile(r'^#include "([\w./]+)"', re.MULTILINE)
    return {path.name: quoted.findall(path.read_text()) for path in files}


def _stem(file: str) -> str:
    return re.sub(r"(?:\.simd)?\.\w+$", "", file)


def _knots(graph: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """Groups of nodes of which each reaches all others of its group."""
    reached: dict[str, set[str]] = {}
    for node in graph:
        pending, seen = [node], set()
        while pending:
            found = set(graph.get(pending.pop(), ())) - seen
            seen |= found
            pending += found
        reached[node] = seen
    return [{b for b in reached[a] if a in reached.get(b, ())} | {a} for a in graph]


def test_the_engine_names_no_kernel_of_a_library():
    """It uses a kernel's role (engine/kernels/Kernel.hpp); only registrations have names."""
    named = []
    for path in (MODEL / "engine").rglob("*.cpp"):
        text = re.sub(r"//.*", "", path.read_text())
        text = REGISTRATION.sub("", text)
        if LIBRARY_KERNEL.search(text):
            named.append(_name(path))
    assert named == []


def test_host_kernels_are_registered_in_the_engine_alone():
    """A library names the kernel of a step; what runs is below it, in engine/kernels."""
    outside = [
        _name(path)
        for path in CPP.rglob("*.cpp")
        if _room(_name(path)) not in {"engine", "tests"}
        if re.search(r"\bRegisterKernel\b", path.read_text())
    ]
    assert outside == []


def _python_imports() -> dict[str, set[str]]:
    """Of each module of ipujax: the modules of ipujax that it imports, anywhere in the file."""
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (ROOT / "ipujax").rglob("*.py")
    }
    assert len(files) > 80
    return {
        module: {name for name in _imported(path, files) if name != module}
        for module, path in files.items()
    }


def _imported(path: Path, files: Mapping[str, Path]) -> Iterable[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)
        elif isinstance(node, ast.ImportFrom) and node.module in files:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in files else str(node.module)


def _python_room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def test_imports_point_downwards():
    imports = _python_imports()
    height = {room: i for i, room in enumerate(PYTHON_ROOMS)}
    assert {_python_room(module) for module in imports} == set(height)
    upward = [
        f"{module} -> {name}"
        for module, names in imports.items()
        for name in names
        if height[_python_room(name)] < height[_python_room(module)]
    ]
    assert upward == []


@pytest.mark.parametrize("house", ["ipujax.api", "ipujax.compiler"])
def test_rooms_do_not_import_each_other_in_a_cycle(house: str):
    """A room is a file or a folder."""
    rooms: dict[str, set[str]] = {}
    for module, names in _python_imports().items():
        if not module.startswith(f"{house}."):
            continue
        room = module.split(".")[2]
        others = {n.split(".")[2] for n in names if n.startswith(f"{house}.")}
        rooms.setdefault(room, set()).update(others - {room})
    assert len(rooms) > 9
    assert _circles(rooms) == []


def _circles(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """What is on cycles: the rest after removing nodes without dependences, repeatedly."""
    left = {node: {other for other in others if other in graph} for node, others in graph.items()}
    while free := {node for node, others in left.items() if not others}:
        left = {node: others - free for node, others in left.items() if node not in free}
    return sorted(left)


def test_knots_are_found():
    graph = {"a": ["b"], "b": ["c"], "c": ["b"], "d": []}
    assert _knots(graph) == [{"a"}, {"b", "c"}, {"b", "c"}, {"d"}]


def test_circles_are_found():
    assert _circles({"a": ["b"], "b": ["c"], "c": ["b"], "d": []}) == ["a", "b", "c"]
    assert _circles({"a": ["b", "c"], "b": ["c"], "c": []}) == []
