"""What reports list adds up to what `cost_analysis()` gives, over generated programs."""

from __future__ import annotations

import dataclasses
import gc
import json
import random
import resource
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.annotations.layers import layer_of
from ipujax.api.cost.cost import PARTS
from ipujax.reporting import document
from ipujax.reporting.model import ALWAYS_LIVE, GROUPINGS, KINDS

SIZE = 48


def generated(seed: int):
    """A function of loops, branches, outlined calls and ops, nested at random."""
    pick = random.Random(seed)

    @ipu.outlined
    def outlined(x, w):
        return jnp.tanh(x @ w)

    def leaf(x, w):
        return pick_leaf(x, w)

    def pick_leaf(x, w):
        kind = pick.randrange(5)
        if kind == 0:
            return x @ w
        if kind == 1:
            return jax.nn.softmax(x)
        if kind == 2:
            return outlined(x, w)
        if kind == 3:
            return jnp.roll(x, 1, axis=0) + x
        return x * 2 + x.sum(0)

    def tree(x, w, depth):
        kind = pick.randrange(5) if depth else 0
        if kind == 1:
            body = lambda _, c: tree(c, w, depth - 1)  # noqa: E731
            return jax.lax.fori_loop(0, pick.randrange(1, 5), body, x)
        if kind == 2:
            return jax.lax.cond(
                x[0, 0] > 0, lambda c: tree(c, w, depth - 1), lambda c: tree(c, w, depth - 1), x
            )
        if kind == 3:
            return jax.lax.while_loop(lambda c: c.sum() < 3, lambda c: tree(c, w, depth - 1) + 1, x)
        if kind == 4:
            with jax.named_scope(f"layer{depth}"):
                return tree(tree(x, w, depth - 1), w, depth - 1)
        return leaf(x, w)

    return lambda x, w: tree(tree(x, w, 3), w, 3)


def shapes():
    return (jax.ShapeDtypeStruct((SIZE, SIZE), jnp.float32),) * 2


def check_totals(report: ipu.Report, analysis) -> None:
    def near(value):
        return pytest.approx(value, rel=1e-5, abs=1e-3)  # JAX gives the analysis in float32

    columns = {
        "exchange bytes": "exchange_bytes",
        "link bytes": "link_bytes",
        "compute cycles": "compute_cycles",
        "exchange cycles": "exchange_cycles",
        "sync cycles": "sync_cycles",
        "flops": "flops",
    }
    for name, field in columns.items():
        assert sum(s.times * getattr(s, field) for s in report.steps) == near(analysis[name])
    total = sum(step.total_cycles for step in report.steps)
    for grouping in GROUPINGS:
        groups = report.by(grouping)
        assert sum(group.cycles for group in groups) == near(total)
        assert sum(group.exchange_bytes for group in groups) == near(analysis["exchange bytes"])
    assert report.cycles == near(analysis["cycles"])
    assert report.fullest_tile_bytes == near(analysis["worst tile bytes"])
    if len(report.ipus) == 1:
        assert total == near(analysis["cycles"])


def check_ipus(report: ipu.Report) -> None:
    """The timeline has what each IPU's account has, and its tiles hold what the account says."""
    for i, account in enumerate(report.ipus):
        spent = sum(piece.times * sum(piece.by_kind) for piece in report.slices if i in piece.ipus)
        assert spent == pytest.approx(sum(account.by_kind), rel=1e-6, abs=1e-3)
        assert sum(account.by_kind) + account.idle_cycles == pytest.approx(report.cycles, rel=1e-6)
        on_fullest = sum(tiles[account.fullest_tile] for tiles in account.tile_bytes)
        assert on_fullest == account.fullest_tile_bytes
    assert sum(report.parts.values()) == report.fullest_tile_bytes
    held = [t for t in report.tensors if t.category in ("parameters", "state")]
    assert all(tensor.always_live for tensor in held)


@pytest.mark.parametrize("seed", range(12))
def test_the_listed_steps_add_up_to_the_cost_analysis(seed: int):
    report = ipu.report(generated(seed), *shapes())
    check_totals(report, ipu.cost(generated(seed), *shapes()).analysis)
    check_ipus(report)
    assert document.read(json.loads(document.write(report))) == report


