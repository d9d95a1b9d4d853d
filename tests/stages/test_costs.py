"""Each IPU has a clock: what the account says of stages that work at one time."""

from __future__ import annotations

import json

import pytest

from ipujax.api.cost.cost import PARTS
from tests.conftest import RunPython

PROGRAM = """
import json, jax, jax.numpy as jnp, ipujax as ipu

def layer(w, x):
    return jax.nn.relu(x @ w)

def head(w, x):
    return jnp.mean(layer(w, x) ** 2)

weights = [jnp.ones((256, 256))] * 4
batch = jnp.ones((32, 64, 256))
for schedule in ("grouped", "interleaved", "sequential"):
    loss = ipu.pipeline([layer, layer, layer, head], micro_batches=32, schedule=schedule,
                        reduction="mean")
    compiled = jax.jit(jax.value_and_grad(loss)).lower(weights, batch).compile()
    print(json.dumps(compiled.cost_analysis()))
"""
KINDS = ("compute", "exchange", "link", "idle")


@pytest.fixture(scope="module")
def costs(run_python: RunPython) -> dict[str, dict[str, float]]:
    done = run_python("-c", PROGRAM, env={"JAX_IPU_IPUS_PER_DEVICE": "4", "JAX_PLATFORMS": "ipu"})
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return dict(zip(("grouped", "interleaved", "sequential"), rows, strict=True))


def test_each_clock_shows_the_time_of_the_whole(costs: dict[str, dict[str, float]]) -> None:
    for cost in costs.values():
        for i in range(4):
            total = sum(cost[f"ipu {i} {kind} cycles"] for kind in KINDS)
            assert total == pytest.approx(cost["cycles"], rel=1e-5)


def test_stages_that_overlap_take_less_time(costs: dict[str, dict[str, float]]) -> None:
    one_at_a_time = costs["sequential"]["cycles"]
    assert costs["grouped"]["cycles"] < one_at_a_time
    assert costs["interleaved"]["cycles"] < one_at_a_time


def test_one_ipu_works_at_a_time_without_overlap(costs: dict[str, dict[str, float]]) -> None:
    cost = costs["sequential"]
    busy = sum(cost[f"ipu {i} {kind} cycles"] for i in range(4) for kind in KINDS[:2])
    assert busy <= cost["cycles"]


def test_each_ipu_has_its_fullest_tile(costs: dict[str, dict[str, float]]) -> None:
    for cost in costs.values():
        tiles = [cost[f"ipu {i} worst tile bytes"] for i in range(4)]
        assert max(tiles) == pytest.approx(cost["worst tile bytes"])
        assert min(tiles) > 0


TIED = """
import json, jax, jax.numpy as jnp, ipujax as ipu

first = ipu.stage(lambda w, x: jnp.tanh(x @ w), ipu=0)
last = ipu.stage(lambda w, x: jnp.mean((x @ w.T) ** 2), ipu=1)
for micro_batches in (6, 12):
    for weights in [jnp.ones((2, 64, 64)), jnp.ones((1, 64, 64))]:
        loss = ipu.pipeline(lambda w, x: last(w[-1], first(w[0], x)), micro_batches=micro_batches,
                            reduction="mean")
        batch = jnp.ones((micro_batches, 8, 64))
        compiled = jax.jit(jax.grad(loss)).lower(list(weights), batch).compile()
        print(json.dumps(compiled.cost_analysis()))
"""


def test_no_gradient_of_a_shared_weight_crosses_ipus_in_the_loop(run_python: RunPython) -> None:
    """It costs the same link cycles however many micro-batches there are: those after the loop."""
    env = {"JAX_IPU_IPUS_PER_DEVICE": "2", "JAX_PLATFORMS": "ipu"}
    done = run_python("-c", TIED, env=env)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    apart, shared, apart_longer, shared_longer = (row["ipu 0 link cycles"] for row in rows)
    assert shared - apart > 0
    assert shared_longer - apart_longer == shared - apart
    assert apart_longer > apart


