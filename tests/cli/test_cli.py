"""`python -m ipujax`: words, their output, their exit codes."""

from __future__ import annotations

import json

import pytest

from ipujax.cli import bench
from ipujax.cli.main import WORDS, main
from ipujax.cli.measure import timing
from ipujax.cli.measure.row import Row, seconds


def test_without_a_word_it_says_what_there_is(capsys):
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 2
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert [word for word in WORDS if word not in shown] == []


@pytest.mark.tiny
def test_doctor_finds_all_well(run_python):
    run = run_python("-m", "ipujax", "doctor")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "self-test    right" in run.stdout
    assert run.stdout.endswith("all is well\n")


def test_doctor_reports_a_bad_environment_and_fails(run_python):
    run = run_python("-m", "ipujax", "doctor", env={"JAX_IPU_DEVICE_COUNT": "none"})
    assert run.returncode == 1
    assert "FAIL  options" in run.stdout
    assert "JAX_IPU_DEVICE_COUNT needs a whole number from 1 to 1024; got 'none'" in run.stdout


def test_devices_lists_what_the_environment_asks_for(run_python):
    env = {"JAX_IPU_DEVICE_COUNT": "2", "JAX_IPU_MODEL_NUM_TILES": "16", "IPUJAX_MACHINE": "bow"}
    run = run_python("-m", "ipujax", "devices", "--json", env=env)
    assert run.returncode == 0, run.stderr
    devices = json.loads(run.stdout)
    assert [device["id"] for device in devices] == [0, 1]
    assert {device["num_tiles"] for device in devices} == {16}
    assert {device["clock_hz"] for device in devices} == {1.85e9}
    assert all(device["is_ipu_model"] is True for device in devices)


def test_devices_under_a_bad_environment_says_why(run_python):
    run = run_python("-m", "ipujax", "devices", env={"JAX_IPU_MODEL_NUM_TILES": "4096"})
    assert run.returncode != 0
    assert "JAX_IPU_MODEL_NUM_TILES needs a whole number from 1 to 1472" in run.stderr


def _bench(monkeypatch, capsys, rows: list[Row], *arguments: str) -> tuple[int, str]:
    monkeypatch.setattr(bench, "_rows", lambda arguments: iter(rows))
    code = main(["bench", *arguments])
    return code, capsys.readouterr().out


def test_bench_fails_where_a_bound_is_missed(monkeypatch, capsys):
    rows = [Row("fast", 0.5, 1.0, ""), Row("slow", 1.5, 1.0, "")]
    code, shown = _bench(monkeypatch, capsys, rows)
    assert code == 1
    assert shown.endswith("missed: slow\n")
    code, shown = _bench(monkeypatch, capsys, rows[:1])
    assert code == 0
    assert shown.endswith("all within bounds\n")


def test_bench_prints_json(monkeypatch, capsys):
    _, shown = _bench(monkeypatch, capsys, [Row("fast", 0.5, 1.0, "d")], "--json")
    assert json.loads(shown) == {
        "name": "fast",
        "value": 0.5,
        "bound": 1.0,
        "detail": "d",
        "passed": True,
    }


@pytest.mark.slow
def test_bench_measures_a_call(run_python):
    run = run_python("-m", "ipujax", "bench", "--quick", "--json", "--only", "call: x + 1")
    (row,) = [json.loads(line) for line in run.stdout.splitlines()]
    assert row["value"] > 0
    assert row["bound"] == 1.3


def test_timing_takes_medians_by_turns():
    def sleeper(seconds_each: float) -> timing.RunMany:
        return lambda num_calls: seconds_each * num_calls

    first, second = timing.interleave(
        sleeper(0.001), sleeper(0.004), num_rounds=3, sample_seconds=0.1
    )
    assert (first, second) == (pytest.approx(0.001), pytest.approx(0.004))


def test_seconds_are_shown_with_a_fitting_unit():
    assert [seconds(t) for t in (2.0, 0.0123, 4.2e-6)] == ["2 s", "12.3 ms", "4.2 us"]
