"""Vertices that users write in C++, declared in Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import jax
import numpy as np

from ipujax.api.arguments import array, function, shape_and_dtype, text, texts
from ipujax.errors import ConfigError
from ipujax.host import codelet_sources

#: Poplar's names of the dtypes that a codelet may have.
POPLAR_TYPES = {
    "float32": "float",
    "float16": "half",
    "int32": "int",
    "uint32": "unsigned int",
    "int16": "short",
    "uint16": "unsigned short",
    "int8": "signed char",
    "uint8": "unsigned char",
    "bool": "bool",
}
#: Shape and dtype of a result: those of an input, given, or computed from the inputs'.
Result: TypeAlias = str | jax.ShapeDtypeStruct | Callable[..., jax.ShapeDtypeStruct]
Attributes: TypeAlias = tuple[tuple[str, int | float | bool], ...]


@dataclass(frozen=True, eq=False)
class Vertex:
    """A vertex for `ipu.tile.map`; made by `ipu.tile.create_vertex`.

    Attributes:
        name: the class in the source; parts such as "{x}" stand for the type of that input.
        inputs: fields that the arguments are connected to.
        results: fields that the results come from.
    """

    name: str
    digest: str
    flags: str
    inputs: tuple[str, ...]
    outputs: tuple[tuple[str, Result], ...]
    in_place: tuple[str, ...]
    constants: tuple[tuple[str, Any], ...]
    cycles: Callable[..., int] | None
    reference: Callable[..., Any] | None
    vjp: Callable[..., Any] | None

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that operands are connected to: inputs, then constants."""
        return (*self.inputs, *(name for name, _ in self.constants))

    def results(self, avals: Sequence[Any], attributes: Attributes) -> list[jax.ShapeDtypeStruct]:
        """Shapes and dtypes of one tile's results, from those of whole operands."""
        return self._of_one_tile([_of_a_tile(aval) for aval in avals], attributes)

    def _of_one_tile(self, avals: Sequence[Any], attributes: Attributes) -> list[Any]:
        inputs = {
            name: jax.ShapeDtypeStruct(x.shape, x.dtype)
            for name, x in zip(self.fields, avals, strict=False)  # a reference has no constants
        }
        given = [inputs[name] for name in self.inputs]
        found = [inputs[name] for name in self.in_place]
        for name, result in self.outputs:
            if isinstance(result, str):
                found.append(inputs[result])
                continue
            made = result(*given, **dict(attributes)) if callable(result) else result
            found.append(shape_and_dtype("ipu.tile.map", f"the result {name!r}", made))
            _poplar_type(self.name, name, found[-1])
        return found

    def constants_of(self, avals: Sequence[Any], attributes: Attributes) -> list[np.ndarray]:
        """The constants' values, for inputs of these shapes and dtypes of one tile."""
        return [
            _constant(name, value(*avals, **dict(attributes)) if callable(value) else value)
            for name, value in self.constants
        ]

    def over_rows(self, attributes: Attributes) -> Callable[..., list[jax.Array]]:
        """The reference, for whole operands.

        Raises:
            ConfigError: the vertex has none.
        """
        if self.reference is None:
            raise ConfigError(
                f"[ipu.tile.map] needs a reference of the vertex {self.name!r} for its derivatives "
                "and for other platforms; got none. Pass reference= to create_vertex."
            )
        reference = self.reference

        def one_tile(*operands: jax.Array) -> list[jax.Array]:
            results = reference(*operands[: len(self.inputs)], **dict(attributes))
            made = list(results) if isinstance(results, (list, tuple)) else [results]
            return self._checked(made, self._of_one_tile(operands, attributes))

        return jax.vmap(one_tile)

    def _checked(self, made: list[Any], wanted: list[jax.ShapeDtypeStruct]) -> list[jax.Array]:
        """Checks that the reference returned what the vertex makes."""
        where = "ipu.tile.map"
        found = [array(where, f"a result of the reference of {self.name!r}", x) for x in made]
        if [(x.shape, x.dtype) for x in found] != [(x.shape, x.dtype) for x in wanted]:
            needs, got = (
                ", ".join(f"{x.dtype} {list(x.shape)}" for x in values) or "nothing"
                for values in (wanted, found)
            )
            raise ConfigError(
                f"[{where}] needs a reference of {self.name!r} that returns what the vertex does, "
                f"{needs}; got {got}. Reshape or cast in the reference."
            )
        return found

    def config(self, avals: Sequence[Any], attributes: Attributes) -> dict[str, Any]:
        """The configuration that the compiler gets."""
        tiles = [_of_a_tile(aval) for aval in avals]
        types = {
            name: _poplar_type(self.name, name, aval)
            for name, aval in zip(self.fields, tiles, strict=True)
        }
        given = tiles[: len(self.inputs)]
        return {
            "vertex": self.name.format(**types) if "{" in self.name else self.name,
            "source": self.digest,
            "flags": self.flags,
            "fields": list(self.fields),
            "in_place": list(self.in_place),
            "outputs": [name for name, _ in self.outputs],
            "attributes": dict(attributes),
            "cycles": self._cycles(given, attributes),
        }

    def _cycles(self, given: Sequence[jax.ShapeDtypeStruct], attributes: Attributes) -> int | None:
        if self.cycles is None:
            return None
        found = self.cycles(*given, **dict(attributes))
        if not isinstance(found, (int, float)) or not 0 <= found < 2**63:
            raise ConfigError(
                f"[ipu.tile.map] needs a number of cycles of {self.name!r}, from 0; got {found!r}. "
                "Return a number from cycles= of create_vertex."
            )
        return int(found)


