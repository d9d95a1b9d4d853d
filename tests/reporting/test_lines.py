"""Lines of reports are those of the user's code, not of the libraries that it calls."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import ipujax as ipu
from ipujax.compiler.sources import _parse

X = jax.ShapeDtypeStruct((16, 32), jnp.float32)
FRAMES = (
    '"deep"("{0}inner.py":1:2 to :3)',
    '"middle"("{0}outer.py":4:5 to :6)',
    '"f"("/home/me/train.py":7:8 to :9)',
    '"<module>"("/home/me/main.py":10:0 to :4)',
)


@pytest.mark.parametrize("folder", ["/v/lib/python3.11/site-packages/a/", "/usr/dist-packages/b/"])
@pytest.mark.parametrize("depth", range(4))
def test_the_innermost_frame_outside_of_libraries_is_taken(folder, depth):
    own, wanted = FRAMES[2:], ("train.py:7", "main.py:10")
    libraries = [frame.format(folder) for frame in FRAMES[:2]]
    frames = [*libraries, *own[depth % 2 :]]
    nested = frames[-1]
    for frame in reversed(frames[:-1]):
        nested = f"callsite({frame} at {nested})"
    assert _parse(f'loc("jit(f)/mul"({nested}))').line == wanted[depth % 2]


def test_pythons_own_frames_are_not_the_users():
    library = '"deep"("/v/site-packages/a/inner.py":1:2 to :3)'
    frozen = '"_run_code"("<frozen runpy>":88:4 to :9)'
    assert _parse(f'loc("jit(f)/mul"(callsite({library} at {frozen})))').line == "inner.py:1"
    cell = '"<module>"("<ipython-input-1>":3:4 to :9)'
    assert _parse(f'loc("jit(f)/mul"(callsite({library} at {cell})))').line == "<ipython-input-1>:3"


def test_a_library_by_itself_keeps_its_line():
    text = 'loc("jit(f)/mul"("deep"("/v/site-packages/a/inner.py":1:2 to :3)))'
    assert _parse(text).line == "inner.py:1"


def linen() -> tuple[Any, Any]:
    nn = pytest.importorskip("flax.linen", reason="needs flax; install it")

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(8)(jnp.tanh(nn.LayerNorm()(nn.Dense(64)(x))))

    model = Model()
    return model.apply, jax.eval_shape(model.init, jax.random.key(0), X)


def nnx() -> tuple[Any, Any]:
    nnx = pytest.importorskip("flax.nnx", reason="needs flax; install it")

    class Model(nnx.Module):
        def __init__(self, rngs):
            self.first = nnx.Linear(32, 64, rngs=rngs)
            self.second = nnx.Linear(64, 8, rngs=rngs)

        def __call__(self, x):
            return self.second(jax.nn.relu(self.first(x)))

    graph, state = nnx.split(Model(nnx.Rngs(0)))
    return lambda state, x: nnx.merge(graph, state)(x), state


def equinox() -> tuple[Any, Any]:
    eqx = pytest.importorskip("equinox", reason="needs equinox; install it")
    arrays, rest = eqx.partition(eqx.nn.MLP(32, 8, 64, 2, key=jax.random.key(0)), eqx.is_array)
    return lambda arrays, x: jax.vmap(eqx.combine(arrays, rest))(x), arrays


@pytest.mark.parametrize("library", [linen, nnx, equinox])
def test_lines_are_those_of_this_file(library):
    apply, weights = library()
    found = ipu.report(jax.grad(lambda weights, x: apply(weights, x).sum()), weights, X)
    files = {step.source.partition(":")[0] for step in found.steps if step.source}
    assert files == {Path(__file__).name}


def test_a_program_of_one_library_alone_has_the_lines_of_who_calls_it(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "installed_here.py").write_text("def f(x):\n    return x * 2\n")
    monkeypatch.syspath_prepend(str(folder))
    installed = importlib.import_module("installed_here")
    monkeypatch.delitem(sys.modules, "installed_here")
    found = ipu.report(installed.f, X)
    assert {step.source.partition(":")[0] for step in found.steps} == {Path(__file__).name}
