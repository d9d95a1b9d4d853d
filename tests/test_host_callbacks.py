"""The registry of Python functions that programs call back."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from ipujax import host_callbacks
from ipujax.errors import CallbackError

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


def test_released_callbacks_live_on_for_programs_in_flight_but_not_for_ever(monkeypatch):
    monkeypatch.setattr(host_callbacks, "_KEPT_AFTER_RELEASE", 2)
    ids = []
    for _ in range(4):
        handle = host_callbacks.register(lambda: (), [], [])
        ids.append(handle.callback_id)
        del handle
        gc.collect()
    assert host_callbacks.run(ids[-1], []) == ()
    with pytest.raises(CallbackError):
        host_callbacks.run(ids[0], [])
