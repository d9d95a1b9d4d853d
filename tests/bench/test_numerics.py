"""`python -m ipujax bench --ops`: its programs and its mean."""

from __future__ import annotations

import inspect
import itertools
from pathlib import Path

import jax
import numpy as np
import pytest

import ipujax as ipu
from tests.bench import numerics
from tests.bench.comparisons import Effort
from tests.bench.row import Row

#: Public functions without a program of their own, and why.
WITHOUT = {
    "print_tensor": "what it prints takes the time",
    "batch_norm_init": "it makes a state on the host",
    "remote_embedding_lookup": "the plain definition has no table in streaming memory",
    "remote_embedding_update": "the plain definition has no table in streaming memory",
    "ctc_beam_search_decoder_with_log_probs": "the other without a log_softmax",
}


@pytest.mark.parametrize("program", numerics.programs(), ids=lambda each: each.workload.name)
def test_program_traces(program):
    work = program.workload
    results = jax.eval_shape(work.function, *work.arguments())
    assert jax.tree.leaves(results)
    if work.carries:
        carried = jax.tree.map(np.asarray, work.arguments()[0])
        assert [(x.shape, x.dtype) for x in jax.tree.leaves(results[0])] == [
            (x.shape, x.dtype) for x in jax.tree.leaves(carried)
        ]


def test_every_public_function_has_a_program():
    folder = Path(numerics.__file__).parent
    text = "".join((folder / f"{each}.py").read_text() for each in ("nn", "recurrent", "ops"))
    public = {
        f"ipu.{short}.{name}"
        for short, module in (("nn", ipu.nn), ("ops", ipu.ops))
        for name, value in vars(module).items()
        if inspect.isfunction(value) and name not in WITHOUT and not name.startswith("_")
    }
    assert len(public) > 40
    assert sorted(name for name in public if name not in text) == []


def test_the_mean_is_that_of_all_rows(monkeypatch):
    ratios = itertools.cycle([0.25, 1.0])
    monkeypatch.setattr(numerics, "_row", lambda p, _: Row(p.workload.name, next(ratios), None, ""))
    *measured, mean = numerics.rows("relu", Effort(1, 0.0))
    assert [row.name for row in measured] == [
        "relu", "relu, gradient", "leaky_relu", "leaky_relu, gradient"
    ]  # fmt: skip
    assert mean == Row(numerics.MEAN, 0.5, 0.6, "4 programs, 0 above 1.0, largest 1.00")
    assert [row.name for row in numerics.rows("layer_norm stable, g", Effort(1, 0.0))] == [
        "layer_norm stable, gradient"
    ]


def test_a_row_is_measured_on_both_backends():
    (row,) = numerics.rows("identity_loss, gradient", Effort(1, 0.001))
    assert row.value > 0
    assert row.bound is None
    assert "ipu " in row.detail
