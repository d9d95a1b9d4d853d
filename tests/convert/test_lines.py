"""Converted programs keep the lines, functions and layers of the program that was given."""

from __future__ import annotations

from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import pytest

import ipujax as ipu
from ipujax.annotations.frames import Frame
from ipujax.convert.call_stacks import call_from
from ipujax.convert.conversion import Conversion
from ipujax.convert.settings import settings_of

X = jax.ShapeDtypeStruct((16, 16), jnp.float32)


def attention(x: Any) -> Any:
    return jax.nn.softmax(x @ x.T) @ x


class Model:
    def __call__(self, x: Any) -> Any:
        with jax.named_scope("encoder"):
            x = attention(x)
        return jax.lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c) + i, x)


def converted(settings: dict[str, Any]) -> tuple[jax.export.Exported, jax.export.Exported]:
    """A program from a file, and what it is converted to."""
    program = jax.export.export(jax.jit(lambda x: Model()(x)), platforms=["ipu"])(X)
    program = jax.export.deserialize(bytearray(program.serialize()))
    made = Conversion(program, settings_of(settings)).program
    return program, jax.export.deserialize(bytearray(made.serialize()))


@pytest.mark.parametrize(
    "settings", [{}, {"precision_mode": "FP16"}, {"batch_per_step": 2, "batch_size": 16}]
)
def test_lines_and_layers_are_those_of_the_given_program(settings):
    program, made = converted(settings)
    found, wanted = ipu.report(made), ipu.report(program)
    places = {(step.source, step.scope) for step in found.steps if step.stack}
    given = {(step.source, step.scope) for step in wanted.steps if step.stack}
    assert {line.partition(":")[0] for line, _ in places} == {"test_lines.py"}
    assert {scope for _, scope in given} == {"Model/encoder", "Model"}
    assert {place for place in given if place[1] == "Model/encoder"} <= places
    assert settings or given <= places
    stacks = {step.source: step.stack[:2] for step in wanted.steps if step.scope == "Model/encoder"}
    assert stacks
    shown = {step.source: step.stack[:2] for step in found.steps if step.scope == "Model/encoder"}
    assert shown.items() >= stacks.items()


def test_costs_name_the_users_lines():
    """Programs that are lowered without callers have them, too."""
    _, made = converted({})
    assert "ops.py" not in jax.jit(made.call).lower(X).as_text(debug_info=True)


@pytest.mark.parametrize(
    "frame",
    [
        Frame("f", "a.py", 0),
        Frame("f", "a.py", 1 << 40),
        Frame("f", "a.py", 3, 5, 2, 1),
        Frame("f", "a.py", 3, 1 << 30, 3, 1 << 40),
        Frame("f\0", "a\0.py", 3),
        Frame("", "", 1),
    ],
)
def test_places_that_no_program_has_are_left_out(frame):
    assert call_from([frame], lambda: 7) == 7
