"""Reads where MLIR ops come from: name, line, options; once per distinct location."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from ipujax.annotations import placement
from ipujax.annotations.frames import Frame, own_place, without_repeats
from ipujax.annotations.origins import Origin, layer_here, origin_of
from ipujax.compiler.ir import NO_SOURCE, Placed, Source
from ipujax.config.options import PER_CALL_PREFIX

# JAX writes loc("jit(f)/mul"(callsite("f"("file.py":8:16 to :41) at ...))): the first file is the
# innermost frame outside JAX; the user's code may be further out, beyond a library's frame.
_FILE = re.compile(r'(?:"((?:[^"\\]|\\.)*)"\()?"((?:[^"\\]|\\.)*)":(\d+):(\d+)(?: to (\d*):(\d+))?')
_ESCAPED = re.compile(rb"\\(\\|[0-9A-F]{2})")
_NAME = re.compile(r'^loc\("((?:[^"\\]|\\.)*)"')


#: Where JAX writes what `jax.experimental.xla_metadata` set.
METADATA = "mhlo.frontend_attributes"


_PLACES: tuple[tuple[str, str, Callable[[str], Any]], ...] = (
    (placement.IPU, "stage_ipu", int),
    (placement.BLOCK, "block_ipu", lambda text: placement.read_block(text)[1]),
    (placement.STAGE, "stage", int),
    (placement.STAGE_NAME, "stage_name", str),
    (placement.DIRECTION, "direction", str),
    (placement.PIPELINE, "pipeline", str),
    (placement.WEIGHT_UPDATE, "weight_update", placement.read_options),
    (placement.BLOCK, "block", lambda text: placement.read_block(text)[0]),
    (placement.OUTLINED, "function", str),
    (placement.OUTLINED_CALLS, "outlined", placement.numbers_of),
    (placement.OFFLOAD, "offload", int),
    (placement.PHASE, "phase", placement.read_phase),
)


class Sources:
    """Reads locations of one module."""

    def __init__(self) -> None:
        self._known: dict[Any, Source] = {}
        #: By the caller's address; the caller is kept alive so that no other object gets it.
        self._called: dict[int, tuple[Source, dict[Any, Source]]] = {}
        self._scoped: dict[tuple[Source, tuple[str, ...], Any], Source] = {}
        self._num_outlined = 0

    def of(self, operation: Any, caller: Source = NO_SOURCE) -> Source:
        """The op's own name, line, options and place; if it has none, those of its caller."""
        source = self._located(operation, caller)
        attributes = operation.attributes
        if METADATA not in attributes:
            return source
        key = (source, source.locations, attributes[METADATA])
        scoped = self._scoped.get(key)
        if scoped is None:
            _check_place(key[2], source)
            own = {item.name: item.attr.value for item in key[2]}
            scoped = self._scoped[key] = replace(
                source, options=_options(own, source), placed=_placed(own, source)
            )
        return scoped

    def of_call(self, operation: Any, caller: Source) -> Source:
        """The same for a call; each call of an outlined function gets its own number."""
        source = self.of(operation, caller)
        attributes = operation.attributes
        if METADATA not in attributes or placement.OUTLINED not in attributes[METADATA]:
            return source
        self._num_outlined += 1
        path = (*source.placed.outlined, self._num_outlined)
        return replace(source, placed=replace(source.placed, outlined=path))

    def _located(self, operation: Any, caller: Source) -> Source:
        attribute = operation.location.attr
        if caller is NO_SOURCE:
            return self._written(attribute)
        entry = self._called.get(id(caller))
        if entry is None:
            entry = self._called[id(caller)] = (caller, {})
        called = entry[1].get(attribute)
        if called is None:
            called = entry[1][attribute] = _called(self._written(attribute), caller)
        return called

    def _written(self, attribute: Any) -> Source:
        source = self._known.get(attribute)
        if source is None:
            source = self._known[attribute] = _parse(str(attribute))
        return source


def _called(source: Source, caller: Source) -> Source:
    """The source of an op in a function that is called; JAX names ops relative to the function."""
    outer, own = caller.name, source.name
    # Exported programs have their own full names; older JAX names ops relative to the program.
    is_exported = outer.endswith("/call_exported")
    is_whole = is_exported or own.split("/", 1)[0] == outer.split("/", 1)[0]
    name = own if is_whole or not outer else f"{outer}/{own}" if own else outer
    return replace(
        caller,
        name=name,
        line=source.line or caller.line,
        locations=source.locations + caller.locations,
    )


def name_of(location: Any) -> str:
    """The name in a location; empty if it has none."""
    return _parse(str(location)).name


def text_of(attribute: Any) -> str:
    """A string attribute's text. Its own `value` aborts the process if it is not UTF-8."""
    return _unescaped(str(attribute)[1:-1])


def _unescaped(text: str) -> str:
    r"""MLIR prints quotes and non-ASCII characters as \C3."""
    if "\\" not in text:
        return text
    raw = _ESCAPED.sub(_character, text.encode())
    return raw.decode(errors="replace")


def _character(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    return code if code == b"\\" else bytes([int(code, 16)])


def _options(own: dict[str, str], outer: Source) -> tuple[tuple[str, str], ...]:
    """The compiler options in an op's metadata and around it, sorted by name."""
    named = {name: value for name, value in own.items() if name.startswith(PER_CALL_PREFIX)}
    return tuple(sorted((dict(outer.options) | named).items()))


def _placed(own: dict[str, str], outer: Source) -> Placed:
    """Where the op's metadata and the scopes around it place it."""
    found: dict[str, Any] = {
        name: read(own[attribute]) for attribute, name, read in _PLACES if attribute in own
    }
    return replace(outer.placed, **found) if found else outer.placed


def _check_place(metadata: Any, source: Source) -> None:
    for item in metadata:
        if item.name == placement.COMPUTE_ATTRIBUTE:
            placement.check_compute(item.attr.value, source.line)


def origin(source: Source) -> Origin:
    """The origin of an op, for reports."""
    placed = source.placed
    found = origin_of(source.line, source.name, frames_of(source.locations))
    return found._replace(
        direction=placed.direction or found.direction,
        block=placed.block,
        stage=placed.stage_name,
        function=placed.function,
    )


def layer_at(source: Source) -> str:
    """The layer that reports name for the op."""
    return layer_here(source.name, frames_of(source.locations))


def frames_of(locations: Iterable[str]) -> tuple[Frame, ...]:
    """The call frames of MLIR's texts of locations, innermost first."""
    return without_repeats(frame for text in locations for frame in _frames(text))


def _frames(text: str) -> Iterator[Frame]:
    for found in _FILE.finditer(text):
        function, file, line, column, end_line, end_column = found.groups()
        if found.start() == text.find('"'):  # what comes before the first file is the op's name
            function = ""
        yield Frame(
            _unescaped(function or ""),
            _unescaped(file),
            int(line),
            int(column) if end_column else -1,
            int(end_line or line),
            int(end_column or -1),
        )


def _parse(text: str) -> Source:
    line = own_place(_frames(text))
    named = _NAME.match(text)
    file = _FILE.search(text)
    name = named[1] if named and not (file and file.start(2) == named.start(1)) else ""
    return Source(_unescaped(name), line, locations=(text,)) if name or line else NO_SOURCE
