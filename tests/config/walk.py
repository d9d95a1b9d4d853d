"""Rows of the walk over all options: two values of each, and what must differ between them.

A row gives two values and a function that tells what one of them leads to: an account of the
executable, numbers, a refusal. `test_every_option.py` runs them and demands that the two differ.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu
from ipujax._poplar import _poplar

#: What tells one compilation from another, whatever it gives.
NAMES = ("name", "buffers")

#: What a value of the option leads to. The folder is the test's own.
Observe = Callable[[str, Any, Path], object]


class Row(NamedTuple):
    values: tuple[Any, Any]
    observe: Observe


def spec(*shape: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def account(executable: bytes) -> object:
    """Steps, cycles, how long they take on all IPUs, and memory."""
    elapsed = _poplar.engine.profileImage(executable)["elapsed_cycles"]
    image = _poplar.engine.inspectImage(executable)
    steps = [(step["kernel"], step["cost"], step["inner"]) for step in image.pop("steps")]
    return elapsed, steps, {key: value for key, value in image.items() if key not in NAMES}


def compiled(fun: Any, *args: Any, target: Any = None, **more: Any) -> Observe:
    """Compiles a function: its account, or the refusal."""

    def observe(name: str, value: Any, _: Path) -> object:
        options = {f"ipu_{each}": v for each, v in {"profile": True, **more, name: value}.items()}
        try:
            made = ipu.precompile(fun, *args, target=target or {"num_tiles": 16}, options=options)
        except ipu.Error as error:
            return str(error)
        return account(made.executable)

    return observe


def cost(fun: Any, *args: Any, **more: Any) -> Observe:
    """The analysis of a jitted function's cost, also of one over several devices."""

    def observe(name: str, value: Any, _: Path) -> object:
        options = {f"ipu_{each}": v for each, v in {**more, name: value}.items()}
        try:
            return jax.jit(fun).lower(*args).compile(options).cost_analysis()
        except jax.errors.JaxRuntimeError as error:
            return str(error)

    return observe


def ran(fun: Any, *args: Any) -> Observe:
    """The numbers, or the error, of a run."""

    def observe(name: str, value: Any, _: Path) -> object:
        try:
            made = jax.jit(fun, compiler_options={f"ipu_{name}": value})(*args)
            return [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(made)]
        except jax.errors.JaxRuntimeError as error:
            return str(error)

    return observe


def configured(see: Callable[[], object]) -> Observe:
    """What is seen with the option set by `ipu.configure`."""

    def observe(name: str, value: Any, _: Path) -> object:
        ipu.configure(**{name: value})
        return see()

    return observe


W = spec(512, 512)
HALF = spec(512, 4096, dtype=jnp.float16), spec(4096, 512, dtype=jnp.float16)
BIG = spec(2048, 2048)
IMAGE = spec(2, 8, 8, 32, dtype=jnp.float16), spec(3, 3, 32, 32, dtype=jnp.float16)
IDS = spec(50, dtype=jnp.int32), spec(4, 5, dtype=jnp.int32)
SERIAL = json.dumps({"planConstraints": {"0": {"partition": {"outChanSplit": {"serial": 4}}}}})
MEMORY_OF_ONE = {"num_tiles": 1}


def product(a: Any, b: Any) -> Any:
    return a @ b


def convolved(x: Any, w: Any) -> Any:
    return jax.lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def streamed(w: Any, batch: Any) -> Any:
    return jnp.tanh(batch @ w)


def layers(ws: Any, x: Any) -> Any:
    """Equal layers that keep large values for their gradients."""
    for number, w in enumerate(ws):
        with jax.named_scope(f"layer{number}"):
            x = jax.nn.softmax(jnp.tanh(x @ w))
    return jnp.sum(x**2)


def repeated(x: Any) -> Any:
    """One shape of work that occurs several times."""
    for _ in range(4):
        x = jnp.tanh(x @ x) + jnp.sin(x).sum(0)
    return x


