"""What `allow_recompute` computes again, and that results stay as they are."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ipujax import jax_compat
from ipujax.compiler import rematerialise as module
from ipujax.compiler.compile import placed_program
from ipujax.compiler.ir import walk_ops
from tests.compiler.programs import artifact
from tests.fuzz.programs.program import from_seed

RECOMPUTE = {"ipu_allow_recompute": True}


def loss(w: Any, x: jax.Array) -> jax.Array:
    for own in w:
        x = jax.nn.softmax(jnp.tanh(x @ own))
    return jnp.sum(x**2)


def run(code: bytes, arguments: Any, options: dict[str, Any]) -> list[np.ndarray]:
    compiled = jax_compat.load_program(code, jax.devices("ipu")[0], options)
    return compiled([argument.copy() for argument in arguments])


def test_less_is_live_at_one_time() -> None:
    shapes = [jax.ShapeDtypeStruct((256, 256), "f4")] * 4, jax.ShapeDtypeStruct((2**14, 256), "f4")
    lowered = jax.jit(jax.grad(loss)).lower(*shapes)
    before = lowered.compile().cost_analysis()
    after = lowered.compile(RECOMPUTE).cost_analysis()
    key = "worst tile temporaries bytes"
    assert after[key] < 0.8 * before[key]
    assert before["cycles"] < after["cycles"] < 1.1 * before["cycles"]


def test_random_gradients_are_the_same_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL_BYTES", 1)
    changed = 0
    rounds = module._Round.run

    def counted(self: Any) -> bool:
        nonlocal changed
        made = rounds(self)
        changed += made
        return made

    monkeypatch.setattr(module._Round, "run", counted)
    for seed in range(60):
        program = from_seed(seed, "gradients")
        code = program.lowered[0]
        wanted, got = (run(code, program.arguments, options) for options in ({}, RECOMPUTE))
        for a, b in zip(wanted, got, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), err_msg=f"seed {seed}")
    assert changed > 15


def test_nothing_is_done_again_unless_it_is_allowed() -> None:
    w, x = [jnp.ones((256, 256))] * 3, jnp.ones((512, 256))
    program = placed_program(artifact(jax.grad(loss), w, x), b"", {})
    assert not any(op.name == "optimization_barrier" for op in walk_ops(program.main))
