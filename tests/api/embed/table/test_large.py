"""A table of 1 GB in a memory-mapped file, of which steps touch little."""

from __future__ import annotations

import resource
import time

import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu

ROWS, COLUMNS, BATCH = 4_000_000, 64, 4096
RATE = 0.5


def test_a_table_larger_than_what_a_process_should_hold(tmp_path) -> None:
    """4,000,000 x 64 of float32, trained for a few steps."""
    begin = time.process_time()
    table = ipu.HostEmbedding.create(
        (ROWS, COLUMNS), np.float32, ipu.HostEmbeddingSGD(RATE), file=tmp_path / "table.npy"
    )
    assert (tmp_path / "table.npy").stat().st_size > 1.02e9
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    @jax.jit
    def step(token: jax.Array, ids: jax.Array, following: jax.Array) -> jax.Array:
        table.lookup_ahead(following)
        return token + jax.grad(lambda t: jnp.sum((table.lookup(t, ids) - 1) ** 2))(token)

    rng = np.random.default_rng(0)
    batches = [rng.integers(0, ROWS, BATCH).astype(np.int32) for _ in range(4)]
    batches[2][:2000] = batches[1][:2000]  # some rows again
    known: dict[int, float] = {}  # rows are equal in all columns
    token = table.token()
    for number, ids in enumerate(batches):
        token = step(token, ids, batches[(number + 1) % 4])
        places, counts = np.unique(ids, return_counts=True)
        for index, count in zip(places.tolist(), counts.tolist(), strict=True):
            value = known.get(index, 0.0)
            known[index] = value - RATE * count * 2 * (value - 1)
    places = np.array(sorted(known))
    wanted = np.array([known[index] for index in places])
    found = np.asarray(table.lookup(token, places))
    np.testing.assert_allclose(found, np.repeat(wanted[:, None], COLUMNS, 1), 1e-5, 1e-5)
    untouched = np.setdiff1d(rng.integers(0, ROWS, BATCH), places)
    assert not np.asarray(table.lookup(token, untouched)).any()
    assert table._table.ahead.num_used >= 3
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200_000  # KB, of 1,024,000 that the file has
    assert time.process_time() - begin < 20
