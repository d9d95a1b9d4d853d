"""From a seed to a program: its source, its arguments, and StableHLO that every oracle gets."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import numpy as np

from tests.fuzz import lowering
from tests.fuzz.programs import ops  # noqa: F401 (importing it registers all ops)
from tests.fuzz.programs.sources import random_argument
from tests.fuzz.programs.values import Facts, Value
from tests.fuzz.programs.writer import NAMES, Shared, Writer
from tests.fuzz.values import FLOATS, dtype_of

KINDS = ("programs", "gradients")
DIMS = (1, 1, 2, 3, 4, 4, 5, 7, 8, 8, 13, 16, 17)
#: Around the thresholds of the engine's loops, rows and blocks.
LARGE_DIMS = (31, 33, 63, 64, 64, 65, 100, 128, 130, 511, 512, 513)
#: Two of them make what the engine works on in blocks of rows.
WIDE_DIMS = (16, 63, 64, 65, 100, 128)
#: Elements of the largest shapes that are drawn.
SIZES = (60, 600, 600, 600, 3000, 20_000)
OTHER_DTYPES = (
    *("float16", "bfloat16", "int32", "int32", "bool"),
    *("int8", "uint8", "int16", "uint16", "uint32", "complex64", "complex64"),
)


@dataclass
class Program:
    """A program as source.

    Attributes:
        exact: for each result whether all oracles must agree bit for bit.
        donated: numbers of arguments that are donated.
        types: shape and dtype of what the source names.
        pairs: how often a (producer, consumer, context) occurs.
    """

    seed: int
    source: str
    arguments: list[np.ndarray]
    exact: list[bool]
    donated: tuple[int, ...] = ()
    types: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    pairs: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)

    @cached_property
    def function(self) -> Callable[..., Any]:
        names: dict[str, Any] = dict(NAMES)
        exec(self.source, names)
        return names["program"]

    @cached_property
    def _traced(self) -> Any:
        flat = lambda *a: jax.tree.leaves(self.function(*a))  # noqa: E731
        return jax.jit(flat, keep_unused=True, donate_argnums=self.donated).trace(*self.arguments)

    @cached_property
    def lowered(self) -> tuple[bytes, str]:
        """StableHLO as bytecode and as text."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Some donated buffers were not usable")
            return lowering.lowered(self._traced)

    @property
    def work(self) -> int:
        """About how many elements it computes."""
        return lowering.work(self._traced.jaxpr)

    def script(self) -> str:
        """The whole program, as a script."""
        lines = ["import jax, jax.numpy as jnp, numpy as np", "from jax import lax", ""]
        lines += [self.source, "arguments = ["]
        lines += [f"    {_source_of(a)}," for a in self.arguments]
        donated = f", donate_argnums={self.donated}" if self.donated else ""
        lines += ["]", f"print(jax.jit(program{donated})(*arguments))"]
        return "\n".join(lines)


