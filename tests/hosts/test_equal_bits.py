"""Programs over several processes give the bits of one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hosts.jobs import digests
from tests.hosts.trainings import TRAININGS

#: Kinds of programs, and how many of each; `python -m tests.hosts.digests` runs more.
KINDS = {"trainings": (0, len(TRAININGS)), "collectives": (0, 30), "meshes": (1000, 16)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hosts")


@pytest.mark.parametrize("kind", KINDS)
def test_two_and_four_processes_have_the_bits_of_one(kind: str, folder: Path) -> None:
    first, count = KINDS[kind]
    alone = digests(folder, 1, kind, first, count)
    assert len(alone) == count
    for processes in (2, 4):
        found = digests(folder, processes, kind, first, count)
        differing = {seed for seed in alone if found[seed] != alone[seed]}
        assert not differing, f"{kind} over {processes} processes: seeds {differing}"


def test_eight_processes_train_as_one(folder: Path) -> None:
    first, count = KINDS["trainings"]
    assert digests(folder, 8, "trainings", first, count) == digests(
        folder, 1, "trainings", first, count
    )
