"""Reports say which layer, stage, block and pass each step is of, and who called its line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import ipujax as ipu
from ipujax.annotations.frames import Frame
from ipujax.annotations.layers import scopes_of
from ipujax.annotations.module_paths import layer_path
from ipujax.annotations.origins import Origin, read_origin
from ipujax.compiler.sources import frames_of

X = jax.ShapeDtypeStruct((16, 32), jnp.float32)
Program = tuple[Callable[..., Any], Any]


def linen() -> Program:
    nn = pytest.importorskip("flax.linen", reason="needs flax; install it")

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(32, name="down")(jax.nn.relu(nn.Dense(64, name="up")(x)))

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.LayerNorm(name="norm")(Block(name="block")(x))

    model = Model()
    return model.apply, jax.eval_shape(model.init, jax.random.key(0), X)


def nnx() -> Program:
    nnx = pytest.importorskip("flax.nnx", reason="needs flax; install it")

    class Block(nnx.Module):
        def __init__(self, rngs):
            self.up = nnx.Linear(32, 64, rngs=rngs)
            self.down = nnx.Linear(64, 32, rngs=rngs)

        def narrowed(self, x):
            return self.down(jax.nn.relu(x))

        def __call__(self, x):
            return self.narrowed(self.up(x))

    class Model(nnx.Module):
        def __init__(self, rngs):
            self.block = Block(rngs)
            self.norm = nnx.LayerNorm(32, rngs=rngs)

        def __call__(self, x):
            return self.norm(self.block(x))

    graph, state = nnx.split(Model(nnx.Rngs(0)))
    return lambda state, x: nnx.merge(graph, state)(x), state


def equinox() -> Program:
    eqx = pytest.importorskip("equinox", reason="needs equinox; install it")

    class Block(eqx.Module):
        up: Any
        down: Any

        def narrowed(self, x):
            return jax.vmap(self.down)(jax.nn.relu(x))

        def __call__(self, x):
            return self.narrowed(jax.vmap(self.up)(x))

    class Model(eqx.Module):
        block: Block
        norm: Any

        def __call__(self, x):
            return jax.vmap(self.norm)(self.block(x))

    key = jax.random.key(0)
    block = Block(eqx.nn.Linear(32, 64, key=key), eqx.nn.Linear(64, 32, key=key))
    arrays, rest = eqx.partition(Model(block, eqx.nn.LayerNorm(32)), eqx.is_array)
    return lambda arrays, x: eqx.combine(arrays, rest)(x), arrays


def training(apply: Callable[..., Any]) -> Callable[..., Any]:
    def loss(weights, x):
        return jnp.mean(jnp.square(apply(weights, x)))

    def step(weights, x):
        gradient = jax.grad(loss)(weights, x)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradient)

    return step


@pytest.mark.parametrize("library", [linen, nnx, equinox])
def test_every_step_has_the_path_of_its_module(library):
    apply, weights = library()
    found = ipu.report(training(apply), weights, X)
    layers = {step.scope for step in found.steps}
    inner = {"Model/block/up", "Model/block/down", "Model/norm"}
    assert inner <= layers <= inner | {"Model/block", "loss()", "step()"}
    modules = {group.name: group for group in found.modules()}
    inside = [step for step in found.steps if step.scope.startswith("Model/")]
    assert modules["Model"].steps == len(inside)
    assert modules["Model"].cycles == pytest.approx(sum(step.total_cycles for step in inside))
    block = sum(g.cycles for g in found.by("layer") if g.name.startswith("Model/block"))
    assert modules["Model/block"].cycles == pytest.approx(block)


@pytest.mark.parametrize("library", [linen, nnx, equinox])
def test_forward_and_backward_are_told_apart(library):
    apply, weights = library()
    found = ipu.report(training(apply), weights, X)
    assert found.groupings == ["line", "layer", "op", "direction"]
    layers = {group.name: group for group in found.by("layer")}
    for name in ("Model/block/up", "Model/block/down"):
        group = layers[name]
        assert group.forward_cycles > 0
        assert group.backward_cycles > 0
        assert group.forward_cycles + group.backward_cycles == pytest.approx(group.cycles)
    assert layers["step()"].forward_cycles == layers["step()"].backward_cycles == 0
    assert {group.name for group in found.by("direction")} == {"forward", "backward", ""}
    assert "forward  backward" in str(found)


def test_the_stack_is_shown_with_the_line():
    def inner(x):
        return jnp.tanh(x)

    def outer(x):
        return inner(x) @ x

    found = ipu.report(outer, jax.ShapeDtypeStruct((32, 32), jnp.float32))
    first = inner.__code__.co_firstlineno
    step = next(step for step in found.steps if step.op == "tanh")
    assert step.source == f"test_layers.py:{first + 1}"
    assert step.stack[:2] == (
        f"test_layers.py:{first + 1} inner",
        f"test_layers.py:{first + 4} outer",
    )
    assert f"inner < test_layers.py:{first + 4} outer" in str(found)
    assert not any("cost.py" in frame for each in found.steps for frame in each.stack)


def test_the_stack_of_a_jitted_function_is_that_of_each_call():
    @jax.jit
    def inner(x):
        return jnp.tanh(x @ x)

    def first(x):
        return inner(x)

    def second(x):
        return inner(x) + 1

    found = ipu.report(lambda x: second(first(x)), jax.ShapeDtypeStruct((32, 32), jnp.float32))
    steps = [step for step in found.steps if step.stack and step.stack[0].endswith(" inner")]
    assert {step.stack[1].partition(" ")[2] for step in steps} == {"first", "second"}
    assert {step.scope for step in steps} == {"inner"}


def test_what_jax_names_by_itself_is_no_layer():
    def f(x):
        x = jax.nn.relu(jnp.einsum("ij,kj->ik", x, x))
        x = jnp.clip(jnp.where(x > 1, x, 0.0), 0, 3)
        x = jax.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x)
        x = jax.lax.fori_loop(0, 3, lambda i, c: jax.nn.softmax(c), x)
        return jax.lax.scan(lambda c, _: (jnp.var(c) + c, None), x, None, length=2)[0]

    found = ipu.report(jax.grad(lambda x: jax.checkpoint(f)(x).sum()), X)
    assert {step.scope for step in found.steps} <= {"f()", f"{f.__name__}()", THIS}


THIS = "test_what_jax_names_by_itself_is_no_layer()"  # where the lambda around f is


def test_blocks_stages_and_outlined_functions_are_named():
    layer = ipu.outlined(lambda w, x: jnp.tanh(x @ w), name="mixing")

    def model(w, x):
        with ipu.block("entry"):
            x = layer(w, x)
        x = layer(w, x)
        return ipu.stage(lambda w, x: jnp.sin(x @ w).sum(), ipu=0, name="head")(w, x)

    w = jax.ShapeDtypeStruct((32, 32), jnp.float32)
    found = ipu.report(jax.grad(model), w, X)
    assert found.groupings == ["line", "layer", "op", "direction", "stage", "block", "function"]
    assert {group.name for group in found.by("stage")} == {"", "head"}
    assert {group.name for group in found.by("block")} == {"", "entry"}
    assert {group.name for group in found.by("function")} == {"", "mixing"}
    for text in ("(no stage)", "head", "entry", "mixing"):
        assert text in str(found)
    directions = {step.direction for step in found.steps if step.stage == "head"}
    assert directions == {"forward", "backward"}


def test_programs_are_the_same_with_and_without_names():
    """Names in reports change neither how ops are fused nor what the program costs."""

    def plain(x):
        return jnp.tanh(jnp.sin(x) + 1) * 2

    def named(x):
        with ipu.block("one"):
            x = jnp.sin(x) + 1
        with ipu.block("two"):
            return jnp.tanh(x) * 2

    assert ipu.report(named, X).cycles == ipu.report(plain, X).cycles
    assert ipu.cost(named, X).cycles == ipu.report(plain, X).cycles


LINEAR = Frame("Linear.__call__", "/v/site-packages/lib/linear.py", 7)
MODEL = Frame("f.<locals>.Model.__call__", "/home/me/model.py", 3)
LOSS = Frame("loss", "/home/me/train.py", 9)


@pytest.mark.parametrize(
    ("scopes", "frames", "path"),
    [
        (["encoder"], [LOSS], "encoder"),
        ([], [LOSS], "loss()"),
        ([], [Frame("<lambda>", "/home/me/train.py", 4), LOSS], "loss()"),
        ([], [MODEL, LOSS], "Model"),
        (["encoder"], [MODEL, LOSS], "encoder/Model"),
        (["Model", "Dense_0"], [MODEL, LOSS], "Model/Dense_0"),
        (["model", "linear_1"], [MODEL, LOSS], "model/linear_1"),  # as haiku names them
        (["lib.nn.Model"], [MODEL, LOSS], "Model"),  # as equinox does
        ([], [LINEAR, LOSS], "loss()"),  # a class that is not loaded, of a library
        ([], [], ""),
    ],
)
def test_scopes_and_modules_are_joined(scopes, frames, path):
    assert layer_path(scopes, frames) == path


def test_haiku_names_its_own_scopes():
    haiku = pytest.importorskip("haiku", reason="needs dm-haiku; install it")

    def model(x):
        return haiku.nets.MLP([64, 32], name="mixer")(x)

    transformed = haiku.without_apply_rng(haiku.transform(model))
    weights = jax.eval_shape(transformed.init, jax.random.key(0), X)
    found = ipu.report(transformed.apply, weights, X)
    layers = {step.scope for step in found.steps}
    assert layers >= {"mixer/linear_0", "mixer/linear_1"}
    assert all(layer.startswith("mixer") for layer in layers)


def test_nested_jitted_functions_are_scopes_if_they_are_the_users():
    name = "jit(step)/jvp(first)/jit(layer)/jvp(jit(relu))/ij,kj->ik/while/body/max"
    assert scopes_of(name, {"layer"}) == ["first", "layer"]
    assert scopes_of(name) == ["first", "layer", "relu"]


def test_repeated_frames_of_a_loop_are_shown_once():
    where = '"Model.__call__"("m.py":22:15 to :52) at "loss"("t.py":25:23 to :36)'
    text = f'loc("jit(f)/while/body/add"(callsite(callsite({where}) at callsite({where}))))'
    assert [str(frame) for frame in frames_of([text])] == ["m.py:22 Model.__call__", "t.py:25 loss"]


@pytest.mark.parametrize(
    "origin",
    [
        Origin("train.py:3", "a/b", "forward", "one", "two", "three", ("x.py:1 f", "y.py:2 g")),
        Origin(),
        Origin("train.py:3", stack=()),
    ],
)
def test_origins_are_read_back(origin):
    assert read_origin(origin.text()) == origin


def test_a_line_by_itself_is_an_origin():
    assert read_origin("train.py:3") == Origin("train.py:3")
    assert read_origin("train.py:3\nmore") == Origin("train.py:3")


def test_scopes_stand_where_they_were_entered():
    class Inner:
        def __call__(self, x):
            with jax.named_scope("waves"), jax.named_scope("high"):
                return jnp.sin(x @ x)

    class Outer:
        def __init__(self):
            self.inner = Inner()

        def __call__(self, x):
            with jax.named_scope("first"):
                x = self.inner(x)
            return self.inner(x)

    def f(x):
        with jax.named_scope("whole"):
            return Outer()(x)

    found = ipu.report(f, jax.ShapeDtypeStruct((32, 32), jnp.float32))
    assert {step.scope for step in found.steps} == {
        "whole/Outer/first/inner/waves/high",
        "whole/Outer/inner/waves/high",
    }
