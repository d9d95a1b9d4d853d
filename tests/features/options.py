"""Options: values of the old tools' documents, and what a file of options makes of them.

An option that sets nothing has no counterpart: the page and one line of the log say why. What the
options of ours do is tested where they are; here the names and the values are.
"""

from __future__ import annotations

from tests.features.entry import Entry, Setting

S = Setting
_TILES = '{"availableMemoryProportion": "0.1"}'
_FLAGS = {"availableMemoryProportion": "0.1"}
_SYNC = {"opt.useAutoloader": "true", "target.syncReplicasIndependently": "true"}
_EXCEPTIONS = {"floating_point_exceptions": "inv,div0,oflo"}

#: Section 18.3 of the API of Graphcore's TensorFlow: the options of IPUConfig and their examples.
TENSORFLOW: dict[str, Entry] = {
    "allow_recompute": S(True, {"allow_recompute": True}),
    "selection_order": S("SelectionOrder.ZIGZAG", {"selection_order": "zigzag"}),
    "serialization_output_folder": S("/tmp/cache", {"executable_cache_dir": "/tmp/cache"}),
    "compilation_poplar_options": S(
        {"debug.outOfMemory": "true"}, {"engine_options": '{"debug.outOfMemory": "true"}'}
    ),
    "gcl_poplar_options": S(_FLAGS, {"collective_options": _TILES}),
    "auto_select_ipus": S([1, 2], {"num_ipus": "1,2"}),
    "select_ipus": S([24, 25], {"device_ids": "24,25"}),
    "convolutions.poplar_options": S(_FLAGS, {"convolution_options": _TILES}),
    "device_connection.type": S("DeviceConnectionType.ON_DEMAND", {"connection": "on_demand"}),
    "device_connection.version": S("ipu21", {"machine": "c600"}),
    "device_connection.enable_remote_buffers": S(False, {"enable_remote_buffers": False}),
    "experimental.always_rearrange_copies_on_the_host": S(True, {"rearrange_copies_on_host": True}),
    "experimental.enable_remote_buffer_embedding": S(True, {"remote_buffer_embedding": True}),
    "experimental.multi_replica_distribution.process_index": S(1, {"process_index": 1}),
    "experimental.multi_replica_distribution.process_count": S(2, {"process_count": 2}),
    "floating_point_behaviour.inv": S(True, {"floating_point_exceptions": "inv"}),
    "floating_point_behaviour.div0": S(True, {"floating_point_exceptions": "div0"}),
    "floating_point_behaviour.oflo": S(True, {"floating_point_exceptions": "oflo"}),
    "floating_point_behaviour.esr": S(True, {"stochastic_rounding": True}),
    "floating_point_behaviour.nanoo": S(True, {"half_overflow": "nan"}),
    "floating_point_behaviour.set_all": S(
        True, _EXCEPTIONS | {"stochastic_rounding": True, "half_overflow": "nan"}
    ),
    "io_tiles.num_io_tiles": S(32, {"num_io_tiles": 32}),
    "io_tiles.place_ops_on_io_tiles": S(True, {"place_ops_on_io_tiles": True}),
    "io_tiles.available_memory_proportion": S(0.5, {"io_tile_available_memory_proportion": 0.5}),
    "ipu_model.compile_ipu_code": S(False, {"compile_ipu_code": False}),
    "ipu_model.tiles_per_ipu": S(8, {"num_tiles": 8}),
    "ipu_model.version": S("ipu21", {"machine": "c600"}),
    "matmuls.clear_pass_type": S(True, {"clear_pass_type": True}),
    "matmuls.poplar_options": S(_FLAGS, {"matmul_options": _TILES}),
    "norms.use_stable_statistics": S(True, {"use_stable_statistics": True}),
    "norms.experimental.distributed_batch_norm_replica_group_size": S(
        2, {"batch_norm_replica_group_size": 2}
    ),
    "optimizations.prefetch_data_streams": S(False, {"prefetch_depth": 0}),
    "optimizations.combine_embedding_lookups": S(True, {"combine_embedding_lookups": True}),
    "optimizations.combine_matmuls": S(True, {"combine_matmuls": True}),
    "optimizations.enable_graph_outlining": S(False, {"outline": "off"}),
    "optimizations.merge_infeed_io_copies": S(True, {"merge_infeed_copies": True}),
    "optimizations.maximum_cross_replica_sum_buffer_size": S(
        1000, {"maximum_cross_replica_sum_buffer_size": 1000}
    ),
    "optimizations.maximum_reduce_scatter_buffer_size": S(
        1000, {"maximum_reduce_scatter_buffer_size": 1000}
    ),
    "optimizations.maximum_inter_ipu_copies_buffer_size": S(
        1000, {"maximum_inter_ipu_copies_buffer_size": 1000}
    ),
    "optimizations.maximum_send_recv_cluster_size": S(
        1000, {"maximum_send_recv_cluster_size": 1000}
    ),
    "optimizations.minimum_remote_tensor_size": S(256, {"minimum_remote_tensor_size": 256}),
    "optimizations.merge_remote_buffers": S(
        "MergeRemoteBuffersBehaviour.MERGE", {"merge_remote_buffers": "merge"}
    ),
    "optimizations.enable_gather_simplifier": S(True, {"gather_simplifier": True}),
    "optimizations.triangular_solve_expander_block_size": S(
        64, {"triangular_solve_expander_block_size": 64}
    ),
    "optimizations.cholesky_block_size": S(64, {"cholesky_block_size": 64}),
    "optimizations.enable_fast_math": S(True, {"fast_math": True}),
    "pooling.poplar_options": S(
        {"poolUseIntrospectiveMapping": "false"},
        {"pooling_options": '{"poolUseIntrospectiveMapping": "false"}'},
    ),
    "scheduling.algorithm": S("SchedulingAlgorithm.POST_ORDER", {"schedule": "program"}),
    "scheduling.maximum_scheduler_lookahead_depth": S(7, {"scheduler_lookahead_depth": 7}),
    "scheduling.maximum_scheduler_search_space_size": S(70, {"scheduler_search_space_size": 70}),
}