def create_vertex(
    name: str,
    *,
    source: str | Path,
    inputs: Sequence[str],
    outputs: Mapping[str, Result] | None = None,
    in_place: Sequence[str] = (),
    constants: Mapping[str, Any] | None = None,
    cycles: Callable[..., int] | None = None,
    flags: str = "",
    reference: Callable[..., Any] | None = None,
    vjp: Callable[..., Any] | None = None,
) -> Vertex:
    """Declares a vertex written in Poplar's C++.

    The source is compiled by the host's C++ compiler for the IPU Model, when a program first uses
    it. Only this process can compile it: programs name it by its digest.

    Args:
        name: of the class, such as "Scale" or "Scale<{x}>", where "{x}" is the type of input x.
        source: C++ text, or a `Path` of a file with it. Files that it includes from its own folder
            (for text: from the working folder) are part of it.
        inputs: fields that `ipu.tile.map` connects to its arrays, in their order. A field
            `Vector<Input<Vector<T>>>` gets the rows of an input of two dimensions.
        outputs: fields of results; for each the name of an input of the same shape and dtype, a
            `jax.ShapeDtypeStruct` of one tile, or a function from the inputs'
            `jax.ShapeDtypeStruct`s and the attributes to such a struct.
        in_place: inputs, `InOut` fields, that the vertex changes; they are the first results.
        constants: fields with values: arrays, or functions from the inputs'
            `jax.ShapeDtypeStruct`s and the attributes to arrays. Each tile gets them.
        cycles: worker cycles of one vertex, from the inputs' `jax.ShapeDtypeStruct`s and the
            attributes. Without it the model counts the instructions of the source's loops.
        flags: for the compiler, such as "-O3".
        reference: the same function in `jax.numpy`, from the arrays of one tile and the attributes
            to the results. Other platforms run it, and it is differentiated.
        vjp: a custom derivative: a function from the whole arguments as `TileArray`s, cotangents as
            `TileArray`s, and the attributes to cotangents of the arguments.
    Raises:
        ConfigError: a field is named twice or has no such input, there is no result, or the file
            cannot be read.

    Source: `create_ipu_tile_primitive` of tessellate-ipu.

    Example:
        >>> scale = ipu.tile.create_vertex(
        ...     "Scale",
        ...     source='''
        ...         #include <poplar/Vertex.hpp>
        ...         class Scale : public poplar::Vertex {
        ...          public:
        ...           poplar::Input<poplar::Vector<float>> x;
        ...           poplar::Output<poplar::Vector<float>> y;
        ...           float factor;
        ...           bool compute() {
        ...             for (unsigned i = 0; i < x.size(); ++i) y[i] = factor * x[i];
        ...             return true;
        ...           }
        ...         };
        ...     ''',
        ...     inputs=["x"],
        ...     outputs={"y": "x"},
        ...     cycles=lambda x, factor: 20 + 3 * x.size,
        ...     reference=lambda x, factor: factor * x,
        ... )
        >>> x = ipu.tile.put_sharded(jnp.arange(4.0).reshape(2, 2), tiles=(3, 4))
        >>> ipu.tile.map(scale, x, factor=10.0).array.tolist()
        [[0.0, 10.0], [20.0, 30.0]]
    """
    where = "ipu.tile.create_vertex"
    text(where, "name", name)
    for given, value in (("cycles", cycles), ("reference", reference), ("vjp", vjp)):
        if value is not None:
            function(where, given, value)
    for argument, fields in (("outputs", outputs), ("constants", constants)):
        if fields is not None and not isinstance(fields, Mapping):
            raise ConfigError(
                f"[ipu.tile.create_vertex] needs {argument} as a dict from names of fields; got "
                f'{fields!r}. Use {argument}={{"y": ...}}.'
            )
    outputs = dict(outputs or {})
    made = Vertex(
        name=name,
        digest=codelet_sources.register(where, source, text(where, "flags", flags)),
        flags=flags,
        inputs=texts(where, "inputs", inputs),
        outputs=tuple(outputs.items()),
        in_place=texts(where, "in_place", in_place),
        constants=tuple((constants or {}).items()),
        cycles=cycles,
        reference=reference,
        vjp=vjp,
    )
    _check(made)
    return made


