"""What a step costs on more IPUs: forms, efficiencies, and the command that prints them."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import optax
import pytest

import ipujax as ipu
from ipujax.cli import main as cli

SHAPE = jax.ShapeDtypeStruct
W1, W2 = SHAPE((256, 1024), jnp.float32), SHAPE((1024, 256), jnp.float32)
STAGES = [lambda w, x: jnp.tanh(x @ w), lambda w, x: jnp.mean((x @ w) ** 2)]


def _loss(weights, x):
    return STAGES[1](weights[1], STAGES[0](weights[0], x))


def test_replicas_cost_what_a_compiled_step_costs():
    batch = SHAPE((32, 256), jnp.float32)
    found = ipu.scaling(_loss, [W1, W2], batch, optax.adam(0.01), ipus=(1, 4))
    assert [(row.form, row.ipus) for row in found.rows] == [
        ("replicated", 1),
        ("sharded state", 1),
        ("replicated", 4),
        ("sharded state", 4),
    ]
    tx = ipu.optim.cross_replica(optax.adam(0.01))

    def step(weights, state, x):
        loss, gradients = jax.value_and_grad(_loss)(weights, x)
        updates, state = tx.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state, loss

    replicated = ipu.pmap(
        step,
        in_axes=(None, None, 0),
        out_axes=(None, None, 0),
        donate_argnums=(0, 1),
        devices=jax.devices()[:4],
    )
    state = jax.eval_shape(tx.init, [W1, W2])
    own = replicated.lower([W1, W2], state, SHAPE((4, 32, 256), jnp.float32)).compile()
    assert found.rows[2].seconds == own.cost_analysis()["seconds"]
    first = found.rows[0]
    assert first.samples_per_second == 32 / first.seconds
    assert first.efficiency == 1
    for row in found.rows:
        assert sum(row.shares.values()) == pytest.approx(1)
        assert row.samples_per_second == row.replicas * 32 / row.seconds
    assert found.rows[2].shares["link"] > 0.2


def test_stages_are_compared_with_replicas():
    batch = SHAPE((8, 4, 256), jnp.float32)
    found = ipu.scaling(STAGES, [W1, W2], batch, optax.sgd(0.1), ipus=(1, 4))
    rows = {(row.form, row.ipus): row for row in found.rows}
    assert ("pipelined", 1) not in rows
    piped = rows["pipelined", 4]
    assert piped.replicas == 2
    assert piped.samples_per_second == 2 * 32 / piped.seconds
    assert 0.05 < piped.shares["idle"] < 0.5
    assert rows["replicated", 4].shares["idle"] == pytest.approx(0, abs=1e-6)
    fastest = max((r for r in found.rows if r.ipus == 4), key=lambda r: r.samples_per_second)
    assert found.best() == fastest
    assert f"best on 4 IPUs: {fastest.form}" in str(found)


def test_what_does_not_fit_is_not_the_best():
    huge = [SHAPE((8192, 32768), jnp.float32), SHAPE((32768, 8192), jnp.float32)]
    found = ipu.scaling(_loss, huge, SHAPE((4, 8192), jnp.float32), optax.sgd(0.1), ipus=(1,))
    assert not any(row.fits for row in found.rows)
    assert found.best() is None
    assert "no form fits" in str(found)


def test_numbers_that_no_form_divides_are_refused():
    with pytest.raises(ipu.ConfigError, match="needs numbers of IPUs that a form divides"):
        ipu.scaling(_loss, [W1, W2], SHAPE((4, 256), jnp.float32), optax.sgd(0.1), ipus=())


_PROGRAM = """
import jax, jax.numpy as jnp, optax

def step():
    loss = lambda w, x: jnp.mean((x @ w) ** 2)
    shape = jax.ShapeDtypeStruct
    return loss, shape((64, 64), jnp.float32), shape((8, 64), jnp.float32), optax.sgd(0.1)

def wrong():
    return 1
"""


def test_the_command_prints_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "train.py"
    path.write_text(_PROGRAM)
    assert cli.main(["plan", "--ipus", "1..5", "--json", f"{path}:step"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["ipus"] for row in rows] == [1, 1, 2, 2, 4, 4]
    assert cli.main(["plan", "--ipus", "3", "--machine", "bow", f"{path}:step"]) == 0
    assert "best on 3 IPUs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ipus", "2-16", "{}:step"], "such as 1,4,16 or 16..256; got '2-16'"),
        (["--ipus", "0", "{}:step"], "got '0'"),
        (["{}:no"], "needs a function 'no' in"),
        (["no.py:step"], "whose file does not exist"),
        (["{}:wrong"], "to return the loss, its parameters, a batch and an optimizer; got int"),
    ],
)
def test_wrong_arguments_are_named(tmp_path: Path, capsys, arguments: list[str], said: str):
    path = tmp_path / "train.py"
    path.write_text(_PROGRAM)
    assert cli.main(["plan", *(each.format(path) for each in arguments)]) == 1
    assert said in capsys.readouterr().err
