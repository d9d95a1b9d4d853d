"""The order in which `make test` starts files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.conftest import pytest_collection_modifyitems


def test_files_with_slow_tests_come_first_and_stay_whole() -> None:
    def item(name: str, slow: bool = False) -> Any:
        file = Path(name.partition("::")[0])
        return SimpleNamespace(
            name=name, path=file, get_closest_marker=lambda mark: slow and mark == "slow"
        )

    items = [item("a::1"), item("b::1"), item("b::2", slow=True), item("c::1"), item("b::3")]
    pytest_collection_modifyitems(items)
    assert [i.name for i in items] == ["b::1", "b::2", "b::3", "a::1", "c::1"]
