"""Writes docs/poplar-api.md: every public name of the Poplar, PopLibs and GCL headers.

The compiler preprocesses each header, so functions that macros define are found too; a small
scanner then reads declarations. REFUSES lists names that exist but do not work, with the reason.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "poplar",
    "poputil",
    "popops",
    "poplin",
    "popnn",
    "poprand",
    "gccs",
    "graphcore_target_access",
    "popsparse",
    "popfloat",
    "popsys",
    "gcl",
    "pvti",
    "pva",
)

#: Names that throw or do nothing on the IPU Model, with what happens and why.
REFUSES = {
    "Device::getAttribute": "of all but the board variant throws: there is no driver to ask",
    "FloatingPointBehaviour": "exceptions are seen in what steps give, not inside of them",
    "Graph::addCodelets": "object and assembly files throw: the model needs C++ source",
    "Graph::createReplicatedGraph": "collectives and remote buffers in it throw: use "
    "replication_factor",
    "Graph::getMaxVertexFieldValueAs": "of fields of 64 bits throws: a double carries the value",
    "GfloatCast": "rounding at random and formats that FLOAT does not hold throw; the static casts "
    "need a constant format",
    "IPUModel::globalExchangeConstraints": "changes nothing: the model has its machine's links",
    "RemoteBuffer::getIpuToHostStream": "throws: the model copies entries directly",
    "RemoteBuffer::getHostToIpuStream": "throws: the model copies entries directly",
    "Target::getNumTilesPerXBContext": "throws: the model has no exchange blocks",
    "Target::getNumContextsPerXB": "throws: the model has no exchange blocks",
    "Target::getTileHostExchangeXB": "throws: the model has no exchange blocks",
    "Target::getTileHostExchangeContext": "throws: the model has no exchange blocks",
    "Target::getTileHostExchangeContextPosition": "throws: the model has no exchange blocks",
    "RuntimeOptions": "are checked and change nothing: no IPU has to be waited for",
    "QUARTER": "casts, copies and views alone: arithmetic on quarters throws",
    "StreamCallbackWithMetadata": "is given the quarters alone: getMetadata is not called, and "
    "what a stream brings has the metadata of the tensor that it is copied to",
    "Graph::addExternalVariable": "throws: the model has one program at a time",
    "Graph::addExternalExchangeVertex": "throws: the model has no exchange code",
    "Graph::addCodeletPlaceholder": "throws: the model reads fields from the source",
    "Module::forEachSegment": "throws: the model has no code of tiles",
    "Module::forEachLoadableSegment": "throws: the model has no code of tiles",
    "Preallocations": "is empty: the model has one program at a time",
    "Engine::getSimulatedErrorLocations": "of a library function's compute set "
    "throws: the model keeps the tiles of vertices",
    "IPUModel::relativeSyncDelay": "changes nothing: the model has one delay for all tiles",
    "Graph::serialize": "JSON, or the same as CBOR: a description of the model's own",
    "Graph::deserializeTensors": "JSON throws: as in the SDK, only bytes are read back",
    "Graph::getMaxVertexFieldValue": "of fields of 64 bits throws: a double carries the value",
    "FunctionBuffer": "copies of code do nothing: functions are always at hand",
    "Graph::numVertices": "of a library function: one on each tile where it computes",
    "Graph::numEdges": "throws: the model keeps no edges",
    "TileMemory::vertices": "of a library function: one on each tile where it computes",
    "ComputeSet::vertices": "of a library function: one on each tile where it computes",
    "BSMatMulParams": "a mask inside blocks throws: bsSoftmax has one",
    "PartitionerBase": "more than one group throws",
    "Sync": "does nothing: steps synchronise by themselves",
    "AssumeEqualAcrossReplicas": "does nothing: a condition that differs around a collective is an "
    "error anyway",
    "Tracepoint": "does nothing: nothing records the host's time",
    "DeviceManager::getDevices": "lists IPUs only with IPUJAX_MODEL_AS_IPU=1",
}

TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[A-Za-z_]\w*|::|\S')
NAME = re.compile(r"[A-Za-z_]\w*$")
NO_NAMES = {"operator", "requires", "if", "while", "for", "return", "static_assert", "noexcept"}
#: Members that only the library uses and that every class of a family has.
FOR_THE_LIBRARY = {"isClassOf"}


def declarations_of(header: str) -> str:
    """The preprocessed text of the header itself, of the table of operations and the errors."""
    command = [
        os.environ.get("CXX", "c++"),
        "-std=c++17",
        "-E",
        f"-I{ROOT / 'cpp/model'}",
        "-x",
        "c++",
    ]
    text = subprocess.run(
        [*command, "-"], input=f"#include <{header}>", capture_output=True, text=True, check=True
    ).stdout
    lines: list[str] = []
    open_files = [""]
    for line in text.splitlines():
        if marker := re.match(r'# \d+ "([^"]*)"(?: (\d))?', line):
            path, flag = marker.groups()
            if flag == "1":
                open_files.append(path)
            elif flag == "2":
                open_files.pop()
            open_files[-1] = path
        elif open_files[-1].endswith(f"cpp/model/{header}") or (
            open_files[-1].endswith(("ElementwiseOps.def", "engine/Errors.hpp"))
            and open_files[-2].endswith(f"cpp/model/{header}")
        ):
            lines.append(line)
    return "\n".join(lines)


def skip(tokens: list[str], at: int) -> int:
    """The index after the bracket that closes the one at `at`."""
    closing = {"{": "}", "(": ")"}[tokens[at]]
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i] == tokens[at]) - (tokens[i] == closing)
        if depth == 0:
            return i + 1
    return len(tokens)


def without_template(words: list[str]) -> list[str]:
    while words[:1] == ["template"]:
        depth = 0
        for i, word in enumerate(words[1:], 1):
            depth += (word == "<") - (word == ">")
            if depth == 0:
                words = words[i + 1 :]
                break
        else:
            return []
    return words


def name_of(words: list[str], scope: str) -> str | None:
    """The name in a declaration that opens no scope; None for constructors and operators."""
    words = without_template(words)
    if not words or words[0] in ("friend", "extern") or "operator" in words or "~" in words:
        return None
    if words[0] == "using":
        is_constructor = words[-1] == words[-3]
        return words[1] if "=" in words else None if is_constructor else words[-1]
    cut = next((i for i, w in enumerate(words) if w in ("(", "=", "{")), len(words))
    name = words[cut - 1] if cut else ""
    if not NAME.match(name) or name in NO_NAMES | FOR_THE_LIBRARY or name == scope:
        return None
    if name.endswith("_"):
        return None
    return name


class Scanner:
    """Reads the declarations of one header."""

    def __init__(self, text: str) -> None:
        self.tokens = TOKEN.findall(text)
        self.names: dict[str, None] = {}  # `Class`, `Class::member`, `function`, in order
        self.scopes: list[tuple[str, str, bool]] = []  # kind, name, members are public now
        self.words: list[str] = []  # of the declaration being read

    def scan(self) -> list[str]:
        i = 0
        while i < len(self.tokens):
            token = self.tokens[i]
            if token == "(":
                self.words.append("(")
                i = skip(self.tokens, i)
                continue
            if token == "{":
                i = i + 1 if self.opens_scope() else skip(self.tokens, i)
                self.words = []
                continue
            if token == "}" and self.scopes:
                self.scopes.pop()
            elif token == ";":
                self.declare(self.words)
            elif token == ":" and self.words in (["public"], ["private"], ["protected"]):
                kind, name, _ = self.scopes[-1]
                self.scopes[-1] = (kind, name, self.words == ["public"])
            else:
                self.words.append(token)
                i += 1
                continue
            self.words = []
            i += 1
        return list(self.names)

    def opens_scope(self) -> bool:
        """Whether the brace opens a scope with declarations of its own; adds its name, if any."""
        plain = without_template(self.words)
        head = plain[0] if plain else ""
        if head == "namespace":
            has_name = plain[-1] != "namespace"
            self.scopes.append(("namespace", plain[-1], has_name))
            return True
        if head in ("class", "struct") and "(" not in plain:
            end = plain.index(":") if ":" in plain else len(plain)
            is_special = "<" in plain[:end]
            name = plain[(plain.index("<") if is_special else end) - 1]
            if not is_special:
                self.add(name)
            self.scopes.append(("class", name, head == "struct"))
            return True
        if head == "enum":
            self.add(plain[2 if plain[1] in ("class", "struct") else 1])
        else:
            self.declare([*self.words, "{"])
        return False

    def declare(self, words: list[str]) -> None:
        plain = without_template(words)
        is_forward = len(plain) == 2 and plain[0] in ("class", "struct")
        classes = [name for kind, name, _ in self.scopes if kind == "class"]
        name = None if is_forward else name_of(plain, classes[-1] if classes else "")
        if name:
            self.add(name)

    def add(self, name: str) -> None:
        if all(public for _, _, public in self.scopes):
            classes = [scope for kind, scope, _ in self.scopes if kind == "class"]
            self.names["::".join([*classes, name])] = None


def lines_of(path: str, names: list[str]) -> Iterator[str]:
    """One line for the header's declarations, and one for the members of each of its classes."""

    def shown(name: str) -> str:
        return f"`{name.rpartition('::')[2]}`" + (f" ({REFUSES[name]})" if name in REFUSES else "")

    free = [shown(name) for name in names if "::" not in name]
    yield f"- **{path}**: {', '.join(free) or 'includes others'}"
    for owner in dict.fromkeys(name.rpartition("::")[0] for name in names if "::" in name):
        members = [shown(name) for name in names if name.rpartition("::")[0] == owner]
        yield f"  - `{owner}`: {', '.join(members)}"


