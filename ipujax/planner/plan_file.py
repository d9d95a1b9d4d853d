"""Plans as JSON: written for people to edit, and verified in full before they are used."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ipujax.errors import PipelineError
from ipujax.host.file_reading import MOST_JSON_BYTES, content_of, json_of

VERSION = 1
WHERE = "ipu.Plan.load"


@dataclass
class PlanData:
    """The contents of a plan file. Users may edit `parts` and `device_mapping`.

    In an edited file the name of a block may stand for all its parts in `parts`.
    """

    function: str  #: its name
    fingerprint: str  #: of its jaxpr for one micro-batch
    shared: list[bool]  #: for each array it takes, whether all micro-batches share it
    largest: float  #: share of the work above which calls and scans were opened
    micro_batches: int
    schedule: str
    reduction: str | None
    remat: bool | None
    priority: str
    device_mapping: list[int] = field(default_factory=list)  #: the IPU of each stage
    parts: dict[str, int] = field(
        default_factory=dict
    )  #: the stage of each part, in the order in which they run
    costs: dict[str, dict[str, float]] = field(default_factory=dict)  #: of each part
    notes: list[str] = field(default_factory=list)
    version: int = VERSION


def to_text(data: PlanData) -> str:
    return json.dumps(asdict(data), indent=2) + "\n"


def from_file(path: str | Path) -> PlanData:
    """The plan that a file contains.

    Raises:
        OSError: the file cannot be read.
        PipelineError: it is not a plan, or a name or a type in it is wrong.
    """
    origin = str(path)
    try:
        read = json_of(content_of(path, MOST_JSON_BYTES))
    except ValueError as error:
        raise _refused(origin, "JSON", str(error)) from None
    if not isinstance(read, dict):
        raise _refused(origin, "a JSON object", type(read).__name__)
    if read.get("version") != VERSION:
        raise _refused(origin, f"version {VERSION} of the format", repr(read.get("version")))
    names = {one.name for one in fields(PlanData)}
    if read.keys() != names:
        unknown, missing = sorted(read.keys() - names), sorted(names - read.keys())
        raise _refused(origin, "the keys of a plan", f"unknown {unknown}, missing {missing}")
    for name, (description, holds) in _TYPES.items():
        if not holds(read[name]):
            raise _refused(origin, f"{name} to be {description}", repr(read[name]))
    data = PlanData(**read)
    data.parts = stages_of(data.parts, list(data.costs), origin)
    check_stages(data, origin)
    return data


def stages_of(given: Mapping[str, int], names: Sequence[str], origin: str) -> dict[str, int]:
    """The stage of each part.

    Args:
        given: stages by the names of parts, or of blocks with all their parts; a part's own name
            comes first, then the innermost block that is named.
        names: of all parts, in the order in which they run.
        origin: where `given` was found, for messages.
    Raises:
        PipelineError: a name is unknown, or a part has no stage.
    """
    blocks = {name: _blocks_around(name) for name in names}
    known = dict.fromkeys([*names, *(block for around in blocks.values() for block in around)])
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, cutoff=0) or list(known)
            raise PipelineError(
                f"[{WHERE}] needs the names of parts or of blocks in {origin}; got {name!r}. Use "
                f"one of the nearest names, {near}, or make a new plan with ipu.plan_stages."
            )
    found = {
        name: next((given[one] for one in (name, *around) if one in given), None)
        for name, around in blocks.items()
    }
    missing = [name for name, stage in found.items() if stage is None]
    if missing:
        raise PipelineError(
            f"[{WHERE}] needs a stage for each part in {origin}; got none for {missing}. Name "
            "these or their blocks, or make a new plan with ipu.plan_stages."
        )
    return {name: stage for name, stage in found.items() if stage is not None}


def _blocks_around(name: str) -> list[str]:
    """The blocks that a part is in, the innermost one first."""
    pieces = name.split("/")
    return ["/".join(pieces[:count]) for count in range(len(pieces) - 1, 0, -1)]


def check_stages(data: PlanData, origin: str) -> None:
    """Refuses stages that leave gaps or have no IPU."""
    used = set(data.parts.values())
    count = len(data.device_mapping)
    if used != set(range(count)):
        raise _refused(
            origin,
            f"parts in each of the {count} stages that device_mapping lists",
            f"parts in the stages {sorted(used)}",
        )


def _refused(origin: str, needs: str, got: str) -> PipelineError:
    return PipelineError(
        f"[{WHERE}] needs {needs} in {origin}; got {got}. Edit only device_mapping and the stages "
        "of parts, or make a new plan with ipu.plan_stages."
    )


def _is_count(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= 0


def _is_number(given: Any) -> bool:
    return isinstance(given, (int, float)) and not isinstance(given, bool)


def _is_text(given: Any) -> bool:
    return isinstance(given, str)


def _list_of(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda given: isinstance(given, list) and all(map(holds, given))


def _dict_of(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda given: isinstance(given, Mapping) and all(map(holds, given.values()))


def _one_of(*choices: Any) -> tuple[str, Callable[[Any], bool]]:
    described = " or ".join(map(json.dumps, choices))
    return described, lambda given: any(type(given) is type(c) and given == c for c in choices)


_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "function": ("a string", _is_text),
    "fingerprint": ("a string", _is_text),
    "shared": ("a list of true and false", _list_of(lambda x: isinstance(x, bool))),
    "largest": ("a number above 0", lambda x: _is_number(x) and x > 0),
    "micro_batches": ("a number of at least 1", lambda x: _is_count(x) and x > 0),
    "schedule": _one_of("grouped", "interleaved", "sequential"),
    "reduction": _one_of(None, "sum", "mean", "running_mean"),
    "remat": _one_of(None, True, False),
    "priority": _one_of("cycles", "memory"),
    "device_mapping": ("a list of IPUs, from 0", lambda x: _list_of(_is_count)(x) and bool(x)),
    "parts": ("the stage of each part, from 0", lambda x: _dict_of(_is_count)(x) and bool(x)),
    "costs": ("numbers for each part", _dict_of(_dict_of(_is_number))),
    "notes": ("a list of strings", _list_of(_is_text)),
}
