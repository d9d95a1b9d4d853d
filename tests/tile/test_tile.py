"""`ipu.tile`: rows on chosen tiles, and vertices of users on them."""

from __future__ import annotations

import functools
import math
import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import ipujax as ipu
from ipujax.host import codelet_sources
from ipujax.reporting.model import Step
from tests.tile.drawn import draw

SQRT = """
    #include <cmath>
    #include <poplar/Vertex.hpp>
    struct Sqrt : poplar::Vertex {
      poplar::InOut<poplar::Vector<float>> x;
      bool compute() { for (auto& e : x) e = std::sqrt(e); return true; }
    };
"""


def _sqrt(**options: Any) -> ipu.tile.Vertex:
    given = {"inputs": ["x"], "in_place": ["x"], "reference": jnp.sqrt} | options
    return ipu.tile.create_vertex("Sqrt", source=SQRT, **given)


@pytest.mark.parametrize("seed", range(20))
def test_drawn_vertices_are_their_references(seed: int):
    drawn = draw(seed)
    ipu.testing.check_vertex(drawn.vertex, *drawn.arrays, rtol=2e-2, atol=1e-2, **drawn.attributes)


@pytest.mark.parametrize("seed", range(10))
def test_rows_go_where_they_are_sent(seed: int):
    rng = random.Random(seed)
    m, n = rng.randint(1, 20), rng.randint(1, 20)
    x = np.arange(m * 6, dtype=np.float32).reshape(m, 2, 3)
    rows = [rng.randrange(m) for _ in range(n)]
    tiles = [rng.randrange(1472) for _ in range(m)], [rng.randrange(1472) for _ in range(n)]

    @jax.jit
    def move(x: jax.Array) -> jax.Array:
        return ipu.tile.gather(ipu.tile.put_sharded(x, tiles[0]), rows, tiles[1]).array

    np.testing.assert_array_equal(move(x), x[rows])
    gradient = jax.grad(lambda x: (move(x) * jnp.arange(n)[:, None, None]).sum())(jnp.asarray(x))
    wanted = np.zeros_like(x)
    np.add.at(wanted, rows, np.arange(n, dtype=np.float32)[:, None, None])
    np.testing.assert_array_equal(gradient, wanted)
    many = np.stack([x, -x], 1)
    np.testing.assert_array_equal(jax.vmap(move, 1, 1)(many), many[rows])


def test_a_row_takes_memory_on_its_tile_alone():
    def copies(x: jax.Array) -> jax.Array:
        on_tiles = ipu.tile.put_replicated(x, (7, 99))
        return ipu.tile.map(_sqrt(), on_tiles).array.sum()

    report = ipu.report(copies, jax.ShapeDtypeStruct((1024,), jnp.float32))
    of_tile = np.sum(report.ipus[0].tile_bytes, axis=0)
    assert min(of_tile[7], of_tile[99]) > 4096
    assert np.median(of_tile) < min(of_tile[7], of_tile[99]) - 4000


def test_a_loop_keeps_rows_on_their_tiles():
    sqrt = _sqrt(cycles=lambda x: 20 + 10 * x.size)

    def repeated(x: jax.Array, count: int) -> jax.Array:
        on_tiles = ipu.tile.put_sharded(x, (0, 1, 2))
        return lax.fori_loop(0, count, lambda _, x: ipu.tile.map(sqrt, x), on_tiles).array

    x = jnp.full((3, 1024), 3.0)
    np.testing.assert_allclose(jax.jit(repeated, static_argnums=1)(x, 3), x**0.125, rtol=1e-6)
    once, many = (ipu.report(functools.partial(repeated, count=n), x) for n in (1, 32))
    assert {step.kernel for step in many.steps if step.times == 32} == {"engine.vertices"}
    (vertex,) = (step for step in once.steps if step.kernel == "engine.vertices")
    # tessellate-ipu's test has 5 % as the bound of a loop's own cost.
    assert many.cycles < once.cycles + 31 * vertex.cycles * 1.05


def _vertex_step(vertex: ipu.tile.Vertex) -> Step:
    report = ipu.report(
        lambda x: ipu.tile.map(vertex, ipu.tile.put_sharded(x, (5,))).array,
        jax.ShapeDtypeStruct((1, 64), jnp.float32),
    )
    (step,) = (step for step in report.steps if step.kernel == "engine.vertices")
    return step


def test_cycles_are_those_declared():
    fewer = _vertex_step(_sqrt(cycles=lambda x: 100))
    more = _vertex_step(_sqrt(cycles=lambda x: 100 + x.size))
    assert more.compute_cycles - fewer.compute_cycles == 6 * 64  # a worker has every sixth cycle


