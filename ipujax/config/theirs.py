"""Options of Graphcore's TensorFlow, PopTorch and Optimum, and their counterparts here.

docs/features.md has the same names for users; a test compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

Convert = Callable[[Any], dict[str, object]]

#: Options with another name here and the same values.
RENAMED: dict[str, str] = {
    # TensorFlow: IPUConfig
    "serialization_output_folder": "executable_cache_dir",
    "experimental.always_rearrange_copies_on_the_host": "rearrange_copies_on_host",
    "experimental.enable_remote_buffer_embedding": "remote_buffer_embedding",
    "experimental.multi_replica_distribution.process_count": "process_count",
    "experimental.multi_replica_distribution.process_index": "process_index",
    "device_connection.enable_remote_buffers": "enable_remote_buffers",
    "floating_point_behaviour.esr": "stochastic_rounding",
    "io_tiles.num_io_tiles": "num_io_tiles",
    "io_tiles.place_ops_on_io_tiles": "place_ops_on_io_tiles",
    "io_tiles.available_memory_proportion": "io_tile_available_memory_proportion",
    "ipu_model.compile_ipu_code": "compile_ipu_code",
    "ipu_model.tiles_per_ipu": "num_tiles",
    "matmuls.clear_pass_type": "clear_pass_type",
    "norms.use_stable_statistics": "use_stable_statistics",
    "norms.experimental.distributed_batch_norm_replica_group_size": "batch_norm_replica_group_size",
    "optimizations.merge_infeed_io_copies": "merge_infeed_copies",
    "optimizations.maximum_cross_replica_sum_buffer_size": "maximum_cross_replica_sum_buffer_size",
    "optimizations.maximum_reduce_scatter_buffer_size": "maximum_reduce_scatter_buffer_size",
    "optimizations.maximum_inter_ipu_copies_buffer_size": "maximum_inter_ipu_copies_buffer_size",
    "optimizations.maximum_send_recv_cluster_size": "maximum_send_recv_cluster_size",
    "optimizations.minimum_remote_tensor_size": "minimum_remote_tensor_size",
    "optimizations.combine_embedding_lookups": "combine_embedding_lookups",
    "optimizations.combine_matmuls": "combine_matmuls",
    "optimizations.triangular_solve_expander_block_size": "triangular_solve_expander_block_size",
    "optimizations.cholesky_block_size": "cholesky_block_size",
    "optimizations.enable_gather_simplifier": "gather_simplifier",
    "optimizations.enable_fast_math": "fast_math",
    "scheduling.maximum_scheduler_lookahead_depth": "scheduler_lookahead_depth",
    "scheduling.maximum_scheduler_search_space_size": "scheduler_search_space_size",
    # PopTorch: Options
    "autoRoundNumIPUs": "auto_round_num_ipus",
    "deviceIterations": "device_iterations",
    "replicationFactor": "replication_factor",
    "setExecutionStrategy": "execution_strategy",
    "randomSeed": "seed",
    "enableExecutableCaching": "executable_cache_dir",
    "enableProfiling": "profile",
    "enableStableNorm": "use_stable_statistics",
    "enableSyntheticData": "synthetic_data",
    "useIpuModel": "use_model",
    "TensorLocations.numIOTiles": "num_io_tiles",
    "numIOTiles": "num_io_tiles",
    "Precision.enableStochasticRounding": "stochastic_rounding",
    "Precision.autocastEnabled": "autocast",
    "Training.gradientAccumulation": "gradient_accumulation",
    "Training.setAutomaticLossScaling": "auto_loss_scaling",
    # Optimum: IPUConfig
    "gradient_accumulation_steps": "gradient_accumulation",
    "optimizer_state_offchip": "offload_optimizer_state",
    "replicated_tensor_sharding": "shard_optimizer_state",
    "ipus_per_replica": "ipus_per_device",
    "inference_replication_factor": "replication_factor",
    "inference_device_iterations": "device_iterations",
}


def _poplar(option: str) -> Convert:
    """A converter for a dictionary of a library's options."""
    return lambda value: {option: _json(value)} if value else {}


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _named(option: str, names: Mapping[str, object]) -> Convert:
    """A converter for a member of an enumeration, such as SchedulingAlgorithm.POST_ORDER."""

    def convert(value: Any) -> dict[str, object]:
        name = str(value).rpartition(".")[2].lower().replace("_", "")
        if name not in names:
            raise ValueError(f"one of {', '.join(filter(None, names))}")
        return {option: names[name]}

    return convert


def _exception(name: str) -> Convert:
    return lambda value: {"floating_point_exceptions+": name} if value else {}