def test_parts_are_those_of_the_cost_and_change_in_a_comparison():
    big, small = (
        ipu.report(jnp.dot, *(jax.ShapeDtypeStruct((n, n), jnp.float16),) * 2) for n in (512, 64)
    )
    cost = ipu.cost(jnp.dot, *(jax.ShapeDtypeStruct((512, 512), jnp.float16),) * 2)
    assert big.parts == {name: size for name, size in cost.parts.items() if size}
    assert f"stack {big.parts['stack']}" in str(big)
    assert set(big.categories) == set(PARTS)
    assert set(big.categories) > ALWAYS_LIVE
    totals = {name: (a, b) for name, a, b in big.compare(small).totals()}
    for name in big.parts:
        assert totals[f"of them {name}"] == (big.parts[name], small.parts.get(name, 0))


def test_temporaries_are_on_the_tiles_of_their_step():
    """A product of few rows uses some tiles; the others have none of its temporaries."""
    x = jax.ShapeDtypeStruct((4, 64), jnp.float16)
    report = ipu.report(lambda x, w: x @ w, x, jax.ShapeDtypeStruct((64, 64), jnp.float16))
    ipu0 = report.ipus[0]
    for name in ("temporaries", "rearrangement", "exchange buffers"):
        used = sum(size > 0 for size in ipu0.tile_bytes[report.categories.index(name)])
        assert used < 400
    stacks = ipu0.tile_bytes[report.categories.index("stack")]
    assert len(stacks) == 1472
    assert set(stacks) == {report.parts["stack"]}


def test_loops_count_their_iterations():
    def f(x, w):
        return jax.lax.fori_loop(0, 7, lambda _, c: c @ w, x)

    report = ipu.report(f, *shapes())
    (product,) = [step for step in report.steps if step.op == "dot_general"]
    assert product.times == 7
    assert product.plan.startswith("vertex ")
    assert 0 < product.utilisation < 1
    assert report.unknown_loops == 0


def test_unknown_loops_are_said_to_be():
    def f(x, w):
        return jax.lax.while_loop(lambda c: c.sum() < 3, lambda c: c @ w, x)

    report = ipu.report(f, *shapes())
    assert report.unknown_loops == 1
    assert "loops whose iterations only a run knows: 1; assumed iterations of each: 1" in str(
        report
    )


def test_what_does_not_fit_is_said_with_what_to_do():
    x = jax.ShapeDtypeStruct((30_000, 30_000), jnp.float32)
    report = ipu.report(lambda x: x * 2, x, remedies=0)
    assert report.remedies == ()
    assert "does not fit; " in str(report)
    assert "ipujax.remedies tries changes that make it fit" in str(report)
    assert "ipujax.remedies" not in str(ipu.report(jnp.tanh, shapes()[0]))


def test_the_summary_names_lines_layers_and_tensors():
    def f(x, w):
        with jax.named_scope("encoder"):
            return jnp.tanh(x @ w)

    text = str(ipu.report(f, *shapes()))
    assert "fits" in text
    assert "encoder" in text
    assert "test_report.py:" in text
    assert "float[48x48]" in text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "jit(f)/transpose(jvp(layer1))/attention/dot_general",
            ("layer1/attention", "dot_general"),
        ),
        ("jit(f)/jvp()/while/body/add", ("", "add")),
        ("dot_general", ("", "dot_general")),
        ("", ("", "")),
        ("jit(f)/vmap(jvp(a))/b/c", ("a/b", "c")),
    ],
)
def test_the_layer_is_the_named_scopes(name, expected):
    assert layer_of(name) == expected


@pytest.fixture(scope="module")
def report() -> ipu.Report:
    return ipu.report(generated(4), *shapes())


def test_an_executable_without_a_profile_is_refused():
    from ipujax._poplar import _poplar

    with jax.default_device(jax.devices("ipu")[0]):
        compiled = jax.jit(jnp.tanh).lower(shapes()[0]).compile()
    serialised = bytes(compiled.runtime_executable().serialize())
    with pytest.raises(RuntimeError, match="ipu_profile=true"):
        _poplar.engine.profileImage(serialised[serialised.index(b"IPUJAXEX") :])


