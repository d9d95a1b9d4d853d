"""Random programs as people write them: some of each kind in every run of the tests."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from ipujax.config.program import mechanisms
from ipujax.verification.oracles import Oracle
from tests.fuzz import chunks
from tests.fuzz.programs import compare, second_opinion
from tests.fuzz.programs.program import Program, from_seed
from tests.fuzz.programs.shrink import shrunk
from tests.fuzz.programs.writer import OPS

COUNTS = {"programs": 250, "gradients": 120}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[dict]]:
    """The first programs of `make fuzz`, each also with the engine's mechanisms switched off."""
    parts = [(*p, kind) for kind, count in COUNTS.items() for p in chunks.chunks(0, count, 100)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda part: chunks.run_chunk(*part, "cpu"), parts))
    found: dict[str, list[dict]] = {kind: [] for kind in COUNTS}
    for (_, _, kind), some in zip(parts, done, strict=True):
        found[kind] += some
    return found


@pytest.fixture(scope="module")
def pairs(outcomes: dict[str, list[dict]]) -> Counter[tuple[str, str, str]]:
    """How often a producer's value was given to a consumer in some control flow."""
    found: Counter[tuple[str, str, str]] = Counter()
    for outcome in (*outcomes["programs"], *outcomes["gradients"]):
        for producer, consumer, context, number in outcome["pairs"]:
            found[producer, consumer, context] += number
    return found


@pytest.mark.parametrize("kind", COUNTS)
def test_programs_by_seed(outcomes: dict[str, list[dict]], kind: str):
    assert [o["seed"] for o in outcomes[kind]] == list(range(COUNTS[kind]))
    assert {o["seed"]: o["differences"] for o in outcomes[kind] if o["differences"]} == {}


#: Where values come from that have fewer elements in memory than in their shape.
BROADCASTS = ("full", "broadcast_to", "broadcast_scalar", "expand_dims", "outer", "where", "repeat")
VIEWS = ("slice_", "reverse", "transpose", "reshape", "pick_index", "dynamic_slice", "roll")
SCALARS = ("total", "extreme", "pick_index")
CONSUMERS = (
    *("arithmetic", "unary", "smooth", "where", "compare", "cast"),
    *("total", "extreme", "cumulative", "rows", "matmul", "sort"),
    *("concatenate", "stack", "at", "scatter", "gather", "dynamic_update_slice", "slice_"),
    *("scan", "scan.stacked", "map.stacked", "result", "loss"),
)
#: The forms of what was silently wrong: (producer, consumer, the innermost control flow).
ONCE_WRONG = (
    ("total", "scan.carry", "scan"),  # its gradient stacks a broadcast scalar
    ("broadcast_to", "scan.stacked", "scan"),
    ("full", "scan.stacked", "scan"),
    ("broadcast_to", "map.stacked", "map"),
    ("pick_index", "fori.carry", "fori"),
)


def test_every_producer_meets_every_consumer(pairs: Counter[tuple[str, str, str]]):
    met: Counter[tuple[str, str]] = Counter()
    inside: Counter[tuple[str, str, str]] = Counter()
    for (producer, consumer, context), number in pairs.items():
        met[producer, consumer] += number
        inside[producer, consumer, context.split("/")[-1]] += number
    for producers in (BROADCASTS, VIEWS, SCALARS):
        for consumer in CONSUMERS:
            assert sum(met[producer, consumer] for producer in producers), consumer
    assert [form for form in ONCE_WRONG if not inside[form]] == []


CONTEXTS = ("scan", "map", "fori", "while", "cond", "switch", "vmap", "call", "grad", "gradient")


@pytest.mark.parametrize("context", ["", *CONTEXTS])
def test_ops_are_drawn_everywhere(pairs: Counter[tuple[str, str, str]], context: str):
    """Most ops inside of each kind of control flow, and all of them somewhere."""
    inside = {pair[1] for pair in pairs if context in pair[2].split("/")}
    found = inside if context else {pair[1] for pair in pairs}
    consuming = set(OPS) - {"full", "arange", "eye", "constant", "where_constants"}
    missing = consuming - found
    assert len(missing) <= (len(consuming) / 2 if context else 0), missing


def test_what_is_written_is_accepted(outcomes: dict[str, list[dict]]):
    """JAX refuses few lines, so that errors of the generator do not hide a class of programs."""
    every = [*outcomes["programs"], *outcomes["gradients"]]
    refused = sum((Counter(o["rejected"]) for o in every), Counter())
    assert refused.total() < 0.01 * sum(o["lines"] for o in every), refused.most_common(5)
    assert sum("jax" in o["refused"] for o in every) < 0.01 * len(every)