def test_functions_and_primitives_are_mapped():
    x = ipu.tile.put_sharded(jnp.arange(12.0).reshape(4, 3), range(4))
    y = ipu.tile.put_replicated(jnp.ones(3), range(4))
    assert ipu.tile.map(lax.add_p, x, y).array.tolist() == (x.array + 1).tolist()
    total, largest = ipu.tile.map(lambda r: (r.sum(), r.max()), x)
    assert total.array.tolist() == x.array.sum(1).tolist()
    assert largest.tiles == x.tiles
    (again,) = ipu.tile.barrier(x.reshape(3, 1))
    assert again.tile_shape == (3, 1)
    assert len(again) == 4


def test_own_derivatives():
    def vjp(x: ipu.tile.TileArray, ct: ipu.tile.TileArray) -> ipu.tile.TileArray:
        return ipu.tile.map(lambda x, ct: 7 * ct / x, x, ct)

    sqrt = _sqrt(vjp=vjp)
    f = lambda x: ipu.tile.map(sqrt, ipu.tile.put_sharded(x, (1, 2))).array.sum()  # noqa: E731
    x = jnp.full((2, 3), 2.0)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(x), 3.5)


def test_derivatives_of_derivatives_in_loops():
    """There JAX forgets rules of custom_jvp, but none of primitives."""

    def root(x: jax.Array) -> jax.Array:
        step = lambda _, c: ipu.tile.map(_sqrt(), ipu.tile.put_sharded(c, (1, 2))).array  # noqa: E731
        return jax.lax.fori_loop(0, 2, step, x).sum()

    x = jnp.full((2, 3), 2.0)
    second = jax.jit(jax.grad(lambda x: jax.grad(root)(x).sum()))(x)
    np.testing.assert_allclose(second, -3 / 16 * x**-1.75, rtol=1e-5)


def test_other_platforms_run_the_reference():
    with jax.default_device(jax.devices("cpu")[0]):
        x = ipu.tile.put_sharded(jnp.full((2, 3), 9.0), (1, 2000))
        assert ipu.tile.map(_sqrt(), x).array.tolist() == [[3.0] * 3] * 2


def test_rows_of_no_elements():
    x = ipu.tile.put_sharded(jnp.zeros((3, 0)), (1, 5, 5))
    assert ipu.tile.map(_sqrt(), x).shape == (3, 0)


X = jnp.ones((2, 3))
OTHERS = (lambda x: x[:2], lambda x: (x, x), lambda x: x.astype(jnp.float16), lambda x: "x")


@pytest.mark.parametrize("reference", OTHERS)
def test_references_that_return_something_else(reference: Any):
    vertex = _sqrt(reference=reference)
    x = ipu.tile.put_sharded(X, (1, 2))
    for run in (jax.grad, jax.jit):
        # On IPUs only derivatives use the reference; a call of it is on another platform.
        where = jax.devices("cpu")[0] if run is jax.jit else X.device
        with pytest.raises(ipu.ConfigError, match="reference of 'Sqrt'"), jax.default_device(where):
            run(lambda x: ipu.tile.map(vertex, ipu.tile.TileArray(x, (1, 2))).array.sum())(
                jax.device_put(x.array, where)
            )


@pytest.mark.parametrize(
    ("vjp", "message"),
    [
        (lambda x, ct: (ct, ct), "1 results of vjp of 'Sqrt', .*got 2"),
        (lambda x, ct: ct.array[:1], r"shape \[2, 3\] from vjp of 'Sqrt'; got \[1, 3\]"),
        (lambda x, ct: "x", "cotangent of 'x' from vjp to be an array"),
    ],
)
def test_own_derivatives_that_are_something_else(vjp: Any, message: str):
    vertex = _sqrt(vjp=vjp)
    with pytest.raises(ipu.ConfigError, match=message):
        jax.grad(lambda x: ipu.tile.map(vertex, ipu.tile.put_sharded(x, (1, 2))).array.sum())(X)


def test_own_derivatives_of_vertices_with_integers():
    vertex = ipu.tile.create_vertex(
        "Count",
        source="""
            #include <poplar/Vertex.hpp>
            struct Count : poplar::Vertex {
              poplar::InOut<poplar::Vector<float>> x;
              poplar::Input<int> times;
              poplar::Output<int> next;
              bool compute() { for (auto& e : x) e *= *times; *next = *times + 1; return true; }
            };
        """,
        inputs=["x", "times"],
        in_place=["x"],
        outputs={"next": "times"},
        vjp=lambda x, times, ct, of_next: (ct.array * times.array[:, None], None),
    )

    def total(x: jax.Array) -> jax.Array:
        times = ipu.tile.put_sharded(jnp.array([2, 3]), (1, 2))
        y, count = ipu.tile.map(vertex, ipu.tile.put_sharded(x, (1, 2)), times)
        return (y.array * count.array[:, None]).sum()

    assert jax.jit(jax.grad(total))(X).tolist() == [[6.0] * 3, [12.0] * 3]


