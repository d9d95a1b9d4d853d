"""Finds the values that cross the link to the host in every run, and the I/O tiles for them.

JAX keeps arguments and results on the device, so a run streams nothing by itself. A training or
inference program in Graphcore's frameworks gets batches from the host, though. The user says which
arguments those are; the account then includes the time, and the program stays the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ipujax.compiler.dtypes import DTYPES, TOKEN
from ipujax.compiler.ir import Program, Value
from ipujax.compiler.rules import poplar as ipu
from ipujax.config.options import CompileConfig, MachineConfig
from ipujax.errors import ConfigError, OutOfMemoryError


@dataclass(frozen=True)
class Streamed:
    """Indices of arguments and results, and their bytes on one device."""

    arguments: tuple[int, ...] = ()
    results: tuple[int, ...] = ()
    num_bytes: int = 0


def find_streamed(program: Program, options: CompileConfig) -> Streamed:
    """The values that `streamed_arguments` and `streamed_results` choose; no tokens or buffers.

    An argument is named like the function's parameter, or a part of it such as `batch['x']`.

    Raises:
        ConfigError: a name matches no argument.
    """
    main = program.main
    names = [part.strip() for part in options.streamed_arguments.split(",") if part.strip()]
    chosen: set[int] = set()
    known = [parameter.name for parameter in program.parameters]
    for name in names:
        found = {i for i, full in enumerate(known) if _is_part(full, name)}
        if not found:
            raise ConfigError(
                f"[streamed] needs names of arguments that '{program.name}' uses, from "
                f"{', '.join(dict.fromkeys(map(_root, known))) or 'none'}; got {name!r}. "
                "Use these, or * for all."
            )
        chosen |= found
    arguments = [i for i in sorted(chosen) if _passes(main.args[i])]
    wanted = options.streamed_results
    results = [
        i
        for i, value in enumerate(main.results)
        if _passes(value) and (wanted == "all" or (wanted == "new" and program.output_alias[i] < 0))
    ]
    values = [main.args[i] for i in arguments] + [main.results[i] for i in results]
    num_bytes = sum(value.num_elements * DTYPES[value.dtype].size for value in values)
    return Streamed(tuple(arguments), tuple(results), num_bytes)


def compute_tiles(machine: MachineConfig, options: CompileConfig, streamed: Streamed) -> int:
    """The number of tiles of an IPU that are not I/O tiles.

    Raises:
        ConfigError: no tile is left.
        OutOfMemoryError: the I/O tiles cannot hold the streamed values.
    """
    count = options.num_io_tiles
    if count == 0:
        return machine.num_tiles
    target = ipu.poplar.createTarget(machine.machine, 1, machine.num_tiles)
    tiles = target.getTilesPerIPU()
    if count >= tiles:
        raise ConfigError(
            f"[io_tiles] needs fewer than the {tiles} tiles of an IPU; got {count}. "
            "Lower ipu_num_io_tiles."
        )
    room = int(count * target.getBytesPerTile() * options.io_tile_available_memory_proportion)
    if options.place_ops_on_io_tiles and streamed.num_bytes > room:
        raise OutOfMemoryError(
            f"[io_tiles] needs room for {streamed.num_bytes} bytes that are streamed; got {room} "
            f"on {count} I/O tiles. Raise ipu_num_io_tiles or "
            "ipu_io_tile_available_memory_proportion, or stream less."
        )
    return tiles - count


def _passes(value: Value) -> bool:
    """Whether it is in tile memory: remote buffers are in the host's, tokens nowhere."""
    return value.dtype != TOKEN and not value.is_remote


def _root(name: str) -> str:
    return re.split(r"[\[.]", name, maxsplit=1)[0]


def _is_part(full: str, name: str) -> bool:
    return name == "*" or full == name or full.startswith((name + "[", name + "."))
