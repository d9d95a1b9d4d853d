"""Writes the type stubs of the built extension: `stubs.py <folder>`, from its own signatures.

pybind11-stubgen reads them; this script corrects some of its output, see
docs/decisions/0021-stubs-are-generated.md.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

MODULE = "ipujax._poplar._poplar"
CHANGES = (
    # Integers must have __index__: pybind11 accepts no float as one.
    (r"typing\.SupportsInt \| typing\.SupportsIndex", "typing.SupportsIndex"),
    (r": ([\w.]+) = None", r": \1 | None = None"),
    # This is the class program.Sequence, not typing's.
    (r"\(self: typing\.Sequence", "(self"),
    # The signatures that every class must have.
    (r"def __eq__\(self, arg0: \w+\)", "def __eq__(self, arg0: object)"),
    (r"(__hash__: typing.ClassVar\[None\]) = None", r"\1  # type: ignore[assignment]"),
    # Enum members are values; __new__ comes from enum itself.
    (r"^(    [A-Z][A-Z_0-9]*): typing\.ClassVar\[\w+\].*$", r"\1 = ..."),
    (r"^    @classmethod\n    def __new__\(cls, value\):(?:\n        | )\.\.\.\n", ""),
    # Modules under their own names.
    (rf"import {re.escape(MODULE)}\.(\w+)[.\w]*\n", rf"from {MODULE} import \1\n"),
    (rf"\b{re.escape(MODULE)}\.(?=\w+\.)", ""),
)


#: No stub may contain these: C++ names, or types that pybind11 does not know.
LEFT = re.compile(r"::|arg0: \.\.\.|-> \.\.\.")


def generate(folder: Path) -> None:
    """Fills `folder` with one .pyi for each module of the extension."""
    with tempfile.TemporaryDirectory() as scratch:
        options = ["--ignore-invalid-expressions", ".*DebugContext object.*", "--exit-code"]
        for enum, module in (("FloatOrder", "popx"), ("TensorCloneMethod", "poplar")):
            options += ["--enum-class-locations", f"{enum}:{MODULE}.{module}"]
        options += ["--output-dir", scratch]
        _run("pybind11_stubgen", MODULE, *options)
        for path in sorted(Path(scratch).rglob("*.pyi")):
            text = path.read_text()
            for pattern, replacement in CHANGES:
                text = re.sub(pattern, replacement, text, flags=re.M)
            if left := LEFT.search(text):
                sys.exit(f"{path.name} has {left[0]!r}: give the binding a type that Python knows")
            inside = path.relative_to(Path(scratch, *MODULE.split(".")))
            (folder / inside).parent.mkdir(parents=True, exist_ok=True)
            first = '"""Made by `make types` from the built extension."""\n\n'
            (folder / inside).write_text(first + text)
    style = ["--quiet", "--isolated", "--line-length", "100", str(folder)]
    _run("ruff", "check", "--fix", "--select", "I", *style)
    _run("ruff", "format", *style)


def _run(module: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", module, *arguments], check=True)


if __name__ == "__main__":
    generate(Path(sys.argv[1]))
