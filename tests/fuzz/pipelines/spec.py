"""From a seed to a pipeline: what it is made of, as plain data that can be made smaller."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.fuzz.pipelines.layers import LAYERS, Layer, Shape
from tests.fuzz.pipelines.transforms import TRANSFORMS, Transform

SCHEDULES = ("grouped", "interleaved", "sequential")
REDUCTIONS = ("mean", "mean", "sum", "running_mean")
OUTPUTS = ("all", "all", "last", "sum", "mean", "running_mean", "none", "sum float32")
#: JAX_IPU_IPUS_PER_DEVICE of the processes that run them.
NUM_IPUS = 8


@dataclass(frozen=True)
class Stage:
    """One stage.

    Attributes:
        beside: the layers of a second stage that runs at the same time, on IPU `beside_ipu`.
        remat: False, True, or the name of a policy of `jax.checkpoint_policies`; None: as the
            pipeline says.
        skip_from: the stage whose result is added to this one's x.
        is_tied: it uses the weights that all tied stages share.
    """

    layers: tuple[Layer, ...]
    ipu: int
    beside: tuple[Layer, ...] = ()
    beside_ipu: int = 0
    remat: bool | str | None = None
    is_frozen: bool = False
    skip_from: int | None = None
    is_tied: bool = False


@dataclass(frozen=True)
class Spec:
    """One random pipeline, and what is done with it.

    Attributes:
        inputs: what a micro-batch holds besides x: "tokens", "labels", "key".
        is_function: one function that calls stages, rather than a list of them.
        is_carried: state goes from micro-batch to micro-batch.
        outputs: what becomes of the loss, of x, of the auxiliary loss; () if only a loss.
    """

    seed: int
    shape: Shape
    stages: tuple[Stage, ...]
    micro_batches: int
    inputs: tuple[str, ...]
    schedule: str
    reduction: str
    outputs: tuple[str, ...]
    accumulate: str | None
    remat: bool | str | None
    is_function: bool
    is_carried: bool
    transform: str

    @property
    def serial(self) -> int:
        """How many micro-batches a stage runs before the next stage begins."""
        if self.schedule != "sequential":
            return 1
        divisors = [n for n in range(1, self.micro_batches + 1) if self.micro_batches % n == 0]
        return divisors[self.seed % len(divisors)]

    def __str__(self) -> str:
        """As an expression."""
        return repr(self)


def from_seed(seed: int) -> Spec:
    """Equal seeds make equal pipelines."""
    rng = random.Random(f"pipelines {seed}")
    transform = _weighted(rng, {name: row.weight for name, row in TRANSFORMS.items()})
    row = TRANSFORMS[transform]
    is_function = rng.random() < 0.4
    is_carried = is_function and row.takes_state and rng.random() < 0.4
    num_stages = rng.choice((1, 2, 2, 3, 3, 4, 4, 5))
    ipus = _mapping(rng, num_stages)
    weights = {name: weight for name, (_, weight) in LAYERS.items()}
    if row.is_forward:
        del weights["custom_derivative"]
    stages = tuple(_stage(rng, i, ipus, is_function, weights) for i in range(num_stages))
    kinds = rng.sample(("tokens", "labels", "key"), rng.choice((0, 0, 1, 2, 3)))
    return Spec(
        seed=seed,
        shape=_shape(rng),
        stages=stages,
        micro_batches=rng.choice((1, 2, 3, 3, 4, 5, 6, 7, 9)),
        inputs=tuple(sorted(kinds)),
        schedule=rng.choice(SCHEDULES),
        reduction=rng.choice(REDUCTIONS),
        outputs=_outputs(rng, row),
        accumulate=rng.choice((None, None, "float32", "by parameter")),
        remat=None if is_function else rng.choice((None, None, True, False, "dots_saveable")),
        is_function=is_function,
        is_carried=is_carried,
        transform=transform,
    )


def _outputs(rng: random.Random, row: Transform) -> tuple[str, ...]:
    """Of the loss, x and the auxiliary loss; () if the loss alone is returned."""
    if not row.takes_outputs or rng.random() < 0.5:
        return ()
    if row.is_derived:
        return (rng.choice(REDUCTIONS), rng.choice(OUTPUTS), rng.choice(OUTPUTS))
    if rng.random() < 0.3:
        return ("all",) * 3
    return tuple(rng.choice(OUTPUTS) for _ in range(3))


def _weighted(rng: random.Random, weights: dict[str, float]) -> Any:
    return rng.choices(list(weights), list(weights.values()))[0]


def _shape(rng: random.Random) -> Shape:
    dtype = rng.choice(("float32",) * 5 + ("float16", "float16", "bfloat16"))
    width = rng.choice((2, 4, 4, 8, 8, 12))
    return Shape(rng.choice((1, 2, 3, 4)), rng.choice((1, 2, 3, 5)), width, dtype)


def _mapping(rng: random.Random, num_stages: int) -> list[int]:
    """Each stage on an IPU of its own, all on a few in any order, or back and forth."""
    kind = rng.choice(("in order", "in order", "any", "any", "few", "snake", "one"))
    if kind == "any":
        return rng.sample(range(NUM_IPUS), num_stages)
    if kind == "few":
        few = rng.sample(range(NUM_IPUS), rng.choice((2, 2, 3)))
        return [rng.choice(few) for _ in range(num_stages)]
    if kind == "snake":
        half = (num_stages + 1) // 2
        return [min(i, num_stages - 1 - i) % half for i in range(num_stages)]
    return [0] * num_stages if kind == "one" else list(range(num_stages))


def _stage(
    rng: random.Random, index: int, ipus: list[int], is_function: bool, weights: dict[str, float]
) -> Stage:
    beside: tuple[Layer, ...] = ()
    if not is_function and index + 1 < len(ipus) and rng.random() < 0.12:
        beside = _layers(rng, weights)
    return Stage(
        layers=_layers(rng, weights),
        ipu=ipus[index],
        beside=beside,
        beside_ipu=rng.randrange(NUM_IPUS),
        remat=rng.choice((None, None, None, True, False, "dots_saveable")),
        is_frozen=rng.random() < 0.08,
        skip_from=rng.randrange(index) if index and rng.random() < 0.25 else None,
        is_tied=is_function and rng.random() < 0.3,
    )


def _layers(rng: random.Random, weights: dict[str, float]) -> tuple[Layer, ...]:
    number = rng.choice((0, 1, 1, 1, 2, 2, 3))
    return tuple(Layer(_weighted(rng, weights), rng.randrange(2**31)) for _ in range(number))