def vertices() -> list[str]:
    """The vertices of PopLibs that `Graph::addVertex` takes by name."""
    return [
        f"`{path.parents[1].name}::{name}`"
        for path in sorted((ROOT / "cpp/model").glob("*/codelets/*vertices.h"))
        for name in re.findall(r"^class (\w+)\s+: public \w+", path.read_text(), re.MULTILINE)
    ]


def page() -> str:
    out = [
        "# The Poplar API of the IPU Model",
        "",
        "Every public name of the headers, which a C++17 compiler reads. A name works unless a",
        "reason stands beside it. This page is generated by `.ci/poplar_api.py`.",
        "",
        "Engine options: those of the SDK's families (`debug.*`, `target.*`, `opt.*`,",
        "`exchange.*`, `autoReport.*`, `profiler.*`, `prng.*`, `streamCallbacks.*`) are accepted;",
        "JSON in the environment variable `POPLAR_ENGINE_OPTIONS` comes on top. A name that is",
        "nearly that of a documented option is refused with it (`debug.instrumnet`: did you mean",
        "`debug.instrument`?), for PopLibs' and GCL's options, too. These have an effect, and one",
        "line of standard error names others once:",
        "`debug.outOfMemory` (`log` or `error`); `debug.allowOutOfMemory` (`false`: a program that",
        "does not fit is refused); `debug.floatPointOpException` (`true`: an",
        "invalid operation, a division by zero or an overflow of any step ends the run);",
        "`debug.instrument` and `debug.instrumentCompute` (`false`: runs are not recorded);",
        "`profiler.blocks.filter`, `profiler.programs.filter`, `profiler.blocks.tile` and",
        "`debug.instrumentExternalExchange` (what `pva::Execution::blocks` tells);",
        "`streamCallbacks.multiThreadMode` (`dedicated` or `collaborative`: callbacks of several",
        "replicas are called at one time, unless `streamCallbacks.numWorkerThreads` is 0); and",
        "`autoReport.all` or an `autoReport.output*`, by which an Engine writes `profile.pop` to",
        "`autoReport.directory` for the readers of pva: when it is made, after each run (unless",
        "`autoReport.streamAtEachRun` is `false`) and at its end.",
        "",
        "Functions of PopLibs add no vertices to the model's graph, but programs can add these of",
        "PopLibs by name: " + ", ".join(vertices()) + ".",
    ]
    paths = [
        str(header.relative_to(ROOT / "cpp" / "model"))
        for room in ROOMS
        for pattern in ("*.hpp", "experimental/*.hpp")
        for header in sorted((ROOT / "cpp" / "model" / room).glob(pattern))
        if header.name != "VertexTable.hpp"  # for codelets that the library compiles
    ]
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda path: Scanner(declarations_of(path)).scan(), paths)
    names_of = dict(zip(paths, found, strict=True))
    for room in ROOMS:
        out += ["", f"## {room}", ""]
        for path in paths:
            if path.startswith(f"{room}/"):
                out += lines_of(path, names_of[path])
    every = [name for names in names_of.values() for name in names]
    if unknown := REFUSES.keys() - set(every):
        raise SystemExit(f"REFUSES names what no header declares: {', '.join(sorted(unknown))}")
    out += ["", f"{len(every)} names, {len(REFUSES)} of them with a limit.", ""]
    return "\n".join(out)


if __name__ == "__main__":
    sys.stdout.write(page())
