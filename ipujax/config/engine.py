"""Options of `poplar::Engine` that act on its runs or its reports in C++."""

from __future__ import annotations

#: Options that act on an Engine in C++, as they concern its runs.
OF_RUNS = frozenset(
    {
        "autoReport.streamAtEachRun",
        "debug.instrument",
        "debug.instrumentCompute",
        "streamCallbacks.multiThreadMode",
        "streamCallbacks.numWorkerThreads",
    }
)
#: Options that act on reports alone.
OF_REPORTS = frozenset(
    {
        "autoReport.directory",
        "debug.instrumentExternalExchange",
        "profiler.blocks.filter",
        "profiler.blocks.tile",
        "profiler.programs.filter",
    }
)


def effects() -> tuple[list[str], list[str]]:
    """Poplar's options that act on JAX's programs on the IPU Model, and those that do not."""
    from ipujax._poplar import _poplar

    acts = {
        name: on_engines and name not in OF_RUNS
        for name, on_engines in _poplar.engine.engineOptionNames().items()
    }
    return [name for name in acts if acts[name]], [name for name in acts if not acts[name]]