WIDTHS = """
import json, jax, jax.numpy as jnp, ipujax as ipu

def layer(w, x):
    return jnp.tanh(x @ w[0]) @ w[1]

def head(w, x):
    return jnp.mean(layer(w, x) ** 2)

loss = ipu.pipeline([layer, head], micro_batches=6, reduction="mean")
for width in (64, 256):
    weights = [(jnp.ones((64, width)), jnp.ones((width, 64)))] * 2
    compiled = jax.jit(jax.grad(loss)).lower(weights, jnp.ones((6, 8, 64))).compile()
    print(json.dumps(compiled.cost_analysis()))
"""


def test_weights_and_their_gradients_cross_no_ipus(run_python: RunPython) -> None:
    env = {"JAX_IPU_IPUS_PER_DEVICE": "2", "JAX_PLATFORMS": "ipu"}
    done = run_python("-c", WIDTHS, env=env)
    assert done.returncode == 0, done.stderr
    narrow, wide = [json.loads(line) for line in done.stdout.splitlines()]
    for i in range(2):
        assert 0 < wide[f"ipu {i} link cycles"] == narrow[f"ipu {i} link cycles"]


STASH = """
import json, jax, jax.numpy as jnp, ipujax as ipu

def layer(w, x):
    return jnp.tanh(x @ w)

def head(w, x):
    return jnp.sum(layer(w, x))

weights, batch = [jnp.ones((32, 32))] * 4, jnp.ones((32, 16, 32))
for schedule in ("grouped", "interleaved", "sequential"):
    loss = ipu.pipeline([layer, layer, layer, head], micro_batches=32, schedule=schedule,
                        reduction="mean")
    lowered = jax.jit(jax.value_and_grad(loss)).lower(weights, batch)
    for joined in (2**20, 0):
        option = {"ipu_maximum_inter_ipu_copies_buffer_size": joined}
        print(json.dumps(lowered.compile(option).cost_analysis()))
"""


@pytest.fixture
def on_one_tile(run_python: RunPython) -> list[dict[str, float]]:
    """For each schedule with joined copies and with single ones; an IPU is one tile."""
    settings = {"JAX_IPU_IPUS_PER_DEVICE": "4", "JAX_IPU_MODEL_NUM_TILES": "1"}
    done = run_python("-c", STASH, env={**settings, "JAX_PLATFORMS": "ipu"})
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


#: Micro-batches that wait in a FIFO of stage i, of what tanh gave and of what stage i - 1 sent: of
#: the latter one waits where it arrived, in the interleaved schedule for a whole period.
DEPTHS = {
    "grouped": [(6, 0), (4, 4), (2, 2), (0, 0)],
    "interleaved": [(3, 0), (2, 1), (1, 0), (0, 0)],
    "sequential": [(0, 0)] * 4,
}


def test_memory_is_what_the_depths_of_the_fifos_say(on_one_tile: list[dict[str, float]]) -> None:
    for depths, cost, single in zip(
        DEPTHS.values(), on_one_tile[::2], on_one_tile[1::2], strict=True
    ):
        for i, both in enumerate(depths):
            assert cost[f"ipu {i} worst tile stash bytes"] == sum(both) * 16 * 32 * 4
            parts = sum(cost[f"ipu {i} worst tile {part} bytes"] for part in PARTS)
            assert parts == cost[f"ipu {i} worst tile bytes"]
            assert cost[f"ipu {i} worst tile accumulators bytes"] >= 32 * 32 * 4
        assert sum(cost[f"worst tile {part} bytes"] for part in PARTS) == cost["worst tile bytes"]
        assert single["worst tile bytes"] == cost["worst tile bytes"]
        is_overlapping = any(map(sum, depths))
        assert (single["cycles"] > cost["cycles"]) == is_overlapping


