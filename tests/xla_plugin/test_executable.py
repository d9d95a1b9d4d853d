"""Analyses of compiled programs, and their serialisation."""

from __future__ import annotations

import hashlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import serialize_executable


@pytest.fixture
def compiled():
    return jax.jit(lambda x, y: x @ y + 1).lower(jnp.ones((8, 16)), jnp.ones((16, 4))).compile()


def test_costs(compiled):
    cost = compiled.cost_analysis()
    assert cost["flops"] >= 2 * 8 * 16 * 4
    parts = cost["compute cycles"] + cost["exchange cycles"] + cost["sync cycles"]
    assert cost["cycles"] == pytest.approx(parts, rel=1e-5)
    clock_hz = jax.devices("ipu")[0].clock_hz
    assert cost["seconds"] == pytest.approx(cost["cycles"] / clock_hz, rel=1e-5)
    assert cost["bytes accessed"] >= 4 * (8 * 16 + 16 * 4 + 8 * 4)


def test_costs_before_compiling_are_those_of_the_compiled_program():
    lowered = jax.jit(lambda x, y: x @ y + 1).lower(jnp.ones((8, 16)), jnp.ones((16, 4)))
    cost = lowered.cost_analysis()
    assert cost["flops"] >= 2 * 8 * 16 * 4
    assert cost["bytes accessed"] >= 4 * (8 * 16 + 16 * 4 + 8 * 4)
    assert cost == lowered.compile().cost_analysis()


def test_costs_before_compiling_over_several_devices():
    mesh = jax.make_mesh((4,), ("a",), devices=jax.devices("ipu")[:4])
    x = jax.device_put(np.ones((8, 16), np.float32), jax.NamedSharding(mesh, jax.P("a")))
    lowered = jax.jit(lambda x: x.sum(0)).lower(x)
    assert lowered.cost_analysis()["link cycles"] > 0
    assert lowered.cost_analysis() == lowered.compile().cost_analysis()


def test_memory(compiled):
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == 4 * (8 * 16 + 16 * 4)
    assert memory.output_size_in_bytes == 4 * 8 * 4
    assert memory.alias_size_in_bytes == 0
    assert memory.generated_code_size_in_bytes > 0


def test_donated_bytes_are_aliased():
    update = jax.jit(lambda x: x + 1, donate_argnums=0)
    memory = update.lower(jnp.ones((4, 8))).compile().memory_analysis()
    assert memory.alias_size_in_bytes == 4 * 4 * 8


def test_text_is_the_users_program(compiled):
    assert "dot" in compiled.as_text()


def payload_of(compiled):
    return serialize_executable.serialize(compiled)


def load(payload, in_tree, out_tree):
    devices = jax.devices("ipu")[:1]
    return serialize_executable.deserialize_and_load(
        payload, in_tree, out_tree, execution_devices=devices
    )


def test_loading_runs_no_compiler(compiled):
    from ipujax import plugin
    from ipujax._poplar import _poplar

    saved = payload_of(compiled)

    def refuse(*arguments: object) -> bytes:
        raise AssertionError("the compiler ran")

    _poplar.set_compile_callback(refuse)
    try:
        loaded = load(*saved)
    finally:
        _poplar.set_compile_callback(plugin._compile)
    x, y = np.ones((8, 16), np.float32), np.ones((16, 4), np.float32)
    np.testing.assert_allclose(loaded(x, y), np.full((8, 4), 17))


def sealed_image(compiled) -> bytes:
    """The plugin's own bytes of a program, without JAX's wrapping."""
    executable = compiled.runtime_executable()
    return (
        bytes(executable.client.serialize_executable(executable))
        if hasattr(executable.client, "serialize_executable")
        else bytes(executable.serialize())
    )


def replaced(payload: bytes, old: bytes, new: bytes) -> bytes:
    assert old in payload
    return payload.replace(old, new)


@pytest.mark.parametrize("damage", ["last", "middle"])
def test_damaged_bytes_are_refused(compiled, damage):
    payload, in_tree, out_tree = payload_of(compiled)
    image = sealed_image(compiled)
    middle = image[len(image) // 2 : len(image) // 2 + 64]
    if damage == "last":
        start = payload.index(image)
        end = start + len(image)
        payload = payload[: end - 1] + bytes([image[-1] ^ 0xFF]) + payload[end:]
    else:
        payload = replaced(payload, middle, hashlib.sha512(middle).digest())
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"\[Executable\]"):
        load(payload, in_tree, out_tree)


def test_bytes_of_something_else_are_refused():
    client = jax.devices("ipu")[0].client
    with pytest.raises(Exception, match="Executable"):
        client.deserialize_executable(b"not an executable", jax.devices("ipu")[:1])
