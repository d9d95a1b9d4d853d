"""The description in a saved program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ipujax.errors import ExecutableError, SessionError
from ipujax.runtime import structure


@dataclass(frozen=True)
class Leaf:
    """One array that a program takes or returns.

    Attributes:
        name: such as "params['w']".
        dtype: JAX's name, such as "bfloat16".
        shape: of the array.
        slot: its position in the compiled program; -1 if the program does not use it.
        stored: whether the file contains its elements, so that callers do not pass it.
        counts: number of blocks along each dimension, over the devices; empty: each device has the
            whole array.
        blocks: the block that each device has, in row-major order.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    slot: int
    stored: bool
    counts: tuple[int, ...] = ()
    blocks: tuple[int, ...] = ()

    @cached_property
    def numpy_dtype(self) -> np.dtype[Any]:
        return dtype_of(self.dtype)

    def in_file(self) -> tuple[Any, ...]:
        """The fields that the extension writes."""
        fields = (self.name, self.dtype, self.shape, self.slot, self.stored)
        return (*fields, self.counts, self.blocks)


@dataclass(frozen=True)
class Description:
    """Everything that a file says about its program.

    Attributes:
        name: of the program.
        parameters: names of the function's parameters.
        arguments, results: the leaves of both, in JAX's order.
        options: options that it was compiled with; all others had their defaults.
        versions: versions of the software that compiled it.
        target: the machine and the device that it was compiled for.
        output_alias: for each output of the program, the input whose memory it reuses, or -1.
        num_devices: number of devices that run it together.
        memories: memory of each input, then of each output: "device" or "pinned_host".
    """

    name: str
    parameters: tuple[str, ...]
    arguments: tuple[Leaf, ...]
    results: tuple[Leaf, ...]
    options: Mapping[str, str]
    versions: Mapping[str, str]
    target: Mapping[str, str]
    output_alias: tuple[int, ...]
    num_devices: int
    memories: tuple[tuple[str, ...], tuple[str, ...]]
    argument_nodes: tuple[structure.Node, ...]
    result_node: structure.Node

    @staticmethod
    def of(found: Mapping[str, Any]) -> Description:
        """Made from what the extension reads."""
        arguments, results = (
            tuple(
                Leaf(name, dtype, tuple(shape), slot, stored, tuple(counts), tuple(blocks))
                for name, dtype, shape, slot, stored, counts, blocks in leaves
            )
            for leaves in (found["arguments"], found["results"])
        )
        names, nodes, result = structure.read(found["structure"], len(arguments), len(results))
        return Description(
            name=found["name"],
            parameters=tuple(names),
            arguments=arguments,
            results=results,
            options=found["options"],
            versions=found["versions"],
            target=found["target"],
            output_alias=tuple(found["output_alias"]),
            num_devices=found["num_devices"],
            memories=(tuple(found["input_memories"]), tuple(found["output_memories"])),
            argument_nodes=tuple(nodes),
            result_node=result,
        )

    def stored_leaves(self, weights: Mapping[str, Any]) -> list[tuple[Leaf, Any]]:
        """The leaves of stored parameters, by name, and their new values.

        Raises:
            SessionError: a name is not that of a stored parameter, or its pytree differs.
        """
        found: list[tuple[Leaf, Any]] = []
        for name, tree in weights.items():
            node = self._node(name)
            leaves: list[Any] = []
            structure.flatten(node, tree, name, leaves)
            numbers = structure.positions(node)
            found += [(self.arguments[i], x) for i, x in zip(numbers, leaves, strict=True)]
        if not all(leaf.stored for leaf, _ in found):
            raise SessionError(
                f"[runtime] needs names of stored parameters; got {', '.join(weights)}. Pass the "
                "others as arguments."
            )
        return [(leaf, x) for leaf, x in found if leaf.slot >= 0]

    def _node(self, name: str) -> structure.Node:
        if name in self.parameters:
            return self.argument_nodes[self.parameters.index(name)]
        raise SessionError(
            f"[runtime] needs one of the parameters {', '.join(self.parameters)}; got {name!r}. "
            "Use one of these."
        )

    def is_stored(self, parameter: int) -> bool:
        """Whether callers omit this parameter."""
        leaves = [self.arguments[i] for i in structure.positions(self.argument_nodes[parameter])]
        return bool(leaves) and all(leaf.stored for leaf in leaves)

    def stored_parameters(self) -> list[tuple[str, structure.Node, list[int]]]:
        """The name, node and numbers of leaves of each parameter that the file stores."""
        return [
            (name, node, structure.positions(node))
            for i, (name, node) in enumerate(zip(self.parameters, self.argument_nodes, strict=True))
            if self.is_stored(i)
        ]

    @cached_property
    def passed_leaves(self) -> list[Leaf]:
        """The leaves of the parameters that callers pass."""
        return [
            self.arguments[i]
            for _, node in self._passed_parameters
            for i in structure.positions(node)
        ]

    def passed(self, args: Sequence[Any]) -> list[Any]:
        """The values of `passed_leaves` among the arguments of a call."""
        wanted = self._passed_parameters
        if len(args) != len(wanted):
            names = ", ".join(name for name, _ in wanted)
            raise SessionError(
                f"[runtime] needs {len(wanted)} arguments for {self.name} ({names}); got "
                f"{len(args)}. Pass these."
            )
        values: list[Any] = []
        for (name, node), tree in zip(wanted, args, strict=True):
            structure.flatten(node, tree, name, values)
        return values

    @cached_property
    def _passed_parameters(self) -> list[tuple[str, structure.Node]]:
        """The name and node of each parameter that callers pass."""
        return [
            (name, node)
            for i, (name, node) in enumerate(zip(self.parameters, self.argument_nodes, strict=True))
            if not self.is_stored(i)
        ]

    def __str__(self) -> str:
        def shown(leaves: tuple[Leaf, ...]) -> str:
            return ", ".join(
                f"{x.name}: {x.dtype}{list(x.shape)}{_blocks(x)}{' (stored)' if x.stored else ''}"
                for x in leaves
            )

        target = ", ".join(f"{key}={value}" for key, value in self.target.items())
        if self.num_devices > 1:
            target += f", on {self.num_devices} devices"
        return (
            f"{self.name}({shown(self.arguments)}) -> {shown(self.results)}\nfor {target}"
            + "".join(f"\noption {key}={value}" for key, value in self.options.items())
        )


