"""The changes that `ipujax convert` makes around individual ops of a program."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ipujax.api.pipeline.stages import shard
from ipujax.convert.dtypes import cast, dtype_of
from ipujax.convert.importer import Compute, ImportedOp
from ipujax.errors import ConvertError

HALF = {np.dtype(np.float32): np.dtype(np.float16)}
NARROW = {
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
}


class Names:
    """Regular expressions, one of which must be found in an op's name."""

    def __init__(self, expressions: Sequence[str], where: str):
        self.expressions = tuple(expressions)
        self.found: set[str] = set()  #: expressions that matched some name
        try:
            self._compiled = [re.compile(text) for text in expressions]
        except re.error as error:
            raise ConvertError(
                f"[convert] needs regular expressions for {where}; got {error.pattern!r}: {error}. "
                "Write it as Python's re module reads it."
            ) from None

    def match(self, name: str) -> bool:
        hits = {e.pattern for e in self._compiled if e.search(name)}
        self.found |= hits
        return bool(hits)

    def unmatched(self) -> list[str]:
        return [text for text in self.expressions if text not in self.found]


@dataclass
class Dtypes:
    """Makes ops compute in other dtypes than they were written in.

    Args:
        mapping: from the dtype that was written to the one that is computed in.
        excluded: ops that keep their dtypes.
    """

    mapping: Mapping[np.dtype[Any], np.dtype[Any]]
    excluded: Names

    def __call__(self, op: ImportedOp, operands: Sequence[Any], compute: Compute) -> list[Any]:
        mapping = {} if self.excluded.match(op.name) else self.mapping
        written = map(dtype_of, op.operation.operands)
        wanted = [mapping.get(dtype, dtype) for dtype in written]
        op.dtypes = [mapping.get(dtype, dtype) for dtype in op.dtypes]
        return compute([cast(x, dtype) for x, dtype in zip(operands, wanted, strict=True)])


@dataclass
class Removed:
    """Replaces ops by their first operand, or by nothing if they have no results."""

    names: Names

    def __call__(self, op: ImportedOp, operands: Sequence[Any], compute: Compute) -> list[Any]:
        if not self.names.match(op.name):
            return compute(operands)
        shapes = [(tuple(x.shape), x.dtype) for x in operands[:1]]
        wanted = list(zip(op.shapes, op.dtypes, strict=True))
        if wanted and wanted != shapes:
            raise ConvertError(
                f"[convert] needs ops to remove whose result is like their first operand; got "
                f"{op.name!r} with operands {shapes} and results {wanted}. Exclude others."
            )
        return list(operands[: len(wanted)])


@dataclass
class Sharded:
    """Places each op on the first IPU whose expressions match its name; on IPU 0 if none do."""

    ipus: Sequence[Names]

    def __call__(self, op: ImportedOp, operands: Sequence[Any], compute: Compute) -> list[Any]:
        matching = (ipu for ipu, names in enumerate(self.ipus) if names.match(op.name))
        with shard(next(matching, 0)):
            return compute(operands)
