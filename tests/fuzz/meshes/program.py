"""One program: arrays over a mesh, and parts that are called one after the other."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.core import ShardingTypeError
from jax.sharding import NamedSharding, PartitionSpec

from tests.fuzz.meshes.place import MeshSpec, P, Place
from tests.fuzz.meshes.steps import STEPS, Params, Row, Typed, draw_spec

SIZES = ((2,), (4,), (8,), (2, 2), (4, 2), (2, 4), (2, 2, 2))
SHAPES = ((8,), (16,), (8, 8), (8, 16), (16, 4), (4, 8, 8), (2, 8, 16), (16, 16))
MODES = ("jit", "jit", "jit", "eager", "eager", "grad", "out_shardings", "donate")
#: Elements of the largest value.
LARGEST = 4096


@dataclass(frozen=True)
class Step:
    """A step of a part; operands count its inputs, then the results of its steps."""

    name: str
    operands: tuple[int, ...]
    params: Params

    def __str__(self) -> str:
        return f"{self.name}{list(self.operands)} {self.params or ''}"


@dataclass(frozen=True)
class Part:
    """A call of a function of earlier values.

    Attributes:
        mode: one of MODES; "grad": gradients of the sum of squares of its outputs.
        inputs: numbers of the arguments and of results of earlier parts.
        outputs: numbers of inputs and steps.
        out_specs: with mode "out_shardings".
    """

    mode: str
    inputs: tuple[int, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    out_specs: tuple[PartitionSpec, ...] = ()

    def function(self, place: Place) -> Callable[..., tuple[Any, ...]]:
        def f(*inputs: Any) -> tuple[Any, ...]:
            values = list(inputs)
            for step in self.steps:
                operands = [values[k] for k in step.operands]
                values.append(STEPS[step.name].run(place, operands, step.params))
            return tuple(values[k] for k in self.outputs)

        if self.mode != "grad":
            return f

        def loss(*inputs: Any) -> Any:
            wholes = [place.reshard(x, P()) for x in f(*inputs)]
            return sum(jnp.sum(x * x) / x.size for x in wholes)

        return lambda *inputs: jax.grad(loss, argnums=tuple(range(len(inputs))))(*inputs)

    def called(self, place: Place, may_donate: bool) -> Callable[..., tuple[Any, ...]]:
        f = self.function(place)
        if self.mode == "eager" or (self.mode == "grad" and len(self.steps) % 2):
            return f
        options: dict[str, Any] = {}
        if self.mode == "donate" and may_donate:
            options["donate_argnums"] = 0
        if self.out_specs and place.mesh is not None:
            options["out_shardings"] = tuple(NamedSharding(place.mesh, s) for s in self.out_specs)
        return jax.jit(f, keep_unused=True, **options)

    def lines(self) -> Iterator[str]:
        yield f"{self.mode} of {list(self.inputs)}"
        yield from (f"    {len(self.inputs) + k}: {step}" for k, step in enumerate(self.steps))
        yield f"    -> {list(self.outputs)} {self.out_specs or ''}"


@dataclass
class Program:
    """What runs over a mesh and, as what its values stand for, on one device."""

    seed: int
    mesh: MeshSpec
    arrays: list[np.ndarray]
    specs: list[PartitionSpec]
    parts: list[Part] = field(default_factory=list)

    def run(self, place: Place) -> list[jax.Array | None]:
        """The results of all parts; None for those that were donated to a later one."""
        with place.entered(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Some donated buffers were not usable")
            pool: list[Any] = [
                place.put(a, s) for a, s in zip(self.arrays, self.specs, strict=True)
            ]
            for part in self.parts:
                given = [pool[k] for k in part.inputs]
                # JAX gives a result that is an argument as the same array, which is still needed.
                is_alone = sum(value is given[0] for value in pool) == 1
                pool += part.called(place, is_alone)(*given)
                if part.mode == "donate":
                    pool[part.inputs[0]] = None
        return pool[len(self.arrays) :]

    @property
    def text(self) -> str:
        kind = "explicit" if self.mesh.explicit else "automatic"
        lines = [f"{kind} mesh {self.mesh.sizes} of devices {self.mesh.order}"]
        pairs = zip(self.arrays, self.specs, strict=True)
        lines += [f"{k}: {a.dtype}{list(a.shape)} {s}" for k, (a, s) in enumerate(pairs)]
        count = len(self.arrays)
        for part in self.parts:
            lines += [f"{count}: {line}" if not k else line for k, line in enumerate(part.lines())]
            count += len(part.inputs if part.mode == "grad" else part.outputs)
        return "\n".join(lines)


def from_seed(seed: int) -> Program:
    """Equal seeds make equal programs."""
    return _Writer(random.Random(f"meshes {seed}"), seed).program


class _Writer:
    """Draws steps, and keeps those that JAX accepts."""

    def __init__(self, rng: random.Random, seed: int):
        self._rng = rng
        sizes = rng.choice(SIZES)
        total = int(np.prod(sizes))
        order = rng.sample(range(8), total) if rng.random() < 0.3 else range(total)
        mesh = MeshSpec(sizes, rng.random() < 0.75, tuple(order))
        self._mesh = mesh
        self._place = Place(mesh.of("cpu"), mesh.explicit)
        numbers = np.random.default_rng(seed)
        shapes = [rng.choice(SHAPES) for _ in range(2)]
        shapes += [rng.choice(shapes) for _ in range(2)]
        arrays = [numbers.standard_normal(shape).astype(np.float32) for shape in shapes]
        specs = [draw_spec(rng, shape, mesh, mesh.explicit) for shape in shapes]
        specs[2] = specs[shapes.index(shapes[2])] if rng.random() < 0.7 else specs[2]
        self.program = Program(seed, mesh, arrays, specs)
        pairs = zip(arrays, specs, strict=True)
        self._pool: list[Any] = [self._abstract(a.shape, s) for a, s in pairs]
        with self._place.entered():
            for _ in range(rng.randint(1, 3)):
                self._write_part(rng.choice(MODES))

    def _abstract(self, shape: tuple[int, ...], spec: PartitionSpec) -> Any:
        sharding = NamedSharding(self._place.mesh, spec)
        return jax.ShapeDtypeStruct(shape, np.float32, sharding=sharding)

    def _write_part(self, mode: str) -> None:
        rng = self._rng
        left = [k for k, value in enumerate(self._pool) if value is not None]
        inputs = tuple(rng.sample(left, min(len(left), rng.randint(2, 4))))
        known = [self._pool[k] for k in inputs]
        part = Part(mode, inputs, (), ())
        for _ in range(rng.randint(1, 8)):
            known, part = self._grown(known, part)
        if not part.steps:
            return
        count = len(known)
        made = range(len(inputs), count)
        outputs = tuple(rng.sample(made, min(len(made), rng.randint(1, 3))))
        part = Part(mode, inputs, part.steps, outputs)
        if mode == "out_shardings":
            special = self._mesh.explicit and rng.random() < 0.5
            specs = tuple(draw_spec(rng, known[k].shape, self._mesh, special) for k in outputs)
            part = Part(mode, inputs, part.steps, outputs, specs)
        # What JAX refuses to differentiate or to lower is left out.
        given = [self._pool[k] for k in inputs]
        try:
            self._lowered(part, given)
            results = jax.eval_shape(part.function(self._place), *given)
        except _REFUSALS:
            return
        self._keep(part, results)
        if mode == "donate":
            self._pool[inputs[0]] = None

    def _keep(self, part: Part, results: tuple[Any, ...]) -> None:
        self.program.parts.append(part)
        for k, result in enumerate(results):
            known = result.sharding.spec if result.sharding is not None else P()
            spec = part.out_specs[k] if part.out_specs else known
            self._pool.append(self._abstract(result.shape, spec))

    def _lowered(self, part: Part, given: list[Any]) -> None:
        f = jax.jit(part.function(self._place), keep_unused=True)
        f.trace(*given).lower(lowering_platforms=("cpu",))

    def _grown(self, known: list[Any], part: Part) -> tuple[list[Any], Part]:
        """The part with one more step, if JAX takes it."""
        rng = self._rng
        for _ in range(12):
            name = rng.choice(sorted(STEPS))
            row = STEPS[name]
            if part.mode == "grad" and not row.smooth:
                continue
            operands = tuple(self._operands(known, row.arity))
            types = [self._type_of(known[k]) for k in operands]
            params = row.draw(rng, types, self._mesh)
            if params is None:
                continue
            step = Step(name, operands, params)
            run = partial(_run, row, self._place, params)
            try:
                result = jax.eval_shape(run, *(known[k] for k in operands))
            except _REFUSALS:
                continue
            if result.size > LARGEST or result.ndim > 4:
                continue
            steps = (*part.steps, step)
            return [*known, result], Part(part.mode, part.inputs, steps, ())
        return known, part

    def _operands(self, known: list[Any], arity: int) -> list[int]:
        """Later values are likelier, and pairs of one type where there are such."""
        rng, count = self._rng, len(known)
        first = count - 1 - min(int(rng.expovariate(0.5)), count - 1)
        if arity == 1:
            return [first]
        alike = [k for k in range(count) if self._type_of(known[k]) == self._type_of(known[first])]
        second = rng.choice(alike) if rng.random() < 0.6 else rng.randrange(count)
        return [first, second]

    def _type_of(self, value: Any) -> Typed:
        spec = value.sharding.spec if self._mesh.explicit and value.sharding is not None else P()
        return Typed(tuple(value.shape), value.dtype, spec)


def _run(row: Row, place: Place, params: Params, *values: Any) -> Any:
    return row.run(place, list(values), params)


#: What JAX raises where it refuses a step for its types.
_REFUSALS = (ShardingTypeError, TypeError, ValueError, NotImplementedError, AssertionError)