def test_trace_has_a_thread_for_each_ipu_and_slices_in_order(report, tmp_path):
    report.save(tmp_path / "step.trace.json")
    events = json.loads((tmp_path / "step.trace.json").read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert {event["tid"] for event in slices} == set(range(len(report.ipus)))
    assert len(slices) == sum(len(piece.ipus) for piece in report.slices)
    end = max(event["ts"] + event["dur"] for event in slices)
    assert end == pytest.approx(report.seconds * 1e6)
    loops = [event for event in slices if event["cat"] == "loop"]
    assert all(event["args"]["iterations_shown"] <= 1 for event in loops)


def test_saving_says_what_is_wrong(report, tmp_path):
    with pytest.raises(ipu.ConfigError, match=r"needs a file name that ends in .*step\.pdf"):
        report.save("step.pdf")
    with pytest.raises(ipu.ReportError, match="needs a file that it can write"):
        report.save(tmp_path / "absent" / "step.json")
    with pytest.raises(ipu.ReportError, match="needs a readable JSON file"):
        ipu.load_report(tmp_path / "absent.json")


def test_a_full_disk_leaves_the_old_file(report, tmp_path):
    path = tmp_path / "step.json"
    path.write_text("old")
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, old[1]))
    try:
        with pytest.raises(ipu.ReportError, match=r"needs a file that it can write; got .*large"):
            report.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert [p.name for p in tmp_path.iterdir()] == ["step.json"]
    assert path.read_text() == "old"


def test_altered_documents_are_refused_or_still_whole(report):
    """Every value that is replaced by one of another kind or out of range is found."""
    text = document.write(report)
    pick = random.Random(0)
    refused = 0
    for _ in range(300):
        altered = json.loads(text)
        place = altered["report"]
        while True:
            keys = list(place) if isinstance(place, dict) else range(len(place))
            key = pick.choice(list(keys))
            if not (isinstance(place[key], dict | list) and place[key]) or pick.random() < 0.1:
                break
            place = place[key]
        place[key] = pick.choice([None, -1, 1e99, float("nan"), {}, "?", True, 10**30])
        try:
            document.read(altered)
        except document._MalformedError:
            refused += 1
        else:
            assert place[key] == "?" or place[key] is True  # text may be any, and so may a flag
    assert refused > 200


def test_comparison_shows_what_changed(report, tmp_path):
    other = dataclasses.replace(report, cycles=report.cycles * 2)
    comparison = report.compare(other)
    assert "+100.0%" in str(comparison)
    with pytest.raises(ipu.ConfigError, match=r"ends in \.html"):
        comparison.save(tmp_path / "both.json")
    same = report.compare(report)
    assert all(change.difference == 0 for change in same.by("line"))


def test_the_command_prints_compares_and_writes(report, tmp_path, capsys):
    from ipujax.cli.main import main

    path = str(tmp_path / "step.json")
    report.save(path)
    assert main(["report", path]) == 0
    assert capsys.readouterr().out == f"{report}\n"
    assert main(["report", path, path]) == 0
    assert "before" in capsys.readouterr().out
    assert main(["report", path, "-o", str(tmp_path / "step.trace.json")]) == 0
    assert (tmp_path / "step.trace.json").exists()
    assert main(["report", str(tmp_path / "absent.json")]) == 1
    assert "[load_report] needs" in capsys.readouterr().err


