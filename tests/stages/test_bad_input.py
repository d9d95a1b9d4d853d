"""Every kind of bad input to stages: an error with the user's line that says what to do."""

from __future__ import annotations

import textwrap
import traceback
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import ipujax as ipu

#: What the rows may use.
NAMES = {
    "ipu": ipu,
    "jax": jax,
    "jnp": jnp,
    "x": jnp.ones((4, 2, 3)),
    "w": jnp.ones((3, 3)),
    "layer": lambda w, x: jnp.tanh(x @ w),
    "two_layers": lambda w, x: jnp.tanh(jnp.tanh(x @ w[0]) @ w[1]),
}

#: The line at fault ends in "# here"; each message says what to do.
ROWS: dict[str, tuple[str, str]] = {
    "stages that disagree in shapes": (
        """
        def wide(w, x):
            return jnp.concatenate([x, x], 1) @ w  # here
        ipu.pipeline([layer, wide], micro_batches=4)([w, w], x)
        """,
        r"stage 1 .* stage 0 returns: float32\[2,3\]; got TypeError.* Make the shapes",
    ),
    "stages that disagree in pytrees": (
        """
        def both(w, given):
            x, y = given["x"], given["y"]  # here
            return x + y
        ipu.pipeline([lambda w, x: (x, x), both], micro_batches=4)([w, w], x)
        """,
        r"got TypeError: tuple indices .* Make the shapes, dtypes and pytrees of the stages agree",
    ),
    "an IPU beyond the device": (
        """
        far = ipu.stage(
            lambda w, x: x @ w,  # here
            ipu=64,
        )
        jax.jit(far)(w, x)
        """,
        r"needs IPUs of the device, 0 to 0; got IPU 64 .* Set JAX_IPU_IPUS_PER_DEVICE to 65",
    ),
    "a block on an IPU beyond the device": (
        """
        def fun(x):
            with ipu.block("far", ipu=64):
                return x + 1  # here
        jax.jit(fun)(x)
        """,
        r"got IPU 64 .* or place it on another IPU",
    ),
    "a negative IPU": (
        "ipu.stage(layer, ipu=-1)  # here",
        r"from 0; got -1. Pass a whole number",
    ),
    "micro-batches that do not divide": (
        "ipu.pipeline([layer], micro_batches=3)([w], x)  # here",
        r"\(3\); got shape \(4, 2, 3\). Reshape the batch to \(3, samples",
    ),
    "repeats that do not divide": (
        "ipu.pipeline([layer], micro_batches=2, repeat_count=3)([w], x)  # here",
        r"\(3, 2\); got shape \(4, 2, 3\). Reshape the batch to \(3, 2, samples",
    ),
    "a pipeline inside a pipeline": (
        """
        inner = ipu.pipeline([layer], micro_batches=2)
        def outer(w, x):
            return inner([w], x)  # here
        ipu.pipeline(outer, micro_batches=4)(w, x)
        """,
        "got a call inside one. Make its stages stages of the outer pipeline",
    ),
    "a reduction of non-floats": (
        """
        count = ipu.pipeline(lambda w, x: x.shape[0], micro_batches=4, reduction="mean")
        count(w, x)  # here
        """,
        r"needs floating-point results to reduce by 'mean'; got int32\[\]. Convert it",
    ),
    "state of another shape": (
        """
        run = ipu.pipeline(lambda s, x: (x, x), micro_batches=4, in_axes=("carried", 0))
        run(jnp.ones(3), x)  # here
        """,
        r"state that each micro-batch returns as it got it.* Return \(result, state\)",
    ),
    "a block that no stage names": (
        """
        def fun(x):
            with ipu.block("first"):
                x = x + 1
            with ipu.block("second"):
                return x * 2  # here
        ipu.ShardedExecution("first").apply(fun)(x)
        """,
        "got none for 'second' .* Add the name",
    ),
    "a plan for another function": (
        """
        plan = ipu.plan_stages(two_layers, ([w, w], x), ipus=(2, 2), micro_batches=4)
        plan.save(path)
        ipu.pipeline(ipu.Plan.load(path, lambda w, x: 2 * two_layers(w, x)))([w, w], x)  # here
        """,
        "needs the function and the shapes that the plan was made for.* Make a new plan",
    ),
    "an edited plan with an unknown name": (
        """
        plan = ipu.plan_stages(two_layers, ([w, w], x), ipus=(2, 2), micro_batches=4)
        plan.save(path)
        path.write_text(path.read_text().replace("dot_general 1", "dot 1", 1))
        ipu.Plan.load(path, two_layers)  # here
        """,
        r"got 'dot 1'. Use one of the nearest names, \['dot_general 1', 'dot_general 0'\]",
    ),
    "memory kinds that mix": (
        """
        def mixed(x):
            return jax.device_put(x, jax.memory.Space.Host) + x  # here
        jax.jit(mixed)(x)
        """,
        "memory_space of all inputs passed to `add` must be the same",  # JAX's own
    ),
    "a strategy against the order of the program": (
        """
        def fun(x):
            with ipu.block("first"):
                x = x + 1
            with ipu.block("second"):
                return x * 2  # here
        ipu.SerialPhasedExecution("second", "first").apply(fun)(x)
        """,
        "needs a result of 'first' .* Change the order",
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_bad_input_is_explained(row: str, tmp_path: Path) -> None:
    source, message = ROWS[row]
    source = textwrap.dedent(source).strip()
    (line,) = (i for i, text in enumerate(source.splitlines(), 1) if text.endswith("# here"))
    with pytest.raises(Exception, match=message) as caught:
        exec(compile(source, "user.py", "exec"), {**NAMES, "path": tmp_path / "plan.json"})
    shown = "".join(traceback.format_exception(caught.value))
    assert f"user.py:{line}" in str(caught.value) or f'"user.py", line {line},' in shown