def branches(x: Any) -> Any:
    """Large values that are all made before any is used, if the program's order is kept."""
    wide = [jnp.sort(x, axis=number % 2) @ x for number in range(6)]
    return sum(jnp.sort(each, axis=0)[0] for each in wide)


def until(x: Any) -> Any:
    return jax.lax.while_loop(lambda y: y[0] < 100, lambda y: y * 2, x)


def summed(x: Any, y: Any) -> Any:
    mesh = jax.sharding.Mesh(jax.devices("ipu")[:2], ("i",))
    part = jax.sharding.PartitionSpec("i")

    def inner(x: Any, y: Any) -> Any:
        return jax.lax.psum(x, "i"), jax.lax.psum(y, "i")

    return jax.shard_map(inner, mesh=mesh, in_specs=part, out_specs=part, check_vma=False)(x, y)


def scattered(x: Any, y: Any) -> Any:
    mesh = jax.sharding.Mesh(jax.devices("ipu")[:2], ("i",))
    part = jax.sharding.PartitionSpec("i")

    def inner(x: Any, y: Any) -> Any:
        return tuple(jax.lax.psum_scatter(each, "i", tiled=True) for each in (x, y))

    return jax.shard_map(inner, mesh=mesh, in_specs=part, out_specs=part, check_vma=False)(x, y)


def staged(ws: Any, batch: Any) -> Any:
    def layer(w: Any, x: Any) -> Any:
        return jnp.tanh(x @ w)

    loss = ipu.pipeline(
        [layer, layer, layer, lambda w, x: jnp.sum(layer(w, x))],
        micro_batches=8,
        schedule="grouped",
        reduction="mean",
    )
    return jax.value_and_grad(loss)(ws, batch)


STAGES = {"ipus_per_device": 4, "num_tiles": 16}
STAGED = [spec(32, 32)] * 4, spec(8, 16, 32)


def dumped(name: str, value: bool, folder: Path) -> object:
    compiled(jnp.sin, spec(4))(name, str(folder) if value else "", folder)
    return len(list(folder.iterdir())) > 0


def with_x64(name: str, value: str, folder: Path) -> object:
    with jax.enable_x64(True):
        return compiled(jnp.add, spec(8, dtype="f8"), spec(8, dtype="f8"))(name, value, folder)


def profiled(name: str, value: bool, _: Path) -> object:
    made = ipu.precompile(jnp.sin, spec(4), options={f"ipu_{name}": value})
    try:
        return len(_poplar.engine.profileImage(made.executable)["steps"])
    except Exception as error:  # the bindings raise more than one type
        return type(error).__name__