def _numbers(option: str) -> Convert:
    """A converter for one number or several."""

    def convert(value: Any) -> dict[str, object]:
        several = value if isinstance(value, (list, tuple)) else [value]
        return {option: ",".join(map(str, several))} if several else {}

    return convert


def _all_floating_point(value: Any) -> dict[str, object]:
    return (
        {
            "floating_point_exceptions": "inv,div0,oflo",
            "stochastic_rounding": True,
            "half_overflow": "nan",
        }
        if value
        else {}
    )


def _proportion(value: Any) -> dict[str, object]:
    """Converts one number for all IPUs, or one for each, by name or in order."""
    if isinstance(value, Mapping):
        numbers = {_number_of_ipu(name): share for name, share in value.items()}
        last = max(numbers, default=-1)
        value = [numbers.get(number, "") for number in range(last + 1)]
    several = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(set(several)) == 1:
        return {"available_memory_proportion": several[0]}
    return {"available_memory_proportions": ",".join(map(str, several))} if several else {}


def _number_of_ipu(name: str) -> int:
    number = name.removeprefix("IPU")
    if number == name or not number.isdecimal() or len(number) > 4:
        raise ValueError("names of IPUs such as IPU0")
    return int(number)


def _partials(value: Any) -> dict[str, object]:
    name = str(value).rpartition(".")[2]
    kind = {"float16": "half", "half": "half", "float32": "float", "float": "float"}
    return {"partials_type": kind.get(name, name)}


def _no_profile(value: Any = None) -> dict[str, object]:
    return {"profile": False}


def _offline(value: Any = 2) -> dict[str, object]:
    """Compiles for a version of the IPU without having one."""
    version = 2 if value is True else value
    return {"connection": "never", **_named("machine", _VERSIONS)(version)}


def _bar(value: Any = True) -> dict[str, object]:
    return {"progress_bar": "on" if value else "off"}


def _all_exceptions(value: Any = True) -> dict[str, object]:
    return {"floating_point_exceptions": "inv,div0,oflo"} if value else {}


def _optimizer_location(value: Any) -> dict[str, object]:
    settings = value if isinstance(value, Mapping) else {}
    return {
        "offload_optimizer_state": not settings.get("useOnChipStorage", True),
        "shard_optimizer_state": bool(settings.get("useReplicatedTensorSharding", False)),
    }


#: An empty version stands for any IPU.
_VERSIONS = {"ipu1": "gc2", "ipu2": "gc200", "ipu21": "c600"}
_VERSIONS |= {"1": "gc2", "2": "gc200", "21": "c600", "": "gc200"}
_CONNECTIONS = {
    name.replace("_", ""): name for name in ("always", "on_demand", "pre_compile", "never")
}
_OUTPUTS = {name.replace("_", ""): name for name in ("all", "sum", "final", "every_n", "default")}

#: Options whose values differ, too: each is converted to values of ours.
CONVERTED: dict[str, Convert] = {
    # TensorFlow
    "auto_select_ipus": _numbers("num_ipus"),
    "select_ipus": _numbers("device_ids"),
    "compilation_poplar_options": _poplar("engine_options"),
    "gcl_poplar_options": _poplar("collective_options"),
    "pooling.poplar_options": _poplar("pooling_options"),
    "matmuls.poplar_options": _poplar("matmul_options"),
    "convolutions.poplar_options": _poplar("convolution_options"),
    "device_connection.type": _named("connection", _CONNECTIONS),
    "device_connection.version": _named("machine", _VERSIONS),
    "ipu_model.version": _named("machine", _VERSIONS),
    "floating_point_behaviour.inv": _exception("inv"),
    "floating_point_behaviour.div0": _exception("div0"),
    "floating_point_behaviour.oflo": _exception("oflo"),
    "floating_point_behaviour.nanoo": lambda v: {"half_overflow": "nan"} if v else {},
    "floating_point_behaviour.set_all": _all_floating_point,
    "optimizations.prefetch_data_streams": lambda v: {"prefetch_depth": int(bool(v))},
    "optimizations.enable_graph_outlining": lambda v: {"outline": "auto" if v else "off"},
    "optimizations.merge_remote_buffers": _named(
        "merge_remote_buffers",
        {"nomerging": "no_merging", "merge": "merge", "ifbeneficial": "if_beneficial"},
    ),
    "scheduling.algorithm": _named(
        "schedule",
        {
            "choosebest": "auto",
            "postorder": "program",
            **dict.fromkeys(("clustering", "lookahead", "shortestpath"), "liveness"),
        },
    ),
    # PopTorch
    "useIpuId": _numbers("device_ids"),
    "connectionType": _named("connection", _CONNECTIONS),
    "useOfflineIpuTarget": _offline,
    "outputMode": _named("output_mode", _OUTPUTS),
    "disableProfiling": _no_profile,
    "setAvailableMemoryProportion": _proportion,
    "showCompilationProgressBar": _bar,
    "Precision.setPartialsType": _partials,
    "Precision.enableFloatingPointExceptions": _all_exceptions,
    "Training.accumulationAndReplicationReductionType": _named(
        "reduction", {"mean": "mean", "sum": "sum"}
    ),
    "Distributed.configureProcessId": lambda v: {
        "process_index": v[0],
        "process_count": v[1],
    },
    "TensorLocations.setOptimizerLocation": _optimizer_location,
    "_Popart.engineOptions": _poplar("engine_options"),
    "_Popart.outlineThreshold": lambda v: {"outline": "auto", "outline_threshold": int(v)},
    # Optimum
    "matmul_proportion": _proportion,
    "inference_matmul_proportion": _proportion,
    "enable_half_partials": lambda v: {"partials_type": "half" if v else "float"},
}