def plain(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Small numbers that are quickly written."""
    return _plain_of(int(np.prod(shape)), dtype).reshape(shape).astype(dtype_of(dtype))


def _plain_of(size: int, dtype: str) -> np.ndarray:
    return np.arange(size) % 5 - 2 * (dtype[0] not in "ub" or dtype == "bfloat16")


def _source_of(array: np.ndarray) -> str:
    """A NumPy array as an expression."""
    name = array.dtype.name
    kind = "jnp.bfloat16" if name == "bfloat16" else name if name == "bool" else f"np.{name}"
    if array.size > 8 and (array == plain(array.shape, name)).all():
        less = " - 2" if _plain_of(1, name)[0] else ""
        return f"(np.arange({array.size}) % 5{less}).reshape({array.shape}).astype({kind})"
    wide = {"b": bool, "i": np.int64, "u": np.int64, "c": np.complex64}.get(array.dtype.kind, float)
    return f"np.array({array.astype(wide).tolist()}, {kind}).reshape({array.shape})"


def from_seed(seed: int, kind: str = "programs") -> Program:
    """Equal seeds make equal programs."""
    rng = random.Random(f"{kind} {seed}")
    max_size = rng.choice(SIZES)
    w = Writer(Shared(rng, _dims(rng, max_size), _dtypes(rng), max_size, kind == "gradients"))
    if kind == "gradients":
        w.context = ("gradient",)
    arguments = _arguments(w, kind)
    num_ops = rng.choice((1, 2, 3, 4, 5, 6, 8, 10, 14))

    def write(*tracers: Any) -> None:
        for tracer, array in zip(tracers, arguments, strict=True):
            bound = float(np.abs(array.astype(np.complex64)).max()) if array.size else 0.0
            name = f"a{len(w.values)}"
            w.shared.names[name] = tracer
            w.shared.types[name] = (array.shape, array.dtype.name)
            w.values.append(Value(name, array.shape, array.dtype.name, Facts(bound)))
        w.grow(num_ops)

    jax.eval_shape(write, *arguments)
    heads = ", ".join(f"a{k}" for k in range(len(arguments)))
    finish = _gradient if kind == "gradients" else _results
    source, exact = finish(w, heads, len(arguments))
    donated = tuple(k for k in range(len(arguments)) if rng.random() < 0.15)
    return Program(
        seed, source, arguments, exact, donated, w.shared.types, w.shared.pairs, w.shared.rejected
    )


def _dims(rng: random.Random, max_size: int) -> tuple[int, ...]:
    dims = [rng.choice(DIMS) for _ in range(3)]
    if rng.random() < 0.35 or max_size > 5000:
        dims[0] = rng.choice(LARGE_DIMS)
    if max_size > 5000 and rng.random() < 0.7:
        dims[2] = rng.choice(WIDE_DIMS)
    if rng.random() < 0.04:
        dims[1] = 0
    return tuple(dims)


def _dtypes(rng: random.Random) -> tuple[str, ...]:
    first = rng.choice(("float32", "float32", "float32", "float16", "bfloat16", "int32"))
    return (first, first, first, rng.choice((*OTHER_DTYPES, "float32", "float32")))


def _arguments(w: Writer, kind: str) -> list[np.ndarray]:
    """One to four; the first of a gradient is of floats."""
    kinds = [w.choice(w.shared.dtypes) for _ in range(w.integer(1, 4))]
    if kind == "gradients":
        kinds[0] = w.choice([d for d in w.shared.dtypes if d in FLOATS] or ["float32"])
    if w.chance(0.5):
        kinds.append("int32 scalar" if w.chance(0.7) else "bool scalar")
    found = []
    for dtype in kinds:
        if dtype.endswith("scalar"):
            found.append(np.int32(w.integer(0, 4)) if "int" in dtype else np.bool_(w.chance(0.5)))
            found[-1] = np.asarray(found[-1])
        else:
            found.append(random_argument(w, dtype))
    return found


def _kept(w: Writer, num_arguments: int) -> list[Value]:
    """All unused values, and some others."""
    made = w.values[num_arguments:]
    text = "\n".join(w.lines)
    unused = [v for v in made if text.count(f"{v.name}") < 2 or w.chance(0.15)]
    return unused[-6:] or made[-1:] or w.values[:1]


def _results(w: Writer, heads: str, num_arguments: int) -> tuple[str, list[bool]]:
    kept = _kept(w, num_arguments)
    sources = [v.name for v in kept]
    exact = [v.exact or not (v.is_float or v.is_complex) for v in kept]
    for value in w.values[:num_arguments] + kept:
        if w.chance(0.06):
            forms = (f"{value}", f"{value}.T", f"{value}.reshape(-1)", f"{value}[None]")
            sources.append(w.choice(forms))
            exact.append(value.exact or not (value.is_float or value.is_complex))
    if w.chance(0.05):
        sources.append(w.choice(("jnp.arange(5)", "jnp.float32(2.5)", "jnp.zeros((3, 4))")))
        exact.append(True)
    for value in kept:
        w.uses(value.name, "result")
    lines = [f"def program({heads}):", *(f"    {line}" for line in w.lines)]
    return "\n".join([*lines, f"    return ({', '.join(sources)},)", ""]), exact


def _gradient(w: Writer, heads: str, num_arguments: int) -> tuple[str, list[bool]]:
    """The gradient of a scalar made of the results, in any of the usual ways."""
    kept = [v for v in _kept(w, num_arguments) if v.is_float or v.is_complex] or w.values[:1]
    terms = [_term(w, v) for v in kept]
    inputs = [k for k, v in enumerate(w.values[:num_arguments]) if v.is_float]
    inputs = [k for k in inputs if w.chance(0.8)] or inputs[:1]
    lines = [f"def program({heads}):", f"    def loss({heads}):"]
    lines += [f"        {line}" for line in w.lines]
    lines += [f"        return {' + '.join(terms)}"]
    form, count = _transform(w, inputs, heads, num_arguments)
    return "\n".join([*lines, f"    return {form}", ""]), [False] * count


def _term(w: Writer, value: Value) -> str:
    w.uses(value.name, "loss")
    if value.is_complex:
        return f"jnp.real({value} * jnp.conj({value})).sum()"
    forms = ["{}.sum()", "{}.mean()" if value.size else "{}.sum()"]
    if value.bound <= 2.0**8:
        forms += ["({0} * {0}).sum()", "jnp.sin({}).sum()"]
    source = w.choice(forms).format(value)
    return source if value.dtype == "float32" else f"{source}.astype(jnp.float32)"


def _transform(w: Writer, inputs: list[int], heads: str, num_arguments: int) -> tuple[str, int]:
    numbers = f"({', '.join(map(str, inputs))},)"
    kind = w.choice(("grad",) * 6 + ("value", "checkpoint", "vmap", "vmap", "jvp"))
    if kind == "value":
        return f"jax.value_and_grad(loss, argnums={numbers})({heads})", len(inputs) + 1
    if kind == "checkpoint":
        return f"jax.grad(jax.checkpoint(loss), argnums={numbers})({heads})", len(inputs)
    first = w.values[inputs[0]]
    if kind == "vmap" and first.size <= 1000:
        axes = ["None"] * num_arguments
        axes[inputs[0]] = "0"
        batch = f"jnp.stack([{first}, {first} * 2, {first} + 1])"
        arguments = heads.replace(str(first), batch, 1)
        call = f"jax.vmap(jax.grad(loss, argnums={numbers}), in_axes=({', '.join(axes)},))"
        return f"{call}({arguments})", len(inputs)
    if kind == "jvp":
        parameters = heads.replace(str(first), "x", 1)
        inner = f"lambda x: loss({parameters})"
        return f"jax.jvp({inner}, ({first},), (jnp.ones_like({first}),))", 2
    return f"jax.grad(loss, argnums={numbers})({heads})", len(inputs)
