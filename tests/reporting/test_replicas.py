"""Reports, costs and remedies of programs over several devices, and of programs in files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

import ipujax as ipu
from ipujax.api.cost.changed_programs import Change, ChangedPrograms
from ipujax.api.cost.gradient_part import accumulated
from ipujax.cli.main import main
from tests.conftest import RunPython
from tests.reporting.test_report import check_ipus, check_totals

SIZE = 128
REPLICAS = 4
W = jax.ShapeDtypeStruct((SIZE, SIZE), jnp.float32)


def loss(w: Any, x: Any) -> Any:
    return jnp.tanh(x @ w).sum()


GRADIENT = jax.grad(loss)


def sharded(mesh: Any, batch: int = SIZE) -> tuple[Any, Any]:
    everywhere, split = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("data",)))
    return (
        jax.ShapeDtypeStruct((SIZE, SIZE), jnp.float32, sharding=everywhere),
        jax.ShapeDtypeStruct((batch, SIZE), jnp.float32, sharding=split),
    )


def real_mesh() -> Mesh:
    return Mesh(np.array(jax.devices("ipu")[:REPLICAS]), "data")


def abstract_mesh(count: int = REPLICAS) -> AbstractMesh:
    return AbstractMesh((count,), ("data",))


def mean_of(w: Any, x: Any) -> Any:
    return ipu.cross_replica_mean(GRADIENT(w, x))


STACKED = jax.ShapeDtypeStruct((REPLICAS, SIZE // REPLICAS, SIZE), jnp.float32)
PROGRAMS: dict[str, Any] = {
    "jit": lambda: (GRADIENT, *sharded(real_mesh())),
    "abstract": lambda: (GRADIENT, *sharded(abstract_mesh())),
    "ipu.pmap": lambda: (ipu.pmap(mean_of, in_axes=(None, 0), out_axes=None), W, STACKED),
    "jax.pmap": lambda: (
        jax.pmap(
            lambda w, x: jax.lax.pmean(GRADIENT(w, x), "i"),
            "i",
            in_axes=(None, 0),
            devices=jax.devices("ipu")[:REPLICAS],
        ),
        W,
        STACKED,
    ),
    "exported": lambda: (exported(REPLICAS),),
}


def exported(count: int, platforms: tuple[str, ...] = ("ipu",)) -> jax.export.Exported:
    found = jax.export.export(jax.jit(GRADIENT), platforms=platforms)
    return found(*sharded(abstract_mesh(count)))


@pytest.mark.parametrize("kind", PROGRAMS)
def test_costs_and_reports_are_those_of_each_replica(kind: str, tmp_path: Path) -> None:
    program = PROGRAMS[kind]()
    report, cost = ipu.report(*program), ipu.cost(*program)
    check_totals(report, cost.analysis)
    check_ipus(report)
    assert report.num_replicas == cost.num_replicas == REPLICAS
    (collective,) = report.collectives
    assert collective.name.startswith("allReduce ")
    assert report.collective_cycles == pytest.approx(cost.collective_cycles)
    # Each receives its part of every other replica's sum, then the reduced parts of the others.
    assert cost.collective_bytes == collective.link_bytes
    assert cost.collective_bytes >= 2 * (REPLICAS - 1) / REPLICAS * SIZE * SIZE * 4
    assert 0 < report.collective_share < 1
    for shown in (str(cost), str(report)):
        assert re.search(rf"replicas: {REPLICAS}|each of {REPLICAS} replicas", shown)
    assert f"collective{' ' * (len(collective.name) - 10)}  cycles" in str(report)
    report.save(tmp_path / "step.json")
    assert ipu.load_report(tmp_path / "step.json") == report


def test_collectives_are_what_a_program_takes_without_them_less() -> None:
    summed, alone = (
        ipu.pmap(f, in_axes=(None, 0))
        for f in (lambda w, x: ipu.cross_replica_sum(GRADIENT(w, x)), GRADIENT)
    )
    with_sum, without = ipu.cost(summed, W, STACKED), ipu.cost(alone, W, STACKED)
    assert without.collective_cycles == without.collective_bytes == 0
    assert with_sum.cycles - without.cycles == pytest.approx(with_sum.collective_cycles, rel=0.05)
    assert ipu.report(alone, W, STACKED).collectives == []


def test_collectives_in_a_loop_count_as_often_as_it_runs() -> None:
    def loop(x: Any, times: int) -> Any:
        return jax.lax.fori_loop(0, times, lambda _, c: ipu.cross_replica_sum(c) * 0.5, x)

    once, thrice = (
        ipu.cost(ipu.pmap(lambda x, n=n: loop(x, n)), STACKED).collective_cycles for n in (1, 3)
    )
    assert thrice == pytest.approx(3 * once)


def test_one_device_has_no_collectives() -> None:
    cost, report = ipu.cost(GRADIENT, W, W), ipu.report(GRADIENT, W, W)
    assert cost.num_replicas == report.num_replicas == 1
    assert cost.collective_cycles == report.collective_cycles == 0
    assert "replicas:" not in str(cost) + str(report)
    assert "collective" not in str(cost) + str(report)


def test_two_numbers_of_replicas_are_compared() -> None:
    few, many = (ipu.report(exported(count)) for count in (2, 8))
    totals = {name: (before, after) for name, before, after in few.compare(many).totals()}
    assert totals["replicas"] == (2, 8)
    assert totals["cycles of collectives"] == (few.collective_cycles, many.collective_cycles)


def test_more_devices_than_there_are() -> None:
    args = sharded(abstract_mesh(16))
    for needs in (ipu.cost, ipu.report, ipu.assert_fits, ipu.remedies):
        with pytest.raises(ipu.PlacementError, match=r"needs 16 devices for loss; got 8\. Set JAX"):
            needs(loss, *args)
    with pytest.raises(ipu.PlacementError, match="needs 16 devices for loss; got 8"):
        ipu.cost(exported(16))


def test_shapes_on_other_devices() -> None:
    mesh = Mesh(np.array(jax.devices("cpu")[:REPLICAS]), "data")  # no IPUs: to be refused
    with pytest.raises(ipu.PlacementError, match="needs arguments on an IPU; got some on cpu"):
        ipu.cost(loss, *sharded(mesh))


FORMS = {
    "exported for IPUs": lambda: exported(16).serialize(),
    "exported for another platform": lambda: exported(16, ("cpu",)).serialize(),
    "exported for several platforms": lambda: exported(16, ("cpu", "ipu")).serialize(),
    "text": lambda: exported(16).mlir_module().encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_files_of_programs_over_more_devices_than_there_are(
    form: str, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.delenv("JAX_IPU_DEVICE_COUNT")
    path = tmp_path / "step"
    path.write_bytes(FORMS[form]())
    assert main(["report", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["num_replicas"] == 16
    (collective,) = found["collectives"]
    assert collective["cycles"] == found["collective_cycles"] > 0
    assert "loss" in found["name"]


@pytest.mark.parametrize("said", ["0 : i32", "-3 : i32", '"many"'])
def test_a_number_of_devices_that_cannot_be(said: str, tmp_path: Path, capsys: Any) -> None:
    text = exported(4).mlir_module()
    path = tmp_path / "step.mlir"
    path.write_text(text.replace("num_partitions = 4 : i32", f"num_partitions = {said}"))
    assert main(["report", str(path)]) == 1
    assert "[report] needs a program for IPUs; got" in capsys.readouterr().err


def step(w: Any, momentum: Any, x: Any) -> Any:
    """A training step whose first part is a gradient, the mean over the samples."""
    momentum = 0.9 * momentum + jax.grad(lambda w, x: loss(w, x) / len(x))(w, x)
    return w - momentum, momentum


def changed_step(batch: int = 64) -> ChangedPrograms:
    w, x = sharded(real_mesh(), batch)
    return ChangedPrograms(step, (w, w, x), (2,), None, None, {})


def test_a_state_waits_in_the_streaming_memory_of_its_devices() -> None:
    programs = changed_step()
    assert programs.states == (1,)
    cost, before = programs.cost(Change(on_host=frozenset({1}))), programs.before()
    assert cost is not None
    assert cost.num_replicas == REPLICAS
    assert cost.parts["parameters"] < before.parts["parameters"]


def test_micro_batches_have_samples_of_every_device() -> None:
    programs = changed_step()
    assert programs.divides(16)  # samples on each of 4 devices
    assert not programs.divides(32)
    assert programs.accumulates(4)
    change = Change(divisor=4, accumulates=True, is_strided=True)
    assert "the first of samples 0, 4, 8, ..." in change.text
    strided, before = programs.cost(change), programs.before()
    consecutive = accumulated(step, programs.args, (2,), 4)
    assert strided is not None
    assert consecutive is not None
    assert strided.num_replicas == REPLICAS
    # Each device computes with its own samples alone.
    flops = before.analysis["flops"]
    assert strided.analysis["flops"] == pytest.approx(flops, rel=0.3)
    assert ipu.cost(consecutive, *programs.args).analysis["flops"] > 2 * flops


def test_strided_micro_batches_have_the_gradient_of_the_batch() -> None:
    rng = np.random.default_rng(5)
    w, momentum, x = (rng.normal(size=(n, SIZE)).astype(np.float32) for n in (SIZE, SIZE, 64))
    changed = accumulated(step, (w, momentum, x), (2,), 4, is_strided=True)
    assert changed is not None
    placed = [
        jax.device_put(value, shape.sharding)
        for value, shape in zip((w, momentum, x), changed_step().args, strict=True)
    ]
    with jax.default_device(jax.devices("cpu")[0]):  # the reference
        wanted = jax.jit(step)(w, momentum, x)
    for found, value in zip(jax.jit(changed)(*placed), wanted, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-5)


def test_a_mapped_axis_is_not_divided() -> None:
    mapped = ipu.pmap(mean_of, in_axes=(None, 0), out_axes=None)
    assert not ChangedPrograms(mapped, (W, STACKED), (1,), None, None, {}).divides(2)


REPLICATED_STAGES = """
import jax, jax.numpy as jnp, ipujax as ipu
from tests.reporting.test_report import check_ipus, check_totals

