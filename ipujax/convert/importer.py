"""StableHLO as a function of JAX, so that transforms of JAX and of ipujax work on it.

Each op becomes the function of `jax.lax` that it came from, under the name scope that its location
names. What has none in `ops.py` is called as an exported program of one op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.modules import main_of
from ipujax.compiler.sources import name_of
from ipujax.convert.ops import RULES, NoRule
from ipujax.verification.slices import function_block, lower_calls, piece

TERMINATORS = frozenset({"func.return", "stablehlo.return"})
_COMPLEX = {"complex<f32>": np.complex64, "complex<f64>": np.complex128}
#: Computes an op from its operands.
Compute = Callable[[Sequence[Any]], list[Any]]


@dataclass
class ImportedOp:
    """One op of the program, as changes see it.

    Attributes:
        name: "layer_0/dense/dot_general": the name scopes around it, and JAX's name of it.
        operation: the op in MLIR.
        attrs: its attributes as Python values.
        dtypes: of its results.
    """

    name: str
    operation: Any
    attrs: dict[str, Any]
    dtypes: list[np.dtype[Any]]
    run_region: Callable[..., list[Any]] = field(repr=False)  #: (index, *arguments)
    value_of: Callable[[Any], Any] = field(repr=False)  #: what a value of the module is now

    @property
    def kind(self) -> str:
        return kind_of(self.operation)

    @property
    def result_dtype(self) -> np.dtype[Any]:
        """Of its first result, where the op says it: changes may have set another."""
        return self.dtypes[0]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(result.type.shape) for result in self.operation.results]


#: change(op, operands, compute=how it is computed without the change) -> results.
Change = Callable[..., list[Any]]


class Importer:
    """Runs the `main` of a program op by op, with changes around each op; the first is outermost.

    Args:
        exported: the program.
        changes: what is done around each op.
    """

    def __init__(self, exported: jax.export.Exported, changes: Sequence[Change] = ()):
        self.exported = exported
        self.module = jax_compat.deserialize_artifact(exported.mlir_module_serialized)
        self.changes = tuple(changes)
        self.result_dtypes = [np.dtype(aval.dtype) for aval in exported.out_avals]
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
        kept = [leaves[i] for i in self.exported.module_kept_var_idx]
        # Programs have 64-bit values inside, for random keys for one, also where JAX gives none.
        with self.module.context, jax.enable_x64(True):
            made = zip(self._run(self.block, kept, {}), self.result_dtypes, strict=True)
            results = [cast(x, dtype) for x, dtype in made]
        return jax.tree.unflatten(self.exported.out_tree, results)

    def _run(self, block: Any, arguments: Sequence[Any], outer: dict[Any, Any]) -> list[Any]:
        env = {**outer, **dict(zip(block.arguments, arguments, strict=True))}
        for op in block.operations:
            operation = op.operation
            if operation.name in TERMINATORS:
                return [env[value] for value in operation.operands]
            results = self._op(operation, env)
            env.update(zip(operation.results, results, strict=True))
        raise AssertionError("a block without a terminator")

    def _op(self, operation: Any, env: dict[Any, Any]) -> list[Any]:
        operands = [env[value] for value in operation.operands]
        if operation.name == "func.call":  # one that no pass may inline
            return self._run(function_block(operation), operands, {})

        def run_region(index: int, *arguments: Any) -> list[Any]:
            return self._run(operation.regions[index].blocks[0], arguments, env)

        op = ImportedOp(
            name_of_op(operation),
            operation,
            self._attributes.of(operation),
            [dtype_of(result) for result in operation.results],
            run_region,
            env.__getitem__,
        )
        compute: Compute = partial(self._compute, op, env)
        for change in reversed(self.changes):
            compute = partial(change, op, compute=compute)
        scope = op.name.rpartition("/")[0]
        with jax.named_scope(scope) if scope else nullcontext():
            return compute(operands)

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


def dtype_of(value: Any) -> np.dtype[Any]:
    """The dtype of a value in MLIR."""
    name = str(value.type.element_type)
    return np.dtype(_COMPLEX[name] if name in _COMPLEX else DTYPES[name].numpy)


def cast(value: Any, dtype: np.dtype[Any]) -> Any:
    """The value in that dtype."""
    return value if value.dtype == dtype else lax.convert_element_type(value, dtype)


def kind_of(operation: Any) -> str:
    """StableHLO's name of an op; of a composite, the composite's."""
    if operation.name == "stablehlo.composite":
        return str(operation.attributes["name"].value)
    return str(operation.name).removeprefix("stablehlo.")


def name_of_op(operation: Any) -> str:
    """The name scopes around an op and JAX's name of it, without "jit(f)" and the like."""
    parts = name_of(operation.location).split("/")
    return "/".join(part for part in parts if not part.endswith(")") or "(" not in part)
