"""Nothing that is shipped passes text to a shell, or reads data that can name code to run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHELL = re.compile(
    r"std::system\b|(?<![\w.])system\s*\(|\bpopen\s*\(|os\.system\b|os\.popen\b|"
    r"shell\s*=\s*True|getstatusoutput|subprocess\.getoutput|create_subprocess_shell"
)
PICKLE = re.compile(r"\bimport (pickle|marshal|shelve|dill|cloudpickle)\b|allow_pickle\s*=\s*True")


@pytest.mark.parametrize("pattern", [SHELL, PICKLE], ids=["shell", "pickle"])
def test_no_source_has(pattern: re.Pattern[str]):
    folders = ("cpp", "xla_plugin", "ipujax", "examples")
    sources = [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".cpp", ".hpp", ".py"}
    ]
    assert len(sources) > 300
    found = [str(path.relative_to(ROOT)) for path in sources if pattern.search(path.read_text())]
    assert found == []
