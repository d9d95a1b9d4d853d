"""Forty altered files of each kind; `make mutants` reads twenty thousand of each."""

from __future__ import annotations

import pytest

from tests.mutants.data_files import KINDS
from tests.mutants.files import run


@pytest.mark.parametrize("kind", list(KINDS))
def test_altered_files_are_read_or_refused(kind: str, capfd) -> None:
    counts = run(kind, first=0, count=40)
    assert counts["wrong"] == 0, capfd.readouterr().out
    assert counts["read"] + counts["refused"] == 40
