"""The points of `python -m ipujax bench --points`: none is missing, and what is not a program's."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.bench import points, published, published_models
from tests.stages import verdicts

ROWS = {row["id"]: row for row in published.points("ipu_points.csv")}
USES = {row["id"]: row for row in published.points("ipu_points_use.csv")}


def _used(use: str) -> set[str]:
    return {name for name, row in USES.items() if row["use"] == use}


def test_every_published_row_is_compared_or_has_a_reason() -> None:
    assert USES.keys() == ROWS.keys()
    assert _used("points") == {point.id for point in points.POINTS}
    for name, row in USES.items():
        assert row["use"] in (
            "points",
            "amp_points.csv",
            "elementwise_points.csv",
            "verdicts",
            "none",
        )
        assert bool(row["why"]) == (row["use"] == "none"), name
    assert [
        name for name in _used("verdicts") if not any(name in f.source for f in verdicts.FACTS)
    ] == []


@pytest.mark.parametrize("name", sorted(_used("amp_points.csv")))
def test_vertices_of_the_matrix_unit(name: str) -> None:
    """The row's own size: `amp_points.csv` has others."""
    row = ROWS[name]
    size = re.match(r"ConvPartial1x1 f16\[(\d+),16\]", row["workload"])
    measured = re.search(r"=([\d.]+) tile cycles", row["config"])
    assert size is not None
    assert measured is not None
    assert published.amp_cycles(int(size[1])) == pytest.approx(float(measured[1]), rel=0.05)


def test_elementwise_rows_are_in_their_table() -> None:
    table = {
        (row["op"], row["elements_per_tile"], row["measured_cycles"])
        for row in published.points("elementwise_points.csv")
    }
    for name in _used("elementwise_points.csv"):
        row = ROWS[name]
        op = "scaled_add" if "scaled_add" in row["workload"] else "add"
        size = re.search(r"(\d+) elements", row["workload"])
        assert size is not None
        assert (op, size[1], row["value"]) in table


def test_three_clients_wait_for_the_host_and_more_do_not() -> None:
    """Load, compute and store are three turns: the fourth client's input is there in time."""
    trip = points.ROUND_TRIP
    assert 0.2e-3 < trip < 0.4e-3
    assert points.paced(1e-3, 3) == pytest.approx(1e-3 + trip)
    assert points.paced(1e-3, 4) == 1e-3
    assert points.paced(0.1e-3, 4) == pytest.approx((0.1e-3 + trip) / 2)
    assert points.paced(1024 / 31_446_195, 5) == pytest.approx(1024 / 9_070_425)


def test_calls_from_the_host_take_time() -> None:
    looped = points.Point("V077", "", "gc200", lambda: published_models.clip_text(4), 4)
    called = replace(looped, runs_per_call=2)
    seconds = 4 / points.modelled(looped).throughput
    assert points.modelled(called).throughput == pytest.approx(
        4 / (seconds + points.BETWEEN_CALLS / 2)
    )