def _blocks(leaf: Leaf) -> str:
    return f" in {'x'.join(map(str, leaf.counts))} blocks" if leaf.counts else ""


def dtype_of(name: str) -> np.dtype[Any]:
    """The NumPy dtype of JAX's name, or that of ml_dtypes if NumPy has none."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        found = getattr(ml_dtypes, name, None)
        if found is None:
            raise ExecutableError(
                f"[load] needs a dtype that NumPy or ml_dtypes has; got {name!r}. Save the program "
                "again."
            ) from None
        return np.dtype(found)


_NUMBERS = (bool, int, float)


def checked(leaf: Leaf, value: Any, samples: int | None = None) -> np.ndarray:
    """A NumPy array of a leaf's type.

    Args:
        samples: its first dimension, if it differs from the leaf's.
    Raises:
        SessionError: it has a wrong shape or dtype.
    """
    dtype = leaf.numpy_dtype
    array = np.asarray(value, dtype=dtype if isinstance(value, _NUMBERS) else None)
    shape = leaf.shape if samples is None else (samples, *leaf.shape[1:])
    if array.shape != shape or array.dtype != dtype:
        raise SessionError(
            f"[runtime] needs {leaf.dtype}{list(shape)} for {leaf.name}; got "
            f"{array.dtype}{list(array.shape)}. Pass an array of this type."
        )
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)
