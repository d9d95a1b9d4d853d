"""Nothing that is shipped hands a text to a shell: processes get lists of arguments."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHELL = re.compile(
    r"std::system\b|(?<![\w.])system\s*\(|\bpopen\s*\(|os\.system\b|os\.popen\b|shell\s*=\s*True|"
    r"getstatusoutput|subprocess\.getoutput|create_subprocess_shell"
)


def test_no_source_starts_a_shell():
    folders = ("cpp", "xla_plugin", "ipujax", "examples")
    sources = [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".cpp", ".hpp", ".py"}
    ]
    assert len(sources) > 300
    found = [str(path.relative_to(ROOT)) for path in sources if SHELL.search(path.read_text())]
    assert found == []
