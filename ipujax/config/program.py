"""Options of programs as a whole: memory, schedules, copies between IPUs, streams, reports."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ipujax.config.option import option
from ipujax.config.product_options import check_product_options


def mechanisms() -> tuple[str, ...]:
    """The engine's optimizations, which cpp/model/engine/Mechanisms.hpp names."""
    from ipujax._poplar import _poplar

    return tuple(_poplar.engine.mechanismNames())


def _check_dump_dir(text: str) -> str | None:
    if not text:
        return None
    path = Path(text)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"a folder that can be created ({error.strerror or error})"
    return None if os.access(path, os.W_OK | os.X_OK) else "a writable folder"


@dataclass(frozen=True)
class FitOptions:
    """Programs that do not fit the memory of an IPU."""

    out_of_memory: str = option(
        "log",
        "What to do with a program that does not fit: log and run it, run it, or raise an error.",
        "IPUJAX_OUT_OF_MEMORY",
        ("log", "run", "error"),
    )
    fit: str = option(
        "advise",
        "For a program that does not fit: try nothing; with out_of_memory=error, list in the error "
        "what other options would give; or take of these options the fastest that fit.",
        "IPUJAX_FIT",
        ("off", "advise", "auto"),
    )
    fit_seconds: float = option(
        60.0,
        "Time to try other options in; no further trial begins after it, one does in any case.",
        "IPUJAX_FIT_SECONDS",
        bounds=(0.0, 86_400.0),
    )


@dataclass(frozen=True)
class ScheduleOptions:
    """The order of ops, recomputation, and functions made of equal parts."""

    schedule: str = option(
        "auto",
        "Order in which ops run: as the program has them, for few bytes that are live at one time, "
        "or that of the two with fewer in all tiles together.",
        "IPUJAX_SCHEDULE",
        ("auto", "program", "liveness"),
    )
    scheduler_lookahead_depth: int = option(
        5,
        "How far a look-ahead scheduler looks.",
        "IPUJAX_SCHEDULER_LOOKAHEAD_DEPTH",
        bounds=(0, 2**16),
        no_effect="no schedule looks ahead; schedule=liveness orders by bytes",
    )
    scheduler_search_space_size: int = option(
        64,
        "Nodes that a look-ahead scheduler considers.",
        "IPUJAX_SCHEDULER_SEARCH_SPACE_SIZE",
        bounds=(0, 2**31),
        no_effect="no schedule looks ahead; schedule=liveness orders by bytes",
    )
    allow_recompute: bool = option(
        False,
        "Compute elementwise values again where that lowers the most that is live at one time.",
        "IPUJAX_ALLOW_RECOMPUTE",
    )
    recompute_layers: str = option(
        "",
        "Layers, as reports name them, that are computed again for their backward pass, "
        "comma-separated; * and ? match as in file names.",
        "IPUJAX_RECOMPUTE_LAYERS",
    )
    outline: str = option(
        "marked",
        "Which equal parts of a program become functions with one code: none, calls of "
        "ipu.outlined, or all that repeat.",
        "IPUJAX_OUTLINE",
        ("off", "marked", "auto"),
    )
    outline_threshold: int = option(
        1024,
        "With outline=auto: bytes of a tile that a function must save, by estimate.",
        "IPUJAX_OUTLINE_THRESHOLD",
        bounds=(0, 2**20),
    )


@dataclass(frozen=True)
class CopyOptions:
    """Collectives and copies between IPUs."""

    maximum_cross_replica_sum_buffer_size: int = option(
        0,
        "Largest size in bytes of small all-reduces combined into one; 0: combine none.",
        "IPUJAX_MAXIMUM_CROSS_REPLICA_SUM_BUFFER_SIZE",
        bounds=(0, 2**40),
    )
    maximum_reduce_scatter_buffer_size: int = option(
        0,
        "Largest size in bytes of small reduce-scatters combined into one; 0: combine none.",
        "IPUJAX_MAXIMUM_REDUCE_SCATTER_BUFFER_SIZE",
        bounds=(0, 2**40),
    )
    maximum_inter_ipu_copies_buffer_size: int = option(
        2**26,
        "Largest size in bytes of copies between IPUs combined into one exchange; 0: combine none.",
        "IPUJAX_MAXIMUM_INTER_IPU_COPIES_BUFFER_SIZE",
        bounds=(0, 2**40),
    )
    collective_options: str = option(
        "",
        'Options of GCL for all collectives, as a JSON object such as {"method": "auto"}.',
        "IPUJAX_COLLECTIVE_OPTIONS",
        check=check_product_options,
    )


