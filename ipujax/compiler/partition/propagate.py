"""Runs Shardy: turns JAX's annotations into a sharding for every value and explicit reshards."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ipujax import jax_compat
from ipujax.compiler.modules import dictionaries_of, main_of, ops_named
from ipujax.compiler.partition.empty import fold_empty
from ipujax.compiler.partition.inline import inline_calls
from ipujax.compiler.partition.op_calls import name_dimensions
from ipujax.compiler.partition.same_grids import name_axes_alike
from ipujax.compiler.partition.shardings import SHARDING
from ipujax.compiler.partition.stand_ins import name_composites, name_slices
from ipujax.errors import InvalidProgramError

#: In this order, after calls are inlined. Nesting matters: wrong nesting aborts the process.
PROPAGATION = ("sdy-propagation-pipeline",)
COLLECTIVES = (
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true})",
    "func.func(sdy-reshard-to-collectives)",
)


def propagate(module: Any) -> None:
    """Gives each value a sharding, and writes ops where it changes, in place.

    Raises:
        InvalidProgramError: Shardy refuses the module.
    """
    try:
        name_axes_alike(module)
        name_composites(module)
        inline_calls(module)
        fold_empty(module)
        name_slices(module)
        name_dimensions(module)
        _reduce_between(module)
        jax_compat.run_passes(module, PROPAGATION)
        _declare_replicated(module)
        jax_compat.run_passes(module, COLLECTIVES)
    except ir.MLIRError as error:
        raise InvalidProgramError(
            f"[partition] needs shardings that Shardy can propagate; got: {error}. "
            "Check the shardings of this program's arguments and constraints."
        ) from error


def _reduce_between(module: Any) -> None:
    """Reduces values that become unreduced over other axes: Shardy would abort the process.

    %1 = sharding_constraint %0 unreduced={"y"}           before, where %0 is unreduced over "x"
    %1 = sharding_constraint %0                           after
    %2 = sharding_constraint %1 unreduced={"y"}
    """
    for operation in ops_named(main_of(module), "sdy.sharding_constraint"):
        target = sdy.TensorShardingAttr(operation.attributes["sharding"])
        have, want = (_unreduced(attr) for attr in (_sharding_of(operation.operands[0]), target))
        if have - want and want - have:
            dims = list(target.dimension_shardings)
            between = operation.clone(ip=ir.InsertionPoint(operation))
            between.attributes["sharding"] = sdy.TensorShardingAttr.get(target.mesh_or_ref, dims)
            operation.operands[0] = between.results[0]


def _declare_replicated(module: Any) -> None:
    """Adds shardings that Shardy left out to ops whose result becomes unreduced.

    Shardy writes none for loops, branches and barriers whose values are all replicated, then
    removes reshards of these values, and refuses collectives on values without a sharding.

    %1 = while(...)                                             before
    %2 = reshard %1 [{}]
    %3 = replicated_to_unreduced {"x"} %2
    %1 = while(...) {sdy.sharding = [<@mesh, [{}]>]}            after
    """
    for operation in ops_named(main_of(module), "sdy.replicated_to_unreduced"):
        maker = operation.operands[0].owner
        while not isinstance(maker, ir.Block) and maker.name == "sdy.reshard":
            maker = maker.operands[0].owner
        if isinstance(maker, ir.Block) or SHARDING in maker.attributes:
            continue
        mesh = sdy.TensorShardingAttr(operation.attributes["out_sharding"]).mesh_or_ref
        each = [_replicated(mesh, result.type) for result in maker.results]
        maker.attributes[SHARDING] = sdy.TensorShardingPerValueAttr.get(each)


def _replicated(mesh: Any, kind: Any) -> Any:
    rank = kind.rank if isinstance(kind, ir.RankedTensorType) else 0
    dims = [sdy.DimensionShardingAttr.get([], is_closed=True)] * rank
    return sdy.TensorShardingAttr.get(mesh, dims)


def _unreduced(attr: Any) -> set[str]:
    axes = sdy.TensorShardingAttr(attr).unreduced_axes if attr is not None else ()
    return {sdy.AxisRefAttr(axis).name for axis in axes}


def _sharding_of(value: Any) -> Any:
    """The sharding that JAX wrote for a value; None if it wrote none."""
    if isinstance(value.owner, ir.Block):
        operation, index = value.owner.owner.operation, value.arg_number
        given = dictionaries_of(operation, "arg_attrs")
        if given:
            return {item.name: item.attr for item in given[index]}.get(SHARDING)
        return _each_of(operation, "in_shardings", index)
    operation, index = value.owner.operation, value.result_number
    if operation.name == "sdy.sharding_constraint":
        return operation.attributes["sharding"]
    return _each_of(operation, "out_shardings", index) or _each_of(operation, SHARDING, index)


def _each_of(operation: Any, name: str, index: int) -> Any:
    """The sharding at this index in an attribute that lists shardings."""
    if name not in operation.attributes:
        return None
    return list(sdy.TensorShardingPerValueAttr(operation.attributes[name]).shardings)[index]
