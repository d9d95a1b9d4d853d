"""The type stubs match the built extension."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STUBS = ROOT / "ipujax" / "_poplar" / "_poplar"


def _texts(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*.pyi")}


def test_the_stubs_are_those_of_the_extension(tmp_path: Path):
    runpy.run_path(str(ROOT / ".ci" / "stubs.py"))["generate"](tmp_path)
    fresh, kept = _texts(tmp_path), _texts(STUBS)
    assert sorted(fresh) == sorted(kept), "run make stubs"
    for name, text in fresh.items():
        assert text == kept[name], f"{name}: run make stubs"


def test_no_cpp_name_and_no_unknown_type_is_left():
    for name, text in _texts(STUBS).items():
        assert "::" not in text, name
        assert "arg0: ..." not in text, name
        assert "-> ..." not in text, name
