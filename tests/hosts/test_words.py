"""ipu.distributed, feeds and training loops in a job of several processes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ipujax as ipu
from tests.hosts.jobs import launch, script


def _lines(folder: Path, text: str, size: int = 3, replicas: int | None = None) -> list[list[str]]:
    """What each rank prints."""
    given = ["-n", size, *(("--replicas", replicas) if replicas else ())]
    ended = launch([*given, *script(folder, text)], folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return [(folder / "logs" / f"{r}.log").read_text().splitlines() for r in range(size)]


def test_host_arrays_are_combined(tmp_path: Path) -> None:
    text = """
import jax
jax.distributed.initialize()
import ml_dtypes
import numpy as np
import ipujax as ipu
d = ipu.distributed
rank = d.process_index()
print(d.process_count(), d.replica_count(), d.local_replica_count(), d.replica_offset())
print(d.allreduce({"a": np.float32(rank), "b": np.arange(3) * rank}))
print(d.allreduce(np.float64(0.1) * rank, "sum"), d.allreduce(rank + 1, "product"))
print(d.allreduce(np.ones(2, ml_dtypes.bfloat16) * rank, "max").dtype)
print(d.allgather(np.arange(rank + 1)), d.allgather(rank), d.allgather(np.zeros((0, 2))).shape)
print(d.broadcast(np.full(3, rank, np.int64), 2))
d.barrier("here")
for call in (lambda: d.allreduce(np.zeros(rank)), lambda: d.barrier(f"b{rank}")):
    try:
        call()
    except ipu.ConfigError as error:
        print(error)
"""
    sums = (0.1 * 0 + 0.1 * 1) + 0.1 * 2
    for rank, lines in enumerate(_lines(tmp_path, text, 3, 6)):
        assert lines == [
            f"3 6 2 {2 * rank}",
            "{'a': array(1., dtype=float32), 'b': array([0., 1., 2.])}",
            f"{sums} 6",
            "bfloat16",
            "[0 0 1 0 1 2] [0 1 2] (0, 2)",
            "[2 2 2]",
            "[distributed] needs arrays of one shape and dtype; got float64[0] in process 0 and "
            "float64[1] in process 1. Pass the same in all.",
            "[distributed] needs all processes at one barrier; got b0, b1, b2. Give it the same "
            "name in all.",
        ]


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ipu.ConfigError, match="needs an operation of average, sum"):
        ipu.distributed.allreduce(np.zeros(2), "mean")
    with pytest.raises(ipu.ConfigError, match="needs a process below 1; got 1"):
        ipu.distributed.broadcast(np.zeros(2), 1)


_FEED = """
import os
import jax
if os.environ["WORLD_SIZE"] != "1":
    jax.distributed.initialize()
import jax.numpy as jnp
import numpy as np
import ipujax as ipu
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((jax.device_count(),), ("x",))
count, own = jax.device_count(), jax.local_device_count()
whole = np.arange(6 * count * 2 * 3, dtype=np.float32).reshape(6, count * 2, 3)
first = jax.process_index() * own * 2
infeed = ipu.Infeed(list(whole[:, first : first + own * 2]))
outfeed = ipu.Outfeed()

def step(w, batch):
    return w + jax.lax.pmean(jnp.mean(batch), "x"), jnp.sum(batch) + w

def run(w):
    return ipu.repeat(6, step, w, infeed=infeed, outfeed=outfeed)

f = jax.jit(jax.shard_map(run, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False))
w = f(jnp.float32(0)).block_until_ready()
print(float(w.addressable_shards[0].data))
for column in outfeed.dequeue().T:
    print(column.tolist())
"""


def test_each_process_feeds_its_own_replicas(tmp_path: Path) -> None:
    (alone,) = _lines(tmp_path, _FEED, 1, 4)
    first, second = (lines[-3:] for lines in _lines(tmp_path, _FEED, 2, 4))
    assert first[0] == second[0] == alone[0]
    assert first[1:] + second[1:] == alone[1:]


def test_tables_of_the_host_are_read_and_not_trained(tmp_path: Path) -> None:
    text = """
import jax
jax.distributed.initialize()
import numpy as np
import ipujax as ipu
rows = np.ones((8, 2), np.float32)
table = ipu.HostEmbedding(rows)
print(jax.jit(lambda t: table.lookup(t, np.array([3])))(table.token()))
try:
    ipu.HostEmbedding(rows, ipu.HostEmbeddingSGD(0.1))
except ipu.ConfigError as error:
    print(error)
"""
    for lines in _lines(tmp_path, text, 2):
        assert lines[0] == "[[1. 1.]]"
        assert "needs a job of one process to train a table; got 2 processes" in lines[1]


def test_names_of_dumps_have_the_rank(tmp_path: Path) -> None:
    text = """
import os
os.environ["IPUJAX_DUMP_DIR"] = os.environ["DUMPS"]
import jax
jax.distributed.initialize()
jax.jit(lambda x: x + 1)(jax.numpy.ones(3))
"""
    dumps = tmp_path / "dumps"
    ended = launch(["-n", 2, *script(tmp_path, text)], tmp_path, {"DUMPS": str(dumps)})
    assert ended.returncode == 0, ended.stderr
    names = [path.name for path in dumps.iterdir()]
    assert names
    assert {name[:6] for name in names} == {"rank0_", "rank1_"}
