"""docs/features.md: every name of ours exists, and every name of theirs is there."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path

import jax
import pytest

import ipujax as ipu
from ipujax.cli.main import WORDS
from ipujax.config.options import SECTION_OF, SPECS
from ipujax.config.process_variables import PROCESS_VARIABLES
from ipujax.config.theirs import CONVERTED, RENAMED, WITHOUT

PAGE = (Path(__file__).parents[2] / "docs" / "features.md").read_text()
#: Of each framework: the names of its documents. Names are facts; the page says what they mean.
THEIR_NAMES = json.loads((Path(__file__).parent / "their_names.json").read_text())
#: Names on the page that do not exist yet.
NOT_YET: set[str] = set()
#: Rows of the tables: their names, ours, and more.
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split(" | "))
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| theirs ")
]
OURS = sorted({name for row in ROWS for name in re.findall(r"`([^`]+)`", row[1])})
VARIABLES = {spec.metadata["env"] for spec in SPECS.values()} | set(PROCESS_VARIABLES)


def exists(name: str) -> bool:
    """Whether a name of the second column is there; False too for one of no known form."""
    if name.startswith("ipujax "):
        return name.removeprefix("ipujax ") in WORDS
    if name.startswith(("IPUJAX_", "JAX_IPU_")):
        return name in VARIABLES
    if name.startswith("config."):
        _, section, option = name.split(".")
        return SECTION_OF.get(option) == section
    if name in ("num_ipus",):  # attributes of devices
        return hasattr(jax.devices("ipu")[0], name)
    path, _, argument = name.partition("(")
    found = resolved(path)
    if found is None or not argument:
        return found is not None
    return argument.removesuffix("=)") in inspect.signature(found).parameters


def resolved(path: str) -> object | None:
    root, *rest = path.split(".")
    roots = {"ipu": ipu, "jax": jax, "compiled": jax.stages.Compiled}
    found: object | None = roots.get(root)
    for index, part in enumerate(rest):
        if root == "jax" and not hasattr(found, part):
            try:
                importlib.import_module(".".join([root, *rest[: index + 1]]))
            except ImportError:
                return None
        found = getattr(found, part, None)
    return found


@pytest.mark.parametrize("name", OURS)
def test_every_name_of_ours_exists(name: str):
    if name in NOT_YET:
        assert not exists(name), f"{name} exists now: take it from NOT_YET"
    else:
        assert exists(name), f"{name} does not exist"


def test_what_does_not_exist_yet_is_on_the_page():
    assert set(OURS) >= NOT_YET


def test_a_name_that_is_wrong_would_be_found():
    wrong = ("ipu.nn.glu", "ipu.pipeline(micro=)", "config.norms.x64", "ipujax fly", "jax.jitt")
    assert [name for name in wrong if exists(name)] == []


@pytest.mark.parametrize("framework", sorted(THEIR_NAMES))
def test_the_page_has_every_name_of_theirs(framework: str):
    on_page = {name for row in ROWS for name in re.findall(r"`([^`]+)`", row[0])}
    assert len(THEIR_NAMES[framework]) > 30
    assert sorted(set(THEIR_NAMES[framework]) - on_page) == []


def test_every_row_names_ours_or_says_why_there_is_none():
    assert len(ROWS) > 350
    assert [row for row in ROWS if len(row) < 2 or not row[1]] == []
    assert [row for row in ROWS if "`" not in row[1] and len(row[1].split()) < 3] == []


def test_the_rows_of_options_are_what_files_of_options_mean():
    """`ipu.IPUConfig.from_file` takes their names by the same tables."""
    by_name = {name: row[1] for row in ROWS for name in re.findall(r"`([^`]+)`", row[0])}
    assert sorted({*RENAMED, *CONVERTED, *WITHOUT} - set(by_name)) == []
    for name, ours in RENAMED.items():
        assert by_name[name] == f"`config.{SECTION_OF[ours]}.{ours}`"
    for name, reason in WITHOUT.items():
        assert by_name[name].replace("`", "") == f"no option: {reason}"
    assert all("`config." in by_name[name] for name in CONVERTED)
