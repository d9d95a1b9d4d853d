"""Whole programs that both builds run. Each returns arrays, all from fixed numbers.

`PROGRAMS` need one IPU a device, `STAGED` two.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.experimental import io_callback, serialize_executable
from jax.sharding import Mesh, NamedSharding, PartitionSpec

Program = Callable[[], Any]
PROGRAMS: dict[str, Program] = {}
STAGED: dict[str, Program] = {}


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def staged(function: Program) -> Program:
    STAGED[function.__name__] = function
    return function


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def mesh(*shape: int, names: Sequence[str] = ("d",)) -> Mesh:
    count = int(np.prod(shape))
    return Mesh(np.array(jax.devices("ipu")[:count]).reshape(shape), names)


# One device --------------------------------------------------------------------------------------


@program
def arithmetic() -> Any:
    return jax.jit(lambda x, y: (x * y + 1, x / y, jnp.where(x > y, x, y)))(
        numbers(4, 5), numbers(4, 5, seed=1)
    )


@program
def gradient() -> Any:
    def loss(w: Any, x: Any) -> Any:
        return jnp.sum(jnp.tanh(x @ w) ** 2)

    return jax.jit(jax.value_and_grad(loss))(numbers(6, 3), numbers(4, 6, seed=1))


@program
def batched() -> Any:
    return jax.jit(jax.vmap(lambda a, b: a @ b))(numbers(3, 4, 5), numbers(3, 5, seed=1))


@program
def slices_past_the_end() -> Any:
    def moved(x: Any, y: Any, i: Any) -> Any:
        return jax.lax.dynamic_slice(x, (i, -i), (2, 3)), jax.lax.dynamic_update_slice(x, y, (i, i))

    starts = np.array([-9, -1, 0, 3, 4, 5, 6, 2**31 - 1], np.int32)
    one = jax.jit(moved)
    return [one(numbers(5, 7), numbers(2, 3, seed=1), start) for start in starts]


@program
def scan() -> Any:
    def step(carry: Any, x: Any) -> Any:
        carry = carry * 0.5 + x
        return carry, carry.sum()

    return jax.jit(lambda c, xs: jax.lax.scan(step, c, xs))(numbers(4), numbers(5, 4, seed=1))


@program
def scan_gradient() -> Any:
    def total(w: Any, xs: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            return jnp.tanh(carry @ w + x), None

        return jax.lax.scan(step, jnp.zeros(3), xs)[0].sum()

    return jax.jit(jax.grad(total))(numbers(3, 3), numbers(4, 3, seed=1))


@program
def while_loop() -> Any:
    def run(x: Any) -> Any:
        return jax.lax.while_loop(lambda c: c[0] < 100, lambda c: (c[0] * 2, c[1] + 1), (x, 0))

    return [jax.jit(run)(np.float32(x)) for x in (1.5, 300)]


@program
def branches() -> Any:
    def choose(i: Any, x: Any) -> Any:
        return jax.lax.switch(i, [lambda v: v + 1, lambda v: v * 2, lambda v: -v], x)

    f = jax.jit(choose)
    return [f(np.int32(i), numbers(3)) for i in range(3)]


@program
def dtypes() -> Any:
    x = np.arange(-4, 4)
    kinds = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.float16, np.bool_)
    each = [jax.jit(lambda v: v + v)(x.astype(kind)) for kind in kinds[:-1]]
    half = jax.jit(lambda v: (v * 3).astype(jnp.bfloat16))(jnp.asarray(x, jnp.bfloat16))
    return [*each, jax.jit(jnp.logical_not)(x.astype(kinds[-1])), half.astype(np.float32)]


@program
def empty_arrays() -> Any:
    return jax.jit(lambda x, y: (x * 2, y + 1))(np.zeros((0, 3), np.float32), numbers(2))


@program
def random() -> Any:
    key = jax.random.key(3)
    return jax.random.uniform(key, (5,)), jax.random.bits(key, (4,))


@program
def training() -> Any:
    """An MLP, three steps of Adam."""

    def loss(p: Any, x: Any, y: Any) -> Any:
        hidden = jax.nn.relu(x @ p["w0"] + p["b0"])
        return optax.softmax_cross_entropy_with_integer_labels(hidden @ p["w1"], y).mean()

    optimizer = optax.adam(1e-2)

    @jax.jit
    def step(p: Any, state: Any, x: Any, y: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(p, x, y)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(p, updates), state, value

    p = {"w0": numbers(8, 16), "b0": np.zeros(16, np.float32), "w1": numbers(16, 4, seed=1)}
    state, losses = optimizer.init(p), []
    for _ in range(3):
        p, state, value = step(p, state, numbers(12, 8, seed=2), np.arange(12) % 4)
        losses.append(value)
    return losses, p


@program
def donation() -> Any:
    f = jax.jit(lambda x, y: (x + y, x * y), donate_argnums=0)
    x = jax.device_put(numbers(8), jax.devices("ipu")[0])
    first = f(x, numbers(8, seed=1))
    assert x.is_deleted()
    return first


@program
def arguments_of_earlier_runs() -> Any:
    """The same array, a result in place of a donated array, others, after another program."""
    f = jax.jit(lambda w, x: (w + x, w * x), donate_argnums=0)
    x, y = (jax.device_put(numbers(20, 32, seed=seed)) for seed in (1, 2))
    found: list[Any] = []
    w, seen = f(jax.device_put(numbers(20, 32)), x)
    for other in (x, y, y, x):
        found.append((np.array(w), seen))
        w, seen = f(w, other)
    found.append(jax.jit(lambda v: v * 2)(x))
    w, seen = f(w, x)
    kept = jnp.array(w)
    found.append((seen, f(w, x), f(kept, seen)))
    return found


@program
def arguments_after_an_error() -> Any:
    calls = []

    def count(v: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("no such value")
        return np.asarray(v) + len(calls)

    same = jax.ShapeDtypeStruct((4,), np.float32)
    f = jax.jit(lambda w, x: (w + x, jax.pure_callback(count, same, x[0])), donate_argnums=0)
    x = jax.device_put(numbers(100, 4))
    w, first = f(jax.device_put(numbers(100, 4, seed=1)), x)
    lost = _error_of(lambda: f(w, x))
    return first, lost, f(jax.device_put(numbers(100, 4, seed=2)), x)


@program
def wide_integers() -> Any:
    """PopLibs copies and casts them; the loop counts in 32 bits."""
    with jax.enable_x64(True):
        x = np.arange(12).reshape(3, 4) + 2**40

        def f(x: Any, u: Any) -> Any:
            rows = jax.lax.scan(lambda c, row: (row, c), x[0], x)
            both = jnp.concatenate([x.T, x[::-1].T], 1)
            return rows, both, x.astype(np.int32), u.astype(np.int64), jnp.broadcast_to(u[0], (5,))

        return jax.jit(f)(x, np.array([7, 2**62], np.uint64))


@program
def views_as_results() -> Any:
    return jax.jit(lambda x: (x, x.T, x[1:], x))(numbers(3, 4))


# The host's part ---------------------------------------------------------------------------------


@program
def pure_callback() -> Any:
    same = jax.ShapeDtypeStruct((3,), np.float32)

    def double(x: Any) -> Any:
        return jax.pure_callback(lambda v: np.asarray(v) * 2, same, x)

    return jax.jit(lambda x: double(x) + double(x + 1))(numbers(3))


@program
def callback_in_a_loop() -> Any:
    seen: list[float] = []

    def record(x: Any) -> np.float32:
        seen.append(float(x))
        return np.float32(len(seen))

    def step(carry: Any, x: Any) -> Any:
        number = io_callback(record, jax.ShapeDtypeStruct((), np.float32), x + carry, ordered=True)
        return carry + number, number

    total = jax.jit(lambda xs: jax.lax.scan(step, np.float32(0), xs))(
        np.arange(4, dtype=np.float32)
    )
    return jax.block_until_ready(total), np.array(seen)


@program
def callback_without_arrays() -> Any:
    calls: list[int] = []

    @jax.jit
    def f(x: Any) -> Any:
        jax.debug.callback(lambda: calls.append(1))
        return x + 1

    result = [f(numbers(2)) for _ in range(2)]
    jax.effects_barrier()
    return result, np.array(len(calls))


@program
def callback_error() -> Any:
    def fail(x: Any) -> Any:
        raise ValueError("no such value")

    f = jax.jit(lambda x: jax.pure_callback(fail, jax.ShapeDtypeStruct((2,), np.float32), x))
    return _error_of(lambda: f(numbers(2))), jax.jit(lambda x: x + 1)(numbers(2))


@program
def callback_error_in_a_loop() -> Any:
    """Of a loop that ends by what the callback gives."""

    def fail(x: Any) -> Any:
        raise ValueError("no such value")

    def body(x: Any) -> Any:
        return jax.pure_callback(fail, jax.ShapeDtypeStruct((), np.float32), x)

    f = jax.jit(lambda x: jax.lax.while_loop(lambda x: x < 3, body, x))
    return _error_of(lambda: f(np.float32(1))), jax.jit(lambda x: x + 1)(numbers(2))


@program
def callback_that_uses_another_device() -> Any:
    other = jax.devices("ipu")[1]
    inner = jax.jit(lambda x: x * 3)

    def on_other(x: Any) -> Any:
        return np.asarray(inner(jax.device_put(np.asarray(x), other)))

    same = jax.ShapeDtypeStruct((3,), np.float32)
    f = jax.jit(lambda x: jax.pure_callback(on_other, same, x) + 1)
    return [f(numbers(3)) for _ in range(2)]


@program
def error_in_a_program() -> Any:
    from jax.experimental import checkify

    checked = checkify.checkify(lambda x: jnp.log(x), errors=checkify.float_checks)
    error, _ = jax.jit(checked)(np.float32(-1))
    return np.array(error.get() is not None)


@program
def saved_and_loaded() -> Any:
    compiled = jax.jit(lambda x: jnp.tanh(x) * 2).lower(numbers(4)).compile()
    loaded = serialize_executable.deserialize_and_load(
        *pickle.loads(pickle.dumps(serialize_executable.serialize(compiled))),
        execution_devices=jax.devices("ipu")[:1],
    )
    return compiled(numbers(4)), loaded(numbers(4))


@program
def programs_by_turns() -> Any:
    """Poplar loads one program at a time."""
    f, g = jax.jit(lambda x: x + 1), jax.jit(lambda x: x * 3)
    x = numbers(4)
    for _ in range(3):
        x = g(f(x))
    return x


@program
def streaming_memory() -> Any:
    device = jax.devices("ipu")[0]
    host = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
    tiles = jax.sharding.SingleDeviceSharding(device, memory_kind="device")

    def f(x: Any) -> Any:
        return jax.device_put(jax.device_put(x, tiles) * 2, host)

    y = jax.jit(f, out_shardings=host)(jax.device_put(numbers(4, 8), host))
    return y, np.array(y.sharding.memory_kind == "pinned_host")


# Replicas ----------------------------------------------------------------------------------------


@program
def sums_over_replicas() -> Any:
    m = mesh(4)

    def f(x: Any) -> Any:
        return x + jax.lax.psum(x, "d"), jax.lax.axis_index("d")[None]

    spec = PartitionSpec("d")
    return jax.jit(jax.shard_map(f, mesh=m, in_specs=spec, out_specs=spec))(numbers(8, 3))


@program
def collectives() -> Any:
    m, spec = mesh(4), PartitionSpec("d")

    def f(x: Any) -> Any:
        ring = [(i, (i + 1) % 4) for i in range(4)]
        return (
            jax.lax.pmax(x, "d"),
            jax.lax.all_gather(x, "d", tiled=True),
            jax.lax.psum_scatter(x, "d", scatter_dimension=1, tiled=True),
            jax.lax.all_to_all(x, "d", 1, 0, tiled=True),
            jax.lax.ppermute(x, "d", ring),
            jax.lax.psum(x, "d", axis_index_groups=[[0, 1], [2, 3]]),
        )

    mapped = jax.shard_map(f, mesh=m, in_specs=spec, out_specs=spec, check_vma=False)
    return jax.jit(mapped)(numbers(8, 8))


@program
def training_over_replicas() -> Any:
    """Data parallel by pmap, two steps of gradient descent."""

    def step(w: Any, x: Any, y: Any) -> Any:
        def loss(w: Any) -> Any:
            return jnp.mean((x @ w - y) ** 2)

        value, gradient = jax.value_and_grad(loss)(w)
        return w - 0.1 * jax.lax.pmean(gradient, "i"), jax.lax.pmean(value, "i")

    f = jax.pmap(step, axis_name="i", in_axes=(None, 0, 0), out_axes=None)
    w, losses = numbers(5, 2), []
    for _ in range(2):
        w, value = f(w, numbers(4, 3, 5, seed=1), numbers(4, 3, 2, seed=2))
        losses.append(value)
    return w, losses


@program
def shards_of_earlier_runs() -> Any:
    sharding = NamedSharding(mesh(4), PartitionSpec("d"))
    w, x = (jax.device_put(numbers(8, 50, seed=seed), sharding) for seed in (0, 1))
    f = jax.jit(lambda w, x: (w + x.sum(0), w * x), donate_argnums=0)
    found = []
    for _ in range(3):
        w, product = f(w, x)
        found.append(product)
    return found, w


@program
def sharded_matmul() -> Any:
    m = mesh(2, 2, names=("a", "b"))
    x = jax.device_put(numbers(8, 6), NamedSharding(m, PartitionSpec("a", "b")))
    w = jax.device_put(numbers(6, 4, seed=1), NamedSharding(m, PartitionSpec("b", None)))
    return jax.jit(
        lambda x, w: jnp.tanh(x @ w), out_shardings=NamedSharding(m, PartitionSpec("a"))
    )(x, w)


@program
def callback_on_replicas() -> Any:
    m, spec = mesh(4), PartitionSpec("d")
    same = jax.ShapeDtypeStruct((2,), np.float32)

    def f(x: Any) -> Any:
        return jax.pure_callback(lambda v: np.asarray(v) * 10, same, x)

    return jax.jit(jax.shard_map(f, mesh=m, in_specs=spec, out_specs=spec))(numbers(8))


# Stages ------------------------------------------------------------------------------------------


def _stage(p: Any, x: Any) -> Any:
    return jnp.tanh(x @ p)


@staged
def pipeline() -> Any:
    import ipujax as ipu

    f = ipu.pipeline([_stage, _stage], micro_batches=4)
    weights = [numbers(5, 5), numbers(5, 5, seed=1)]
    return jax.jit(f)(weights, numbers(4, 3, 5, seed=2))


@staged
def pipeline_gradient() -> Any:
    import ipujax as ipu

    def last(p: Any, x: Any) -> Any:
        return jnp.mean(_stage(p, x) ** 2)

    f = ipu.pipeline([_stage, last], micro_batches=4, reduction="mean")
    weights = [numbers(5, 5), numbers(5, 5, seed=1)]
    return jax.jit(jax.value_and_grad(f))(weights, numbers(4, 3, 5, seed=2))


def _error_of(run: Callable[[], Any]) -> np.ndarray:
    """The type and the first line's end of what it raises, as bytes."""
    try:
        jax.block_until_ready(run())
    except Exception as error:
        text = "no such value" if "no such value" in str(error) else f"{error}"
        return np.frombuffer(text.encode(), np.uint8)
    raise AssertionError("raised nothing")
