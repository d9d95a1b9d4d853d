"""Reports say what made them: the machine, the options and the date."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import jax
import jax.numpy as jnp
import pytest

import ipujax as ipu
from ipujax.reporting import document
from ipujax.reporting.figures import figures

X = jax.ShapeDtypeStruct((64, 64), jnp.float32)


def test_a_report_names_machine_options_and_date():
    begin = datetime.now(UTC).replace(microsecond=0)
    found = ipu.report(jnp.tanh, X, options={"ipu_outline": "auto"})
    kind = jax.devices("ipu")[0].device_kind
    tiles = len(found.ipus[0].tile_bytes[0])
    assert found.machine.startswith(f"{kind}: 1 IPU of {tiles} tiles")
    assert "outline=auto" in found.options
    assert begin <= datetime.fromisoformat(found.date) <= datetime.now(UTC)
    assert document.read(json.loads(document.write(found))) == found
    for text in (str(found), figures(found)):
        assert all(each in text for each in (found.machine, "outline=auto", found.date))
    assert "all at their defaults" not in str(found)


def test_options_of_the_process_are_named(monkeypatch):
    assert "assumed_trip_count=7" not in ipu.report(jnp.tanh, X).options
    monkeypatch.setenv("IPUJAX_ASSUMED_TRIP_COUNT", "7")
    assert "assumed_trip_count=7" in ipu.report(jnp.tanh, X).options


def test_stablehlo_is_reported_with_its_machine(tmp_path):
    from ipujax.api.cost.program_files import report_of_file

    path = tmp_path / "step.mlir"
    path.write_text(str(jax.jit(jnp.tanh).lower(X).compiler_ir()))
    found = report_of_file(path, {"ipu_outline": "auto"})
    assert found.machine.startswith("gc200: 1 IPU of ")
    assert found.date
    assert found.version
    assert "outline=auto" in found.options


@pytest.mark.parametrize("date", ["yesterday", "2024-13-01", "?"])
def test_a_document_with_another_date_is_refused(date):
    altered = json.loads(document.write(ipu.report(jnp.tanh, X)))
    altered["report"]["date"] = date
    with pytest.raises(document._MalformedError, match="no date"):
        document.read(altered)


def test_the_page_names_them(tmp_path):
    pytest.importorskip("bokeh", reason="needs Bokeh to draw pages; install ipujax[report]")
    found = ipu.report(jnp.tanh, X, options={"ipu_outline": "auto"})
    found.save(tmp_path / "step.html")
    text = (tmp_path / "step.html").read_text(encoding="utf-8")
    for each in (found.machine, "outline=auto", found.date):
        assert f"{each}" in text.split("<h2>")[0]