def _check(vertex: Vertex) -> None:
    def refuse(needs: str, got: object, advice: str) -> None:
        raise ConfigError(f"[ipu.tile.create_vertex] needs {needs}; got {got}. {advice}")

    fields = [*vertex.fields, *(name for name, _ in vertex.outputs)]
    bad = [name for name in fields if not re.fullmatch(r"[A-Za-z_]\w*", str(name))]
    if bad:
        refuse("names of fields", bad, "Use the names of the class's fields.")
    if len(set(fields)) < len(fields):
        refuse("each field once", fields, "Remove the second one.")
    unknown = [name for name in vertex.in_place if name not in vertex.inputs]
    unknown += [r for _, r in vertex.outputs if isinstance(r, str) and r not in vertex.inputs]
    if unknown:
        refuse(f"names of inputs ({', '.join(vertex.inputs)})", unknown, "Use one of them.")
    strange = [r for _, r in vertex.outputs if not (isinstance(r, str) or _describes(r))]
    if strange:
        refuse(
            "outputs that are names of inputs, jax.ShapeDtypeStructs or functions",
            strange,
            "Pass one of these.",
        )
    if not vertex.outputs and not vertex.in_place:
        refuse("a result", "neither outputs nor in_place", "Name the fields that are written.")
    if not vertex.inputs:
        refuse("an input", "none", "Name the fields that arrays are connected to.")
    placeholders = set(re.findall(r"\{(\w+)\}", vertex.name)) - set(vertex.fields)
    if placeholders:
        refuse(
            "inputs in the name's braces", sorted(placeholders), "Use the name of an input there."
        )


def _describes(result: Any) -> bool:
    return isinstance(result, jax.ShapeDtypeStruct) or callable(result)


def _constant(name: str, value: Any) -> np.ndarray:
    found = np.asarray(value)
    array("ipu.tile.map", f"the constant {name!r}", found)
    return found


def _of_a_tile(aval: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(aval.shape[1:], aval.dtype)


def _poplar_type(vertex: str, field: str, aval: jax.ShapeDtypeStruct) -> str:
    found = POPLAR_TYPES.get(np.dtype(aval.dtype).name)
    if found is None:
        raise ConfigError(
            f"[ipu.tile.map] needs one of {', '.join(POPLAR_TYPES)} for field {field!r} of "
            f"{vertex!r}; got {aval.dtype}. Cast the array."
        )
    return found
