"""StableHLO as a JAX function, so that transforms of JAX and of ipujax work on it.

Each op becomes the function of `jax.lax` that it came from, under the name scope in its location.
An op without a rule in `ops.py` is called as an exported program of one op.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.export
import numpy as np
from jax import lax

from ipujax import jax_compat
from ipujax.compiler.attributes import Attributes
from ipujax.compiler.modules import main_of
from ipujax.compiler.sources import frames_of, name_of
from ipujax.convert import sharded as sharded  # registers its rules
from ipujax.convert.call_stacks import call_from
from ipujax.convert.dtypes import cast, dtype_of
from ipujax.convert.host_calls import call_host, host_group
from ipujax.convert.ops import RULES, NoRule
from ipujax.verification.slices import function_block, lower_calls, piece

TERMINATORS = frozenset({"func.return", "sdy.return", "stablehlo.return"})
#: Ops that every part of a program may have its own copy of.
FREE = frozenset({"stablehlo.constant", "stablehlo.iota"})
#: Computes an op from its operands.
Compute = Callable[[Sequence[Any]], list[Any]]


@dataclass
class ImportedOp:
    """One op of the program, as changes see it.

    Attributes:
        name: "layer_0/dense/dot_general": the name scopes around it, and JAX's name of the op.
        operation: the op in MLIR.
        attrs: its attributes as Python values.
        dtypes: of its results.
    """

    name: str
    operation: Any
    attrs: dict[str, Any]
    dtypes: list[np.dtype[Any]]
    run_region: Callable[..., list[Any]] = field(repr=False)  #: (index, *arguments)
    value_of: Callable[[Any], Any] = field(repr=False)  #: the current array of a module's value

    @property
    def kind(self) -> str:
        return kind_of(self.operation)

    @property
    def result_dtype(self) -> np.dtype[Any]:
        """The dtype of its first result, which changes may have set."""
        return self.dtypes[0]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(result.type.shape) for result in self.operation.results]


#: change(op, operands, compute=its computation without the change) -> results.
Change = Callable[..., list[Any]]


class Importer:
    """Runs the `main` of a program op by op, with changes around each op; the first is outermost.

    Args:
        exported: the program.
        changes: the changes around each op.

    Attributes:
        on_host: names the ops that run on the host.
        result_dtypes: dtypes of the program's results.
        host_dtypes: replacements for written dtypes, for arrays on their way to and from the host.
        num_host_calls: number of host calls in the last run.
    """

    def __init__(self, exported: jax.export.Exported, changes: Sequence[Change] = ()):
        self.exported = exported
        self.module = jax_compat.module_of_exported(exported)
        self.changes = tuple(changes)
        self.on_host: Callable[[str], bool] = lambda name: False
        self.host_dtypes: Mapping[np.dtype[Any], np.dtype[Any]] = {}
        self.num_host_calls = 0
        self.result_dtypes = [np.dtype(aval.dtype) for aval in exported.out_avals]
        self._result_shardings = _result_shardings(exported)
        self._attributes = Attributes()
        with self.module.context:
            lower_calls(self.module, legalise=False)
            self.block = main_of(self.module).regions[0].blocks[0]

    def __call__(self, *args: Any) -> Any:
        """The program's result, for arguments in the structure of the exported function."""
        leaves, tree = jax.tree.flatten((args, {}))
        if tree != self.exported.in_tree:
            raise TypeError(
                f"[convert] needs arguments like {self.exported.in_tree}; got {tree}. Pass these."
            )
        self.num_host_calls = 0
        kept = [leaves[i] for i in self.exported.module_kept_var_idx]
        # Programs have 64-bit values inside, for example for random keys, even if JAX has none.
        with self.module.context, jax.enable_x64(True):
            made = zip(self._run(self.block, kept, {}), self.result_dtypes, strict=True)
            results = [cast(x, dtype) for x, dtype in made]
            for i, sharding in self._result_shardings.items():
                results[i] = lax.with_sharding_constraint(results[i], sharding)
        return jax.tree.unflatten(self.exported.out_tree, results)

    def _run(
        self, block: Any, arguments: Sequence[Any], outer: dict[Any, Any], scope: str = ""
    ) -> list[Any]:
        """Runs a block; names of a function's ops are in the scope of its call."""
        env = {**outer, **dict(zip(block.arguments, arguments, strict=True))}
        waiting: list[Any] = []  # ops that will run on the host together
        for op in block.operations:
            operation = op.operation
            if operation.name not in FREE and operation.name not in TERMINATORS:
                if self._stays(operation, scope):
                    waiting.append(operation)
                    continue
                self._on_host(block, waiting, env)
                waiting = []
            if operation.name in TERMINATORS:
                self._on_host(block, waiting, env)
                return [env[value] for value in operation.operands]
            results = self._op(operation, env, scope)
            env.update(zip(operation.results, results, strict=True))
        raise AssertionError("a block without a terminator")

    def _stays(self, operation: Any, scope: str) -> bool:
        """Whether the op runs on the host; a call does if all ops of its function do."""
        if operation.name != "func.call":
            return self.on_host(name_of_op(operation, scope))
        inner = [op.operation for op in function_block(operation).operations]
        named = scoped_name(operation, scope)
        worked = [op for op in inner if op.name not in FREE and op.name not in TERMINATORS]
        return bool(worked) and all(self._stays(op, named) for op in worked)

    def _on_host(self, block: Any, operations: Sequence[Any], env: dict[Any, Any]) -> None:
        """Computes the ops in one host call; results that other ops use are added to `env`."""
        group = host_group(block, operations)
        if group.results:
            env.update(call_host(self.exported, group, env, self.host_dtypes))
            self.num_host_calls += 1

    def _op(self, operation: Any, env: dict[Any, Any], scope: str) -> list[Any]:
        operands = [env[value] for value in operation.operands]
        if operation.name == "func.call":  # a call that no pass may inline
            called = function_block(operation)
            return self._run(called, operands, {}, scoped_name(operation, scope))

        def run_region(index: int, *arguments: Any) -> list[Any]:
            return self._run(operation.regions[index].blocks[0], arguments, env, scope)

        op = ImportedOp(
            name_of_op(operation, scope),
            operation,
            self._attributes.of(operation),
            [dtype_of(result) for result in operation.results],
            run_region,
            env.__getitem__,
        )
        compute: Compute = partial(self._compute, op, env)
        for change in reversed(self.changes):
            compute = partial(change, op, compute=compute)
        around = op.name.rpartition("/")[0]
        with jax.named_scope(around) if around else nullcontext():
            return call_from(frames_of([str(operation.location)]), partial(compute, operands))

    def _compute(self, op: ImportedOp, env: dict[Any, Any], operands: Sequence[Any]) -> list[Any]:
        rule = RULES.get(op.kind)
        if rule is not None:
            with suppress(NoRule):
                made = rule(op, *operands)
                return list(made) if isinstance(made, (tuple, list)) else [made]
        return self._as_program(op, operands, env)

    def _as_program(
        self, op: ImportedOp, operands: Sequence[Any], env: dict[Any, Any]
    ) -> list[Any]:
        """The op as an exported program of its own, in the dtypes that it has there."""
        results = list(op.operation.results)
        extracted = piece(op.operation.block, results, cut=lambda value: True)
        given = env | dict(zip(op.operation.operands, operands, strict=True))
        values = [cast(given[value], dtype_of(value)) for value in extracted.inputs]
        made = zip(op.shapes, op.dtypes, strict=True)
        shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in made]
        code = jax_compat.artifact_of(extracted.code)
        called = jax_compat.exported_like(self.exported, op.kind, code, values, shapes)
        return list(called.call(*values))


def _result_shardings(exported: jax.export.Exported) -> dict[int, Any]:
    """The result shardings that the program gives, by the result's number."""
    if exported.nr_devices == 1:
        return {}
    given = jax_compat.out_shardings_of(exported, jax_compat.mesh_of_exported(exported))
    return {
        i: jax_compat.with_automatic_axes(each) for i, each in enumerate(given) if each is not None
    }


def kind_of(operation: Any) -> str:
    """StableHLO's name of an op; for a composite, the composite's name."""
    if operation.name == "stablehlo.composite":
        return str(operation.attributes["name"].value)
    return str(operation.name).removeprefix("stablehlo.")


def scoped_name(operation: Any, scope: str) -> str:
    """JAX's whole name of an op; JAX names the ops of a function relative to it."""
    name = name_of(operation.location)
    is_whole = name.split("/", 1)[0] == scope.split("/", 1)[0]
    return name if is_whole or not scope else f"{scope}/{name}".rstrip("/")


def name_of_op(operation: Any, scope: str = "") -> str:
    """The name scopes around an op and JAX's name of it, without "jit(f)" and the like."""
    parts = scoped_name(operation, scope).split("/")
    return "/".join(part for part in parts if not part.endswith(")") or "(" not in part)
