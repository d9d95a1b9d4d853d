"""Prints, as JSON, what a build against an SDK says where public names do not suffice."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import serialize_executable

import ipujax as ipu

X = np.arange(4, dtype=np.float32)


def nested() -> Any:
    """The inner program is compiled before: only its run is refused."""
    device = jax.devices("ipu")[0]
    inner = jax.jit(lambda x: x * 3)
    inner(jax.device_put(X, device))

    def outer(x: Any) -> Any:
        same = jax.ShapeDtypeStruct((4,), X.dtype)
        return jax.pure_callback(lambda v: inner(jax.device_put(v, device)), same, x)

    return jax.jit(outer)(X)


def nested_on_replicas() -> Any:
    """Each replica's callback runs a program on the device of another."""
    devices = jax.devices("ipu")[:2]
    mesh = jax.sharding.Mesh(np.array(devices), ("d",))
    inner = jax.jit(lambda x: x * 3)
    spec = jax.sharding.PartitionSpec("d")

    def f(x: Any) -> Any:
        same = jax.ShapeDtypeStruct((2,), X.dtype)
        return jax.pure_callback(lambda v: inner(jax.device_put(v, devices[1])), same, x)

    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec))(X)


def waits_for_its_device() -> Any:
    """A callback waits for a thread, which runs a program on the callback's own device."""
    device = jax.devices("ipu")[0]
    inner = jax.jit(lambda x: x * 3)
    x = jax.device_put(X, device)
    inner(x)
    errors: list[Exception] = []

    def run() -> None:
        try:
            inner(x).block_until_ready()
        except jax.errors.JaxRuntimeError as error:
            errors.append(error)

    def wait(value: np.ndarray) -> np.ndarray:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join(20)
        return value

    same = jax.ShapeDtypeStruct((4,), X.dtype)
    jax.jit(lambda v: jax.pure_callback(wait, same, v))(x).block_until_ready()
    raise errors[0]


def wide() -> Any:
    with jax.enable_x64(True):
        return jax.jit(lambda x: x * 2)(np.arange(4.0))


def wide_integers() -> Any:
    with jax.enable_x64(True):
        return jax.jit(lambda x: x * 2)(np.arange(4))


def cost() -> Any:
    return ipu.cost(lambda x: x + 1, X)


def report() -> Any:
    return ipu.report(jax.jit(lambda x: x + 1), X)


def altered() -> Any:
    saved, in_tree, out_tree = serialize_executable.serialize(
        jax.jit(lambda x: x + 1).lower(X).compile()
    )
    middle = len(saved) // 2
    changed = saved[:middle] + bytes([saved[middle] ^ 255]) + saved[middle + 1 :]
    return serialize_executable.deserialize_and_load(
        changed, in_tree, out_tree, execution_devices=jax.devices("ipu")[:1]
    )


def scattered_devices() -> Any:
    mesh = jax.sharding.Mesh(np.array(jax.devices("ipu"))[[1, 2]], ("d",))
    spec = jax.sharding.PartitionSpec("d")
    return jax.jit(lambda x: x + 1, out_shardings=jax.sharding.NamedSharding(mesh, spec))(
        jax.device_put(X, jax.sharding.NamedSharding(mesh, spec))
    )


def main() -> None:
    errors = {}
    cases = (
        nested,
        nested_on_replicas,
        waits_for_its_device,
        wide,
        wide_integers,
        cost,
        report,
        altered,
    )
    for case in (*cases, scattered_devices):
        errors[case.__name__] = _error_of(case)
    errors["afterwards"] = str(jnp.asarray(jax.jit(lambda x: x + 1)(X)).tolist())
    print(json.dumps(errors))


def _error_of(run: Callable[[], Any]) -> str:
    try:
        jax.block_until_ready(run())
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


if __name__ == "__main__":
    main()
