"""The rules of collectives: each op, groups and bodies of all kinds, against NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import ml_dtypes
import numpy as np
import pytest

from ipujax import jax_compat
from ipujax.compiler.reader import read_program
from ipujax.compiler.rules import collectives
from ipujax.compiler.rules.registry import RULES
from tests.compiler.rules.local_program import NUM_DEVICES, compiled, module_of, run
from tests.compiler.rules.test_gate import COLLECTIVES

Arrays = list[np.ndarray]
Groups = list[list[int]]

ALL: Groups = [[0, 1, 2, 3]]
CONSECUTIVE: Groups = [[0, 1], [2, 3]]
ORTHOGONAL: Groups = [[0, 2], [1, 3]]
MIXED: Groups = [[3, 0], [1, 2]]
GROUPS = {"all": ALL, "consecutive": CONSECUTIVE, "orthogonal": ORTHOGONAL, "mixed": MIXED}
GROUP_CASES = pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)

DTYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i32": np.int32,
    "i8": np.int8,
    "ui16": np.uint16,
    "i1": np.bool_,
}
OPERATORS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add,
    "multiply": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def arrays_of(dtype: str, shape: Sequence[int], seed: int = 0) -> Arrays:
    """One array for each device; sums of floats are exact."""
    random = np.random.default_rng(seed)
    numbers = random.integers(0 if dtype in ("ui16", "i1") else -9, 10, (NUM_DEVICES, *shape))
    if dtype == "i1":
        numbers = numbers % 2
    return list(numbers.astype(DTYPES[dtype]))


def kind(array: np.ndarray, dtype: str) -> str:
    return "x".join(map(str, (*array.shape, dtype)))


def attributes_of(groups: Groups | None, channel: int = 1, flat: bool = True) -> str:
    """Of a collective: its groups, a channel, and whether ids are those of all devices."""
    rows = [[*g, *[-1] * (max(map(len, groups)) - len(g))] for g in groups] if groups else []
    size = f"{len(rows)}x{len(rows[0])}" if rows else "0x0"
    text = f"replica_groups = dense<{rows if rows else ''}> : tensor<{size}xi64>"
    if channel:
        text += f", channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 1>"
    return text + (", use_global_device_ids" if flat else "")


def body_of(op: str, dtype: str) -> str:
    return (
        f"({{ ^bb0(%x: tensor<{dtype}>, %y: tensor<{dtype}>):\n"
        f"  %z = stablehlo.{op} %x, %y : tensor<{dtype}>\n"
        f"  stablehlo.return %z : tensor<{dtype}> }})"
    )


def reducing(
    name: str, attributes: str, body: str, taken: Sequence[str], given: Sequence[str]
) -> str:
    """A module of one op with a body."""
    takes = ", ".join(f"%{i}" for i in range(len(taken)))
    gives = ", ".join(f"%r{i}" for i in range(len(given)))
    types = ", ".join(f"tensor<{t}>" for t in taken), ", ".join(f"tensor<{t}>" for t in given)
    lines = [
        f'{gives} = "stablehlo.{name}"({takes}) <{{{attributes}}}> {body}'
        f" : ({types[0]}) -> ({types[1]})",
        f"return {gives} : {types[1]}",
    ]
    return module_of(taken, given, "\n".join(lines))


def moving(name: str, attributes: str, taken: str, given: str) -> str:
    return reducing(name, attributes, "", [taken], [given])


def combined(op: str, arrays: Arrays, group: Sequence[int]) -> np.ndarray:
    """In the members' order; small floats are rounded once, as their sums are exact."""
    members = [arrays[i] for i in group]
    if op == "add" and arrays[0].dtype == np.bool_:
        op = "or"
    return functools.reduce(OPERATORS[op], members)


def group_with(groups: Groups, device: int) -> list[int]:
    return next(group for group in groups if device in group)


def check(got: Arrays, want: Callable[[int], np.ndarray]) -> None:
    for device, array in enumerate(got):
        expected = want(device)
        assert array.dtype == expected.dtype
        np.testing.assert_array_equal(array, expected, err_msg=f"on device {device}")


# Reductions --------------------------------------------------------------------------------------


def meant(op: str, dtype: str) -> bool:
    floating = dtype in ("f32", "f16", "bf16")
    if op in ("and", "or", "xor"):
        return not floating
    return dtype != "i1" or op != "multiply"


