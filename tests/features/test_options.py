"""Rows of options: the values of the old tools' documents give the options that the page says."""

from __future__ import annotations

import json
import re

import pytest

from ipujax import IPUConfig
from ipujax.config.options import SECTION_OF, SPECS
from ipujax.config.theirs import WITHOUT
from tests.features import options
from tests.features.entry import Setting, rows

TABLES = {
    "TensorFlow: IPUConfig": options.TENSORFLOW,
    "PopTorch: Options": options.POPTORCH,
    "Optimum: IPUConfig": options.OPTIMUM,
}
CASES = [(table, name) for table, entries in TABLES.items() for name in entries]


@pytest.mark.parametrize(("table", "name"), CASES)
def test_a_documented_value(table: str, name: str, caplog: pytest.LogCaptureFixture) -> None:
    entry = TABLES[table][name]
    assert isinstance(entry, Setting)
    config = IPUConfig.from_json(json.dumps({name: entry.given}))
    _, ours, more = rows()[table][name]
    set_here = {option: config.get(option) for option in entry.ours}
    assert set_here == entry.ours
    assert config.changes().keys() <= entry.ours.keys()
    assert sorted(re.findall(r"`config\.(\w+\.\w+)`", ours)) == (
        sorted(f"{SECTION_OF[option]}.{option}" for option in entry.ours)
    )
    if not entry.ours:
        assert ours.replace("`", "") == f"no option: {WITHOUT[name]}"
        assert f"{name} has no effect: {WITHOUT[name]}" in caplog.text
    why = [SPECS[option].metadata["no_effect"] for option in entry.ours]
    assert ("No effect: " in more) == any(why)
    assert [each for each in why if each not in more.replace("`", "")] == []