_STAGES = "stages are parts of the function: ipu.stage, ipu.block, ipu.pipeline"
_NAMES = "names in reports are JAX's named scopes and source lines"
_MODULE = "a model here is a pure function, and its state an argument"
_PATTERN = "the compiler has no patterns to choose from; its passes always run"
#: Options that have no counterpart, and why.
WITHOUT: dict[str, str] = {
    # PopTorch
    "appendToLocationExcludes": _NAMES,
    "sourceLocationExcludes": _NAMES,
    "disableModuleNamescope": _NAMES,
    "modelName": _NAMES,
    "broadcastBuffers": "state of replicas is an array with a sharding",
    "inputReplicaGrouping": "use ipu.replica_grouping",
    "logCycleCount": "compiled.cost_analysis() has the cycles of every program",
    "logDir": "reports are written where report.save says",
    "maxRepeatLogs": "messages that repeat are logged once",
    "relaxOptimizerAttributesChecks": "hyperparameters are arguments or constants",
    "syncPattern": "replicas meet at collectives only",
    "updatableNamedBuffers": _MODULE,
    "defaultOutputMode": _MODULE,
    "Precision.autocastPolicy": "pass a policy to ipu.autocast",
    "Precision.halfFloatCasting": "jax.numpy's type promotion decides",
    "Precision.runningStatisticsAlwaysFloat": "ipu.nn.batch_norm keeps them in float32",
    "Training.setMeanAccumulationAndReplicationReductionStrategy": "reduction= of ipu.pipeline: "
    "mean or running_mean",
    "TensorLocations.setAccumulatorLocation": "offload_accumulators= of ipu.pipeline",
    "TensorLocations.setActivationLocation": "offload_activations= of ipu.pipeline",
    "TensorLocations.setWeightLocation": "offload_weights= of ipu.pipeline",
    "Jit.traceModel": "JAX traces every function",
    "Distributed.disable": "a program runs on the IPUs of one process",
    "Distributed.setEnvVarNames": "a program runs on the IPUs of one process",
    "Distributed.IPUoFConfigFiles": "partitions of IPUs are chosen by the device's ids",
    "_Popart.set": _PATTERN,
    "_Popart.setPatterns": _PATTERN,
    "_Popart.saveInitializersToFile": "weights are arguments, never in the executable",
    "_Popart.disableGradAccumulationTensorStreams": "only a function's results are returned",
    "_Popart.accumulateOuterFragmentSettings.schedule": _PATTERN,
    "_Popart.accumulateOuterFragmentSettings.excludedVirtualGraphs": _PATTERN,
    "_Popart.subgraphCopyingStrategy": _PATTERN,
    "_Popart.scheduleNonWeightUpdateGradientConsumersEarly": "set schedule=liveness",
    "_Popart.enableExplicitIR": "there is one form of programs",
    # Optimum
    "mode": _MODULE,
    "layers_per_ipu": _STAGES,
    "inference_layers_per_ipu": _STAGES,
    "embedding_serialization_factor": "serialization_factor= of ipu.ops.embedding_lookup",
    "projection_serialization_factor": "use ipu.ops.serialized_matmul",
    "inference_projection_serialization_factor": "use ipu.ops.serialized_matmul",
    "serialized_embedding_splits_per_ipu": _STAGES,
    "serialized_projection_splits_per_ipu": _STAGES,
    "recompute_checkpoint_every_layer": "recompute_layers, or jax.checkpoint",
    "decompose_grad_sum": "additions of gradients are parts of the backward pass",
    "explicit_ir_inference": "there is one form of programs",
    "parallelize_kwargs": _STAGES,
    "execute_encoder_on_cpu_for_generation": "put its arrays on the CPU, as in any JAX program",
}