#: Sections 4.1 to 4.11 of PopTorch's features, and the options that Optimum sets.
POPTORCH: dict[str, Entry] = {
    "appendToLocationExcludes": S(["site-packages"], {}),
    "autoRoundNumIPUs": S(True, {"auto_round_num_ipus": True}),
    "broadcastBuffers": S(False, {}),
    "connectionType": S("ConnectionType.Never", {"connection": "never"}),
    "defaultOutputMode": S(True, {}),
    "deviceIterations": S(4, {"device_iterations": 4}),
    "disableModuleNamescope": S(True, {}),
    "disableProfiling": S(True, {"profile": False}),
    "enableExecutableCaching": S("/tmp/cache", {"executable_cache_dir": "/tmp/cache"}),
    "enableProfiling": S(False, {"profile": False}),
    "enableStableNorm": S(True, {"use_stable_statistics": True}),
    "enableSyntheticData": S(True, {"synthetic_data": True}),
    "inputReplicaGrouping": S([4, "CommGroupType.Consecutive"], {}),
    "logCycleCount": S(True, {}),
    "logDir": S("logs", {}),
    "maxRepeatLogs": S(4, {}),
    "modelName": S("bert", {}),
    "numIOTiles": S(32, {"num_io_tiles": 32}),
    "outputMode": S("OutputMode.Sum", {"output_mode": "sum"}),
    "randomSeed": S(42, {"seed": 42}),
    "relaxOptimizerAttributesChecks": S(True, {}),
    "replicationFactor": S(8, {"replication_factor": 8}),
    "setAvailableMemoryProportion": S(
        {"IPU0": 0.1, "IPU1": 0.1}, {"available_memory_proportion": 0.1}
    ),
    "setExecutionStrategy": S("ShardedExecution", {"execution_strategy": "ShardedExecution"}),
    "showCompilationProgressBar": S(False, {"progress_bar": "off"}),
    "sourceLocationExcludes": S(["site-packages"], {}),
    "syncPattern": S("SyncPattern.Full", {}),
    "updatableNamedBuffers": S(["buffer"], {}),
    "useIpuId": S(24, {"device_ids": "24"}),
    "useIpuModel": S(False, {"use_model": False}),
    "useOfflineIpuTarget": S(21, {"connection": "never", "machine": "c600"}),
    "Precision.autocastEnabled": S(True, {"autocast": True}),
    "Precision.autocastPolicy": S("policy", {}),
    "Precision.enableFloatingPointExceptions": S(True, _EXCEPTIONS),
    "Precision.enableStochasticRounding": S(True, {"stochastic_rounding": True}),
    "Precision.halfFloatCasting": S("HalfFloatCastingBehavior.HalfUpcastToFloat", {}),
    "Precision.runningStatisticsAlwaysFloat": S(True, {}),
    "Precision.setPartialsType": S("torch.float16", {"partials_type": "half"}),
    "Training.accumulationAndReplicationReductionType": S(
        "ReductionType.Mean", {"reduction": "mean"}
    ),
    "Training.gradientAccumulation": S(16, {"gradient_accumulation": 16}),
    "Training.setAutomaticLossScaling": S(True, {"auto_loss_scaling": True}),
    "Training.setMeanAccumulationAndReplicationReductionStrategy": S("Running", {}),
    "TensorLocations.numIOTiles": S(32, {"num_io_tiles": 32}),
    "TensorLocations.setAccumulatorLocation": S({"useOnChipStorage": False}, {}),
    "TensorLocations.setActivationLocation": S({"useOnChipStorage": False}, {}),
    "TensorLocations.setOptimizerLocation": S(
        {"useOnChipStorage": False, "useReplicatedTensorSharding": True},
        {"offload_optimizer_state": True, "shard_optimizer_state": True},
    ),
    "TensorLocations.setWeightLocation": S({"useOnChipStorage": False}, {}),
    "Jit.traceModel": S(True, {}),
    "Distributed.configureProcessId": S([1, 2], {"process_index": 1, "process_count": 2}),
    "Distributed.disable": S(True, {}),
    "Distributed.IPUoFConfigFiles": S("~/.ipuof.conf.d/*.conf", {}),
    "Distributed.setEnvVarNames": S(["WORLD_SIZE", "RANK"], {}),
}