def test_check_vertex_needs_arrays_on_the_same_tiles():
    for arrays, message in [((), "got no arrays"), ((X, X[:1]), r"got \[0, 1\], \[0\]")]:
        with pytest.raises(ipu.ConfigError, match=message):
            ipu.testing.check_vertex(_sqrt(), *arrays)


def test_check_vertex_finds_what_differs():
    wrong = _sqrt(reference=lambda x: x**0.51)
    with pytest.raises(ipu.MismatchError, match="result 0 under jit of 'Sqrt'"):
        ipu.testing.check_vertex(wrong, jnp.full((2, 3), 2.0))
    wrong = _sqrt(vjp=lambda x, ct: ct)
    with pytest.raises(ipu.MismatchError, match="under grad"):
        ipu.testing.check_vertex(wrong, jnp.full((2, 3), 2.0))
    with pytest.raises(ipu.ConfigError, match="with a reference"):
        ipu.testing.check_vertex(_sqrt(reference=None), jnp.ones((2, 3)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ipu.tile.put_sharded(X, (1, 2, 3)), "a tile for each row; got 3 tiles"),
        (lambda: ipu.tile.put_sharded(X, (1, -2)), "numbers of tiles, from 0"),
        (lambda: ipu.tile.put_sharded(X, (1, 2.5)), "numbers of tiles, from 0"),
        (lambda: ipu.tile.put_sharded(X, (1, 1472)), "tiles below 1472"),
        (lambda: ipu.tile.put_replicated(X, ()), "numbers of tiles, from 0"),
        (lambda: ipu.tile.gather(ipu.tile.put_sharded(X, (1, 2)), [2], (1,)), "a row from 0 to 1"),
        (lambda: ipu.tile.map(jnp.add, X, X), "arrays on tiles; got ArrayImpl"),
        (
            lambda: ipu.tile.map(
                jnp.add, ipu.tile.put_sharded(X, (1, 2)), ipu.tile.put_sharded(X, (1, 3))
            ),
            "arrays on the same tiles",
        ),
        (lambda: ipu.tile.map(_sqrt()), "arrays on the same tiles; got different ones .*no arrays"),
        (
            lambda: ipu.tile.map(_sqrt(), *[ipu.tile.put_sharded(X, (1, 2))] * 2),
            "arrays for x of 'Sqrt'; got 2",
        ),
        (
            lambda: ipu.tile.map(_sqrt(), ipu.tile.put_sharded(X.astype(jnp.bfloat16), (1, 2))),
            "got bfloat16",
        ),
        (
            lambda: ipu.tile.map(_sqrt(), ipu.tile.put_sharded(X, (1, 2)), k=X),
            "a number for field 'k'",
        ),
        (
            lambda: ipu.tile.map(_sqrt(), ipu.tile.put_sharded(X, (1, 2)), k=10**400),
            "that field 'k' of 'Sqrt' can hold",
        ),
        (
            lambda: ipu.tile.map(
                _sqrt(outputs={"y": lambda x: jax.ShapeDtypeStruct((), jnp.bfloat16)}),
                ipu.tile.put_sharded(X, (1, 2)),
            ),
            "for field 'y' of 'Sqrt'; got bfloat16",
        ),
        (
            lambda: ipu.tile.map(
                _sqrt(outputs={"y": lambda x: 5}), ipu.tile.put_sharded(X, (1, 2))
            ),
            "the result 'y' with shape and dtype; got 5",
        ),
        (
            lambda: ipu.tile.map(_sqrt(constants={"t": "x"}), ipu.tile.put_sharded(X, (1, 2))),
            "the constant 't' to be an array",
        ),
        (
            lambda: ipu.tile.map(_sqrt(cycles=lambda x: -1), ipu.tile.put_sharded(X, (1, 2))),
            "got -1",
        ),
        (lambda: _sqrt(outputs={"x": "x"}), "each field once"),
        (lambda: _sqrt(outputs=["y"]), "outputs as a dict"),
        (lambda: _sqrt(outputs={"y": "z"}), r"names of inputs \(x\)"),
        (lambda: _sqrt(in_place=[]), "needs a result"),
        (lambda: _sqrt(inputs=[], in_place=[]), "needs a result"),
        (lambda: _sqrt(inputs=["x y"], in_place=["x y"]), "names of fields"),
        (
            lambda: ipu.tile.create_vertex("A<{z}>", source="", inputs=["x"], in_place=["x"]),
            "inputs in the name's braces",
        ),
    ],
)
def test_bad_input(call: Any, message: str):
    with pytest.raises(Exception, match=message) as caught:
        call()
    assert isinstance(caught.value, (ipu.IpuError, jax.errors.JaxRuntimeError))