def test_equal_seeds_make_equal_programs():
    one, again = from_seed(3), from_seed(3)
    assert one.source == again.source
    assert one.source != from_seed(4).source
    assert [a.tobytes() for a in one.arguments] == [a.tobytes() for a in again.arguments]


def test_finished_chunks_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run: list[int] = []

    def run_chunk(first: int, count: int, kind: str, how: str) -> list[dict]:
        run.append(first)
        return [{"seed": first, "differences": [kind], "refused": {}, "pairs": []}]

    monkeypatch.setattr(chunks, "run_chunk", run_chunk)
    for first in (0, 10, 0):
        log = chunks.Log(tmp_path / "log", "programs", "cpu")
        assert log.outcomes((first, 10)) == [
            {"seed": first, "differences": ["programs"], "refused": {}}
        ]
    assert run == [0, 10]
    chunks.Log(tmp_path / "log", "gradients", "cpu").outcomes((0, 10))
    assert run == [0, 10, 0]


def test_a_script_runs_by_itself(capsys: pytest.CaptureFixture[str]):
    with jax.default_device(jax.devices("cpu")[0]):
        exec(replace(from_seed(5), donated=()).script(), {})
    assert "Array(" in capsys.readouterr().out


def test_a_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch):
    program = from_seed(5)
    right = compare.on_ipu()(program.lowered[0], program.arguments)
    wrong = [np.logical_not(a) if a.dtype == bool else a + a.dtype.type(1) for a in right]
    interpreter = Oracle("interpreter")
    monkeypatch.setattr(compare, "on_ipu", lambda without="": lambda code, a: wrong)
    assert compare.compare(program, (), interpreter.run).differences
    switched = lambda without="": lambda code, a: wrong if without else right  # noqa: E731
    monkeypatch.setattr(compare, "on_ipu", switched)
    (difference, *_) = compare.compare(program, mechanisms()[:1], interpreter.run).differences
    assert difference.startswith("without loops: result 0")
    interpreter.close()


LONG = """def program(a0, a1):
    v1 = a0 + 1
    def body(s, x):
        v2 = x * 2
        v3 = jnp.sort(v2)
        return s + v3.sum(), v3
    v4, v5 = lax.scan(body, 0.0, v1)
    v6 = v5 @ a1
    return (v4, v6, a1)
"""


def test_what_fails_is_made_small():
    """Only the sort stays, and the loop around it."""
    shapes = {
        "a0": (4, 3),
        "a1": (3, 3),
        "v1": (4, 3),
        "v2": (3,),
        "v3": (3,),
        "v4": (),
        "v5": (4, 3),
    }
    types = {name: (shape, "float32") for name, shape in {**shapes, "v6": (4, 3)}.items()}
    arguments = [np.ones(shapes[name], np.float32) for name in ("a0", "a1")]
    program = Program(0, LONG, arguments, [True] * 3, donated=(1,), types=types)
    small = shrunk(program, lambda p: "stablehlo.sort" in p.lowered[1])
    assert "sort" in small.source
    assert len(small.exact) == 1
    assert not small.donated
    assert "@" not in small.source
    assert "+ 1" not in small.source


def test_the_second_opinion_computes_the_same_wider():
    program = from_seed(5)
    ours = compare.on_ipu()(program.lowered[0], program.arguments)
    theirs = second_opinion.in_float64(program.lowered[1], program.arguments)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_bit_patterns_are_widened():
    text = 'dense<[0x7F800000, 1.5]> : tensor<2xf32> dense<"0x003C0040"> : tensor<2xf16>'
    wide = second_opinion.widened(text)
    assert wide.startswith("dense<[0x7FF0000000000000, 1.5]> : tensor<2xf64>")
    assert np.frombuffer(bytes.fromhex(wide.split('"0x')[1][:32])).tolist() == [1.0, 2.0]


def test_random_bits_have_a_wide_form():
    """The bits make a number of the narrow type, and that is widened."""
    draw = jax.jit(lambda key: jax.random.uniform(key, (64,)))
    key = jax.random.PRNGKey(5)
    (wide,) = second_opinion.in_float64(draw.lower(key).as_text(), [np.asarray(key)])
    assert wide.dtype == np.float64
    np.testing.assert_array_equal(wide, draw(key))
