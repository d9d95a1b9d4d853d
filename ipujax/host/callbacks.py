"""Python functions that running programs call: `pure_callback`, `debug.print` ...

During lowering, `register` gives the function an id, which is stored in the program. When the
engine reaches that step it invokes `call` with the GIL held; arrays are passed as bytes. An
exception in the function becomes the error of the program's outputs.
"""

from __future__ import annotations

import itertools
import uuid
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence

import ml_dtypes  # noqa: F401 (gives NumPy the names bfloat16, float8_e5m2 ...)
import numpy as np

from ipujax.errors import CallbackError
from ipujax.host import programs as host_programs
from ipujax.host.programs import Entry, Shape, Signature

#: Maximum number of released callbacks kept while programs run whose owners were deleted.
_KEPT_AFTER_RELEASE = 256


class Handle:
    """Keeps one callback registered while it is alive; JAX's executable holds it."""

    def __init__(self, callback_id: str):
        self.callback_id = callback_id


class _Registry:
    """Callbacks by id. No lock is needed: each change is one atomic dict operation."""

    def __init__(self) -> None:
        self._live: dict[str, Entry] = {}
        self._released: OrderedDict[str, Entry] = OrderedDict()
        self._counter = itertools.count()
        # Executables can be saved and loaded; ids of another process must not resolve here.
        self._process = uuid.uuid4().hex

    def add(self, function: Callable[..., Sequence[object]], signature: Signature) -> Handle:
        callback_id = f"{self._process}-{next(self._counter)}"
        self._live[callback_id] = (function, signature)
        handle = Handle(callback_id)
        weakref.finalize(handle, self._release, callback_id).atexit = False
        return handle

    def _release(self, callback_id: str) -> None:
        """After this no new call begins; only waiting or running programs may need the callback."""
        entry = self._live.pop(callback_id, None)
        if entry is not None:
            self._released[callback_id] = entry
        released = list(self._released)  # listed before checking, as others may release meanwhile
        unused = len(released) if _is_idle() else len(released) - _KEPT_AFTER_RELEASE
        for old in released[: max(0, unused)]:
            self._released.pop(old, None)

    def get(self, callback_id: str) -> Entry:
        if host_programs.is_program(callback_id):
            return host_programs.entry(callback_id)
        entry = self._live.get(callback_id) or self._released.get(callback_id)
        if entry is None:
            raise CallbackError(
                f"[host callback] needs a function of this process; got {callback_id!r}, "
                "which is not registered. Jit the function again: saved executables cannot call "
                "back."
            )
        return entry


_registry = _Registry()


def _is_idle() -> bool:
    """Whether no program waits or runs. Imports here, as ipujax may lack its extension."""
    from ipujax._poplar import _poplar

    return _poplar.is_idle()


def register(
    function: Callable[..., Sequence[object]],
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[np.dtype],
    taken: Sequence[np.dtype] = (),
) -> Handle:
    """Registers `function` with its signature for as long as the handle is alive."""
    signature = Signature(
        tuple(tuple(shape) for shape in shapes),
        tuple(np.dtype(dtype) for dtype in dtypes),
        tuple(np.dtype(dtype) for dtype in taken),
    )
    return _registry.add(function, signature)


def run(callback_id: str, arguments: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Calls the function with that id.

    Returns:
        Row-major arrays of exactly the registered shapes and dtypes.
    Raises:
        CallbackError: the id is unknown, or the results do not match the signature.
        Exception: whatever the function raises.
    """
    function, signature = _registry.get(callback_id)
    results = function(*arguments)
    if len(results) != len(signature.shapes):
        raise CallbackError(
            f"[host callback] needs {len(signature.shapes)} results; got {len(results)}. "
            "Return one array for each entry of result_shape_dtypes."
        )
    return tuple(
        _checked(index, result, shape, dtype)
        for index, (result, shape, dtype) in enumerate(
            zip(results, signature.shapes, signature.dtypes, strict=True)
        )
    )


def call(
    callback_id: str, inputs: Sequence[tuple[str, Shape, bytes]], outputs: Sequence[object]
) -> list[bytes]:
    """`run` on bytes, called by the plugin: the buffer protocol has no bfloat16.

    Args:
        inputs: dtype name, shape and elements of each argument. The function gets read-only
            arrays and may keep them.
        outputs: dtype name and shape of each result, unused: `run` checks the registered ones.
    """
    del outputs
    taken = _registry.get(callback_id)[1].taken or [np.dtype(dtype) for dtype, _, _ in inputs]
    arguments = []
    for dtype, (held, shape, elements) in zip(taken, inputs, strict=True):
        # In programs, complex numbers are two floats in an additional last dimension.
        outside = shape[:-1] if dtype.kind == "c" and np.dtype(held).kind == "f" else shape
        arguments.append(np.frombuffer(elements, dtype).reshape(outside))
    return [result.tobytes() for result in run(callback_id, arguments)]


def _checked(index: int, result: object, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    array = np.asarray(result)
    if array.shape != shape or array.dtype != dtype:
        raise CallbackError(
            f"[host callback] needs result {index} of shape {shape} and dtype {dtype}; "
            f"got shape {array.shape} and dtype {array.dtype}. "
            "Return arrays as result_shape_dtypes describes them."
        )
    return np.ascontiguousarray(array).reshape(shape)
