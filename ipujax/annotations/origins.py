"""Where a step of a program comes from, as text that executables with a profile carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ipujax.annotations.frames import Frame, shown_frames
from ipujax.annotations.layers import direction_of, scopes_of
from ipujax.annotations.module_paths import layer_path, own_names


class Origin(NamedTuple):
    """What a report shows for a step besides its costs; empty if unknown."""

    line: str = ""  #: as "train.py:31"
    layer: str = ""  #: named scopes and modules around it, as "Model/encoder/norm"
    direction: str = ""  #: "forward" or "backward"
    block: str = ""  #: name of the `ipu.block` around it
    stage: str = ""  #: name of the pipeline stage
    function: str = ""  #: name of the `ipu.outlined` function
    stack: tuple[str, ...] = ()  #: as "train.py:31 loss", innermost first

    def text(self) -> str:
        """A line for each field, those of the stack last."""
        fields = (*self[:-1], *self.stack)
        return "\n".join(field.replace("\n", " ") for field in fields)


def read_origin(text: str) -> Origin:
    """Reads the text of `Origin.text`; of other text, only the line."""
    fields = text.split("\n")
    if len(fields) < len(Origin._fields) - 1:
        return Origin(fields[0])
    line, layer, direction, block, stage, function, *stack = fields
    return Origin(line, layer, direction, block, stage, function, tuple(stack))


def layer_here(name: str, frames: Sequence[Frame]) -> str:
    """The layer of an operation, from its name and its call frames, innermost first."""
    return layer_path(scopes_of(name, own_names(frames) if frames else None), frames)


def origin_of(line: str, name: str, frames: Sequence[Frame]) -> Origin:
    """The origin of an operation in no stage, block or outlined function."""
    return Origin(
        line=line,
        layer=layer_here(name, frames),
        direction=direction_of(name),
        stack=tuple(map(str, shown_frames(frames))),
    )
