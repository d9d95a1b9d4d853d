"""Swaps the operands of products that are only read transposed.

Before, as the gradient of a weight is:  %2: 16x8 = dot_general(%0: 4x16, %1: 4x8)
                                         %3: 8x16 = transpose(%2)
After:                                   %3: 8x16 = dot_general(%1: 4x8, %0: 4x16)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace

from ipujax.compiler.ir import Op, Program, Rewriter, Value, inputs_of, walk_blocks


def swap_transposed_products(program: Program) -> Program:
    """Rewrites all blocks; ops without users are dropped later."""
    return _Swapper(program).program(program)


class _Swapper(Rewriter):
    def __init__(self, program: Program) -> None:
        super().__init__()
        self.uses: Counter[Value] = Counter()
        for block in walk_blocks(program.main):
            self.uses.update(block.results)
            for op in block.ops:
                self.uses.update(inputs_of(op))

    def rule(self, op: Op) -> Sequence[Value] | None:
        if op.name != "transpose" or self.uses[op.operands[0]] != 1:
            return None
        product, permutation = op.operands[0].op, op.attrs["permutation"]
        if product is None or product.name != "dot_general" or "algorithm" in product.attrs:
            return None  # an algorithm may name a type for each side
        numbers = product.attrs["dot_dimension_numbers"]
        batch = len(numbers.lhs_batching_dimensions)
        split = len(product.operands[0].shape) - len(numbers.lhs_contracting_dimensions)
        rank = len(permutation)
        if split == rank or permutation[-1] != split - 1:
            return None  # the rows would not stay whole
        order = (*range(batch), *range(split, rank), *range(batch, split))
        shape = tuple(product.results[0].shape[dim] for dim in order)
        attrs = _swapped(product)
        swapped = self.op(
            "dot_general", product.operands[::-1], attrs, shape=shape, dtype=op.results[0].dtype
        )
        assert swapped.op is not None
        swapped.op.source = product.source
        rest = tuple(order.index(dim) for dim in permutation)
        if rest == tuple(range(rank)):
            return [swapped]
        op.operands, op.attrs = [swapped], {**op.attrs, "permutation": rest}
        return None


def _swapped(product: Op) -> dict[str, object]:
    """The attributes of the product with its operands swapped."""
    numbers = product.attrs["dot_dimension_numbers"]
    attrs = {
        **product.attrs,
        "dot_dimension_numbers": SimpleNamespace(
            lhs_batching_dimensions=numbers.rhs_batching_dimensions,
            rhs_batching_dimensions=numbers.lhs_batching_dimensions,
            lhs_contracting_dimensions=numbers.rhs_contracting_dimensions,
            rhs_contracting_dimensions=numbers.lhs_contracting_dimensions,
        ),
    }
    if "precision_config" in attrs:
        attrs["precision_config"] = attrs["precision_config"][::-1]
    return attrs
