"""Stage 5: fuses elementwise ops of one shape into one op, lowered to one pass over the elements.

Before:  %1 = multiply(%a, %b)      After:  %1, %2 = fused(%a, %b) {body=[multiply, tanh]}
         %2 = tanh(%1)                      %3 = reduce(%1)
         %3 = reduce(%1)
Two clusters may become one if no path leads from one to the other through an op of neither: the
fused op runs as a whole, so such a path would make it wait for itself.
"""

from __future__ import annotations

from ipujax.compiler.ir import Block, Op, Program, Value, inputs_of
from ipujax.compiler.read_sums import read_what_is_there
from ipujax.compiler.rounding_streams import key_of, rounding_of
from ipujax.errors import VerifyError

#: Longer bodies need more registers than a block of elements leaves in the first-level cache.
MAX_BODY = 192
MAX_OPERANDS = 40


def fuse(program: Program) -> Program:
    """Fuses ops in every block that becomes steps; skips bodies of reductions, sorts, scatters."""
    for block in program.blocks_run():
        _fuse_block(block)
        read_what_is_there(block)
    return program


class _Clusters:
    """Sets of op indices, with the transitive dependences between them as bit sets.

    Ops are added in order, so a merge affects only ops that were added before.
    """

    def __init__(self, block: Block):
        self.ops = block.ops
        count = len(block.ops)
        self.parent = list(range(count))
        self.members: list[list[int]] = [[i] for i in range(count)]
        self.direct: list[set[int]] = [set() for _ in range(count)]
        self.users: list[set[int]] = [set() for _ in range(count)]
        self.reached = [0] * count  #: bit i: (transitively) needs the cluster of op i
        self.where = {value: i for i, op in enumerate(block.ops) for value in op.results}
        self.operands: list[set[Value]] = [set()] * count
        self.keys = [key_of(op) for op in block.ops]  #: of random bits; None: any key will do

    def add(self, index: int) -> None:
        op = self.ops[index]
        inputs = inputs_of(op)
        if op.traits.elementwise:
            self.operands[index] = {value for value in op.operands if not value.is_splat}
        bits = 0
        for value in inputs:
            producer = self.where.get(value)
            if producer is not None:
                root = self.find(producer)
                self.direct[index].add(producer)
                self.users[root].add(index)
                bits |= self.reached[root] | (1 << root)
        self.reached[index] = bits

    def find(self, index: int) -> int:
        parent = self.parent
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    def may_merge(self, a: int, b: int) -> bool:
        """Whether a merge makes no cycle: no other cluster they directly need needs one of them."""
        both = (1 << a) | (1 << b)
        find = self.find
        for cluster in (a, b):
            for needed in self.direct[cluster]:
                root = find(needed)
                if root != a and root != b and self.reached[root] & both:
                    return False
        return True

    def operands_of(self, a: int, b: int) -> set[Value]:
        """The operands that both clusters take from outside."""
        where, find = self.where, self.find
        return {
            value
            for value in self.operands[a] | self.operands[b]
            if value not in where or find(where[value]) not in (a, b)
        }

    def round_alike(self, a: int, b: int) -> bool:
        """Whether one key of random bits is right for both."""
        return self.keys[a] is None or self.keys[b] is None or self.keys[a] == self.keys[b]

    def merge(self, a: int, b: int) -> int:
        self.keys[a] = self.keys[b] = self.keys[a] or self.keys[b]
        self.operands[a] = self.operands[b] = self.operands_of(a, b)
        if len(self.members[a]) < len(self.members[b]):
            a, b = b, a
        self.parent[b] = a
        self.members[a] += self.members[b]
        self.direct[a] |= self.direct[b]
        self.users[a] |= self.users[b]
        both = (1 << a) | (1 << b)
        self.reached[a] = (self.reached[a] | self.reached[b]) & ~both
        self._spread(a, both)
        return a

    def _spread(self, start: int, both: int) -> None:
        """Clusters that need the merged one now need everything it needs. Roots carry the bits."""
        find, reached = self.find, self.reached
        pending = [start]
        while pending:
            source = pending.pop()
            bits = reached[source] | (1 << source) | both
            for user in self.users[source]:
                root = find(user)
                if root not in (start, source) and reached[root] | bits != reached[root]:
                    reached[root] |= bits
                    pending.append(root)