LARGE = """
import itertools, json, jax, jax.numpy as jnp, ipujax as ipu
from ipujax.api.pipeline import accumulators

def loss_of(around):
    ends = [ipu.stage(lambda w, x: jnp.tanh(x @ w), 0), ipu.stage(lambda w, x: x @ w.T, 0)]
    first, last = map(around, ends)
    middle = ipu.stage(lambda x: jnp.sin(x), 1)
    return lambda w, x: jnp.mean(last(w, middle(first(w, x))) ** 2)

w = jax.random.normal(jax.random.key(0), (64, 32)) / 8
batch = jax.random.normal(jax.random.key(1), (8, 4, 64))
terms = [jax.jit(jax.grad(loss_of(lambda f: f)))(w, x) for x in batch]
wanted = sum(terms)
ulp = jnp.finfo(jnp.float32).eps * jnp.max(sum(map(jnp.abs, terms)))
kinds = (lambda f: f, None), (lambda f: f, True), (lambda f: f, "then"), (jax.checkpoint, None)
schedules = "grouped", "interleaved", "sequential"
for schedule, (around, remat) in itertools.product(schedules, kinds):
    for large in (w.nbytes + 1, w.nbytes):
        accumulators.LARGE_BYTES = large
        loss = ipu.pipeline(loss_of(around), micro_batches=8, reduction="sum", schedule=schedule,
                            remat=remat)
        compiled = jax.jit(jax.grad(loss)).lower(w, batch).compile()
        error = jnp.max(jnp.abs(compiled(w, batch) - wanted)) / ulp
        cost = compiled.cost_analysis()
        parts = [cost[f"ipu 0 worst tile {part} bytes"] for part in ("stash", "accumulators")]
        print(json.dumps([schedule, *parts, float(error)]))
"""


def test_large_gradients_of_one_ipu_are_added_to_one_accumulator(run_python: RunPython) -> None:
    """However the stages are recomputed; no gradient waits for another. An IPU is one tile."""
    settings = {"JAX_IPU_IPUS_PER_DEVICE": "2", "JAX_IPU_MODEL_NUM_TILES": "1"}
    done = run_python("-c", LARGE, env={**settings, "JAX_PLATFORMS": "ipu"})
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    size = 64 * 32 * 4
    assert len(rows) == 24
    for waiting, added in zip(rows[::2], rows[1::2], strict=True):
        schedule, stash, accumulators, error = added
        for counted in (accumulators, waiting[2]):  # counters of micro-batches take 4 bytes each
            assert size <= counted < size + 4 * 8
        assert stash == waiting[1] - (schedule == "grouped") * size
        assert waiting[3] == 0  # the order of the plain sum
        assert error <= (0 if schedule == "sequential" else 2)


OVERLAP = """
import json, jax, jax.numpy as jnp, ipujax as ipu
from jax import lax

def attention(w, x):
    q, k, v = jnp.split((x @ w).reshape(4, 16, 24, 8), 3, 2)
    scores = jax.nn.softmax(jnp.einsum("bqhc,bkhc->bhqk", q, k))
    return jnp.einsum("bhqk,bkhc->bqhc", scores, v).reshape(x.shape)

def layer(w, x):
    for _ in range(3):
        x = jnp.tanh(x @ w[:, :64])
    return x

def scan(w, x):
    return lax.fori_loop(0, 3, lambda _, x: layer(w, x), x)

def loop(w, x):
    return lax.while_loop(lambda x: jnp.sum(x) > 1, lambda x: layer(w, x), x)

def branch(w, x):
    return lax.cond(jnp.sum(x) > 1, layer, lambda w, x: x, w, x)

weights, batch = [jnp.ones((64, 192))] * 2, jnp.ones((16, 4, 16, 64))
for stage in (attention, scan, loop, branch):
    for ipus in ([0, 0], [0, 1]):
        pipeline = ipu.pipeline([stage] * 2, micro_batches=16, device_mapping=ipus)
        print(json.dumps(jax.jit(pipeline).lower(weights, batch).compile().cost_analysis()))
"""


def test_stages_on_two_ipus_work_at_one_time(run_python: RunPython) -> None:
    """Temporaries lie on their stage's IPU, and only IPUs in a loop or a branch wait for it."""
    done = run_python("-c", OVERLAP, env={"JAX_IPU_IPUS_PER_DEVICE": "2", "JAX_PLATFORMS": "ipu"})
    assert done.returncode == 0, done.stderr
    cycles = [json.loads(line)["cycles"] for line in done.stdout.splitlines()]
    for on_one, on_two in zip(cycles[::2], cycles[1::2], strict=True):
        assert on_two < 0.8 * on_one
