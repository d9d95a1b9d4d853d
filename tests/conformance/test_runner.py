"""The runner's own behaviour: a harness that kills its process or never ends costs itself only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance import library_suites, runner
from tests.conformance.comparison import difference
from tests.conformance.harnesses import Harness, chosen
from tests.conformance.page import bad, page, summary
from tests.conformance.tolerances import bound

#: A worker whose harness 3 crashes and whose harness 5 stands still.
WORKER = """
import json, os, sys, time
with open(sys.argv[1], "a") as out:
    for position in map(int, sys.stdin.read().split()):
        print(json.dumps({"begin": str(position)}), file=out, flush=True)
        if position == 3:
            print("dying", file=sys.stderr, flush=True)
            os._exit(7)
        if position == 5:
            time.sleep(60)
        print(json.dumps({"name": str(position), "status": "works"}), file=out, flush=True)
"""


def harness(name: str, group: str = "add", dtype: str = "float32", **params: Any) -> Harness:
    return Harness(name, group, dtype, lambda: None, list, params)


HARNESSES = [harness(str(i), "add" if i % 2 else "mul") for i in range(8)]


def test_crash_and_hang_cost_one_harness_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    monkeypatch.setattr(runner, "IMPORT_SECONDS", 2.0)
    seen: list[dict[str, Any]] = []
    records = runner.run_harnesses(HARNESSES, range(8), 2, 1.0, seen.append, [str(script)])
    assert [record["name"] for record in records] == [str(i) for i in range(8)]
    states = {record["name"]: record["status"] for record in records}
    assert states == dict.fromkeys("012467", "works") | {"3": "crash", "5": "hang"}
    assert "exit code 7: dying" in records[3]["reason"]
    assert len(seen) == 8


def test_child_that_never_starts_is_an_error(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text("raise SystemExit('no extension')")
    with pytest.raises(RuntimeError, match="needs a child that starts; got:\nno extension"):
        runner.run_harnesses(HARNESSES, range(2), 1, 1.0, lambda record: None, [str(script)])


def test_shards_and_limits_are_fixed() -> None:
    assert chosen(HARNESSES) == list(range(8))
    assert chosen(HARNESSES, group="mul") == [0, 2, 4, 6]
    assert chosen(HARNESSES, limit=2) == [0, 1, 4, 5]
    assert sorted(chosen(HARNESSES, shard=(0, 3)) + chosen(HARNESSES, shard=(1, 3))) == [
        0, 1, 3, 4, 6, 7,
    ]  # fmt: skip


def compared(ours: Any, theirs: Any, group: str = "add", inputs: Any = (), **params: Any) -> Any:
    ours, theirs = ([np.asarray(x) for x in each] for each in (ours, theirs))
    case = harness("x", group, ours[0].dtype.name, **params)
    return difference(case, [np.asarray(x) for x in inputs], ours, theirs)


def test_values_are_compared_within_jax_bounds() -> None:
    one = np.float32(1)
    assert compared([one], [one]) is None
    assert "1 of 1 differ" in compared([one], [np.float32(1 + 1e-5)])
    assert compared([one], [np.float32(1 + 1e-5)], "lgamma") is None
    assert compared([np.float32(np.nan)], [np.float32(np.nan)]) is None
    assert compared([np.float32(np.inf)], [np.float32(3e38)]) is not None
    assert compared([np.int32(5)], [np.int32(6)]) is not None
    assert "float32" in compared([one], [np.float16(1)])
    assert "2 results for 1" in compared([one, one], [one])
    assert bound("add", "int8", "int8") == 0
    assert bound("add", "float16", "float16") == 1e-3


def test_factorisations_are_held_to_what_defines_them() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((2, 4, 4)).astype(np.float32)
    q, r = np.linalg.qr(a)
    assert compared([-q, -r], [q, r], "qr", [a]) is None
    assert "q r" in compared([q, 2 * r], [q, r], "qr", [a])
    u, s, vt = np.linalg.svd(a)
    assert compared([s, -u, -vt], [s, u, vt], "svd", [a]) is None
    assert "u s v^H" in compared([s, -u, vt], [s, u, vt], "svd", [a])
    symmetric = a + a.transpose(0, 2, 1)
    w, v = np.linalg.eigh(symmetric)
    assert compared([-v, w], [v, w], "eigh", [symmetric]) is None
    assert "eigenvalues" in compared([v, 2 * w], [v, w], "eigh", [symmetric])


def test_page_and_summary_count_each_status() -> None:
    names = ("works", "refused", "wrong", "error", "crash", "hang", "skipped")
    records = [
        {"name": f"h{i}", "group": "add", "dtype": "float32", "status": s, "reason": "why|not"}
        for i, s in enumerate(names)
    ]
    records[0] |= {"cpu_s": 2.0, "ipu_s": 1.0}
    assert [bad(record) for record in records] == [False, False, True, True, True, True, False]
    assert "16.67 % of 6 work; 1.0 s on ipu, 2.0 s on cpu: 0.50x" in summary(records)
    text = page(records)
    assert "| add | 1/6 | - |" in text
    assert "| add | 1 | why/not |" in text
    assert "| h2 | wrong | why/not |" in text


def test_tests_that_only_the_cpu_passes_are_differences_but_for_counts_of_xla() -> None:
    module = "linen/summary_test"
    counted = sorted(library_suites.COUNTS_OF_XLA[module])
    cpu = library_suites.ModuleResult(module, "cpu", [*counted, ".Other::test"], [], [])
    ipu = library_suites.ModuleResult(module, "ipu", [], [*counted, ".Other::test"], [])
    assert library_suites.differences([cpu, ipu]) == [f"{module} .Other::test"]
