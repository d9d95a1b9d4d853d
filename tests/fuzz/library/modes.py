"""The ways in which a case is run: each makes of the function a program, and its operands.

A program for the reference is written with plain loops where JAX or ipujax would batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import ipujax as ipu
from tests.fuzz.library.case import Case, Draw, Function

#: Sequences of a batch, iterations of a loop.
COUNT = 3
REPLICAS = 2


@dataclass(frozen=True)
class Program:
    """A case in one mode.

    Attributes:
        fast: of the function, as users would write it.
        plain: of the reference.
        operands: of both.
        traced: whether the program is compiled as one.
        shardings: of the operands, where it runs on several devices.
        depth: how often it is differentiated.
        constants: operands that the program holds itself.
    """

    fast: Callable[[Function], Function]
    plain: Callable[[Function], Function]
    operands: tuple[Any, ...]
    traced: bool = True
    shardings: tuple[Any, ...] | None = None
    depth: int = 0
    constants: tuple[Any, ...] = ()


Mode = Callable[[Draw, Case], Program]


def same(transform: Callable[[Function], Function], operands: Any, **options: Any) -> Program:
    return Program(transform, transform, operands, **options)


def is_float(x: Any) -> bool:
    return jnp.issubdtype(jnp.asarray(x).dtype, jnp.floating)


# Derivatives -------------------------------------------------------------------------------------


def loss_of(case: Case, function: Function, operands: Sequence[Any]) -> Function:
    """A scalar of the smooth operands, neither linear in the results nor symmetric in them."""

    def loss(*given: Any) -> Any:
        merged = list(operands)
        for at, value in zip(case.smooth, given, strict=True):
            merged[at] = value
        total = 0.0
        for y in jax.tree.leaves(function(*merged)):
            if is_float(y):
                wide = y.astype(jnp.promote_types(y.dtype, jnp.float32))
                weights = jnp.cos(jnp.arange(y.size, dtype=wide.dtype)).reshape(y.shape)
                finite = jnp.where(jnp.isfinite(wide), wide, 0)
                total = total + jnp.sum(weights * finite + finite * finite / 4)
        return total

    return loss


def gradient_of(case: Case, function: Function) -> Function:
    def gradient(*operands: Any) -> Any:
        smooth = [operands[at] for at in case.smooth]
        loss = loss_of(case, function, operands)
        return jax.value_and_grad(loss, tuple(range(len(smooth))))(*smooth)

    return gradient


def _directions(case: Case, d: Draw) -> list[Any]:
    return [case.draw(d.numbers())[at] for at in case.smooth]


def gradient(d: Draw, case: Case) -> Program:
    return same(lambda f: gradient_of(case, f), case.draw(d.numbers()), depth=1)


def forward(d: Draw, case: Case) -> Program:
    directions = _directions(case, d)

    def transform(function: Function) -> Function:
        def program(*operands: Any) -> Any:
            smooth = [operands[at] for at in case.smooth]
            tangents = [jnp.asarray(t, x.dtype) for t, x in zip(directions, smooth, strict=True)]

            def of_smooth(*given: Any) -> Any:
                merged = list(operands)
                for at, value in zip(case.smooth, given, strict=True):
                    merged[at] = value
                return [y for y in jax.tree.leaves(function(*merged)) if is_float(y)]

            return jax.jvp(of_smooth, smooth, tangents)

        return program

    return same(transform, case.draw(d.numbers()), depth=1)


def second(d: Draw, case: Case) -> Program:
    """A product with the Hessian, forwards or backwards over the gradient."""
    directions, forwards = _directions(case, d), d.chance(0.5)

    def transform(function: Function) -> Function:
        def program(*operands: Any) -> Any:
            smooth = [operands[at] for at in case.smooth]
            along = [jnp.asarray(t, x.dtype) for t, x in zip(directions, smooth, strict=True)]
            argnums = tuple(range(len(smooth)))
            gradient = jax.grad(loss_of(case, function, operands), argnums)
            if forwards:
                return jax.jvp(gradient, smooth, along)[1]

            def product(*given: Any) -> Any:
                pairs = zip(gradient(*given), along, strict=True)
                wide = jnp.float32 if smooth[0].dtype != jnp.float64 else jnp.float64
                return sum(jnp.sum(g.astype(wide) * t.astype(wide)) for g, t in pairs)

            return jax.grad(product, argnums)(*smooth)

        return program

    return same(transform, case.draw(d.numbers()), depth=2)


def remat(d: Draw, case: Case) -> Program:
    wrap = jax.checkpoint if d.chance(0.5) else ipu.remat
    return Program(
        lambda f: gradient_of(case, wrap(f)),
        lambda f: gradient_of(case, f),
        case.draw(d.numbers()),
        depth=1,
    )


# Batches -----------------------------------------------------------------------------------------


def _stacked(d: Draw, case: Case, count: int, moved: bool) -> tuple[list[Any], list[int | None]]:
    """Operands, some with a batch of other ones along an axis."""
    samples = [case.draw(d.numbers()) for _ in range(count)]
    axes: list[int | None] = [
        d.integer(0, x.ndim) if moved else 0 if d.chance(0.7) else None for x in samples[0]
    ]
    axes = [None if moved and d.chance(0.3) else axis for axis in axes]
    if all(axis is None for axis in axes):
        axes[d.integer(0, len(axes) - 1)] = 0
    operands = [
        samples[0][k] if axis is None else np.stack([s[k] for s in samples], axis)
        for k, axis in enumerate(axes)
    ]
    return operands, axes


def _loop(case: Case, axes: Sequence[int | None], count: int) -> Callable[[Function], Function]:
    """The plain form of a batch: results are stacked along a new first axis.

    A loop of the CPU backend, which compiles its body once; in Python where the reference has to
    see its integers.
    """

    def looped(function: Function, operands: Any) -> Any:
        given = [
            jnp.moveaxis(x, a, 0) for x, a in zip(operands, axes, strict=True) if a is not None
        ]

        def step(_: None, given: Any) -> Any:
            rest = iter(given)
            pairs = zip(operands, axes, strict=True)
            return None, function(*(x if a is None else next(rest) for x, a in pairs))

        return lax.scan(step, None, given, length=count)[1]

    def unrolled(function: Function, operands: Any) -> Any:
        made = []
        for n in range(count):
            pairs = zip(operands, axes, strict=True)
            made.append(function(*(x if a is None else x.take(n, a) for x, a in pairs)))
        return jax.tree.map(lambda *each: jnp.stack([jnp.asarray(y) for y in each]), *made)

    run = looped if case.compiled else unrolled
    return lambda function: lambda *operands: run(function, operands)


def vmap(d: Draw, case: Case) -> Program:
    operands, axes = _stacked(d, case, COUNT, True)
    loop = _loop(case, axes, COUNT)
    return Program(lambda f: jax.vmap(f, tuple(axes)), loop, tuple(operands))


def vmap_of_gradient(d: Draw, case: Case) -> Program:
    operands, axes = _stacked(d, case, COUNT, True)
    loop = _loop(case, axes, COUNT)
    return Program(
        lambda f: jax.vmap(gradient_of(case, f), tuple(axes)),
        lambda f: loop(gradient_of(case, f)),
        tuple(operands),
        depth=1,
    )


def gradient_of_vmap(d: Draw, case: Case) -> Program:
    operands, axes = _stacked(d, case, COUNT, True)
    loop = _loop(case, axes, COUNT)
    return Program(
        lambda f: gradient_of(case, jax.vmap(f, tuple(axes))),
        lambda f: gradient_of(case, loop(f)),
        tuple(operands),
        depth=1,
    )


def beside_nan(d: Draw, case: Case) -> Program:
    """Examples of vmap of which one has NaN and infinities: the others are as without them."""
    samples = [case.draw(d.numbers()) for _ in range(COUNT)]
    spoilt, numbers = d.integer(0, COUNT - 1), d.numbers()
    samples[spoilt] = tuple(_spoilt(x, numbers) if is_float(x) else x for x in samples[spoilt])
    operands = tuple(np.stack(each) for each in zip(*samples, strict=True))
    derive = case.order > 0 and d.chance(0.5)
    loop = _loop(case, [0] * len(operands), COUNT)
    others = np.array([n for n in range(COUNT) if n != spoilt])

    def of(f: Function) -> Function:
        return gradient_of(case, f) if derive else f

    def seen(f: Function) -> Function:
        return lambda *operands: jax.tree.map(lambda y: jnp.take(y, others, 0), f(*operands))

    return Program(
        lambda f: seen(jax.vmap(of(f))), lambda f: seen(loop(of(f))), operands, depth=int(derive)
    )


def _spoilt(x: Any, numbers: Any) -> Any:
    wrong = np.array([np.nan, np.inf, -np.inf]).astype(x.dtype)
    return np.where(numbers.random(x.shape) < 0.3, numbers.choice(wrong, x.shape), x)


def _scanned(axes: Sequence[int | None]) -> Callable[[Function], Function]:
    def transform(function: Function) -> Function:
        def program(*operands: Any) -> Any:
            def step(carry: Any, given: Any) -> Any:
                rest = iter(given)
                merged = [
                    x if a is None else next(rest) for x, a in zip(operands, axes, strict=True)
                ]
                return carry + 1, function(*merged)

            xs = [x for x, a in zip(operands, axes, strict=True) if a is not None]
            return lax.scan(step, jnp.int32(0), xs)[1]

        return program

    return transform


def scan(d: Draw, case: Case) -> Program:
    operands, axes = _stacked(d, case, COUNT, False)
    return Program(_scanned(axes), _loop(case, axes, COUNT), tuple(operands))


def gradient_of_scan(d: Draw, case: Case) -> Program:
    operands, axes = _stacked(d, case, COUNT, False)
    loop = _loop(case, axes, COUNT)
    return Program(
        lambda f: gradient_of(case, _scanned(axes)(f)),
        lambda f: gradient_of(case, loop(f)),
        tuple(operands),
        depth=1,
    )


# Devices and stages ------------------------------------------------------------------------------


def pmap(d: Draw, case: Case) -> Program:
    operands, axes = _stacked(d, case, REPLICAS, False)
    loop = _loop(case, axes, REPLICAS)
    derive = case.order > 0 and d.chance(0.5)

    def of(f: Function) -> Function:
        return gradient_of(case, f) if derive else f

    return Program(
        lambda f: ipu.pmap(of(f), in_axes=tuple(axes), devices=jax.devices("ipu")[:REPLICAS]),
        lambda f: loop(of(f)),
        tuple(operands),
        traced=False,
        depth=int(derive),
    )


def sharded(d: Draw, case: Case) -> Program:
    """jit over two devices, each operand split along one of its dimensions, or whole."""
    operands = case.draw(d.numbers())
    mesh = Mesh(np.array(jax.devices("ipu")[:REPLICAS]), ("d",))
    shardings = []
    for x in operands:
        fits = [k for k, size in enumerate(x.shape) if size and size % REPLICAS == 0]
        spec: list[Any] = [None] * x.ndim
        if fits and d.chance(0.8):
            spec[d.one(*fits)] = "d"
        shardings.append(NamedSharding(mesh, PartitionSpec(*spec)))
    derive = case.order > 0 and d.chance(0.5)

    def of(f: Function) -> Function:
        return gradient_of(case, f) if derive else f

    return same(of, operands, shardings=tuple(shardings), depth=int(derive))


def shard_mapped(d: Draw, case: Case) -> Program:
    """shard_map over two devices, with or without a check of what varies over them."""
    samples = [case.draw(d.numbers()) for _ in range(REPLICAS)]
    operands = tuple(np.stack(each) for each in zip(*samples, strict=True))
    mesh = Mesh(np.array(jax.devices("ipu")[:REPLICAS]), ("d",))
    checks, derive = d.chance(0.7), case.order > 0 and d.chance(0.5)
    spec = PartitionSpec("d")

    def of(f: Function) -> Function:
        return gradient_of(case, f) if derive else f

    def mapped(f: Function) -> Function:
        def local(*operands: Any) -> Any:
            return jax.tree.map(lambda y: y[None], of(f)(*(x[0] for x in operands)))

        return jax.shard_map(local, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=checks)

    shardings = (NamedSharding(mesh, spec),) * len(operands)
    loop = _loop(case, [0] * len(operands), REPLICAS)
    return Program(mapped, lambda f: loop(of(f)), operands, shardings=shardings, depth=int(derive))


def stage(d: Draw, case: Case) -> Program:
    """On the second IPU of a device; its operands come from the first one."""
    derive = case.order > 0 and d.chance(0.7)

    def halved(*operands: Any) -> Any:
        return tuple(x * jnp.asarray(0.5, x.dtype) if is_float(x) else x for x in operands)

    def on_two(f: Function) -> Function:
        first, last = ipu.stage(halved, 0), ipu.stage(f, 1)

        def program(*operands: Any) -> Any:
            return last(*first(*operands))

        return gradient_of(case, program) if derive else program

    def plain(f: Function) -> Function:
        def program(*operands: Any) -> Any:
            return f(*halved(*operands))

        return gradient_of(case, program) if derive else program

    return Program(on_two, plain, case.draw(d.numbers()), depth=int(derive))


def pipeline(d: Draw, case: Case) -> Program:
    """Micro-batches through two stages, of which the second is the function."""
    samples = [case.draw(d.numbers()) for _ in range(COUNT)]
    operands = tuple(np.stack(each) for each in zip(*samples, strict=True))
    schedule = d.one("grouped", "interleaved", "sequential")

    def first(_: Any, *operands: Any) -> Any:
        return operands

    def staged(f: Function) -> Function:
        run = ipu.pipeline(
            [first, lambda _, operands: f(*operands)], micro_batches=COUNT, schedule=schedule
        )
        return lambda *operands: run([(), ()], *operands)

    return Program(staged, _loop(case, [0] * len(operands), COUNT), operands)


# Constants and plain calls -----------------------------------------------------------------------


def constants(d: Draw, case: Case) -> Program:
    """Some operands are constants of the program."""
    operands = case.draw(d.numbers())
    is_known = [d.chance(0.6) for _ in operands]
    held, given = (
        tuple(x for x, known in zip(operands, is_known, strict=True) if known is wanted)
        for wanted in (True, False)
    )

    def transform(function: Function) -> Function:
        def program(*given: Any) -> Any:
            rest = iter(given)
            merged = [
                _as_given(x) if known else next(rest)
                for x, known in zip(operands, is_known, strict=True)
            ]
            return function(*merged)

        return program

    return same(transform, given, constants=held)


def _as_given(x: Any) -> Any:
    return np.asarray(x, np.float64) if is_float(x) and jax.config.jax_enable_x64 else x


def eager(d: Draw, case: Case) -> Program:
    return same(lambda f: f, case.draw(d.numbers()), traced=False)


def compiled(d: Draw, case: Case) -> Program:
    return same(lambda f: f, case.draw(d.numbers()))


#: (mode, how often it is differentiated at least, its weight)
MODES: tuple[tuple[Mode, int, int], ...] = (
    (eager, 0, 2),
    (compiled, 0, 2),
    (constants, 0, 2),
    (vmap, 0, 3),
    (beside_nan, 0, 2),
    (scan, 0, 2),
    (pmap, 0, 2),
    (sharded, 0, 3),
    (shard_mapped, 0, 2),
    (stage, 0, 2),
    (pipeline, 0, 2),
    (gradient, 1, 3),
    (forward, 1, 2),
    (remat, 1, 2),
    (vmap_of_gradient, 1, 2),
    (gradient_of_vmap, 1, 2),
    (gradient_of_scan, 1, 2),
    (second, 2, 3),
)


def pick(d: Draw, case: Case) -> Mode:
    fits = [(mode, weight) for mode, order, weight in MODES if order <= case.order]
    modes, weights = zip(*fits, strict=True)
    return d.rng.choices(modes, weights)[0]
