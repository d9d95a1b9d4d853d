"""The compiler: a StableHLO artifact in, a sealed executable out. One stage per line."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ipujax import jax_compat
from ipujax.compiler import ir
from ipujax.compiler.bugs import is_bug, report
from ipujax.compiler.build import build
from ipujax.compiler.deep_stack import on_deep_stack
from ipujax.compiler.dump import Dump
from ipujax.compiler.emulation import first_wide_op, log_emulation
from ipujax.compiler.fuse import fuse
from ipujax.compiler.ingest import ingest
from ipujax.compiler.lower import lower, refuse_unsupported
from ipujax.compiler.normalise import normalise
from ipujax.compiler.partition import partition
from ipujax.compiler.place import place
from ipujax.compiler.schedule import schedule
from ipujax.compiler.verify import verify
from ipujax.errors import InvalidProgramError, IpuError
from ipujax.types import PlatformConfig

#: The names of the stages, in order.
STAGES = (
    "1_ingest",
    "2_partition",
    "3_normalise",
    "4_place",
    "5_fuse",
    "6_schedule",
    "7_lower",
    "8_build",
)


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
        at_stage: called with each stage's name as it begins.
    Returns:
        The executable: bytes that need no compiler and no Python to run.
    Raises:
        IpuError: of the type that says what is wrong with the program or its options.
    """

    stage = ""

    def at(name: str) -> None:
        nonlocal stage
        stage = name
        at_stage(name)

    def run() -> bytes:
        return _run_stages(code, options, platform, at)

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
            if not is_bug(error):
                raise
            raise report(error, stage) from error


def _on_enough_stack(run: Callable[[], bytes]) -> bytes:
    try:
        return run()
    except RecursionError:
        pass  # begins anew, outside of the failed attempt's frames
    return on_deep_stack(run)


def _run_stages(
    code: bytes, options: bytes, platform: PlatformConfig, at_stage: Callable[[str], None]
) -> bytes:
    with jax_compat.lent_context(len(code)) as context:
        at_stage("1_ingest")
        request = ingest(code, options, platform, context)
        dump = Dump(request.options.dump_dir, request.name)
        dump.write("1_ingest", lambda: str(request.module))
        at_stage("2_partition")
        request = partition(request)
        dump.write("2_partition", lambda: str(request.module))
        at_stage("3_normalise")
        program = refuse_unsupported(normalise(request))
        _check(program, "3_normalise", dump)
        wide = first_wide_op(program)
        at_stage("4_place")
        program = place(program)
        _check(program, "4_place", dump)
        at_stage("5_fuse")
        program = fuse(program)
        _check(program, "5_fuse", dump)
        at_stage("6_schedule")
        program = schedule(program)
        _check(program, "6_schedule", dump)
        at_stage("7_lower")
        lowered = lower(program, request)
        dump.write("7_lower", lambda: f"{lowered.signature}\n")
        at_stage("8_build")
        executable = build(lowered, request)
        dump.write("8_build", lambda: _described(executable))
        log_emulation(request.name, wide, executable)
    return executable


def _check(program: ir.Program, stage: str, dump: Dump) -> None:
    dump.write(stage, lambda: ir.to_text(program))
    verify(program, stage)


def _described(executable: bytes) -> str:
    """The steps that will run and what each costs, one per line."""
    from ipujax.compiler.rules import poplar as ipu

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
    """Keeps Python's cycle collector out of the way: a compile makes many objects and few cycles.

    Several threads may compile at once; the last one out turns it on again.
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
