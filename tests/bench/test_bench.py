"""`python -m ipujax bench`: its arithmetic, its verdicts, and that its programs run."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable
from dataclasses import replace

import jax
import numpy as np
import pytest

from ipujax.cli.main import main
from ipujax.errors import ConfigError
from tests.bench import (
    command,
    comparisons,
    cpp_programs,
    digests,
    machine,
    memory,
    points,
    published_models,
    startup,
    summary,
    threads,
    timing,
    workload,
)
from tests.bench.models import convolutional, gpt, training
from tests.bench.row import Row, seconds
from tests.bench.workloads import named, workloads

#: Programs that take seconds to compile on the CPU backend, or to run: traced only.
BIG = ("train step", "transformer", "decode", "2048", "gradients", "eigh", "sort", "top", "embed")


def _bench(monkeypatch, capsys, rows: list[Row], *arguments: str) -> tuple[int, str]:
    monkeypatch.setattr(command, "_rows", lambda arguments: iter(rows))
    code = main(["bench", *arguments])
    return code, capsys.readouterr().out


def test_fails_where_a_bound_is_missed(monkeypatch, capsys):
    rows = [Row("fast", 0.5, 1.0, ""), Row("slow", 1.5, 1.0, ""), Row("unbound", 9.0, None, "")]
    code, shown = _bench(monkeypatch, capsys, rows)
    assert code == 1
    assert shown.endswith("missed: slow\n")
    assert [line.split()[0] for line in shown.splitlines()[1:4]] == ["ok", "MISS", "unbound"]
    code, shown = _bench(monkeypatch, capsys, [rows[0], rows[2]])
    assert code == 0
    assert shown.endswith("all within bounds\n")


def test_points_name_published_rows():
    assert len({point.title for point in points.POINTS}) == len(points.POINTS)
    for point in points.POINTS:
        assert point.measured > 0


def test_a_point_is_its_programs_throughput():
    few = points.Point("V077", "", "gc200", lambda: published_models.clip_text(4), 4, replicas=3)
    seconds = few.lower().compile().cost_analysis()["seconds"]
    assert points.modelled(few).throughput == pytest.approx(12 / seconds)


def test_replicas_add_up_their_gradients():
    alone = points.Point("V077", "", "gc200", lambda: published_models.clip_text(4), 4, replicas=4)
    together = replace(alone, gradient_bytes=2**26)
    assert points.modelled(together).throughput < points.modelled(alone).throughput


@pytest.mark.parametrize(
    "point", [p for p in points.POINTS if p.replicas * p.ipus == 1], ids=lambda point: point.title
)
def test_published_programs_that_ran_on_one_ipu_fit(point: points.Point) -> None:
    """Those of inference; `bench --points` looks at all."""
    assert points.modelled(point).tile_bytes <= points.TILE_BYTES


def test_only_must_name_something(capsys):
    for arguments in (["--only", "nosuch"], ["--devices", "2", "--only", "matmul 1024"]):
        assert main(["bench", *arguments]) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert "needs --only to be part of a row's name; got" in said.err
    assert main(["bench", "--only", "mathmul"]) == 1
    assert "matmul 1024 x 1024 float32" in capsys.readouterr().err


def test_prints_json(monkeypatch, capsys):
    _, shown = _bench(monkeypatch, capsys, [Row("fast", 0.5, 1.0, "d")], "--json")
    assert json.loads(shown) == {
        "name": "fast",
        "value": 0.5,
        "bound": 1.0,
        "detail": "d",
        "passed": True,
    }


def _json_of(run_python, *arguments: str, codes: Iterable[int] = (0, 1)) -> dict[str, dict]:
    run = run_python("-m", "ipujax", "bench", "--quick", "--json", *arguments)
    assert run.returncode in codes, run.stderr
    return {row["name"]: row for row in map(json.loads, run.stdout.splitlines())}


@pytest.mark.slow
def test_measures_a_call(run_python):
    rows = _json_of(run_python, "--only", "call: x + 1")
    assert list(rows) == ["call: x + 1 on 4 floats"]
    (row,) = rows.values()
    assert row["value"] > 0
    assert row["bound"] == 1.3


@pytest.mark.slow
def test_measures_one_program_in_all_ways_on_one_processor(run_python):
    rows = _json_of(run_python, "--all", "--threads", "1", "--only", "elementwise chain 10k")
    name = "elementwise chain 10k"
    bounds = {found: row["bound"] for found, row in rows.items()}
    assert bounds == {name: 1.5, f"{name}: compile": 1.0, f"{name}: memory": None}
    assert all(row["value"] > 0 for row in rows.values())


@pytest.mark.slow
def test_measures_a_program_over_devices_in_a_child(run_python):
    rows = _json_of(run_python, "--all", "--measure", "run", "--only", "data-parallel mlp")
    assert list(rows) == ["data-parallel MLP step, 4 devices"]


@pytest.mark.slow
def test_measures_a_pipeline_in_a_child(run_python):
    rows = _json_of(run_python, "--only", "pipelined MLP step, 2")
    name = "pipelined MLP step, 2 stages"
    assert {found: row["bound"] for found, row in rows.items()} == {
        name: 1.15,
        f"{name}: compile": 2.0,
    }


def _sleeper(*seconds_each: float) -> timing.RunMany:
    """Takes these times in turn, after the first for the count of calls."""
    left = [seconds_each[0], *seconds_each]
    return lambda num_calls: num_calls * (left.pop(0) if len(left) > 1 else left[0])


def test_timing_takes_medians_by_turns():
    first, second = timing.interleave(
        _sleeper(0.001), _sleeper(0.004), num_rounds=3, sample_seconds=0.001
    )
    assert (first, second) == (pytest.approx(0.001), pytest.approx(0.004))


def test_ratios_are_taken_round_by_round():
    """The ratio of the medians would be 2 / 3."""
    compared = timing.compare(_sleeper(1, 2, 9), _sleeper(4, 2, 3), 3, sample_seconds=0.001)
    assert compared.ratios == [0.25, 1.0, 3.0]
    assert compared.ratio == 1.0
    assert compared[:2] == (2.0, 3.0)
    assert compared.spread == "min 0.25 median 1.00 max 3.00 of 3"


def test_rounds_end_when_their_budget_is_spent():
    compared = timing.compare_once(_sleeper(1), _sleeper(2), num_rounds=20, budget_seconds=0)
    assert compared.ratios == [0.5] * timing.MIN_ROUNDS


def test_seconds_are_shown_with_a_fitting_unit():
    assert [seconds(t) for t in (2.0, 0.0123, 4.2e-6)] == ["2 s", "12.3 ms", "4.2 us"]


def test_geometric_mean():
    assert summary.geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert summary.geometric_mean([0.1, 0.2, 0.4]) == pytest.approx(0.2)


def test_summary_holds_each_kind_to_its_bound():
    measured = [
        Row("a", 0.5, 1.5, ""),
        Row("b", 2.0, 1.5, ""),
        Row("c", 1.0, 1.5, ""),
        Row("a: compile", 0.25, 1.0, ""),
        Row("b: compile", 1.0, 1.0, ""),
        Row("a: memory", 2.0, None, ""),
        Row("b: memory", 8.0, None, ""),
    ]
    run, slower, compiling, peak = summary.rows(measured)
    assert (run.value, run.bound, run.passed) == (pytest.approx(1.0), 0.9, False)
    assert run.detail == "3 programs, 1 over their bound, largest 2.00"
    assert (slower.value, slower.bound, slower.passed) == (pytest.approx(1 / 3), 0.5, True)
    assert slower.detail == "2 of 3 programs at most 1.0"
    assert (compiling.value, compiling.bound) == (pytest.approx(0.5), 0.5)
    assert (peak.value, peak.bound, peak.passed) == (pytest.approx(4.0), 1.0, False)
    assert list(summary.rows(measured[:1])) == []


def test_rows_of_a_program_are_of_the_kinds_asked_for(monkeypatch):
    peaks = {"ipu": 3 << 20, "cpu": 2 << 20}
    monkeypatch.setattr(comparisons.host_memory, "peak_bytes", lambda platform, _: peaks[platform])
    program = named("dispatch x + 1")
    ((row,)) = comparisons.rows(program, ["memory"], comparisons.Effort(3, 0.001))
    assert row == Row("dispatch x + 1: memory", 1.5, None, "ipu 3.0 MiB, cpu 2.0 MiB")
    kinds = [
        summary.kind_of(row)
        for row in comparisons.rows(program, ["run", "compile"], comparisons.Effort(3, 0.001))
    ]
    assert kinds == ["run", "compile"]


def test_start_is_compared_with_jax_alone(monkeypatch):
    def json_lines(arguments, environment):
        return [1.5 if 'jax.devices("ipu")' in arguments[1] else 1.25]

    monkeypatch.setattr(startup.children, "json_lines", json_lines)
    row = startup.row(3)
    assert (row.value, row.bound) == (0.25, 0.5)
    assert row.detail == "ipujax 1.5 s, JAX alone 1.25 s"


def test_what_programs_in_cpp_print_is_held_to_a_bound(monkeypatch, tmp_path):
    printed = "measured: a b: 2.5 (5 us, 2 us)\nok it_works\nmeasured: c: 3.100 (4 (of 5))\n"
    assert cpp_programs.measured(printed, 3.0) == [
        Row("a b", 2.5, 3.0, "5 us, 2 us"),
        Row("c", 3.1, 3.0, "4 (of 5)"),
    ]
    for program, names, bound in cpp_programs.PROGRAMS:
        found = cpp_programs.measured(cpp_programs._output(program), bound)
        assert [row.name for row in found] == names
    monkeypatch.setattr(cpp_programs, "BINARIES", tmp_path)
    with pytest.raises(ConfigError, match="Run make cpp"):
        list(cpp_programs.rows("codelet"))


def test_results_are_compared_bit_by_bit(monkeypatch):
    def json_lines(arguments, environment):
        return [{"same": "a", "differs": environment["IPUJAX_NUM_THREADS"]}]

    monkeypatch.setattr(digests.children, "json_lines", json_lines)
    row = digests.row()
    assert (row.value, row.bound) == (1, 0)
    assert row.detail == "of 2, with 1, 3, 3, 8 threads: differs"


def test_threads_bind_the_process_and_start_it_anew(monkeypatch):
    bound, started = [], []
    monkeypatch.setenv("IPUJAX_NUM_THREADS", "2")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 8})
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cpus: bound.append(cpus))
    monkeypatch.setattr(os, "execv", lambda *command: started.append(command))
    threads.limit(3)
    assert (bound, started) == ([], [])
    assert "IPUJAX_NUM_THREADS" not in os.environ
    threads.limit(2)
    assert bound == [[5, 8]]
    assert started == [(sys.executable, sys.orig_argv)]
    with pytest.raises(ConfigError, match=r"needs --threads from 1 to 3, .*; got 4"):
        threads.limit(4)


def test_peak_memory_can_begin_anew():
    big = np.ones(64 << 20, np.uint8)
    del big
    memory.forget_peak()
    settled = memory.peak_bytes()
    big = np.ones(32 << 20, np.uint8)
    assert memory.peak_bytes() - settled >= big.nbytes // 2


def test_names_of_programs_tell_them_apart():
    names = [program.name for program in workloads()]
    assert len(set(names)) == len(names)
    assert [name for name in names if summary.kind_of(Row(name, 1, 1, "")) != "run"] == []
    with pytest.raises(ConfigError, match="got 'nothing'"):
        named("nothing")


def _shapes(tree) -> list[tuple]:
    return [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(tree)]


@pytest.mark.parametrize("program", workloads(), ids=lambda program: program.name)
def test_program_runs_or_traces(program):
    """What is carried comes back as it went in, so that it can go in again."""
    arguments = program.arguments()
    wanted = jax.eval_shape(program.function, *arguments)
    if program.carries:
        assert _shapes(wanted[0]) == _shapes(jax.tree.map(np.asarray, arguments[0]))
    if any(word in program.name for word in BIG):
        return
    for platform in ("ipu", "cpu"):
        result = program.jitted()(*workload.placed(program, platform, arguments))
        assert _shapes(result) == _shapes(wanted)
        for leaf in jax.tree.leaves(result):
            assert np.isfinite(np.asarray(leaf, np.complex64)).all()


@pytest.mark.parametrize(
    ("forward", "params", "x"),
    [
        (training.mlp, training.init_mlp((20, 16, 10)), workload.normal(8, 20)),
        (convolutional.lenet, convolutional.init_lenet(np.float32), workload.normal(8, 28, 28, 1)),
        (
            convolutional.lenet,
            convolutional.init_lenet(np.float16),
            workload.normal(8, 28, 28, 1, dtype=np.float16),
        ),
    ],
    ids=["mlp", "lenet f32", "lenet f16"],
)
def test_models_learn(forward, params, x):
    step = jax.jit(training.momentum_step(forward))
    state, labels = (params, training.zeros_like(params)), workload.indices(8, 10)
    losses = []
    for _ in range(60):
        state, loss = step(state, x, labels)
        losses.append(float(loss))
    assert losses[0] == pytest.approx(math.log(10), abs=1.5)
    assert losses[-1] < 0.8 * losses[0]


def test_decoding_agrees_with_the_whole_forward_pass():
    """Token after token through the cache finds what all of them at once find."""
    params = jax.tree.map(np.asarray, gpt.init())
    tokens = workload.indices(2 * 5, gpt.NUM_TOKENS).reshape(2, 5)
    wanted = jax.jit(gpt.forward)(params, tokens).argmax(-1)
    cache = np.zeros_like(gpt.init_cache(2))
    decode = jax.jit(gpt.decode)
    for place in range(5):
        cache, found = decode(cache, params, tokens[:, place], np.int32(place))
        assert found.tolist() == wanted[:, place].tolist()


def test_peaks_of_the_machine_are_measured(monkeypatch):
    """Smaller than in earnest; any machine copies and multiplies faster than this."""
    monkeypatch.setattr(machine, "_LARGE", 1 << 24)
    monkeypatch.setattr(machine, "_SIDE", 256)
    rows = list(machine.rows())
    assert len(rows) == 3
    assert all(row.value > 0.1 and row.bound is None for row in rows)
