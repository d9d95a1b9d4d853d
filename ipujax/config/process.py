"""Options of a process, and options that ipujax has as arguments of its functions."""

from __future__ import annotations

from dataclasses import dataclass

from ipujax.config.option import option
from ipujax.host.logs import check_destination, check_levels


@dataclass(frozen=True)
class ProcessOptions:
    """Seeds, caches, logs and progress."""

    seed: int = option(
        -1,
        "Seed of stochastic rounding, and of random operations that are given none, as "
        "ipu.reset_seed; -1: not set.",
        "IPUJAX_SEED",
        bounds=(-1, 2**63),
    )
    executable_cache_dir: str = option(
        "",
        "Folder of JAX's persistent compilation cache, if JAX has none; empty: none.",
        "IPUJAX_EXECUTABLE_CACHE_DIR",
    )
    log_level: str = option(
        "",
        "Level of the logger ipujax, and of its components: WARN,compiler=DEBUG. Levels are "
        "TRACE_ALL, TRACE, DEBUG, INFO, WARN, ERR and OFF; empty: as Python's logging is set up.",
        "IPUJAX_LOG_LEVEL",
        check=check_levels,
    )
    log_destination: str = option(
        "",
        "Where log_level writes: stderr (also if empty), stdout or a file.",
        "IPUJAX_LOG_DESTINATION",
        check=check_destination,
    )
    progress_bar: str = option(
        "auto",
        "Whether compilations draw their progress: auto draws on terminals and in notebooks.",
        "IPUJAX_PROGRESS_BAR",
        ("auto", "on", "off"),
    )


_PIPELINE = "pass {} to ipu.pipeline or to strategy.apply"


@dataclass(frozen=True)
class TrainingOptions:
    """What other frameworks configure and ipujax takes as arguments: accepted, and shown why."""

    replication_factor: int = option(
        1,
        "Number of replicas.",
        "IPUJAX_REPLICATION_FACTOR",
        bounds=(1, 2**16),
        no_effect="replicas are the devices of a mesh or of ipu.pmap",
    )
    device_iterations: int = option(
        1,
        "Batches that one call runs.",
        "IPUJAX_DEVICE_ITERATIONS",
        bounds=(1, 2**31),
        no_effect=_PIPELINE.format("repeat_count=") + ", or use ipu.repeat",
    )
    gradient_accumulation: int = option(
        1,
        "Micro-batches of one weight update.",
        "IPUJAX_GRADIENT_ACCUMULATION",
        bounds=(1, 2**31),
        no_effect=_PIPELINE.format("micro_batches="),
    )
    reduction: str = option(
        "mean",
        "How gradients of micro-batches are combined.",
        "IPUJAX_REDUCTION",
        ("sum", "mean", "running_mean"),
        no_effect=_PIPELINE.format("reduction="),
    )
    output_mode: str = option(
        "final",
        "Which results of several batches are returned.",
        "IPUJAX_OUTPUT_MODE",
        ("all", "sum", "final", "every_n", "default"),
        no_effect=_PIPELINE.format("outputs=") + ", or mode= to ipu.Outfeed",
    )
    execution_strategy: str = option(
        "",
        "How blocks become stages.",
        "IPUJAX_EXECUTION_STRATEGY",
        no_effect="use ipu.PipelinedExecution().apply(fun), or another strategy",
    )
    auto_loss_scaling: bool = option(
        False,
        "Find the factor of the loss during training.",
        "IPUJAX_AUTO_LOSS_SCALING",
        no_effect="wrap the optimizer in ipu.optim.loss_scale",
    )
    offload_optimizer_state: bool = option(
        False,
        "Keep the optimizer's state in streaming memory.",
        "IPUJAX_OFFLOAD_OPTIMIZER_STATE",
        no_effect="wrap the optimizer in ipu.optim.offload_state",
    )
    shard_optimizer_state: bool = option(
        False,
        "Divide the optimizer's state among the replicas.",
        "IPUJAX_SHARD_OPTIMIZER_STATE",
        no_effect="wrap the optimizer in ipu.optim.shard_state",
    )
    autocast: bool = option(
        False,
        "Cast operations to float16 by a policy.",
        "IPUJAX_AUTOCAST",
        no_effect="wrap the function in ipu.autocast",
    )
    synthetic_data: bool = option(
        False,
        "Make data on the device instead of reading it.",
        "IPUJAX_SYNTHETIC_DATA",
        no_effect="feed from ipu.data.Synthetic, which makes the arrays on the device",
    )
    verified_transfers: bool = option(
        False,
        "Compare checksums of what crosses the link: arrays of jax.device_put, results that the "
        "host gets, and the batches of each ipu.Infeed that is not told otherwise.",
        "IPUJAX_VERIFIED_TRANSFERS",
    )
    process_count: int = option(
        0,
        "Processes that run one program; 0: as jax.distributed.initialize was told.",
        "IPUJAX_PROCESS_COUNT",
        bounds=(0, 2**16),
        no_effect="jax.distributed.initialize takes it, and ipujax launch passes it",
    )
    process_index: int = option(
        0,
        "Index of this process.",
        "IPUJAX_PROCESS_INDEX",
        bounds=(0, 2**16),
        no_effect="jax.distributed.initialize takes it, and ipujax launch passes it",
    )