def test_the_command_prints_json(report, tmp_path, capsys):
    from ipujax.cli.main import main

    path, page = str(tmp_path / "step.json"), tmp_path / "step.trace.json"
    report.save(path)
    assert main(["report", path, "--json", "-o", str(page)]) == 0
    assert page.exists()
    found = json.loads(capsys.readouterr().out)
    assert found["cycles"] == report.cycles
    assert found["fits"] is report.fits
    assert sum(found["parts"].values()) == found["fullest_tile_bytes"]
    assert found["seconds"] == pytest.approx(report.cycles / report.clock_hz)
    total = sum(step.times * step.cycles for step in report.steps)
    for grouping, attribute in (("line", "source"), ("layer", "scope"), ("op", "op")):
        groups = found["by"][grouping]
        assert {group["name"] for group in groups} == {
            getattr(step, attribute) for step in report.steps
        }
        assert sum(group["cycles"] for group in groups) == pytest.approx(total)
    slower = dataclasses.replace(report, cycles=report.cycles + 1, steps=report.steps[1:])
    slower.save(tmp_path / "slower.json")
    assert main(["report", path, str(tmp_path / "slower.json"), "--json"]) == 0
    both = json.loads(capsys.readouterr().out)
    assert both["after"]["cycles"] - both["before"]["cycles"] == 1
    (change,) = both["changes"]["line"]
    first = report.steps[0]
    assert change["name"] == first.source
    assert change["before"] - change["after"] == pytest.approx(first.times * first.cycles)


#: Two stages on two IPUs need a process that has devices of two.
TWO_IPUS = """
import jax, jax.numpy as jnp, ipujax as ipu
from tests.reporting.test_report import check_ipus, check_totals

first, last = ipu.stage(jnp.tanh, ipu=0), ipu.stage(lambda x: x @ x, ipu=1)
f = lambda x: jax.lax.fori_loop(0, 3, lambda _, c: last(first(c)), x)
x = jax.ShapeDtypeStruct((256, 256), jnp.float32)
report = ipu.report(f, x)
check_totals(report, ipu.cost(f, x).analysis)
check_ipus(report)
assert len(report.ipus) == 2 and report.ipus[0].idle_cycles > 0
assert {step.kind for step in report.steps} >= {"compute", "inter-IPU"}
report.save(PATH)
assert ipu.load_report(PATH) == report
"""


def test_stages_on_two_ipus(run_python, tmp_path):
    code = TWO_IPUS.replace("PATH", repr(str(tmp_path / "two.json")))
    done = run_python("-c", code, env={"JAX_IPU_IPUS_PER_DEVICE": "2", "JAX_PLATFORMS": "ipu"})
    assert done.returncode == 0, done.stderr


def _called_back(x):
    y = jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x @ x)
    return y * 2


ODD = {
    "identity": lambda x: x,
    "no result": lambda x: (),
    "callback": _called_back,
    "print": lambda x: jax.debug.print("{}", x.sum()),
    "unknown loop": lambda x: jax.lax.while_loop(lambda c: c.sum() < 3, lambda c: c @ x, x),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_programs_are_reported_in_every_form(name, tmp_path):
    found = ipu.report(ODD[name], jax.ShapeDtypeStruct((64, 64), jnp.float32))
    for suffix in ("json", "trace.json"):
        found.save(tmp_path / f"step.{suffix}")
    assert ipu.load_report(tmp_path / "step.json") == found
    assert name == "no result" or found.cycles > 0
    assert str(found.compare(found))
    assert sum(step.total_cycles for step in found.steps) == pytest.approx(found.cycles, rel=1e-6)


def test_what_a_callback_waits_for_is_time_of_its_line():
    found = ipu.report(_called_back, jax.ShapeDtypeStruct((64, 64), jnp.float32))
    by_op = {group.name: group for group in found.by("op")}
    assert by_op["pure_callback"].by_kind[KINDS.index("host")] > 0.5 * found.cycles


@pytest.mark.parametrize("kind", ["report", "remedies"])
def test_memory_does_not_grow(kind):
    """After a warm-up, calls for other programs leave nothing behind."""

    def resident() -> int:
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    small = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    large = jax.ShapeDtypeStruct((20_000, 20_000), jnp.float32)
    sizes = []
    for i in range(200):
        if kind == "report":
            ipu.report(lambda x, i=i: jnp.tanh(x @ x) * i, small)
        else:
            ipu.remedies(lambda x, i=i: x * i, large, seconds=0)
        if i % 100 == 99:
            sizes.append(resident())
    assert sizes[1] - sizes[0] < 8 << 20
