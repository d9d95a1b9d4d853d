"""A copy of the source tree in which a test makes a change.

Only what the change touches is compiled; the rest of the extension are the objects of the build in
`build/release`, which `make test` makes first.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
FOLDERS = ("cpp", "ipujax", "xla_plugin", "tests/cases", "tests/compiler")


class Tree:
    """The copy under `root`."""

    def __init__(self, root: Path):
        self.root = root
        for folder in FOLDERS:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / folder, root / folder, ignore=ignored)
        (root / "tests" / "__init__.py").touch()

    def write(self, path: str, text: str) -> None:
        (self.root / path).write_text(text)

    def replace(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text()
        assert text.count(old) == 1, f"{path} has {text.count(old)} times {old!r}"
        self.write(path, text.replace(old, new))

    def changed(self) -> list[str]:
        """New and changed files, without build products."""
        found = []
        for folder in FOLDERS:
            for path in (self.root / folder).rglob("*"):
                name = str(path.relative_to(self.root))
                old = ROOT / name
                if path.suffix in {".cpp", ".hpp", ".def", ".py", ".pyi"} and not (
                    old.exists() and old.read_bytes() == path.read_bytes()
                ):
                    found.append(name)
        return sorted(found)

    def environment(self) -> dict[str, str]:
        """The environment in which Python imports ipujax from the copy."""
        return {"PYTHONPATH": f"{self.root}{os.pathsep}"}

    def build(self) -> None:
        """Compiles the sources that the changes affect, and links the copy's extension."""
        commands = json.loads((BUILD / "compile_commands.json").read_text())
        commands = [c for c in commands if "/tests/" not in c["file"]]
        changed = [name for name in self.changed() if not name.endswith((".py", ".pyi"))]
        touched = _objects_of(str(ROOT / name) for name in changed)
        jobs, replaced = [], []
        for command in commands:
            output = os.path.relpath(command["output"], BUILD)
            if command["file"] in {str(ROOT / n) for n in changed} or output in touched:
                replaced.append(output)
                jobs.append((command, command["file"]))
        new = [n for n in changed if n.endswith(".cpp") and not (ROOT / n).exists()]
        jobs += [(_sibling(commands, name), str(ROOT / name)) for name in new]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = list(pool.map(lambda job: self._compile(*job), jobs))
        self._link(dict(zip(replaced, made, strict=False)), made[len(replaced) :])

    def _compile(self, command: dict[str, str], source: str) -> str:
        target = self.root / "build" / f"{abs(hash((command['output'], source)))}.o"
        target.parent.mkdir(exist_ok=True)
        arguments = shlex.split(command["command"])
        arguments[arguments.index("-o") + 1] = str(target)
        arguments[arguments.index("-c") + 1] = self._source(source, target)
        own = [a.replace(f"{ROOT}/", f"{self.root}/") if _is_ours(a) else a for a in arguments]
        _run(own)
        return str(target)

    def _source(self, name: str, target: Path) -> str:
        """`name`; for a file of the build, which includes sources, one that includes the copy's."""
        if not Path(name).is_relative_to(BUILD):
            return name
        copy = target.with_suffix(".cpp")
        copy.write_text(Path(name).read_text().replace(f"{ROOT}/", f"{self.root}/"))
        return str(copy)

    def _link(self, objects: dict[str, str], added: list[str]) -> None:
        (library,) = (self.root / "ipujax" / "_poplar").glob("_poplar.*.so")
        (text,) = _ninja("-t", "commands", "-s", library.name).splitlines()
        (command,) = (part for part in text.split("&&") if " -o " in part)
        arguments = [objects.get(a, a) for a in shlex.split(command)]
        arguments[arguments.index("-o") + 1] = str(library)
        library.unlink()
        _run([*arguments, *added])


def _is_ours(argument: str) -> bool:
    return any(f"{ROOT}/{folder}" in argument for folder in FOLDERS)


def _sibling(commands: list[dict[str, str]], name: str) -> dict[str, str]:
    """How other sources of the same folder are compiled: alone, or several as one."""
    folder = (ROOT / name).parent
    return next(
        c
        for c in commands
        if (Path(c["file"]).parent == folder and not c["file"].endswith(".simd.cpp"))
        or (Path(c["file"]).is_relative_to(BUILD) and f'"{folder}/' in Path(c["file"]).read_text())
    )


def _objects_of(files: Iterable[str]) -> set[str]:
    """The objects that were compiled from any of these headers or sources."""
    wanted, found, current = set(files), set(), ""
    for line in _ninja("-t", "deps").splitlines():
        if not line.startswith(" "):
            current = line.partition(": #deps")[0]
        elif line and os.path.normpath(BUILD / line.strip()) in wanted:
            found.add(current)
    return found


def _ninja(*arguments: str) -> str:
    import ninja

    return _run([str(Path(ninja.BIN_DIR) / "ninja"), *arguments])


def _run(command: list[str]) -> str:
    run = subprocess.run(command, cwd=BUILD, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{shlex.join(command)}\n{run.stdout}{run.stderr}"
    return run.stdout