def _fuse_block(block: Block) -> None:
    ops = block.ops
    clusters = _Clusters(block)
    shapes = [op.results[0].shape if op.traits.elementwise else None for op in ops]
    for index, op in enumerate(ops):
        clusters.add(index)
        shape = shapes[index]
        if shape is None:
            continue
        for value in op.operands:
            producer = clusters.where.get(value)
            if producer is None or shapes[producer] != shape:
                continue
            if not _may_share_a_step(ops[producer], op):
                continue
            a, b = clusters.find(producer), clusters.find(index)
            if a == b or len(clusters.members[a]) + len(clusters.members[b]) > MAX_BODY:
                continue
            if not clusters.round_alike(a, b):
                continue
            if clusters.may_merge(a, b) and len(clusters.operands_of(a, b)) <= MAX_OPERANDS:
                clusters.merge(a, b)
    _rebuild(block, clusters)


def _may_share_a_step(a: Op, b: Op) -> bool:
    """Whether both run on the same IPU, at the same time, with the same options."""
    return (
        a.ipu == b.ipu
        and a.source.options == b.source.options
        and (a.source.placed is b.source.placed or a.source.placed == b.source.placed)
    )


def _rebuild(block: Block, clusters: _Clusters) -> None:
    """Replaces the ops of each cluster by one fused op, and sorts all topologically."""
    ops = block.ops
    outside_uses = _used_outside(block, clusters)
    by_root: dict[int, Op] = {}
    for index, op in enumerate(ops):
        root = clusters.find(index)
        if not op.traits.elementwise:
            by_root[root] = op
        elif root not in by_root:
            members = sorted(clusters.members[root])
            by_root[root] = _fused([ops[i] for i in members], outside_uses)
    block.ops = _topological(by_root, clusters)


def _used_outside(block: Block, clusters: _Clusters) -> set[Value]:
    """Values that are used by the block's results or by an op of another cluster."""
    used = set(block.results)
    for index, op in enumerate(block.ops):
        root = clusters.find(index)
        for value in inputs_of(op):
            producer = clusters.where.get(value)
            if producer is not None and clusters.find(producer) != root:
                used.add(value)
    return used


def _fused(body: list[Op], outside_uses: set[Value]) -> Op:
    inside = {op.results[0] for op in body}
    operands = dict.fromkeys(
        value for op in body for value in op.operands if value not in inside and not value.is_splat
    )
    rounding = next(filter(None, map(rounding_of, body)), {})
    fused = Op("fused", list(operands), {"body": body, **rounding}, body[-1].source)
    fused.ipu = body[0].ipu
    # In the body, only position links a value to its op; outside, it belongs to the fused op.
    fused.results = [op.results[0] for op in body if op.results[0] in outside_uses]
    for index, value in enumerate(fused.results):
        value.op, value.index = fused, index
    return fused


def _topological(by_root: dict[int, Op], clusters: _Clusters) -> list[Op]:
    """Keeps the original order as far as the fused ops allow."""
    find = clusters.find
    order: list[Op] = []
    done: set[int] = set()
    limit = 1 + sum(len(needed) + 1 for needed in clusters.direct)
    for start in sorted(by_root, key=lambda root: max(clusters.members[root])):
        stack = [start]
        while stack:
            if len(stack) > limit:
                raise VerifyError(
                    "[fuse] needs ops that do not depend on themselves; got a cycle. "
                    "Report this program: it is a bug in ipujax."
                )
            root = stack[-1]
            if root in done:
                stack.pop()
                continue
            waiting = {find(i) for i in clusters.direct[root]} - done - {root}
            if waiting:
                stack.extend(sorted(waiting, reverse=True))
                continue
            stack.pop()
            done.add(root)
            order.append(by_root[root])
    return order
