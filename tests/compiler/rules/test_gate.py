"""The two-way gate: every op of the dialect has a rule or a reason, and every rule was run."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import pytest
from jaxlib.mlir.dialects import stablehlo

import ipujax.compiler.partition.rules
import ipujax.compiler.rules  # noqa: F401
from ipujax import jax_compat
from ipujax.compiler import ir
from ipujax.compiler.ir import declare
from ipujax.compiler.ir.traits import TRAITS
from ipujax.compiler.partition.localise import KINDS, localises
from ipujax.compiler.passes.activations import recognise_activations
from ipujax.compiler.passes.complex import split_complex
from ipujax.compiler.passes.narrow import narrow
from ipujax.compiler.passes.simplify import simplify
from ipujax.compiler.reader import read_program
from ipujax.compiler.rules.op_page import op_table
from ipujax.compiler.rules.registry import RULES, rule
from tests.compiler.rules.test_cases import CASES, prepared

#: Rules for programs over several IPUs of a device: tests/stages.
STAGES = {"call", "copy_to_ipu", "pipeline"}
#: Rules for values in the host's memory: tests/compiler/test_memories.py.
MEMORIES = {"host_empty", "host_reshape", "read_entry", "to_device", "to_host", "write_entry"}
#: Names that the compiler makes itself; no program has them.
FASTER = {"multiply_wide", "gelu", "gelu_erf", "gelu_erf_gradient", "gelu_gradient"}
OWN = {"fused", "bitcast", "raise_if", *FASTER, *STAGES, *MEMORIES}
#: Rules for ops that JAX makes inside larger programs only, or never: tested elsewhere.
TESTED_ELSEWHERE = {"custom_call", "create_token", "after_all", "if", "map", "rng"}
#: Rules for programs over several devices: tests/compiler/rules/test_collectives.py.
COLLECTIVES = {
    "all_gather",
    "all_reduce",
    "all_to_all",
    "collective_broadcast",
    "collective_permute",
    "cross-replica-sum",
    "partition_id",
    "reduce_scatter",
    "replica_id",
}


def dialect_ops() -> set[str]:
    classes = [getattr(stablehlo, name) for name in dir(stablehlo) if name.endswith("Op")]
    names = {c.OPERATION_NAME for c in classes if hasattr(c, "OPERATION_NAME")}
    return {name.removeprefix("stablehlo.") for name in names}


def test_each_op_of_the_dialect_has_a_row_and_no_other_has() -> None:
    assert dialect_ops() - set(TRAITS) == set()
    own = {name for name in TRAITS if not name.startswith("chlo.")} - OWN
    assert own - dialect_ops() == set()


def test_each_op_has_a_rule_or_a_reason_to_have_none() -> None:
    for name, row in TRAITS.items():
        reasons = [reason for reason in (row.refused, row.removed) if len(reason) > 10]
        assert len(reasons) + (name in RULES) == 1, name


def test_each_op_is_sharded_or_has_a_reason_not_to_be() -> None:
    """No op is replicated because its rule was forgotten."""
    for name, row in TRAITS.items():
        if not row.refused:
            is_sharded = name in KINDS or row.partition in KINDS
            assert is_sharded + (len(row.replicated) > 10) == 1, name
    kinds = {row.partition for row in TRAITS.values()}
    unused = {kind for kind in KINDS if not kind.startswith("sdy.")} - set(TRAITS) - kinds
    assert unused == set()


def test_second_row_and_second_kind_raise() -> None:
    with pytest.raises(TypeError, match="one row per op; got a second one for 'add'"):
        declare("add")
    with pytest.raises(TypeError, match="one rule per kind; got a second one for 'gather'"):
        localises("gather")(lambda localiser, operation: None)


def test_rules_need_traits() -> None:
    with pytest.raises(TypeError, match="the traits of each op with a rule; got none"):
        rule("new")(lambda builder, op: [])


def test_each_registered_op_was_run() -> None:
    """By the first run of each family of cases, or by later ones where that has not all ops."""
    missing = set(RULES) - TESTED_ELSEWHERE - COLLECTIVES - STAGES - MEMORIES
    missing -= {"fused", "raise_if"}
    families: dict[str, list[tuple[Any, Any]]] = {}
    for case in CASES:
        runs = families.setdefault(case.name.split("-")[0], [])
        runs += [(case, run) for run in case.runs]
    turns = itertools.zip_longest(*families.values())
    for case, run in filter(None, itertools.chain.from_iterable(turns)):
        if not missing:
            break
        f, args = prepared(case, run)
        lowered = jax.jit(f).trace(*args).lower(lowering_platforms=("ipu",))
        module = jax_compat.deserialize_artifact(jax_compat.serialize_artifact(lowered))
        program = read_program(module, case.name, RULES.__contains__)
        missing -= {op.name for op in ir.walk_ops(program.main)}
        program = simplify(narrow(split_complex(program)))  # makes logistic and bitcast
        recognise_activations(program)
        missing -= {op.name for op in ir.walk_ops(program.main)}
    assert missing == set()


def test_second_registration_raises() -> None:
    with pytest.raises(TypeError, match="one entry per op; got a second one for 'add'"):
        rule("add")(lambda builder, op: [])


def test_wrong_signature_raises() -> None:
    with pytest.raises(TypeError, match=r"parameters \(builder, op\)"):
        rule("tan")(lambda graph: [])


def test_op_table_names_every_op() -> None:
    table = op_table()
    for name in dialect_ops():
        assert f"`{name}`" in table
