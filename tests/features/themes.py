"""The table by theme: each theme is told by rows of the other tables, or has tests elsewhere."""

from __future__ import annotations

from tests.features.entry import Entry, Reason, Rows


def of(*names: str) -> Rows:
    return Rows(names)


def ours(test: str) -> Reason:
    return Reason("no old tool has it, so that none documents numbers", test)


THEMES: dict[str, Entry] = {
    "1": of("ipu_compiler.compile", "poptorch.trainingModel", "loops.repeat"),
    "2": Reason("operations are XLA's own, not of these documents", "tests/conformance"),
    "3": of("--int64_to_int32_conversion"),
    "4": of("utils.reset_ipu_seed", "randomSeed"),
    "5": of(
        "optimizations.cholesky_block_size", "optimizations.triangular_solve_expander_block_size"
    ),
    "6": Reason("donation is JAX's own and has no documented numbers", "tests/jax_features"),
    "7": of("internal_ops.print_tensor", "custom_ops.cpu_user_operation"),
    "8": of("serialization_output_folder", "enableExecutableCaching"),
    "9": of("logCycleCount"),
    "10 to 14": of("replicaGrouping", "cross_replica_ops.cross_replica_sum", "horovod.allreduce"),
    "15, 16": of("optimizers.CrossReplicaOptimizer", "optimizers.GradientAccumulationOptimizer"),
    "17": of("norms.experimental.distributed_batch_norm_replica_group_size"),
    "18": of("pipelining_ops.pipeline", "poptorch.PipelinedExecution"),
    "19": of("pipelining_ops.PipelineStageOptions"),
    "20": of("poptorch.OutputMode", "ipu_outfeed_queue.IPUOutfeedQueue"),
    "21": of("pipelining_ops.RecomputationMode", "keras.layers.RecomputationCheckpoint"),
    "22": of("TensorLocations.setActivationLocation", "poptorch.TensorLocationSettings"),
    "23": Reason(
        "experimental options of pipelines without numbers", "tests/stages/test_weight_shards.py"
    ),
    "24": of("scopes.ipu_shard", "optimizers.ShardedOptimizer"),
    "25": of("poptorch.Block", "poptorch.Stage"),
    "26": of("poptorch.Liveness", "poptorch.PipelinedExecution"),
    "27": of("converter", "solution_dir", "priority"),
    "28": of("functional_ops.outlined_function", "optimizations.enable_graph_outlining"),
    "29": of("math_ops.serialized_matmul", "embedding_ops.embedding_lookup"),
    "30": of("poptorch.set_available_memory", "scopes.partials_type"),
    "31": of("poptorch.TensorLocationSettings"),
    "32": of("io_tiles.num_io_tiles", "io_tiles.place_ops_on_io_tiles"),
    "33": of("loops.repeat", "deviceIterations"),
    "34": of("ipu_infeed_queue.IPUInfeedQueue", "ipu_outfeed_queue.IPUOutfeedQueue"),
    "35": of(
        "poptorch.DataLoader",
        "data.ops.dataset_ops.BufferDataset",
        "dataset_benchmark.dataset_benchmark",
    ),
    "36": of("utils.export_dataset_to_file", "utils.use_synthetic_data_for"),
    "37": of("poptorch.optim.SGD"),
    "38": of("setOptimizer", "VariableAttributes.markAsConstant"),
    "39": of("Training.setAutomaticLossScaling", "poptorch.optim.SGD"),
    "40": Reason(
        "checkpoints are Orbax's, not of these documents", "tests/training/test_resume.py"
    ),
    "41": of("ipu_estimator.IPUEstimator"),
    "42": of("copyWeightsToHost"),
    "43 to 45": of("floating_point_behaviour.nanoo", "scopes.partials_type"),
    "46": of("poptorch.autocast", "poptorch.HalfFloatCastingBehavior"),
    "47": of("optimizations.enable_fast_math", "norms.use_stable_statistics"),
    "48": of("nn_ops.gelu"),
    "49": of(
        "keras.layers.GroupNormalization",
        "keras.layers.InstanceNormalization",
        "keras.layers.LayerNormalization",
        "normalization_ops.layer_norm",
    ),
    "50": of("rand_ops.dropout"),
    "51": of("keras.layers.GRU", "keras.layers.LSTM", "rnn_ops.PopnnDynamicGRU"),
    "52": of("nn_ops.ctc_loss", "nn_ops.ctc_loss_with_log_probs", "nn_ops.ctc_beam_search_decoder"),
    "53": of("nn_ops.nce_loss"),
    "54": of("nn_ops.multi_conv", "poptorch.MultiConv"),
    "55": of("slicing_ops.sequence_slice"),
    "56": of("statistics_ops.fixed_width_bins"),
    "57": of("image_ops.normalise_image"),
    "58": of("internal_ops.print_tensor", "poptorch.nop", "poptorch.identity_loss"),
    "59": of("embedding_ops.HostEmbedding"),
    "60": of("custom_ops.codelet_expression_op"),
    "61": of("custom_ops.precompiled_user_op", "poptorch.custom_op"),
    "62": of("custom_ops.cpu_user_operation", "scopes.outside_compilation_scope"),
    "63": of("config.IPUConfig", "config.configure_ipu_system", "loadFromFile"),
    "64": of("auto_select_ipus", "selection_order", "device_connection.type"),
    "65": of("utils.auto_select_ipus", "autoRoundNumIPUs"),
    "66": of("utils.running_on_ipu_model", "poptorch.isRunningOnIpu"),
    "67": of("scheduling.algorithm", "optimizations.maximum_cross_replica_sum_buffer_size"),
    "68": of("poptorch.setLogLevel", "compilation_poplar_options"),
    "69": of("serialization_output_folder", "POPTORCH_CACHE_DIR"),
    "70, 71": of("--dir", "--config_file"),
    "72": of("--embedded_runtime_save_config"),
    "73": of("utils.set_report_options", "poptorch.profiling.Channel"),
    "74": of("poptorch.Error"),
    "75, 76": of(
        "ipu_multi_worker_strategy.IPUMultiWorkerStrategy",
        "horovod.allreduce",
        "experimental.multi_replica_distribution.process_count",
    ),
    "77": of("utils.extract_all_events", "summary_ops.ipu_compile_summary"),
    "78": Reason("sources that build against the SDK have no numbers", "tests/sdk"),
    "79": Reason("tessellate-ipu is none of the documents of the tables", "tests/tile"),
    "80 to 86": Reason("pages and examples have no numbers to compare", "tests/examples"),
    "87": ours("tests/api/cost/test_cost.py"),
    "88": ours("tests/api/cost/test_remedies.py"),
    "89": ours("tests/verification"),
    "90": ours("tests/reporting/test_page.py"),
    "91": ours("tests/api/configure/test_devices.py"),
    "92": ours("tests/conformance"),
    "93": ours("tests/api/configure/test_devices.py"),
    "94": ours("tests/planner/test_plan_file.py"),
    "95": ours("tests/tile"),
    "96": ours("tests/training/test_full_disk.py"),
}
