"""Each row of docs/features.md has one entry; examples give the documented numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import pytest

from tests.features import options
from tests.features.entry import ROOT, Entry, Example, Reason, Rows, rows
from tests.features.poptorch import POPTORCH
from tests.features.saved_model import SAVED_MODEL
from tests.features.tensorflow_ops import OPS
from tests.features.tensorflow_programs import PROGRAMS
from tests.features.themes import THEMES

TABLES: dict[str, Mapping[str, Entry]] = {
    "By theme": THEMES,
    "TensorFlow: IPUConfig": options.TENSORFLOW,
    "TensorFlow: functions and classes": OPS | PROGRAMS,
    "PopTorch: Options": options.POPTORCH,
    "PopTorch: functions, classes and environment variables": POPTORCH,
    "Optimum: IPUConfig": options.OPTIMUM,
    "SavedModel command line": SAVED_MODEL,
}
EXAMPLES = [
    (table, name)
    for table, entries in TABLES.items()
    for name, entry in entries.items()
    if isinstance(entry, Example)
]


def test_every_row_has_one_entry_and_every_entry_a_row() -> None:
    page = rows()
    assert list(page) == list(TABLES)
    for table, entries in TABLES.items():
        assert sorted(page[table]) == sorted(entries), table
    assert not set(OPS) & set(PROGRAMS)


@pytest.mark.parametrize(("table", "name"), EXAMPLES)
def test_an_example_gives_the_documented_numbers(table: str, name: str) -> None:
    entry = TABLES[table][name]
    assert isinstance(entry, Example)
    found, documented = entry.run(), entry.documented
    assert len(entry.source.split()) > 3
    same(found, documented)


def same(found: Any, documented: Any) -> None:
    """Compares pytrees of numbers and texts."""
    if isinstance(documented, dict):
        assert sorted(found) == sorted(documented)
        for name, each in documented.items():
            same(found[name], each)
    elif isinstance(documented, (str, type(None))):
        assert found == documented
    elif isinstance(documented, (tuple, list)) and isinstance(found, (tuple, list)):
        assert len(found) == len(documented)
        for one, other in zip(found, documented, strict=True):
            same(one, other)
    else:
        result = np.asarray(found, np.float64)
        wanted = np.asarray(documented, np.float64)
        assert result.shape == wanted.shape
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)


def test_an_entry_without_an_example_says_why() -> None:
    for entries in TABLES.values():
        for name, entry in entries.items():
            if isinstance(entry, Reason):
                assert len(entry.why.split()) >= 5, name
                assert not entry.test or (ROOT / entry.test).exists(), name


def test_a_theme_has_rows_with_entries_of_their_own() -> None:
    others = {name for table, entries in TABLES.items() if table != "By theme" for name in entries}
    for name, entry in THEMES.items():
        if isinstance(entry, Rows):
            assert entry.names, name
            assert set(entry.names) <= others, name


def test_a_wrong_number_would_be_found() -> None:
    with pytest.raises(AssertionError):
        same([np.float32([1, 2])], [[1, 2.001]])
    with pytest.raises(AssertionError):
        same({"a": 1}, {"a": 1, "b": 2})


def test_examples_run_on_the_ipu() -> None:
    assert jax.default_backend() == "ipu"