@dataclass(frozen=True)
class StreamOptions:
    """What crosses the link to the host, and the tiles that it goes through."""

    streamed_arguments: str = option(
        "",
        "Arguments that the cost analysis streams from the host in every run, comma-separated "
        "names of the function's parameters; * is all; empty: all are on the device.",
        "IPUJAX_STREAMED_ARGUMENTS",
    )
    streamed_results: str = option(
        "none",
        "Results that the cost analysis streams to the host in every run; new are those that take "
        "over no donated argument.",
        "IPUJAX_STREAMED_RESULTS",
        ("none", "new", "all"),
    )
    host_bandwidth: float = option(
        0.0,
        "Bandwidth in GB/s, each way, of a link to the host; 0: as the modelled machine has.",
        "IPUJAX_HOST_BANDWIDTH",
        bounds=(0.0, 10_000.0),
    )
    host_latency: float = option(
        -1.0,
        "Microseconds until the host's data arrive; negative: as the modelled machine has.",
        "IPUJAX_HOST_LATENCY",
        bounds=(-1.0, 1_000_000.0),
    )
    prefetch_depth: int = option(
        2,
        "Batches that the host sends ahead, in each ipu.Infeed that is not told otherwise; 0: the "
        "IPU waits the host's latency for arguments.",
        "IPUJAX_PREFETCH_DEPTH",
        bounds=(0, 1024),
    )
    rearrange_copies_on_host: bool = option(
        False,
        "Give streams the order of elements that the tiles have on the host, not on the tiles.",
        "IPUJAX_REARRANGE_COPIES_ON_HOST",
    )
    merge_infeed_copies: bool = option(
        False,
        "Send the arrays of one batch as one copy.",
        "IPUJAX_MERGE_INFEED_COPIES",
        no_effect="each array is a stream of its own; prefetch_depth hides what they cost",
    )
    maximum_send_recv_cluster_size: int = option(
        0,
        "Bytes of sends and receives that are combined.",
        "IPUJAX_MAXIMUM_SEND_RECV_CLUSTER_SIZE",
        bounds=(0, 2**40),
        no_effect="callbacks run one at a time, in program order",
    )
    num_io_tiles: int = option(
        0,
        "Tiles of each IPU that compute nothing and hold what is streamed.",
        "IPUJAX_NUM_IO_TILES",
        bounds=(0, 2**16),
    )
    place_ops_on_io_tiles: bool = option(
        False,
        "Stream through the I/O tiles, so that it overlaps with what the other tiles do.",
        "IPUJAX_PLACE_OPS_ON_IO_TILES",
    )
    io_tile_available_memory_proportion: float = option(
        0.9,
        "Share of the memory of I/O tiles that streamed arguments and results may take.",
        "IPUJAX_IO_TILE_AVAILABLE_MEMORY_PROPORTION",
        bounds=(0.0, 1.0),
    )


@dataclass(frozen=True)
class StreamingMemoryOptions:
    """Arrays in streaming memory."""

    minimum_remote_tensor_size: int = option(
        128,
        "Bytes from which a tensor may be in streaming memory.",
        "IPUJAX_MINIMUM_REMOTE_TENSOR_SIZE",
        bounds=(0, 2**40),
        no_effect="pass minimum_remote_tensor_size= to ipu.pipeline",
    )
    merge_remote_buffers: str = option(
        "if_beneficial",
        "Whether equal remote buffers become one.",
        "IPUJAX_MERGE_REMOTE_BUFFERS",
        allowed=("no_merging", "merge", "if_beneficial"),
        no_effect="each array is a buffer of its own, and stacked arrays are one",
    )
    remote_buffer_embedding: bool = option(
        False,
        "Keep tables of host embeddings in remote buffers.",
        "IPUJAX_REMOTE_BUFFER_EMBEDDING",
        no_effect="each table says where it is",
    )
    gather_simplifier: bool = option(
        True,
        "Simplify lookups of embeddings.",
        "IPUJAX_GATHER_SIMPLIFIER",
        no_effect="lookups have one plan, by their table and indices; there is no simplifier",
    )


@dataclass(frozen=True)
class DiagnosticOptions:
    """Reports, dumps and what costs assume."""

    profile: bool = option(
        False,
        "Keep in the executable where its time and memory go, as ipu.report asks for.",
        "IPUJAX_PROFILE",
    )
    dump_dir: str = option(
        "",
        "Folder into which each compiler stage writes its result; empty: none.",
        "IPUJAX_DUMP_DIR",
        check=_check_dump_dir,
    )
    assumed_trip_count: int = option(
        1,
        "Iterations in the cost analysis of each loop whose number only a run knows.",
        "IPUJAX_ASSUMED_TRIP_COUNT",
        bounds=(0, 2**31),
    )
    engine_options: str = option(
        "",
        "Options of poplar::Engine, as a JSON object. The model heeds debug.outOfMemory, "
        "debug.allowOutOfMemory and debug.floatPointOpException, as out_of_memory and "
        "floating_point_exceptions, and autoReport.*; others are for the Poplar SDK's compiler.",
        "IPUJAX_ENGINE_OPTIONS",
        check=check_product_options,
    )
    engine_without: str = option(
        "",
        "For tests: optimizations of the model to switch off; results stay the same.",
        "IPUJAX_ENGINE_WITHOUT",
        allowed=mechanisms,
        several=True,
    )
