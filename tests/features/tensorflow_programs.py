"""Configuration, feeds, loops, replicas, pipelines and optimizers of Graphcore's TensorFlow."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import ipujax as ipu
from tests.features.entry import Entry, Example, Reason

ONES = np.ones((4, 4), np.float32)
#: 1 added to ones twenty times.
TWENTY = np.arange(2.0, 22.0)[:, None, None] * ONES


def configured() -> Any:
    """`configure`, `get_config` and `reset_config`, which leave everything as it was."""
    before = ipu.get_config()
    try:
        ipu.configure(available_memory_proportion=0.3)
        during = ipu.get_config().get("available_memory_proportion")
    finally:
        ipu.reset_config(keep_devices=True)
        ipu.configure(before)
    return during, ipu.get_config() == before


def metadata() -> Any:
    known = ipu.IPUConfig.metadata("num_ipus")
    return known.name, known.default


def devices(num_ipus: Any) -> list[int]:
    """IPUs of each device of a configuration."""
    return ipu.IPUConfig().replace(num_ipus=num_ipus).machine.ipus


def repeated(outfeed: ipu.Outfeed, body: Callable[[Any], Any]) -> Any:
    jax.jit(lambda x: ipu.repeat(20, body, x, outfeed=outfeed))(ONES)
    return outfeed.dequeue()


def replicated() -> Any:
    """Twenty results of two replicas of [4, 4] have one more dimension, that of the replicas."""
    outfeed = ipu.Outfeed()
    loop = ipu.pmap(lambda x: ipu.repeat(20, one_more, x, outfeed=outfeed))
    loop(np.stack([ONES, ONES]))
    return outfeed.dequeue()


def one_more(x: Any) -> Any:
    return x + 1, x + 1


def fed() -> Any:
    data = [{"features": np.float32([i, i]), "labels": np.float32(i)} for i in range(5)]

    def body(loss: Any, batch: Any) -> Any:
        return loss + jnp.sum(batch["features"]) + batch["labels"]

    return jax.jit(lambda: ipu.repeat(5, body, 0.0, infeed=ipu.Infeed(data)))()


def exported() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "my_dataset.ipubatch"
        data = [{"a": np.float32(i), "b": np.float32(2 * i)} for i in range(200)]
        number = ipu.data.export_dataset(path, data, 100)
        back = list(ipu.data.DatasetFile(path))
        inputs = Path(folder) / "inputs.ipuarrays"
        ipu.data.export_inputs(inputs, {"x": ONES})
        return number, len(back), back[99], ipu.data.load_inputs(inputs)


def benchmark(run: Callable[..., str], data: Any) -> Any:
    epochs = json.loads(run(data, 2, 5, print_stats=False))["epochs"]
    return [(e["elements_processed"], e["total_bytes_processed"]) for e in epochs]


def replicas(function: Callable[..., Any], *x: Any) -> Any:
    return ipu.pmap(function)(*map(jnp.asarray, x))


def update(tx: optax.GradientTransformation, *gradients: Any, params: Any = None) -> Any:
    """The last update for these gradients."""
    state = tx.init(gradients[0] if params is None else params)
    for gradient in gradients:
        updates, state = tx.update(gradient, state, params)
    return updates


def mapped_gradients() -> Any:
    """Gradients of v0 v1 + v0 v2 + v1 v2 at 1, 2 and 3, with a decay of 0.01 of each variable."""
    v = [jnp.float32(i) for i in (1, 2, 3)]
    gradient = jax.grad(lambda v: v[0] * v[1] + v[0] * v[2] + v[1] * v[2])(v)
    tx = ipu.optim.map_gradient(optax.scale(1.0), lambda grad, var: grad + 0.01 * var)
    return update(tx, gradient, params=v)


def replicated_accumulation() -> Any:
    tx = ipu.optim.cross_replica_gradient_accumulation(optax.scale(1.0), 2, reduction="sum")
    return replicas(lambda a, b: update(tx, a, b), np.float32([1, 2]), np.float32([10, 20]))


def pipelined() -> Any:
    """The shapes of probabilities and classes of 250 batches, each stage on another IPU, twice."""

    def stage1(w: Any, image: Any) -> Any:
        return jax.nn.relu(image @ w)

    def stage2(w: Any, partial: Any) -> Any:
        logits = partial @ w
        return ipu.nn.softmax(logits), jnp.argmax(logits, 1)

    model = ipu.pipeline(
        [stage1, stage2], micro_batches=250, repeat_count=2, outputs="all", device_mapping=[3, 1]
    )
    weights = [jnp.ones((4, 3)), jnp.ones((3, 2))]
    found = jax.eval_shape(model, weights, jax.ShapeDtypeStruct((2, 250, 1, 4), jnp.float32))
    return [leaf.shape for leaf in jax.tree.leaves(found)]


def trained(**arguments: Any) -> Any:
    """The mean of four losses (w x)^2 and its gradient."""
    stages = [lambda w, x: w * x, lambda w, y: w * y * y]
    loss = ipu.pipeline(
        stages, micro_batches=4, reduction="mean", device_mapping=[0, 0], **arguments
    )
    return jax.value_and_grad(loss)([jnp.float32(1), jnp.float32(1)], jnp.arange(4.0))


MEANS = (3.5, [7.0, 3.5])


def outside() -> Any:
    def my_net(a: Any) -> Any:
        b = a * a
        return b + ipu.host_call(lambda b: b + 2, lambda b: b)(b)

    return jax.jit(my_net)(jnp.float32(3))


def sharded() -> Any:
    @jax.jit
    def net(x: Any) -> Any:
        with ipu.shard(0):
            x = x * 2
        return x + 1

    return net(3.0)


def fit() -> Any:
    """Steps, and the mean of the metrics that `evaluate` returns."""
    loop = ipu.training.Loop(
        lambda w, x: (w + x, x), evaluate=lambda w, x: {"sum": w + x}, steps_per_call=2
    )
    w = loop.train(jnp.float32(0), [np.float32(i) for i in range(4)], steps=4)
    return w, loop.evaluate(w, [np.float32(0), np.float32(2)])


def seeded() -> Any:
    """A host's seed, which leaves the keys of jax.random alone."""
    ipu.reset_seed(1)
    first = jax.random.uniform(jax.random.key(5))
    ipu.reset_seed(2)
    return first - jax.random.uniform(jax.random.key(5))