#: optimum/graphcore/ipu_configuration.py: what IPUConfig gives to PopTorch.
OPTIMUM: dict[str, Entry] = {
    "mode": S("training", {}),
    "execute_encoder_on_cpu_for_generation": S(True, {}),
    "replication_factor": S(2, {"replication_factor": 2}),
    "inference_replication_factor": S(2, {"replication_factor": 2}),
    "device_iterations": S(4, {"device_iterations": 4}),
    "inference_device_iterations": S(4, {"device_iterations": 4}),
    "gradient_accumulation_steps": S(16, {"gradient_accumulation": 16}),
    "auto_loss_scaling": S(True, {"auto_loss_scaling": True}),
    "output_mode": S("final", {"output_mode": "final"}),
    "seed": S(42, {"seed": 42}),
    "optimizer_state_offchip": S(True, {"offload_optimizer_state": True}),
    "replicated_tensor_sharding": S(True, {"shard_optimizer_state": True}),
    "matmul_proportion": S([0.1, 0.1], {"available_memory_proportion": 0.1}),
    "inference_matmul_proportion": S(0.1, {"available_memory_proportion": 0.1}),
    "ipus_per_replica": S(4, {"ipus_per_device": 4}),
    "layers_per_ipu": S([3, 3, 3, 3], {}),
    "inference_layers_per_ipu": S([12], {}),
    "executable_cache_dir": S("/tmp/cache", {"executable_cache_dir": "/tmp/cache"}),
    "enable_half_partials": S(True, {"partials_type": "half"}),
    "explicit_ir_inference": S(True, {}),
    "embedding_serialization_factor": S(2, {}),
    "projection_serialization_factor": S(2, {}),
    "inference_projection_serialization_factor": S(2, {}),
    "serialized_embedding_splits_per_ipu": S([1, 1, 0, 0], {}),
    "serialized_projection_splits_per_ipu": S([0, 0, 1, 1], {}),
    "recompute_checkpoint_every_layer": S(True, {}),
    "decompose_grad_sum": S(True, {}),
    "parallelize_kwargs": S({"a": 1}, {}),
    "_Popart.set": S(["enableTiming", True], {}),
    "_Popart.setPatterns": S({"TiedGather": True, "TiedGatherAccumulate": True}, {}),
    "_Popart.saveInitializersToFile": S("weights", {}),
    "_Popart.disableGradAccumulationTensorStreams": S(True, {}),
    "_Popart.accumulateOuterFragmentSettings.schedule": S(3, {}),
    "_Popart.accumulateOuterFragmentSettings.excludedVirtualGraphs": S(["0"], {}),
    "_Popart.outlineThreshold": S(10.0, {"outline_threshold": 10, "outline": "auto"}),
    "_Popart.subgraphCopyingStrategy": S(1, {}),
    "_Popart.scheduleNonWeightUpdateGradientConsumersEarly": S(True, {}),
    "_Popart.enableExplicitIR": S(True, {}),
    "_Popart.engineOptions": S(
        _SYNC,
        {
            "engine_options": '{"opt.useAutoloader": "true", '
            '"target.syncReplicasIndependently": "true"}'
        },
    ),
}