#: Options of programs.
PROGRAMS: dict[str, Row] = {
    "out_of_memory": Row(("run", "error"), compiled(product, BIG, BIG, target=MEMORY_OF_ONE)),
    "fit": Row(
        ("off", "advise"),
        compiled(product, BIG, BIG, target=MEMORY_OF_ONE, out_of_memory="error", fit_seconds=0),
    ),
    "fit_seconds": Row(
        (0, 60),
        compiled(product, BIG, BIG, target=MEMORY_OF_ONE, out_of_memory="error", fit="advise"),
    ),
    "partials_type": Row(("float", "half"), compiled(product, *HALF)),
    "available_memory_proportion": Row((0.6, 0.01), compiled(product, *HALF)),
    "available_memory_proportions": Row(("", "0.01"), compiled(product, *HALF)),
    "matmul_options": Row(("", SERIAL), compiled(product, W, W)),
    "convolution_options": Row(("", '{"partialsType": "half"}'), compiled(convolved, *IMAGE)),
    "clear_pass_type": Row(
        (False, True),
        compiled(
            lambda a: (a @ a.T) @ a,
            spec(64, 64),
            target={"num_tiles": 4},
            available_memory_proportion=0.01,
        ),
    ),
    "x64": Row(("emulate", "demote"), with_x64),
    "stochastic_rounding": Row(
        (False, True), ran(lambda x: x + jnp.float16(1e-4), np.ones(64, np.float16))
    ),
    "half_overflow": Row(
        ("infinity", "saturate"), ran(lambda x: x * 2, np.full(2, 60000, np.float16))
    ),
    "floating_point_exceptions": Row(("", "inv"), ran(jnp.divide, np.zeros(2), np.zeros(2))),
    "fast_math": Row((False, True), compiled(lambda x: x / 3 * 6, spec(64))),
    "cholesky_block_size": Row((0, 8), compiled(jnp.linalg.cholesky, spec(96, 96))),
    "triangular_solve_expander_block_size": Row(
        (0, 8),
        compiled(
            lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True),
            spec(96, 96),
            spec(96, 5),
        ),
    ),
    "combine_matmuls": Row((False, True), compiled(lambda x, a, b: (x @ a, x @ b), W, W, W)),
    "combine_embedding_lookups": Row(
        (False, True), compiled(lambda table, i, j: (table[i], table[j]), spec(1000, 64), *IDS)
    ),
    "schedule": Row(("program", "liveness"), compiled(branches, spec(64, 64))),
    "allow_recompute": Row(
        (False, True), compiled(jax.grad(layers), [spec(64, 64)] * 4, spec(2048, 64))
    ),
    "recompute_layers": Row(
        ("", "layer*"), compiled(jax.grad(layers), [spec(64, 64)] * 4, spec(256, 64))
    ),
    "outline": Row(("off", "auto"), compiled(repeated, spec(64, 64), outline_threshold=0)),
    "outline_threshold": Row((0, 2**20), compiled(repeated, spec(64, 64), outline="auto")),
    "maximum_cross_replica_sum_buffer_size": Row((0, 2**20), cost(summed, spec(8), spec(8))),
    "maximum_reduce_scatter_buffer_size": Row((0, 2**20), cost(scattered, spec(8), spec(8))),
    "maximum_inter_ipu_copies_buffer_size": Row(
        (0, 2**20), compiled(staged, *STAGED, target=STAGES)
    ),
    "collective_options": Row(
        ('{"method": "broadcast"}', '{"method": "clockwise_ring"}'),
        cost(summed, spec(4096), spec(8)),
    ),
    "streamed_arguments": Row(("", "*"), compiled(streamed, W, W)),
    "streamed_results": Row(("none", "all"), compiled(streamed, W, W)),
    "host_bandwidth": Row((1.0, 8.0), compiled(streamed, W, W, streamed_arguments="*")),
    "host_latency": Row(
        (1.0, 50.0), compiled(streamed, W, W, streamed_arguments="*", prefetch_depth=0)
    ),
    "prefetch_depth": Row((0, 2), compiled(streamed, W, W, streamed_arguments="*")),
    "rearrange_copies_on_host": Row(
        (False, True), compiled(streamed, W, W, streamed_arguments="*")
    ),
    "num_io_tiles": Row((0, 8), compiled(streamed, W, W)),
    "place_ops_on_io_tiles": Row(
        (False, True), cost(streamed, W, W, streamed_arguments="*", num_io_tiles=64)
    ),
    "io_tile_available_memory_proportion": Row(
        (0.9, 0.01),
        compiled(
            streamed,
            W,
            W,
            streamed_arguments="batch",
            num_io_tiles=8,
            place_ops_on_io_tiles=True,
        ),
    ),
    "profile": Row((False, True), profiled),
    "dump_dir": Row((False, True), dumped),
    "assumed_trip_count": Row((1, 10), compiled(until, spec(8))),
    "engine_options": Row(
        ("", '{"debug.outOfMemory": "error"}'),
        compiled(product, BIG, BIG, target=MEMORY_OF_ONE, fit="off"),
    ),
    "engine_without": Row(("", "copies"), compiled(repeated, spec(64, 64))),
}