@GROUP_CASES
@pytest.mark.parametrize(
    ("op", "dtype"), [(op, d) for op in OPERATORS for d in DTYPES if meant(op, d)]
)
def test_all_reduce(op: str, dtype: str, groups: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = arrays_of(dtype, (3, 5))
    shape = kind(arrays[0], dtype)
    text = reducing("all_reduce", attributes_of(groups), body_of(op, dtype), [shape], [shape])
    (got,) = run(text, [arrays], monkeypatch)
    check(got, lambda device: combined(op, arrays, group_with(groups, device)))


@GROUP_CASES
@pytest.mark.parametrize("op", ["add", "xor"])
@pytest.mark.parametrize("dim", [0, 1])
def test_reduce_scatter(op: str, dim: int, groups: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = arrays_of("i32", (4, 8, 3))
    size = len(groups[0])
    small = np.split(arrays[0], size, dim)[0]
    attributes = f"{attributes_of(groups)}, scatter_dimension = {dim} : i64"
    shapes = [kind(arrays[0], "i32")], [kind(small, "i32")]
    text = reducing("reduce_scatter", attributes, body_of(op, "i32"), *shapes)
    (got,) = run(text, [arrays], monkeypatch)

    def want(device: int) -> np.ndarray:
        group = group_with(groups, device)
        return np.split(combined(op, arrays, group), size, dim)[group.index(device)]

    check(got, want)


def test_bodies_of_several_ops_combine_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """x + 2 y depends on the order of the members; also with more arrays than one map takes."""
    monkeypatch.setattr(collectives, "_ARRAYS_PER_MAP", 2)
    arrays = arrays_of("f32", (7,))
    body = (
        "({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
        "%c = stablehlo.constant dense<2.0> : tensor<f32>\n"
        "%p = stablehlo.multiply %c, %y : tensor<f32>\n"
        "%s = stablehlo.add %x, %p : tensor<f32>\n"
        "stablehlo.return %s : tensor<f32> })"
    )
    text = reducing("all_reduce", attributes_of([[2, 0, 3, 1]]), body, ["7xf32"], ["7xf32"])
    (got,) = run(text, [arrays], monkeypatch)
    ordered = [arrays[i] for i in (2, 0, 3, 1)]
    check(got, lambda device: functools.reduce(lambda x, y: x + 2 * y, ordered))


def test_several_arrays_in_one_op(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = arrays_of("f32", (5,)), arrays_of("f32", (2, 3), seed=1)
    shapes = ["5xf32", "2x3xf32"]
    text = reducing("all_reduce", attributes_of(CONSECUTIVE), body_of("add", "f32"), shapes, shapes)
    for got, arrays in zip(run(text, [a, b], monkeypatch), (a, b), strict=True):
        check(got, lambda d, arrays=arrays: combined("add", arrays, group_with(CONSECUTIVE, d)))


def test_groups_of_several_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays, groups = arrays_of("f32", (5,)), [[0, 2, 3], [1]]
    text = reducing(
        "all_reduce", attributes_of(groups), body_of("add", "f32"), ["5xf32"], ["5xf32"]
    )
    (got,) = run(text, [arrays], monkeypatch)
    check(got, lambda device: combined("add", arrays, group_with(groups, device)))


@pytest.mark.parametrize(
    ("attributes", "groups"),
    [
        (attributes_of(None, flat=False), ALL),
        (attributes_of([[0]], channel=1, flat=False), ALL),
        (attributes_of([[0]], channel=0, flat=False), [[0], [1], [2], [3]]),
    ],
    ids=["no_groups", "all_partitions", "each_partition"],
)
def test_what_groups_name(attributes: str, groups: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = arrays_of("f32", (5,))
    text = reducing("all_reduce", attributes, body_of("add", "f32"), ["5xf32"], ["5xf32"])
    (got,) = run(text, [arrays], monkeypatch)
    check(got, lambda device: combined("add", arrays, group_with(groups, device)))


@pytest.mark.parametrize("dtype", ["i64", "f64"])
def test_emulated_64_bits(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPUJAX_X64", "emulate")
    numbers = np.random.default_rng(0).integers(-(2**40), 2**40, (NUM_DEVICES, 5))
    arrays = list(numbers.astype({"i64": np.int64, "f64": np.float64}[dtype]))
    shapes = [f"5x{dtype}"]
    text = reducing("all_reduce", attributes_of(MIXED), body_of("add", dtype), shapes, shapes)
    with jax.enable_x64(True):
        (got,) = run(text, [arrays], monkeypatch)
    check(got, lambda device: combined("add", arrays, group_with(MIXED, device)))


def test_groups_of_one_leave_no_op() -> None:
    attributes = attributes_of([[0], [1], [2], [3]])
    text = reducing("all_reduce", attributes, body_of("add", "f32"), ["5xf32"], ["5xf32"])
    program = read_program(jax_compat.parse_module(text), "f", RULES.__contains__, NUM_DEVICES)
    assert program.main.ops == []
    assert program.main.results == program.main.args


def test_complex_numbers_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [(a + 1j * a[::-1]).astype(np.complex64) for a in arrays_of("f32", (6,))]
    shapes = ["6xcomplex<f32>"]
    body = body_of("add", "complex<f32>")
    text = reducing("all_reduce", attributes_of(ORTHOGONAL), body, shapes, shapes)
    (got,) = run(text, [arrays], monkeypatch)
    check(got, lambda device: combined("add", arrays, group_with(ORTHOGONAL, device)))
    text = text.replace("stablehlo.add", "stablehlo.multiply")
    with pytest.raises(Exception, match="collectives can only add complex numbers"):
        compiled(text, monkeypatch)


# Moves -------------------------------------------------------------------------------------------


@GROUP_CASES
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_all_gather(dim: int, groups: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = arrays_of("f16", (2, 3, 4))
    whole = np.concatenate([arrays[0]] * len(groups[0]), dim)
    attributes = f"{attributes_of(groups)}, all_gather_dim = {dim} : i64"
    text = moving("all_gather", attributes, kind(arrays[0], "f16"), kind(whole, "f16"))
    (got,) = run(text, [arrays], monkeypatch)
    check(got, lambda d: np.concatenate([arrays[i] for i in group_with(groups, d)], dim))


@GROUP_CASES
@pytest.mark.parametrize(("split", "concat"), [(0, 0), (0, 1), (1, 0), (2, 1)])
def test_all_to_all(
    split: int, concat: int, groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays, size = arrays_of("i8", (4, 8, 12)), len(groups[0])
    parts = [np.split(array, size, split) for array in arrays]
    attributes = (
        f"{attributes_of(groups, flat=False)}, split_dimension = {split} : i64, "
        f"concat_dimension = {concat} : i64, split_count = {size} : i64"
    )
    whole = np.concatenate([parts[0][0]] * size, concat)
    text = moving("all_to_all", attributes, kind(arrays[0], "i8"), kind(whole, "i8"))
    (got,) = run(text, [arrays], monkeypatch)

    def want(device: int) -> np.ndarray:
        group = group_with(groups, device)
        return np.concatenate([parts[i][group.index(device)] for i in group], concat)

    check(got, want)


@pytest.mark.parametrize(
    "pairs", [[[0, 1], [1, 2], [2, 3], [3, 0]], [[0, 0], [1, 3]]], ids=["ring", "part"]
)
def test_collective_permute(pairs: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = arrays_of("bf16", (3, 4))
    attributes = (
        f"source_target_pairs = dense<{pairs}> : tensor<{len(pairs)}x2xi64>, "
        "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
    )
    text = moving("collective_permute", attributes, "3x4xbf16", "3x4xbf16")
    (got,) = run(text, [arrays], monkeypatch)
    sources = {target: source for source, target in pairs}
    zeros = np.zeros_like(arrays[0])
    check(got, lambda d: arrays[sources[d]] if d in sources else zeros)


def test_collective_broadcast(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = arrays_of("i1", (5,))
    text = moving("collective_broadcast", attributes_of([[2, 0, 1]], flat=False), "5xi1", "5xi1")
    (got,) = run(text, [arrays], monkeypatch)
    check(got, lambda device: arrays[2] if device != 3 else np.zeros_like(arrays[0]))


def test_cross_replica_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = arrays_of("f32", (5,))
    attributes = "replica_groups = dense<[[0, 3], [1, 2]]> : tensor<2x2xi64>"
    text = moving("cross-replica-sum", attributes, "5xf32", "5xf32")
    (got,) = run(text, [arrays], monkeypatch)
    check(got, lambda device: combined("add", arrays, group_with(MIXED, device)))


@pytest.mark.parametrize("name", ["partition_id", "replica_id"])
def test_device_ids(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = module_of(
        [], ["ui32"], f"%r = stablehlo.{name} : tensor<ui32>\nreturn %r : tensor<ui32>"
    )
    (got,) = run(text, [], monkeypatch)
    check(got, lambda device: np.array(device, np.uint32))


# Refusals and costs ------------------------------------------------------------------------------


def test_groups_that_do_not_divide_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    attributes = attributes_of([[0, 1, 2], [3]])
    body = body_of("xor", "i32")
    with pytest.raises(Exception, match="needs groups of one size for a custom reduction"):
        compiled(reducing("all_reduce", attributes, body, ["5xi32"], ["5xi32"]), monkeypatch)


def test_devices_that_are_not_there_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    attributes = attributes_of([[0, 1], [2, 3], [4, 5]])
    text = reducing("all_reduce", attributes, body_of("add", "f32"), ["5xf32"], ["5xf32"])
    with pytest.raises(Exception, match="name each of the 4 replicas once"):
        compiled(text, monkeypatch)


def test_each_rule_is_run_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert {name for name in COLLECTIVES if f'"{name}"' not in text} == set()
