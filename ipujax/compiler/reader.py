"""MLIR module -> the compiler's program: the first half of stage 3.

Reads each op once. Calls, and composites without their own rule, are inlined; ops that only rename
values (barriers, shardings, collectives over one device) are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from ipujax import jax_compat
from ipujax.annotations import placement
from ipujax.compiler.attributes import Attributes
from ipujax.compiler.composites import is_op, name_of
from ipujax.compiler.dtypes import DTYPES, TOKEN
from ipujax.compiler.elements import complex_elements, elements
from ipujax.compiler.ir import (
    NO_SOURCE,
    Block,
    Op,
    Program,
    Shape,
    Source,
    Value,
    Writer,
    number,
)
from ipujax.compiler.ir.traits import TRAITS
from ipujax.compiler.modules import functions_of, main_of
from ipujax.compiler.old_ops import DYNAMIC, DYNAMIC_REASON, OLD_OPS, STATIC, Definition
from ipujax.compiler.signature import (
    read_parameters,
    read_result_layouts,
    read_result_memories,
    read_result_names,
)
from ipujax.compiler.sources import Sources
from ipujax.errors import InvalidProgramError, RankError, UnsupportedOpError, too_deep

#: Ops whose results are their operands.
RENAMES = frozenset({"sdy.sharding_constraint", "sdy.reshard", "sdy.propagation_barrier"})
SKIPPED = frozenset({"sdy.mesh", "sdy.sharding_group"})
#: Custom calls with which JAX annotated programs for the partitioner before Shardy.
OLD_ANNOTATIONS = frozenset({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"})
TERMINATORS = frozenset({"stablehlo.return", "func.return", "sdy.return"})
DEVICE_IDS = frozenset({"stablehlo.partition_id", "stablehlo.replica_id"})

#: 64-bit state of a random generator is two 32-bit words to an IPU (new last dimension).
WORD_PAIR_OPS = frozenset({"stablehlo.bitcast_convert", "stablehlo.rng_bit_generator"})

#: MLIR values -> values; a tuple of the program is a list of its elements.
Environment = dict[Any, Any]
Handler = Callable[[Any, Environment, Block], object]

#: NumPy's limit for an array, since results become NumPy arrays.
MAX_DIMENSIONS = 64

#: The most nested loops and branches; the engine's threads have stack for many times this number.
MAX_REGIONS = 1000


class NeedsRefinement(Exception):  # noqa: N818 (not an error: the caller refines and reads again)
    """The module has dynamic shapes; `found` is the first op with one."""

    def __init__(self, found: str, line: str):
        super().__init__(found)
        self.found, self.line = found, line


class Reader:
    """Reads one module. `has_rule` says which composites stay ops.

    `num_devices` devices run the program, each with the shapes of the module.
    """

    def __init__(
        self, module: Any, name: str, has_rule: Callable[[str], bool], num_devices: int = 1
    ):
        self._name = name
        self._num_devices = num_devices
        self._has_rule = has_rule
        self._main = main_of(module)
        self._functions = functions_of(module)
        self._attributes = Attributes()
        self._sources = Sources()
        self._types: dict[Any, tuple[Shape, str]] = {}
        self._calls_open: list[str] = []
        self._num_regions_open = 0
        self._call_sources: list[Source] = [NO_SOURCE]
        self._special = self._make_special()

    def _make_special(self) -> dict[str, Handler]:
        special: dict[str, Handler] = {
            "func.call": self._read_call,
            "stablehlo.composite": self._read_composite,
            "stablehlo.constant": self._read_constant,
            "stablehlo.custom_call": self._read_custom_call,
            "stablehlo.rng": self._read_rng,
            "stablehlo.tuple": self._read_tuple,
            "stablehlo.get_tuple_element": self._read_tuple_element,
            "sdy.manual_computation": self._read_manual,
        }
        for name, (_, definition) in OLD_OPS.items():
            special[f"stablehlo.{name}"] = partial(self._read_as_defined, definition)
        special.update({f"stablehlo.{name}": self._read_dynamic for name in DYNAMIC})
        special.update(dict.fromkeys(RENAMES, self._read_rename))
        special.update(dict.fromkeys(SKIPPED, lambda op, env, block: None))
        special.update(dict.fromkeys(TERMINATORS, self._read_terminator))
        collectives = [f"stablehlo.{name}" for name, row in TRAITS.items() if row.collective]
        special.update(dict.fromkeys(collectives, self._read_collective))
        special["stablehlo.collective_permute"] = self._read_collective_permute
        if self._num_devices == 1:
            special.update(dict.fromkeys(DEVICE_IDS, self._read_device_id))
        return special

    def read(self) -> Program:
        """The program of `main`, with the dtypes it was written in."""
        entry = self._main.regions[0].blocks[0]
        env: Environment = {}
        block = Block(self._read_arguments(entry, env))
        self._read_block(entry, env, block)
        result_memories = read_result_memories(self._main, block)
        return Program(
            name=self._name,
            main=block,
            parameters=read_parameters(self._main, block, result_memories),
            result_names=read_result_names(self._main, len(block.results)),
            result_memories=result_memories,
            result_layouts=read_result_layouts(self._main, block),
        )

    # Ops -----------------------------------------------------------------------------------------

    def _read_arguments(self, mlir_block: Any, env: Environment) -> list[Value]:
        for argument in mlir_block.arguments:
            shape, dtype = self._type(argument.type)
            _check_rank(f"argument {argument.arg_number}", shape)
            env[argument] = Value(shape, dtype)
        return [env[argument] for argument in mlir_block.arguments]

    def _read_block(self, mlir_block: Any, env: Environment, block: Block) -> None:
        special = self._special
        for op in mlir_block.operations:
            operation = op.operation
            name = operation.name
            handler = special.get(name)
            if handler is not None:
                handler(operation, env, block)
            else:
                self._read_op(operation, name, env, block)

    def _read_op(self, operation: Any, name: str, env: Environment, block: Block) -> Op:
        op = Op(
            name.removeprefix("stablehlo."),
            [env[value] for value in operation.operands],
            self._attributes.of(operation),
            self._source(operation),
        )
        for result in operation.results:
            shape, dtype = self._type(result.type)
            _check_rank(name, shape, op.source.line)
            if dtype == "ui64" and name in WORD_PAIR_OPS and _is_state(result, operation):
                shape, dtype = (*shape, 2), "ui32"
            env[result] = op.add_result(shape, dtype)
        for region in operation.regions:
            op.regions.append(self._read_region(region, env))
        block.ops.append(op)
        return op

    def _source(self, operation: Any) -> Source:
        return self._sources.of(operation, self._call_sources[-1])

    def _read_as_defined(
        self, definition: Definition, operation: Any, env: Environment, block: Block
    ) -> bool:
        """Reads the op's definition in its place; returns whether it applies to this op."""
        op = self._read_op(operation, operation.name, env, Block())
        results = definition(Writer(block.ops, op.source), op)
        if results is None:
            return False
        env.update(zip(operation.results, results, strict=True))
        return True

    def _read_dynamic(self, operation: Any, env: Environment, block: Block) -> None:
        name = operation.name.removeprefix("stablehlo.")
        with suppress(NeedsRefinement):
            if name in STATIC and self._read_as_defined(STATIC[name], operation, env, block):
                return
        raise NeedsRefinement(name, self._source(operation).line)

    def _read_rng(self, operation: Any, env: Environment, block: Block) -> None:
        """Drops the last operand, the shape, which the result has too."""
        op = self._read_op(operation, "stablehlo.rng", env, block)
        op.operands = op.operands[:2]

    def _read_tuple(self, operation: Any, env: Environment, block: Block) -> None:
        env[operation.results[0]] = [env[value] for value in operation.operands]

    def _read_tuple_element(self, operation: Any, env: Environment, block: Block) -> None:
        index = operation.attributes["index"].value
        env[operation.results[0]] = env[operation.operands[0]][index]

    def _read_region(self, region: Any, env: Environment) -> Block:
        if not len(region.blocks):
            return Block()
        if self._num_regions_open == MAX_REGIONS:
            raise too_deep(f"more than {MAX_REGIONS} loops and branches inside each other")
        self._num_regions_open += 1
        mlir_block = region.blocks[0]
        inner = Block(self._read_arguments(mlir_block, env))
        self._read_block(mlir_block, env, inner)
        self._num_regions_open -= 1
        return inner

    def _read_terminator(self, operation: Any, env: Environment, block: Block) -> None:
        block.results = [env[value] for value in operation.operands]

    def _read_rename(self, operation: Any, env: Environment, block: Block) -> None:
        for result, operand in zip(operation.results, operation.operands, strict=True):
            env[result] = env[operand]

    def _read_collective(self, operation: Any, env: Environment, block: Block) -> None:
        """If each device is its own group, the results are the operands."""
        attributes, alone = operation.attributes, self._num_devices == 1
        if not alone and "replica_groups" in attributes:
            alone = np.asarray(attributes["replica_groups"]).shape == (self._num_devices, 1)
        if alone:
            self._read_rename(operation, env, block)
        else:
            self._read_op(operation, operation.name, env, block)

    def _read_collective_permute(self, operation: Any, env: Environment, block: Block) -> None:
        """A single device sends to itself, or to no device: then it receives zeros."""
        if self._num_devices > 1:
            self._read_op(operation, operation.name, env, block)
            return
        if np.asarray(operation.attributes["source_target_pairs"]).size:
            self._read_rename(operation, env, block)
            return
        for result in operation.results:
            shape, dtype = self._type(result.type)
            if dtype not in DTYPES:
                self._read_op(operation, operation.name, env, block)
                return
            env[result] = number(0, shape, dtype)

    def _read_device_id(self, operation: Any, env: Environment, block: Block) -> None:
        env[operation.results[0]] = number(0, (), "ui32")

    def _read_constant(self, operation: Any, env: Environment, block: Block) -> None:
        result = operation.results[0]
        shape, dtype = self._type(result.type)
        if dtype.startswith("complex"):
            const = complex_elements(operation, dtype, shape)
        else:
            const = elements(operation.attributes["value"])
        env[result] = Value(shape, dtype, const=const)

    def _read_call(self, operation: Any, env: Environment, block: Block) -> None:
        callee = operation.attributes["callee"].value
        self._inline(callee, operation, env, block)

    def _read_composite(self, operation: Any, env: Environment, block: Block) -> None:
        if is_op(operation, self._has_rule):
            op = self._read_op(operation, name_of(operation), env, block)
            op.attrs.update(op.attrs.pop("composite_attributes", {}))
        else:
            self._inline(operation.attributes["decomposition"].value, operation, env, block)

    def _read_custom_call(self, operation: Any, env: Environment, block: Block) -> None:
        target = operation.attributes["call_target_name"].value
        old = target in OLD_ANNOTATIONS or target.startswith("xla.sdy.")
        if old or target == placement.LAYOUT_CALL:
            self._read_rename(operation, env, block)
        elif target == placement.MEMORY_CALL:
            self._read_memory_call(operation, env, block)
        elif target == "ApproxTopK":
            self._read_approximate_top_k(operation, env, block)
        else:
            self._read_op(operation, "stablehlo.custom_call", env, block)

    def _read_memory_call(self, operation: Any, env: Environment, block: Block) -> None:
        frontend = operation.attributes["mhlo.frontend_attributes"]
        kind = placement.memory_of("device_put", frontend["_xla_buffer_placement"].value)
        name = "to_host" if kind == placement.HOST else "to_device"
        self._read_op(operation, name, env, block).attrs = {}

    def _read_approximate_top_k(self, operation: Any, env: Environment, block: Block) -> None:
        """A sort whose first elements are kept: exact, as on JAX's CPU backend.

        The operands are arrays to sort together, then as many values of padding.
        """
        attrs = self._attributes.of(operation)
        source = self._source(operation)
        arrays = [env[value] for value in operation.operands][: len(operation.results)]
        dimension = (attrs.get("mhlo.backend_config") or {}).get("reduction_dim")
        called = [self._functions.get(name) for name in attrs.get("called_computations", ())]
        types = [self._type(result.type) for result in operation.results]
        if len(called) != 1 or called[0] is None or not _are_firsts(types, arrays, dimension):
            raise InvalidProgramError(
                "[read] needs an ApproxTopK with one comparator and reduction_dim, whose results "
                "are its first operands, shorter in that dimension; got another one"
                f"{f' (at {source.line})' if source.line else ''}. Use jax.lax.approx_max_k."
            )
        comparator = self._read_region(called[0].regions[0], env)
        how = {"dimension": dimension, "is_stable": True}
        sort = Op("sort", arrays, how, source, [comparator])
        block.ops.append(sort)
        for array, result, (shape, dtype) in zip(arrays, operation.results, types, strict=True):
            whole = sort.add_result(array.shape, dtype)
            env[result] = Writer(block.ops, source).slice(whole, (0,) * len(shape), shape)

    def _read_manual(self, operation: Any, env: Environment, block: Block) -> None:
        """A manual computation over one device is its body."""
        body = operation.regions[0].blocks[0]
        self._splice(body, operation, env, block, scope=env)

    def _inline(self, callee: str, call: Any, env: Environment, block: Block) -> None:
        if callee in self._calls_open:
            raise InvalidProgramError(
                f"[read] needs functions that do not call themselves; got @{callee}. "
                "Write the recursion as lax.while_loop."
            )
        function = self._functions.get(callee)
        if function is None:
            raise InvalidProgramError(
                f"[read] needs @{callee}; got a module without it. Export the whole module."
            )
        self._calls_open.append(callee)
        self._call_sources.append(self._sources.of_call(call, self._call_sources[-1]))
        self._splice(function.regions[0].blocks[0], call, env, block, scope={})
        self._call_sources.pop()
        self._calls_open.pop()

    def _splice(
        self, body: Any, call: Any, env: Environment, block: Block, scope: Environment
    ) -> None:
        """Reads `body` in place of the call; `scope`: the values that the body can see."""
        for argument, operand in zip(body.arguments, call.operands, strict=True):
            scope[argument] = env[operand]
        outer_results, block.results = block.results, []
        self._read_block(body, scope, block)
        env.update(zip(call.results, block.results, strict=True))
        block.results = outer_results

    # Types ---------------------------------------------------------------------------------------

    def _type(self, mlir_type: Any) -> tuple[Shape, str]:
        known = self._types.get(mlir_type)
        if known is None:
            known = self._types[mlir_type] = self._read_type(mlir_type)
        return known

    def _read_type(self, mlir_type: Any) -> tuple[Shape, str]:
        shape = getattr(mlir_type, "shape", None)
        if shape is None:
            return (), TOKEN if "token" in str(mlir_type) else str(mlir_type)
        if any(dim < 0 for dim in shape):
            raise NeedsRefinement(f"a value of type {mlir_type}", "")
        return tuple(shape), str(mlir_type.element_type)


