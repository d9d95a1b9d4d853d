"""Compiles a StableHLO artifact to a sealed executable. One stage per line."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

from ipujax import jax_compat
from ipujax.compiler.bugs import is_bug, is_refused_option, option_error, report
from ipujax.compiler.build import Built, build
from ipujax.compiler.deep_stack import on_deep_stack
from ipujax.compiler.dump import Dump
from ipujax.compiler.emulation import first_wide_op, log_emulation, refuse_wide
from ipujax.compiler.fit import Attempt, fitted
from ipujax.compiler.fuse import fuse
from ipujax.compiler.ingest import Request, ingest
from ipujax.compiler.ir import Program, to_text
from ipujax.compiler.ir.verify import verify
from ipujax.compiler.lower import Lowered, lower
from ipujax.compiler.normalise import normalise
from ipujax.compiler.partition import partition
from ipujax.compiler.passes.narrow_integers import narrow_integers
from ipujax.compiler.place import place
from ipujax.compiler.poplar_reports import write_report
from ipujax.compiler.remedies import Changes
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.schedule import schedule
from ipujax.compiler.stage_times import StageTimes
from ipujax.compiler.stages import (
    BUILD,
    FUSE,
    INGEST,
    LOWER,
    NORMALISE,
    PARTITION,
    PLACE,
    SCHEDULE,
)
from ipujax.compiler.unheeded import warn_of_unheeded
from ipujax.errors import InvalidProgramError, IpuError
from ipujax.types import PlatformConfig

P = ParamSpec("P")
T = TypeVar("T")


def compile_module(
    code: bytes,
    options: bytes,
    platform: PlatformConfig,
    at_stage: Callable[[str], None] = lambda stage: None,
) -> bytes:
    """Compiles one program.

    Args:
        code: a StableHLO portable artifact.
        options: a serialised xla.CompileOptionsProto; may be empty.
        platform: what the PJRT client was created with (`config.platform_options`).
        at_stage: called with each stage's name as it begins, and with each remedy tried for a
            program that does not fit.
    Returns:
        The executable: bytes that need no compiler and no Python to run.
    Raises:
        IpuError: its type says what is wrong with the program or its options.
    """

    times = StageTimes()
    asked: list[Attempt] = []  # attempts with the caller's own options

    def at(name: str) -> None:
        times.begin(name)
        at_stage(name)

    def attempt(changes: Changes) -> Attempt:
        made = _run_stages(code, options, platform, at, changes)
        times.end(made.name)
        if not changes:
            asked.append(made)
        return made

    def run() -> bytes:
        key = (code, options, sorted(platform.items()))
        executable = fitted(attempt, key, at_stage)
        write_report(asked[-1].name, asked[-1].options, executable)
        return executable

    with _without_collections():
        try:
            return _on_enough_stack(run)
        except IpuError:
            raise
        except Exception as error:
            if jax_compat.is_undecodable(error):
                raise InvalidProgramError(
                    "[ingest] needs names that are UTF-8 text; got other bytes. "
                    "Pass the output of jax.jit or jax.export."
                ) from error
            if is_refused_option(error):
                raise option_error(error) from error
            if not is_bug(error):
                raise
            raise report(error, times.stage) from error


def placed_program(code: bytes, options: bytes, platform: PlatformConfig) -> Program:
    """The program after stage 4, for callers that inspect it; see `compile_module`."""
    request = partition(ingest(code, options, platform))
    return place(normalise(request), request)


def _on_enough_stack(run: Callable[[], bytes]) -> bytes:
    try:
        return run()
    except RecursionError:
        pass  # starts again, outside the failed attempt's frames
    return on_deep_stack(run)


def _run_stages(
    code: bytes,
    options: bytes,
    platform: PlatformConfig,
    at_stage: Callable[[str], None],
    changes: Changes,
) -> Attempt:
    def ingested(context: Any) -> Request:
        request = ingest(code, options, platform, context)
        return replace(request, options=replace(request.options, **changes))

    with jax_compat.lent_context(len(code)) as context:
        stages = _Stages(at_stage)
        request = stages.run(INGEST, ingested, context)
        request = stages.run(PARTITION, partition, request)
        program = stages.run(NORMALISE, normalise, request)
        if not ipu.capabilities.wide_types:
            program = narrow_integers(program)
            refuse_wide(program)
        if ipu.capabilities.images and not changes:
            warn_of_unheeded(program)
        wide = first_wide_op(program) if ipu.capabilities.wide_types else None
        program = stages.run(PLACE, place, program, request)
        program = stages.run(FUSE, fuse, program)
        program = stages.run(SCHEDULE, schedule, program, request.options.schedule)
        lowered = stages.run(LOWER, lower, program, request)
        built = stages.run(BUILD, build, lowered, request)
        log_emulation(request.name, wide, built.executable)
    return Attempt(request.name, request.options, built.executable, built.report)


class _Stages:
    """Runs stages: announces each, and dumps and checks its result."""

    def __init__(self, announce: Callable[[str], None]):
        self._announce = announce
        self._dump: Dump | None = None

    def run(self, name: str, stage: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        self._announce(name)
        made = stage(*args, **named)
        if self._dump is None and isinstance(made, Request):
            self._dump = Dump(made.options.dump_dir, made.name)
        if self._dump is not None:
            self._dump.write(name, lambda: _text_of(made))
        if isinstance(made, Program):
            verify(made, name)
        return made


def _text_of(made: object) -> str:
    """A stage's result as text."""
    if isinstance(made, Request):
        return str(made.module)
    if isinstance(made, Program):
        return to_text(made)
    if isinstance(made, Lowered):
        return f"{made.signature!r}\n"
    assert isinstance(made, Built)
    return _described(made.executable)


def _described(executable: bytes) -> str:
    """The steps that will run and their costs, one step per line."""
    image = ipu.engine.inspectImage(executable)
    steps = image.pop("steps")
    lines = [f"{key}: {image[key]}" for key in image if key != "buffers"]
    for step in steps:
        shapes = ", ".join(f"b{o['buffer']}{o['shape']}" for o in step["operands"])
        where = f"{step['name']} {step['source']}"
        lines.append(f"{step['kernel']}({shapes}) {step['cost']['cycles']:.0f} cycles  {where}")
        lines.extend(f"  {kernel}" for kernel in step["inner"])
    return "\n".join(lines) + "\n"


_lock = threading.Lock()
_compiling = 0
_collector_was_on = False


@contextmanager
def _without_collections() -> Iterator[None]:
    """Turns off Python's cycle collector: a compile makes many objects and few cycles.

    Several threads may compile at once; the last one to finish turns it on again.
    """
    global _compiling, _collector_was_on
    with _lock:
        if _compiling == 0:
            _collector_was_on = gc.isenabled()
            gc.disable()
        _compiling += 1
    try:
        yield
    finally:
        with _lock:
            _compiling -= 1
            if _compiling == 0 and _collector_was_on:
                gc.enable()