loss = ipu.pipeline(
    [lambda w, x: jnp.tanh(x @ w), lambda w, x: jnp.mean((x @ w) ** 2)],
    micro_batches=4, reduction="mean",
)
step = ipu.pmap(
    lambda w, x: ipu.cross_replica_mean(jax.grad(loss)(w, x)), in_axes=(None, 0), out_axes=None
)
w = [jnp.ones((128, 128))] * 2
x = jnp.ones((2, 4, 8, 128))
report, cost = ipu.report(step, w, x), ipu.cost(step, w, x)
check_totals(report, cost.analysis)
check_ipus(report)
assert report.num_replicas == cost.num_replicas == len(report.ipus) == 2
steps = [step for step in report.steps if step.is_collective]
assert {step.ipus for step in steps} == {(0,), (1,)}
assert sum(step.total_cycles for step in steps) == report.collective_cycles > 0
assert abs(report.collective_cycles / cost.collective_cycles - 1) < 1e-5
"""


def test_replicas_of_a_pipeline(run_python: RunPython) -> None:
    devices = {"JAX_IPU_IPUS_PER_DEVICE": "2", "JAX_IPU_DEVICE_COUNT": "2", "JAX_PLATFORMS": "ipu"}
    done = run_python("-c", REPLICATED_STAGES, env=devices)
    assert done.returncode == 0, done.stderr
