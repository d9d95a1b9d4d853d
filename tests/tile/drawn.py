"""Random vertices: one expression, written in C++ and in jax.numpy."""

from __future__ import annotations

import random
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu

#: Dtypes of rows, and what a codelet calls them.
TYPES = {"float32": "float", "float16": "half", "int32": "int", "uint32": "unsigned int"}


@dataclass(frozen=True)
class Drawn:
    """A vertex, its arguments and the values of its attributes."""

    vertex: ipu.tile.Vertex
    arrays: tuple[ipu.tile.TileArray, ...]
    attributes: dict[str, float]
    source: str


def draw(seed: int) -> Drawn:
    """A vertex with 1 to 3 inputs; some are changed in place, some read as rows of a matrix."""
    rng = random.Random(seed)
    dtype = rng.choice(list(TYPES))
    names = ["a", "b", "c"][: rng.randint(1, 3)]
    is_float = dtype.startswith("float")
    shape = (rng.randint(1, 40),) if rng.random() < 0.7 else (rng.randint(1, 5), rng.randint(1, 9))
    tiles = [rng.randrange(1472) for _ in range(rng.randint(1, 9))]
    in_place = ["a"] if rng.random() < 0.4 else []
    attributes = {"k": float(rng.randint(1, 4))} if is_float and rng.random() < 0.5 else {}
    constant = rng.random() < 0.4
    terms = names + list(attributes) + (["t"] if constant else [])
    cpp, python = _expression(rng, terms, depth=3, is_float=is_float)
    source = _source(names, shape, in_place, attributes, constant, cpp)
    code = compile(python, f"<vertex {seed}>", "eval")
    table = np.asarray([3], dtype) if constant else None

    def reference(*rows: jax.Array, **given: float) -> jax.Array:
        wide = jnp.float32 if is_float else rows[0].dtype
        values = {name: row.astype(wide) for name, row in zip(names, rows, strict=True)}
        values |= given
        if table is not None:
            values["t"] = jnp.asarray(table[0], wide)
        made = eval(code, {"jnp": jnp}, values)
        return jnp.broadcast_to(made, rows[0].shape).astype(dtype)

    vertex = ipu.tile.create_vertex(
        "Drawn<{a}>",
        source=source,
        inputs=names,
        outputs={} if in_place else {"out": "a"},
        in_place=in_place,
        constants={"t": table} if constant else None,
        reference=reference,
    )
    values = np.random.default_rng(seed)
    arrays = tuple(
        ipu.tile.put_sharded(
            jnp.asarray(values.integers(1, 5, (len(tiles), *shape)).astype(dtype)), tiles
        )
        for _ in names
    )
    return Drawn(vertex, arrays, attributes, source)


def _expression(
    rng: random.Random, terms: list[str], depth: int, is_float: bool
) -> tuple[str, str]:
    """The same expression in C++ and in Python."""
    if depth == 0 or rng.random() < 0.2:
        name = rng.choice(terms)
        return f"v_{name}", name
    left, right = (_expression(rng, terms, depth - 1, is_float) for _ in range(2))
    kind = rng.choice(["+", "-", "*", "max"] + (["/"] if is_float else []))
    if kind == "max":
        return f"std::max({left[0]}, {right[0]})", f"jnp.maximum({left[1]}, {right[1]})"
    if kind == "/":
        return (
            f"({left[0]} / (W(1) + {right[0]} * {right[0]}))",
            f"({left[1]} / (1 + {right[1]} * {right[1]}))",
        )
    return f"({left[0]} {kind} {right[0]})", f"({left[1]} {kind} {right[1]})"


def _source(
    names: list[str],
    shape: tuple[int, ...],
    in_place: list[str],
    attributes: dict[str, float],
    constant: bool,
    cpp: str,
) -> str:
    """Loops over elements, or over rows of a matrix."""
    rows = len(shape) == 2
    vector = "Vector<{0}<Vector<T>>>" if rows else "{0}<Vector<T>>"
    fields = [f"{vector.format('InOut' if n in in_place else 'Input')} {n};" for n in names]
    if not in_place:
        fields.append(f"{vector.format('Output')} out;")
    fields += [f"float {name};" for name in attributes]
    if constant:
        fields.append("Input<Vector<T>> t;")
    at = "[i][j]" if rows else "[j]"
    values = [f"const W v_{name} = W({name}{at});" for name in names]
    values += [f"const W v_{name} = W({name});" for name in attributes]
    if constant:
        values.append("const W v_t = W(t[0]);")
    inner = f"{{ {' '.join(values)} {in_place[0] if in_place else 'out'}{at} = T({cpp}); }}"
    loop = f"for (unsigned j = 0; j < {'a[i]' if rows else 'a'}.size(); ++j) {inner}"
    if rows:
        loop = f"for (unsigned i = 0; i < a.size(); ++i) {loop}"
    return f"""
        #include <algorithm>
        #include <type_traits>
        #include <poplar/Vertex.hpp>
        using namespace poplar;
        template <class T>
        class Drawn : public Vertex {{
          using W = std::conditional_t<std::is_integral_v<T>, T, float>;
         public:
          {" ".join(fields)}
          bool compute() {{ {loop} return true; }}
        }};
    """
