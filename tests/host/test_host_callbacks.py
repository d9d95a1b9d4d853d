"""The registry of Python functions that programs call back."""

from __future__ import annotations

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

from ipujax.errors import CallbackError
from ipujax.host import callbacks as host_callbacks

FLOAT = np.dtype(np.float32)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "int8"])
@pytest.mark.parametrize("shape", [(3,), (), (2, 0)])
def test_the_plugin_calls_on_bytes(dtype: str, shape: tuple[int, ...]):
    kept = []
    handle = host_callbacks.register(lambda x: (kept.append(x), x)[1:], [shape], [np.dtype(dtype)])
    elements = np.ones(shape, dtype).tobytes()
    result = host_callbacks.call(handle.callback_id, [(dtype, shape, elements)], [(dtype, shape)])
    assert result == [elements]
    assert (kept[0].dtype, kept[0].shape) == (np.dtype(dtype), shape)
    assert not kept[0].flags.writeable


def test_results_are_row_major():
    handle = host_callbacks.register(lambda: (np.ones((2, 3), np.float32).T,), [(3, 2)], [FLOAT])
    (result,) = host_callbacks.run(handle.callback_id, [])
    assert result.flags.c_contiguous
    assert result.shape == (3, 2)


def test_a_scalar_result_keeps_its_shape():
    handle = host_callbacks.register(lambda: (np.float32(2),), [()], [FLOAT])
    assert host_callbacks.run(handle.callback_id, [])[0].shape == ()


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ((), "needs 1 results; got 0"),
        ((np.ones(2, np.float32),), r"needs result 0 of shape \(3,\)"),
        ((np.ones(3, np.float16),), "got shape .* dtype float16"),
    ],
)
def test_wrong_results_are_refused(result: tuple, text: str):
    handle = host_callbacks.register(lambda: result, [(3,)], [FLOAT])
    with pytest.raises(CallbackError, match=text):
        host_callbacks.run(handle.callback_id, [])


def test_an_exception_comes_through():
    def fail():
        raise KeyError("mine")

    handle = host_callbacks.register(fail, [], [])
    with pytest.raises(KeyError, match="mine"):
        host_callbacks.run(handle.callback_id, [])


def test_an_id_of_another_process_is_refused():
    with pytest.raises(CallbackError, match="not registered"):
        host_callbacks.run("0123-0", [])


@pytest.fixture
def registered(monkeypatch):
    """Registers and releases a number of callbacks while programs run, or while none does."""

    def register(number: int, idle: bool) -> list[str]:
        monkeypatch.setattr(host_callbacks, "_is_idle", lambda: idle)
        ids = []
        for _ in range(number):
            handle = host_callbacks.register(lambda: (), [], [])
            ids.append(handle.callback_id)
            del handle
            gc.collect()
        return ids

    return register


def test_released_callbacks_live_on_for_programs_in_flight_but_not_for_ever(
    registered, monkeypatch
):
    monkeypatch.setattr(host_callbacks, "_KEPT_AFTER_RELEASE", 2)
    ids = registered(4, idle=False)
    assert host_callbacks.run(ids[-1], []) == ()
    with pytest.raises(CallbackError):
        host_callbacks.run(ids[0], [])


def test_released_callbacks_go_when_no_program_runs(registered):
    ids = registered(2, idle=False) + registered(1, idle=True)
    for callback_id in ids:
        with pytest.raises(CallbackError):
            host_callbacks.run(callback_id, [])


class _Held:
    """Something large that a user's function refers to."""

    def __call__(self, x):
        return np.float32(x + 1)


@pytest.mark.parametrize("call", ["pure_callback", "io_callback", "debug.callback"])
def test_what_a_callback_refers_to_goes_with_its_program(call):
    calls = {
        "pure_callback": lambda f, x: jax.pure_callback(f, x, x),
        "io_callback": lambda f, x: io_callback(f, x, x),
        "debug.callback": lambda f, x: jax.debug.callback(f, x),
    }

    def run():
        held = _Held()
        jax.block_until_ready(jax.jit(lambda x: calls[call](lambda y: held(y), x))(jnp.float32(1)))
        return weakref.ref(held)

    refs = [run() for _ in range(5)]
    jax.effects_barrier()
    run()
    gc.collect()
    assert [ref() for ref in refs] == [None] * 5