FIELDS = """
    #include <poplar/Vertex.hpp>
    struct Fields : poplar::Vertex {
      poplar::Input<poplar::Vector<unsigned>> x;
      poplar::Output<poplar::Vector<unsigned>> y;
      unsigned large;
      short small;
      bool flag;
      bool compute() {
        for (unsigned i = 0; i < x.size(); ++i) y[i] = x[i] + large + small + flag;
        return true;
      }
    };
"""


def test_numbers_of_fields():
    fields = ipu.tile.create_vertex("Fields", source=FIELDS, inputs=["x"], outputs={"y": "x"})
    x = ipu.tile.put_sharded(jnp.zeros((2, 2), jnp.uint32), (0, 1))
    given = {"large": 2**31 + 12345, "small": -3, "flag": True}
    made = ipu.tile.map(fields, x, **given).array
    assert int(made[0, 0]) == 2**31 + 12345 - 3 + 1
    for wrong in ({"large": 2**32}, {"large": -1}, {"small": 2**15}, {"large": float("nan")}):
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"needs a value that the .* can hold"):
            ipu.tile.map(fields, x, **given | wrong)


def test_constants_of_each_tile():
    """NumPy arrays, which are on the tiles before the program runs."""
    table = np.arange(6, dtype=np.float32).reshape(3, 2)

    @jax.jit
    def shifted(x: jax.Array) -> jax.Array:
        x, shift = (ipu.tile.put_sharded(a, (4, 5, 6)) for a in (x, table))
        return ipu.tile.map(jnp.add, x, shift).array

    x = jnp.ones((3, 2))
    np.testing.assert_array_equal(shifted(x), 1 + table)
    kernels = [step.kernel for step in ipu.report(shifted, x).steps]
    assert "engine.copy" not in kernels


def test_a_source_has_what_it_includes(tmp_path: Any):
    """Also where the file lies in another folder; another header makes another source."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "power.hpp").write_text('#pragma once\n#include "k.hpp"\n')
    file = tmp_path / "scale.cpp"
    file.write_text(
        '#include "inner/power.hpp"\n#include "inner/power.hpp"\n'
        + SQRT.replace("std::sqrt(e)", "kScale * e")
    )
    x = ipu.tile.put_sharded(X, (1, 2))
    for scale in ("3", "5", "absent"):
        (tmp_path / "inner" / "k.hpp").write_text(f"constexpr float kScale = {scale};\n")
        vertex = ipu.tile.create_vertex("Sqrt", source=file, inputs=["x"], in_place=["x"])
        if scale == "absent":
            with pytest.raises(jax.errors.JaxRuntimeError, match=r"k\.hpp:1"):
                ipu.tile.map(vertex, x)
        else:
            assert ipu.tile.map(vertex, x).array[0, 0] == float(scale)


def test_a_file_that_is_missing(tmp_path: Any):
    with pytest.raises(ipu.ConfigError, match="needs a file of C"):
        ipu.tile.create_vertex("A", source=tmp_path / "a.cpp", inputs=["x"], in_place=["x"])


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 3)])
def test_rows_of_any_rank_are_vectors(shape: tuple[int, ...]):
    x = np.arange(2 * math.prod(shape), dtype=np.float32).reshape(2, *shape)
    y = ipu.tile.map(_sqrt(), ipu.tile.put_sharded(x, (1, 2)))
    np.testing.assert_array_equal(y.array, np.sqrt(x))


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        (
            "Sqrt",
            SQRT.replace("std::sqrt(e)", "std::sqrt(nothing)"),
            "codelets.cpp:6.*nothing.* was not declared",
        ),
        ("Cbrt", SQRT, "needs a vertex type that addCodelets added"),
        ("Sqrt", SQRT.replace("x;", "y;").replace(": x", ": y"), "needs a field of Sqrt"),
        ("Sqrt", SQRT.replace("<float>", "<int>"), "needs elements of int"),
        ("Sqrt", SQRT.replace("x;", "x; poplar::Input<float> z;"), "a connected tensor"),
    ],
)
def test_bad_codelets(name: str, source: str, message: str):
    vertex = ipu.tile.create_vertex(name, source=source, inputs=["x"], in_place=["x"])
    x = ipu.tile.put_sharded(X, (1, 2))
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        ipu.tile.map(vertex, x)
    assert ipu.tile.map(_sqrt(), x).array.tolist() == X.tolist()  # and nothing is lost


def test_programs_run_no_source_that_this_process_did_not_declare(monkeypatch: Any):
    vertex = _sqrt()
    lowered = jax.jit(lambda x: ipu.tile.map(vertex, ipu.tile.put_sharded(x, (1, 2))).array).lower(
        X
    )
    assert "std::sqrt" not in lowered.as_text()
    monkeypatch.setattr(codelet_sources, "_SOURCES", {})
    with pytest.raises(jax.errors.JaxRuntimeError, match="declared by this process"):
        lowered.compile()
