"""One pipeline against the plain function on the IPU, other schedules, and JAX's CPU backend."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import numpy as np

from ipujax import jax_compat
from ipujax.compiler import pipelines
from tests.fuzz.check import differing
from tests.fuzz.pipelines.model import Model, Pipelined, Plain
from tests.fuzz.pipelines.spec import NUM_IPUS, SCHEDULES, Spec
from tests.fuzz.pipelines.transforms import TRANSFORMS
from tests.fuzz.programs.compare import close, explained
from tests.stages.image import Compiled

#: Every how many pipelines JAX's CPU backend runs too: it compiles longer than all else takes.
ON_CPU = 3
#: A call of the host that returns nothing; only the IPU can make it.
_WATCHED = re.compile(r"^.*custom_call @ipu_python_callback\(.* -> \(\)\n", re.MULTILINE)
#: The factor of GELU's cubic in float32, float16 and bfloat16. Its gradient is rounded once where
#: it is found, and in pieces where a stage keeps some of them from its forward pass.
_CUBE_OF_GELU = re.compile(r"dense<4\.4(71500|70830|67770)e-02>")
#: Every how many pipelines the FIFOs of the executable are compared with the schedule's.
WITH_STASH = 4


@dataclass
class Outcome:
    """The outcome of one pipeline.

    Attributes:
        differences: one line for each result that is wrong.
        refused: "pipeline": why it runs one stage at a time.
    """

    differences: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


@dataclass
class Lowered:
    """A function of (parameters, batch) in StableHLO, with its arguments."""

    function: Callable[..., Any]
    given: tuple[Any, Any]
    donates: bool = False

    @cached_property
    def arguments(self) -> list[np.ndarray]:
        return [np.asarray(leaf) for leaf in jax.tree.leaves(self.given)]

    @cached_property
    def names(self) -> list[str]:
        """Of the results."""
        paths = jax.tree_util.tree_flatten_with_path(jax.eval_shape(self.function, *self.given))[0]
        return [jax.tree_util.keystr(path) for path, _ in paths]

    @cached_property
    def lowered(self) -> Any:
        donated = (0,) if self.donates else ()
        jitted = jax.jit(self.function, keep_unused=True, donate_argnums=donated)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Some donated buffers were not usable")
            return jitted.trace(*self.given).lower(lowering_platforms=("ipu",))

    @cached_property
    def text(self) -> str:
        return str(self.lowered.compiler_ir())

    @cached_property
    def unwatched(self) -> str:
        """The same for other backends: without calls by which the host only sees values."""
        return _WATCHED.sub("", self.text)

    def run(self, platform: str, text: str = "") -> list[np.ndarray]:
        """Its results.

        Args:
            text: the program to run instead, which has the same arguments.
        """
        device = jax.devices(platform)[0]
        return jax_compat.load_program(text or self.text, device)(self.arguments)


def compared(spec: Spec) -> Outcome:
    """All comparisons of one pipeline; whatever does not run differs."""
    outcome = Outcome()
    try:
        with _reasons(outcome):
            outcome.differences += _differences(spec, outcome)
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()] or [""]
        kind = type(error).__name__
        outcome.differences.append(f"{kind}: {lines[0][:400]} ... {lines[-1][:200]}")
    return outcome


def _differences(spec: Spec, outcome: Outcome) -> Iterator[str]:
    model, row = Model(spec), TRANSFORMS[spec.transform]
    given = (model.parameters, (model.batch, model.state))
    program = Lowered(row.of(Pipelined(model)), given, spec.seed % 2 == 0)
    ours = program.run("ipu")
    if spec.serial == 1:  # else it is another program
        other = SCHEDULES[(SCHEDULES.index(spec.schedule) + 1 + spec.seed % 2) % len(SCHEDULES)]
        in_other = program.run("ipu", program.text.replace(f'"{spec.schedule}"', f'"{other}"'))
        yield from _named(program, f"not as {other}", differing_bits(ours, in_other))
    theirs = Lowered(row.of(Plain(model)), given).run("ipu")
    is_exact = has_equal_bits(spec) and not _CUBE_OF_GELU.search(program.text)
    found = differing_bits(ours, theirs) if is_exact else _beyond(program, ours, theirs)
    yield from _named(program, "not as the plain function", found)
    if spec.seed % WITH_STASH == 0:
        yield from _stash_differences(Compiled(program.lowered, NUM_IPUS))
    if spec.seed % ON_CPU == 0:
        found = _beyond(program, ours, program.run("cpu", program.unwatched))
        yield from _named(program, "not as on the CPU", found)


def has_equal_bits(spec: Spec) -> bool:
    """Whether the plain function adds the same numbers in the same order.

    Sums follow the layout of their operand: a transposed stack is copied on its way to another IPU.
    """
    tied = {stage.ipu for stage in spec.stages if stage.is_tied}
    ipus = {stage.ipu for stage in spec.stages}
    layers = {layer.name for stage in spec.stages for layer in (*stage.layers, *stage.beside)}
    moves_views = len(ipus) > 1 and "recurrent" in layers
    return TRANSFORMS[spec.transform].in_order and len(tied) < 2 and not moves_views


def _stash_differences(compiled: Compiled) -> Iterator[str]:
    """What waits, by depth and bytes; both loops of a second derivative may have some."""
    ours = sorted((fifo.depth, fifo.num_bytes) for fifo in compiled.fifos)
    wanted = sorted((fifo.depth, fifo.num_bytes) for own in compiled.expected for fifo in own)
    if ours != wanted:
        yield f"other FIFOs than the schedule's: {ours} instead of {wanted}"


@contextmanager
def _reasons(outcome: Outcome) -> Iterator[None]:
    """Notes why a pipeline runs one stage at a time."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            assert isinstance(record.args, tuple)
            outcome.refused["pipeline"] = str(record.args[-1])

    handler = Handler()
    pipelines.log.addHandler(handler)
    try:
        yield
    finally:
        pipelines.log.removeHandler(handler)


def _named(program: Lowered, what: str, found: dict[int, str]) -> Iterator[str]:
    for k, text in found.items():
        yield f"{what}: {program.names[k]}: {text}"


def differing_bits(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> dict[int, str]:
    """Any NaN is as good as another."""
    return differing([0.0] * len(ours), ours, theirs)


def _beyond(
    program: Lowered, ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]
) -> dict[int, str]:
    """What rounding does not explain: farther from float64 than the other result is."""
    found = differing([close(b) for b in theirs], ours, theirs)
    return {
        k: text
        for k, text in found.items()
        if not explained(program.unwatched, program.arguments, ours, theirs, k)
    }