def with_options() -> Any:
    def product(x: Any) -> Any:
        with ipu.options(available_memory_proportion=0.2, partials_type="half"):
            return x @ x

    return jax.jit(product)(ONES)


OUTFEED = "18.5: ones, to which each of 20 steps adds 1, and the shapes of what is dequeued"
SELECT = "18.6, auto_select_ipus: its examples of one device and of two"
REPLICAS = "18.14.10 and 18.14.11: the collective's definition, over groups of consecutive replicas"
HORO = "18.10: its collective, over the replicas of one process"
PIPELINE = "18.14.6: stages give what they give one after the other; gradients are accumulated"
NO_NUMBER = "its document gives names and no numbers"

PROGRAMS: dict[str, Entry] = {
    "config.IPUConfig": Example(
        "18.3, IPUConfig: a value that is set is the one that is read",
        lambda: ipu.IPUConfig().replace(num_ipus=[1, 2]).get("num_ipus"),
        "1,2",
    ),
    "config.configure_ipu_system": Example(
        "18.3: an option holds from configure to reset", configured, (0.3, True)
    ),
    "config.get_ipu_config": Example(
        "18.3: an option holds from configure to reset", configured, (0.3, True)
    ),
    "config.reset_ipu_configuration": Example(
        "18.3: an option holds from configure to reset", configured, (0.3, True)
    ),
    "config.AttributeMetadata": Example(
        "18.3, get_attribute_metadata: the name and the default of an attribute",
        metadata,
        ("devices.num_ipus", ""),
    ),
    "config.DeviceConnectionType": Reason(
        "an enumeration, whose members the row of device_connection.type sets",
        "tests/features/test_options.py",
    ),
    "config.SelectionOrder": Reason(
        "an enumeration, whose members the row of selection_order sets",
        "tests/features/test_options.py",
    ),
    "config.SchedulingAlgorithm": Example(
        "18.3, SchedulingAlgorithm: its five members",
        lambda: [
            ipu.IPUConfig.from_json(json.dumps({"scheduling.algorithm": name})).get("schedule")
            for name in ("CHOOSE_BEST", "CLUSTERING", "POST_ORDER", "LOOK_AHEAD", "SHORTEST_PATH")
        ],
        ["auto", "liveness", "program", "liveness", "liveness"],
    ),
    "config.MergeRemoteBuffersBehaviour": Reason(
        "an enumeration, whose members the row of merge_remote_buffers sets",
        "tests/features/test_options.py",
    ),
    "config.ExecutionProfileType": Reason(
        "profiles are text of Poplar without documented numbers", "tests/reporting/test_report.py"
    ),
    "config.VerificationOptions": Reason(
        "keys of hardware that this project has no counterpart of",
        "tests/api/feed/test_verified.py",
    ),
    "ipu_compiler.compile": Example(
        "18.2: a compiled function of the inputs", lambda: jax.jit(lambda x: x + 1)(ONES), ONES + 1
    ),
    "scopes.frontend_attribute": Example(
        "18.3, scopes: an attribute of a scope keeps the results", with_options, ONES * 4
    ),
    "scopes.ipu_jit_scope": Example(
        "18.3, scopes: operations compiled together",
        lambda: jax.jit(lambda x: x + 1)(ONES),
        ONES + 1,
    ),
    "scopes.ipu_scope": Example(
        "18.3, scopes: operations run on the device that is named",
        lambda: placed(1),
        "1",
    ),
    "scopes.ipu_shard": Example(
        "18.3, scopes: operations on one shard keep their results", sharded, 7.0
    ),
    "scopes.outside_compilation_scope": Example(
        "18.3, scopes: its example a * a + (a * a + 2), the second sum on the host", outside, 20.0
    ),
    "scopes.partials_type": Example(
        "18.3, scopes: partials of a product of ones are exact in either type",
        with_options,
        ONES * 4,
    ),
    "ipu_infeed_queue.IPUInfeedQueue": Example(
        "18.4: a body that takes features and labels of each element in their order", fed, 30.0
    ),
    "ipu_outfeed_queue.IPUOutfeedQueue": Example(
        OUTFEED,
        lambda: [
            repeated(ipu.Outfeed(), one_more),
            replicated(),
            repeated(ipu.Outfeed("last"), one_more)[..., 0, 0],
            repeated(ipu.Outfeed(), lambda x: (x + 1, {"x": x + 1, "y": jnp.sum(x + 1)})),
        ],
        [TWENTY, np.stack([TWENTY] * 2, 1), 21.0, {"x": TWENTY, "y": 16 * np.arange(2.0, 22.0)}],
    ),
    "utils.auto_select_ipus": Example(
        SELECT, lambda: [devices(1), devices([2, 2]), devices([1, 2])], [[1], [2, 2], [1, 2]]
    ),
    "utils.create_ipu_config": Reason(
        "a deprecated structure whose arguments are options of the table above"
    ),
    "utils.set_compilation_options": Reason(
        "deprecated setters of the options of the table above, each of which has its test"
    ),
    "utils.set_report_options": Reason(
        "reports have no documented numbers", "tests/reporting/test_report.py"
    ),
    "utils.set_verification_options": Reason(
        "keys of hardware that this project has no counterpart of",
        "tests/api/feed/test_verified.py",
    ),
    "utils.export_dataset_to_file": Example(
        "18.6: 100 elements of two tensors each; here one file has both",
        exported,
        (100, 100, {"a": 99, "b": 198}, {"x": ONES}),
    ),
    "utils.extract_all_events": Reason(
        "events of TensorFlow's own, for which reports and traces stand",
        "tests/reporting/test_report.py",
    ),
    "utils.get_num_of_ipus_in_device": Example(
        "18.6: the number of IPUs of a device", lambda: jax.devices("ipu")[0].num_ipus, 1
    ),
    "utils.move_variable_initialization_to_cpu": Example(
        "18.6: variables are initialised on the host and moved", lambda: initialised(), ONES
    ),
    "utils.reset_ipu_seed": Example(
        "18.6: seeds the hardware's generator; keys of jax.random have their own", seeded, 0.0
    ),
    "utils.running_on_ipu_model": Example(
        "18.6: True on the IPU Model", lambda: ipu.running_on_ipu_model(), True
    ),
    "utils.use_synthetic_data_for": Example(
        "18.6: data of one value on the device instead of the feed's",
        lambda: jax.jit(
            lambda x: ipu.repeat(
                3,
                jnp.add,
                x,
                infeed=ipu.data.Synthetic(jax.ShapeDtypeStruct((2,), np.float32), "ones"),
            )
        )(jnp.zeros(2)),
        [3, 3],
    ),
    "loops.repeat": Example(
        "18.8: a body that is run n times, or while the condition holds",
        lambda: [
            jax.jit(lambda x: ipu.repeat(20, lambda x: x + 1, x))(1.0),
            jax.jit(lambda x: ipu.while_loop(lambda x: x < 10, lambda x: 2 * x, x))(1.0),
        ],
        [21.0, 16.0],
    ),
    "ipu_multi_worker_strategy.IPUMultiWorkerStrategy": Example(
        "18.9: in a training loop gradients are summed over the workers, here over replicas",
        lambda: replicas(
            lambda g: update(ipu.optim.cross_replica(optax.scale(1.0), "sum"), g),
            np.float32([1, 2]),
        ),
        [3, 3],
    ),
    "horovod.allgather": Example(
        HORO,
        lambda: [
            *replicas(
                lambda x: jax.lax.all_gather(x, "replica", tiled=True),
                np.float32([[1, 2], [3, 4]]),
            ),
            ipu.distributed.allgather(np.float32([1, 2, 3, 4])),  # tests/hosts: of processes
        ],
        [[1, 2, 3, 4]] * 3,
    ),
    "horovod.allreduce": Example(
        "18.10, allreduce: the average unless op says Sum",
        lambda: [
            replicas(ipu.cross_replica_mean, np.float32([1, 2])),
            replicas(ipu.cross_replica_sum, np.float32([1, 2])),
            ipu.distributed.allreduce(np.float32([5, 6])),  # tests/hosts: of processes
        ],
        [[1.5, 1.5], [3, 3], [5, 6]],
    ),
    "horovod.broadcast": Example(
        HORO,
        lambda: [
            *replicas(lambda x: ipu.all_gather(x)[1], np.float32([1, 2, 3])),
            ipu.distributed.broadcast(np.float32(4)),  # tests/hosts: of processes
        ],
        [2, 2, 2, 4],
    ),
    "dataset_benchmark.dataset_benchmark": Example(
        "18.11.1: elements and bytes of each epoch",
        lambda: [
            benchmark(ipu.data.dataset_benchmark, [ONES] * 10),
            benchmark(ipu.data.infeed_benchmark, ipu.Infeed([ONES] * 10)),
        ],
        [[(5, 5 * 64)] * 2] * 2,
    ),
    "data.ops.dataset_ops.BufferDataset": Example(
        "18.11.2: the number of elements is a multiple of buffer_size",
        lambda: list(ipu.data.Buffered(range(10), 4)),
        list(range(8)),
    ),
    "ipu_estimator.IPUEstimator": Example(
        "18.12: train runs steps over batches; evaluate averages metrics",
        fit,
        (6.0, {"sum": 7.0}),
    ),
    "pipelining_ops.pipeline": Example(
        "18.14.6: the first example, 250 batches run twice",
        lambda: [pipelined(), trained(schedule="sequential")],
        [[(2, 250, 1, 2), (2, 250, 1)], MEANS],
    ),
    "pipelining_ops.PipelineStageOptions": Example(
        PIPELINE,
        lambda: jax.jit(ipu.stage(lambda x: x @ x, ipu=0, options={"partials_type": "half"}))(ONES),
        ONES * 4,
    ),
    "pipelining_ops.RecomputationMode": Example(PIPELINE, lambda: trained(remat=True), MEANS),
    "all_to_all_op.all_gather": Example(
        REPLICAS,
        lambda: [
            replicas(lambda x: ipu.all_gather(x, 2), np.float32([1, 2, 3, 4])),
            replicas(lambda x: ipu.all_to_all(x, 0, 0), np.float32([[1, 2], [3, 4]])),
        ],
        [[[1, 2], [1, 2], [3, 4], [3, 4]], [[1, 3], [2, 4]]],
    ),
    "cross_replica_ops.cross_replica_sum": Example(
        REPLICAS,
        lambda: [
            replicas(lambda x: ipu.cross_replica_sum(x, 2), np.float32([1, 2, 3, 4])),
            replicas(ipu.assume_equal_across_replicas, np.float32([5, 5])),
        ],
        [[3, 3, 7, 7], [5, 5]],
    ),
    "reduce_scatter_op.reduce_scatter": Example(
        "18.14.13: its example of three elements on two replicas",
        lambda: replicas(ipu.reduce_scatter, np.float32([[1, 2, 3], [10, 20, 30]])),
        [[11, 22], [33, 0]],
    ),
    "replication_ops.replication_index": Example(
        "18.14.15: the index of each replica",
        lambda: replicas(lambda x: x + ipu.replication_index(), np.zeros(4, np.int32)),
        [0, 1, 2, 3],
    ),
    "summary_ops.ipu_compile_summary": Reason(NO_NUMBER, "tests/reporting/test_report.py"),
    "optimizers.CrossReplicaOptimizer": Example(
        "18.15.1: gradients are averaged over the replicas",
        lambda: replicas(
            lambda g: update(ipu.optim.cross_replica(optax.scale(1.0)), g), np.float32([1, 2])
        ),
        [1.5, 1.5],
    ),
    "optimizers.GradientAccumulationOptimizer": Example(
        "18.15: gradients of the mini-batches are accumulated, which is their sum",
        lambda: update(
            ipu.optim.gradient_accumulation(optax.scale(1.0), 2, reduction="sum"),
            jnp.float32([1, 2]),
            jnp.float32([3, 4]),
        ),
        [4, 6],
    ),
    "optimizers.CrossReplicaGradientAccumulationOptimizer": Example(
        "18.15: gradients are accumulated, then reduced over the replicas",
        replicated_accumulation,
        [33, 33],
    ),
    "optimizers.MapGradientOptimizer": Example(
        "18.15: its example, with a decay of 0.01", mapped_gradients, [5.01, 4.02, 3.03]
    ),
    "optimizers.IpuOptimizer": Reason("an abstract class, of which optax has none"),
    "optimizers.ShardedOptimizer": Reason(
        "functions of TensorFlow's graph, for which shardings stand",
        "tests/stages/test_pipelines.py",
    ),
    "TF_POPLAR_FLAGS": Reason("a list of flags, each of which is an option with its own test"),
    "TF_CONFIG": Reason("a description of workers, which jax.distributed.initialize takes"),
}


def placed(number: int) -> str:
    device = jax.devices("ipu")[number]
    with jax.default_device(device):
        (found,) = (jnp.ones(2) + 1).devices()
    return str(found.id)


def initialised() -> Any:
    with jax.default_device(jax.devices("cpu")[0]):
        weights = jnp.ones((4, 4))
    return jax.device_put(weights, jax.devices("ipu")[0])
