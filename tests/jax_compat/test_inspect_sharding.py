"""What `inspect_array_sharding` tells of programs over several IPUs: what the CPU backend tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

X = np.arange(64, dtype=np.float32).reshape(8, 8)
Inspect = Callable[[Any], None]


def mesh_of(devices: list[jax.Device]) -> Mesh:
    return Mesh(np.array(devices[:8]).reshape(4, 2), ("a", "b"))


def in_steps(inspect: Inspect, mesh: Mesh) -> Any:
    def f(x: Any) -> Any:
        y = jnp.sin(x)
        for value in (y, y.T, y.sum(), y.sum(0), {"product": x @ x, "whole": x.astype(jnp.int32)}):
            inspect(value)
        return y * 2

    return jax.jit(f)


def from_the_result(inspect: Inspect, mesh: Mesh) -> Any:
    return jax.jit(seen_as(inspect), out_shardings=NamedSharding(mesh, P("b")))


def seen_as(inspect: Inspect) -> Any:
    def f(x: Any) -> Any:
        y = x * 2
        inspect(y)
        return y

    return f


def constrained(inspect: Inspect, mesh: Mesh) -> Any:
    def f(x: Any) -> Any:
        y = lax.with_sharding_constraint(x, NamedSharding(mesh, P(None, ("a", "b"))))
        return seen_as(inspect)(y)

    return jax.jit(f)


def in_scan(inspect: Inspect, mesh: Mesh) -> Any:
    f = seen_as(inspect)
    return jax.jit(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0])


def in_while(inspect: Inspect, mesh: Mesh) -> Any:
    f = seen_as(inspect)
    return jax.jit(lambda x: lax.while_loop(lambda c: c.sum() < 1e6, f, x))


def in_cond(inspect: Inspect, mesh: Mesh) -> Any:
    return jax.jit(lambda x: lax.cond(x.sum() > 0, seen_as(inspect), lambda x: x + 1, x))


def in_vmap(inspect: Inspect, mesh: Mesh) -> Any:
    return jax.jit(jax.vmap(seen_as(inspect)))


def in_grad(inspect: Inspect, mesh: Mesh) -> Any:
    return jax.jit(jax.grad(lambda x: jnp.sin(seen_as(inspect)(x)).sum()))


def in_remat(inspect: Inspect, mesh: Mesh) -> Any:
    return jax.jit(jax.grad(jax.checkpoint(lambda x: jnp.sin(seen_as(inspect)(x)).sum())))


def called_twice(inspect: Inspect, mesh: Mesh) -> Any:
    g = jax.jit(seen_as(inspect))
    return jax.jit(lambda x: g(x) + g(x.T))


def in_shard_map(inspect: Inspect, mesh: Mesh) -> Any:
    return jax.jit(jax.shard_map(seen_as(inspect), mesh=mesh, in_specs=P("a"), out_specs=P("a")))


def in_shard_map_over_one_axis(inspect: Inspect, mesh: Mesh) -> Any:
    mapped = jax.shard_map(
        seen_as(inspect), mesh=mesh, in_specs=P("a"), out_specs=P("a"), axis_names={"a"}
    )
    return jax.jit(mapped)


def in_pmap(inspect: Inspect, mesh: Mesh) -> Any:
    mapped = jax.pmap(seen_as(inspect), devices=list(mesh.devices.flat))
    return lambda x: mapped(np.asarray(x))


def eagerly(inspect: Inspect, mesh: Mesh) -> Any:
    return lambda x: (inspect(x), x)[1]


PROGRAMS = [
    in_steps,
    from_the_result,
    constrained,
    in_scan,
    in_while,
    in_cond,
    in_vmap,
    in_grad,
    in_remat,
    called_twice,
    in_shard_map,
    in_shard_map_over_one_axis,
    in_pmap,
    eagerly,
]


def seen_on(platform: str, program: Any) -> tuple[list[str], list[type], Any]:
    """Specs, sorted, and types of the shardings; and what the program computes."""
    mesh = mesh_of(jax.devices(platform))
    seen: list[Any] = []

    def inspect(values: Any) -> None:
        jax.debug.inspect_array_sharding(values, callback=seen.append)

    result = program(inspect, mesh)(jax.device_put(X, NamedSharding(mesh, P("a", "b"))))
    assert all(s.device_set == set(mesh.devices.flat) for s in seen)
    return sorted(str(s.spec) for s in seen), [type(s) for s in seen], np.asarray(result)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_shardings_are_those_of_the_cpu_backend(program: Any):
    specs, types, result = seen_on("ipu", program)
    wanted_specs, wanted_types, wanted = seen_on("cpu", program)
    assert specs == wanted_specs
    assert len(specs) > 0
    assert types == wanted_types
    np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)


def test_a_program_on_one_device_is_answered_when_it_is_lowered():
    seen: list[Any] = []
    f = seen_as(lambda x: jax.debug.inspect_array_sharding(x, callback=seen.append))
    x = jax.device_put(X, jax.devices("ipu")[0])
    jax.jit(f).lower(x)
    assert [s.is_fully_replicated for s in seen] == [True]


def test_it_is_called_when_the_program_is_compiled_and_then_no_more():
    mesh = mesh_of(jax.devices("ipu"))
    seen: list[Any] = []
    f = seen_as(lambda x: jax.debug.inspect_array_sharding(x, callback=seen.append))
    x = jax.device_put(X, NamedSharding(mesh, P("a")))
    lowered = jax.jit(f).lower(x)
    assert seen == []
    compiled = lowered.compile()
    assert [s.spec for s in seen] == [P("a")]
    compiled(x)
    assert len(seen) == 1


def test_an_exception_of_the_callback_names_itself():
    def refuse(sharding: Any) -> None:
        raise ValueError("not this one")

    mesh = mesh_of(jax.devices("ipu"))
    f = seen_as(lambda x: jax.debug.inspect_array_sharding(x, callback=refuse))
    with pytest.raises(jax.errors.JaxRuntimeError, match="ValueError: not this one"):
        jax.jit(f)(jax.device_put(X, NamedSharding(mesh, P("a"))))


def test_visualize_array_sharding_draws_the_blocks(capsys: pytest.CaptureFixture[str]):
    mesh = mesh_of(jax.devices("ipu"))
    pytest.importorskip("rich")

    def f(x: Any) -> Any:
        jax.debug.visualize_array_sharding(x, use_color=False)
        return x + 1

    jax.jit(f)(jax.device_put(X, NamedSharding(mesh, P("a", "b"))))
    drawn = capsys.readouterr().out
    assert all(f"IPU {index}" in drawn for index in range(8))