def _check_rank(name: str, shape: Shape, line: str = "") -> None:
    if len(shape) > MAX_DIMENSIONS:
        where = f"{name} (at {line})" if line else name
        raise RankError(
            f"[compile] needs arrays of at most {MAX_DIMENSIONS} dimensions; got {len(shape)} in "
            f"{where}. Reshape them."
        )


def _are_firsts(
    types: Sequence[tuple[Shape, str]], arrays: Sequence[Value], dimension: object
) -> bool:
    """Whether types are those of the first elements of arrays along a dimension."""

    def is_first(shape: Shape, dtype: str, array: Value) -> bool:
        rank = len(array.shape)
        if not isinstance(dimension, int) or not 0 <= dimension < rank or len(shape) != rank:
            return False
        wanted = list(array.shape)
        wanted[dimension] = min(wanted[dimension], shape[dimension])
        return shape == tuple(wanted) and dtype == array.dtype

    return len(types) == len(arrays) and all(
        is_first(*each, array) for each, array in zip(types, arrays, strict=True)
    )


def _is_state(result: Any, operation: Any) -> bool:
    """Whether the 64-bit value only goes in and out of a random generator."""
    if operation.name == "stablehlo.bitcast_convert":
        users = {"stablehlo.rng_bit_generator"}
    elif result.result_number == 0:
        users = {"stablehlo.bitcast_convert"}
    else:
        return False
    return all(use.owner.name in users for use in result.uses)


def read_program(
    module: Any, name: str, has_rule: Callable[[str], bool], num_devices: int = 1
) -> Program:
    """Reads `module` into a program; see `Reader`.

    Dynamic shapes are refined first, in place, from those of the arguments.
    Raises:
        UnsupportedOpError: a shape depends on values that are only known at run time.
    """
    try:
        return Reader(module, name, has_rule, num_devices).read()
    except NeedsRefinement:
        jax_compat.refine_shapes(module)
    try:
        return Reader(module, name, has_rule, num_devices).read()
    except NeedsRefinement as error:
        raise UnsupportedOpError([(error.found, DYNAMIC_REASON, error.line)]) from None
