"""Functions, classes and variables of PopTorch: its features, sections 4.1 to 4.11."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu
from tests.features.entry import Entry, Example, Reason
from tests.features.tensorflow_ops import X, convolutions, decoded
from tests.features.tensorflow_programs import one_more, update, with_options

LEVELS = ["OFF", "ERR", "WARN", "INFO", "DEBUG", "TRACE"]
ONE = np.float32([1.0])
#: Of (w x)^2 at w = 1 and x = 3, for one strategy and each liveness; of the mean for 1 and 3.
GRADIENTS = [18.0, *[18.0] * len(ipu.Liveness), 10.0]


def from_file() -> Any:
    """The four lines of the example."""
    lines = (
        "deviceIterations(1)\nsetExecutionStrategy(poptorch.ShardedExecution())\n"
        "replicationFactor(1)\nenableSyntheticData(True)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "poptorch.conf"
        path.write_text(lines)
        config = ipu.IPUConfig.from_file(path)
    names = ("device_iterations", "execution_strategy", "replication_factor", "synthetic_data")
    return {name: str(config.get(name)) for name in names}


def blocks() -> Any:
    """Each block on its IPU; an inner one overrides the outer one."""
    strategy = ipu.ShardedExecution(ipu.Stage("one", ipu=0), ipu.Stage("two", ipu=0))

    @ipu.block("two")
    def last(x: Any) -> Any:
        return x * 3

    def model(x: Any) -> Any:
        with ipu.block("one"):
            x = x + 1
        return last(x)

    return jax.jit(strategy.apply(model))(jnp.float32(1))


def strategies() -> Any:
    """The same gradient by every strategy."""

    def loss(w: Any, x: Any) -> Any:
        with ipu.block("A"):
            x = w * x
        with ipu.block("B"):
            return x * x

    a, b = ipu.Stage("A", ipu=0), ipu.Stage("B", ipu=0)
    phases = [ipu.Phase("A", ipus=[0]), ipu.Phase("B", ipus=[0])]
    one_at_a_time = [ipu.ShardedExecution(a, b).apply(loss)]
    for mode in ipu.Liveness:
        one_at_a_time.append(ipu.SerialPhasedExecution(*phases, liveness=mode).apply(loss))
    mean = ipu.PipelinedExecution(a, b).apply(loss, micro_batches=2, reduction="mean")
    found = [jax.jit(jax.grad(f))(jnp.float32(1), jnp.float32(3)) for f in one_at_a_time]
    found.append(jax.jit(jax.grad(mean))(jnp.float32(1), jnp.float32([1, 3])))
    return found


def outputs() -> Any:
    """Four results by each mode: all, every second one, the last one, their sum."""
    modes = (("all", 1), ("all", 2), ("final", 1), ("sum", 1))
    found = []
    for mode, every in modes:
        outfeed = ipu.Outfeed(mode, every=every)
        jax.jit(lambda x, o=outfeed: ipu.repeat(4, one_more, x, outfeed=o))(jnp.float32(0))
        found.append(outfeed.dequeue())
    return found


def sgd() -> Any:
    """One step of each optimizer at 1 with a gradient of 2, without and with loss scaling."""
    gradient = jnp.float32(2)
    scaled = ipu.optim.sgd(0.1, loss_scaling=8.0)
    return [
        update(ipu.optim.sgd(0.1), gradient),
        update(scaled, 8 * gradient),
        update(ipu.optim.sgd(0.1, momentum=0.9), gradient, gradient),
        update(ipu.optim.adam(0.1), gradient, params=jnp.float32(1)),
        update(ipu.optim.adamw(0.1, weight_decay=0.5), gradient, params=jnp.float32(1)),
        update(ipu.optim.rmsprop(0.1, decay=0.75), gradient, params=jnp.float32(1)),
        update(ipu.optim.lamb(0.1), gradient, params=jnp.float32(1)),
    ]


def new_rate() -> Any:
    """An attribute that is variable changes without another compilation."""
    tx = ipu.optim.sgd(ipu.optim.variable(1.0), momentum=0.0)
    state = tx.init(ONE)
    step = jax.jit(lambda gradient, state: tx.update(gradient, state)[0])
    first = step(ONE, state)
    second = step(ONE, ipu.optim.set_hyperparameters(state, learning_rate=0.5))
    return first, second, step._cache_size()


def identity_loss() -> Any:
    """The scaled mean squared error of the example, and its gradient."""
    target = jnp.float32([0, 1])

    def custom_loss(output: Any) -> Any:
        difference = output - target
        return ipu.ops.identity_loss(difference * difference * 5, "mean")

    return jax.value_and_grad(custom_loss)(jnp.float32([1, 3]))


def updated() -> Any:
    @jax.jit
    def run(x: Any, start: Any) -> Any:
        part = jax.lax.dynamic_slice(x, (start,), (2,))
        return part, jax.lax.dynamic_update_slice(x, 10 * part, (start,))

    return run(jnp.arange(4.0), 1)


def autocast() -> Any:
    """A product in float16; results as they were, and as they are computed."""
    w, x = jnp.eye(3), jnp.ones((2, 3))

    def product(w: Any, x: Any) -> Any:
        return jnp.dot(x, w)

    computed = ipu.autocast(product, results="computed")
    return [str(jax.jit(f)(w, x).dtype) for f in (ipu.autocast(product), computed)]


def loaded() -> Any:
    x = jax.ShapeDtypeStruct((4,), jnp.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "scale.ipu")
        ipu.precompile(lambda w, x: w * x, x, x).save(path, weights={"w": np.full(4, 2.0, "f")})
        return ipu.load(path)(np.arange(4, dtype=np.float32))


def counted() -> Any:
    step = jax.jit(lambda i: i + 1)
    first = step(jnp.float32(0))
    return [first, step(first)]


def paths() -> Any:
    def run(x: Any) -> Any:
        return jax.lax.platform_dependent(x, ipu=lambda x: x + 1, default=lambda x: x)

    on_cpu = jax.device_put(0.0, jax.devices("cpu")[0])
    return [jax.jit(run)(jnp.float32(0)), jax.jit(run)(on_cpu)]


def offloaded() -> Any:
    device = jax.devices("ipu")[0]
    host = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
    return jax.device_get(jax.device_put(X, host))


def loader() -> Any:
    sizes = ipu.data.BatchSizes(1, micro_batches=3, replicas=2, device_iterations=4)
    steps = list(ipu.data.Loader(np.arange(sizes.call), sizes))
    return len(steps), len(steps[0]), sizes.call


def constant() -> str:
    tx = ipu.optim.sgd(1.0)
    try:
        ipu.optim.set_hyperparameters(tx.init(ONE), learning_rate=0.5)
    except ipu.ConfigError as error:
        return type(error).__name__
    return "none"


def option(variable: str) -> Reason:
    return Reason(
        f"a variable of the environment, {variable}, whose option has a test of its own",
        "tests/config/test_config.py",
    )


PIPELINES = "4.4: strategies differ in where and when stages run, not in what they compute"

POPTORCH: dict[str, Entry] = {
    "loadFromFile": Example(
        "4.1.1: the four lines of its example",
        from_file,
        {
            "device_iterations": "1",
            "execution_strategy": "poptorch.ShardedExecution",
            "replication_factor": "1",
            "synthetic_data": "True",
        },
    ),
    "poptorch.trainingModel": Example(
        "4.8: the counter that keeps its value gives 1, then 2; state is an argument here",
        counted,
        [1, 2],
    ),
    "setOptimizer": Example(
        "4.5.4: a variable attribute changes without compiling again",
        new_rate,
        ([-1], [-0.5], 1),
    ),
    "copyWeightsToHost": Example(
        "4.8: values on the host are those of the device, and back",
        lambda: jax.device_get(jax.device_put(X)),
        X,
    ),
    "poptorch.isRunningOnIpu": Example(
        "4.2.4: the path of the IPU there, that of the CPU elsewhere", paths, [1, 0]
    ),
    "poptorch.ipuHardwareIsAvailable": Example(
        "4.6.10: whether there is hardware, and not the model", ipu.running_on_ipu_model, True
    ),
    "poptorch.setLogLevel": Example(
        "4.11.1: OFF, ERR, WARN, INFO, DEBUG and TRACE",
        lambda: [ipu.IPUConfig().replace(log_level=n).get("log_level") for n in LEVELS],
        LEVELS,
    ),
    "poptorch.Error": Reason(
        "errors have no documented numbers, only classes and actions",
        "tests/api/deploy/test_recovery.py",
    ),
    "poptorch.Block": Example("4.4.1: blocks by scopes and by decorators", blocks, 6.0),
    "poptorch.Stage": Example(PIPELINES, strategies, GRADIENTS),
    "poptorch.PipelinedExecution": Example(PIPELINES, strategies, GRADIENTS),
    "poptorch.Liveness": Example(PIPELINES, strategies, GRADIENTS),
    "poptorch.TensorLocationSettings": Example(
        "4.1: state off the chip keeps its values", offloaded, X
    ),
    "replicaGrouping": Example(
        "4.4.3: of 8 replicas 0 and 4 are the first orthogonal group of 2, 1 and 5 the second",
        lambda: ipu.replica_grouping("orthogonal", 2, devices=jax.devices()[:8]).groups,
        ((0, 4), (1, 5), (2, 6), (3, 7)),
    ),
    "poptorch.OutputMode": Example(
        "optimum's IPUConfig and 4.1: all, every n, final and sum of the results",
        outputs,
        [[1, 2, 3, 4], [2, 4], 4.0, 10.0],
    ),
    "poptorch.DataLoader": Example(
        "4.4.2: a call takes deviceIterations * replicationFactor * gradientAccumulation batches",
        loader,
        (4, 6, 24),
    ),
    "poptorch.optim.SGD": Example(
        "4.5: one step by each optimizer's equations; the loss scale is divided out",
        sgd,
        [-0.2, -0.2, -0.38, -0.1, -0.15, -0.2, -0.1],
    ),
    "VariableAttributes.markAsConstant": Example(
        "4.5.4: a constant attribute cannot be changed, a variable one can",
        constant,
        "ConfigError",
    ),
    "poptorch.ctc_beam_search_decoder": Example(
        "4.6.1: the most probable labels of the decoder's definition", decoded, [0, 1]
    ),
    "poptorch.ipu_print_tensor": Example(
        "4.6.2: the example's x + 1, printed and returned",
        lambda: jax.jit(lambda x: ipu.ops.print_tensor(x + 1) + 0.0)(ONE),
        [2],
    ),
    "poptorch.identity_loss": Example(
        "4.6.3: the example's mean of 5 (output - target)^2", identity_loss, (12.5, [5, 10])
    ),
    "poptorch.MultiConv": Example(
        "4.6.4: each convolution's own result",
        convolutions,
        (np.full((2, 2), 18.0), [8, 12, 12, 8]),
    ),
    "poptorch.nop": Example("4.6.5: the tensor itself", lambda: ipu.ops.nop(X), X),
    "poptorch.dynamic_slice": Example(
        "4.6.6 and 4.6.7: a slice at an index of the run, and its update",
        updated,
        ([1, 2], [0, 10, 20, 3]),
    ),
    "poptorch.serializedMatMul": Example(
        "4.6.8: a product in parts is the product",
        lambda: ipu.ops.serialized_matmul(X[0].T, X[0], 3, "a_rows_b_columns"),
        X[0].T @ X[0],
    ),
    "poptorch.set_available_memory": Example(
        "4.6.9: a proportion for one product keeps its result",
        with_options,
        np.full((4, 4), 4.0),
    ),
    "poptorch.autocast": Example(
        "4.7, automatic casting: products are computed in float16",
        autocast,
        ["float32", "float16"],
    ),
    "poptorch.HalfFloatCastingBehavior": Example(
        "4.7: float16 with float32 is float32",
        lambda: str((jnp.ones(2, jnp.float16) + jnp.ones(2, jnp.float32)).dtype),
        "float32",
    ),
    "poptorch.custom_op": Reason(
        "its example cubes a tensor in C++ without printed numbers",
        "tests/api/custom/test_custom_op.py",
    ),
    "poptorch.profiling.Channel": Reason(
        "tracepoints have times and no documented numbers", "tests/api/cost/test_tracing.py"
    ),
    "compileAndExport": Example(
        "4.10.2: a saved program computes what it did", loaded, [0, 2, 4, 6]
    ),
    "POPTORCH_CACHE_DIR": option("IPUJAX_EXECUTABLE_CACHE_DIR"),
    "POPTORCH_IPU_MODEL": option("IPUJAX_USE_MODEL"),
    "POPTORCH_WAIT_FOR_IPU": option("IPUJAX_WAIT_FOR_IPU"),
    "POPLAR_ENGINE_OPTIONS": option("IPUJAX_ENGINE_OPTIONS"),
}
