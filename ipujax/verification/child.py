"""The child process of an oracle: reads programs from stdin, writes results to stdout.

A message is a kind, some text and arrays: a line of JSON that says how long the text is and which
arrays follow, then the bytes of these. A request is StableHLO ("bytecode" or "text") and one array
for each parameter; the answer is "results" with arrays, or "error" with text.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import IO, Any

import ml_dtypes  # noqa: F401 (its types are NumPy dtypes by name from here on)
import numpy as np

Message = tuple[str, bytes, list[np.ndarray]]


def send(stream: IO[bytes], kind: str, text: bytes, arrays: Sequence[Any] = ()) -> None:
    """Writes one message."""
    sent = [np.asarray(array) for array in arrays]
    shapes = [(array.dtype.name, array.shape) for array in sent]
    header = {"kind": kind, "bytes": len(text), "arrays": shapes}
    stream.write(json.dumps(header).encode() + b"\n" + text)
    for array in sent:
        stream.write(array.tobytes())
    stream.flush()


def receive(stream: IO[bytes]) -> Message:
    """Reads one message; raises EOFError if the other process has ended."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    header = json.loads(line)
    text = _read(stream, header["bytes"])
    arrays = []
    for name, shape in header["arrays"]:
        dtype = np.dtype(name)
        data = _read(stream, int(np.prod(shape)) * dtype.itemsize)
        arrays.append(np.frombuffer(bytearray(data), dtype).reshape(shape))
    return header["kind"], text, arrays


def _read(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data


def run_on_device(
    platform: str, code: bytes | str, arrays: Sequence[np.ndarray], options: dict[str, Any]
) -> list[Any]:
    """Compiles and runs a program on the first device of a JAX platform."""
    import jax

    from ipujax import jax_compat

    return jax_compat.load_program(code, jax.local_devices(backend=platform)[0], options)(arrays)


def serve(
    run: Callable[[bytes | str, Sequence[np.ndarray]], list[Any]],
    requests: IO[bytes],
    answers: IO[bytes],
) -> None:
    """Answers requests until the pipe is closed."""
    while True:
        try:
            kind, text, arrays = receive(requests)
        except EOFError:
            return
        try:
            results = run(text.decode() if kind == "text" else text, arrays)
        except Exception as error:  # any error is an answer
            send(answers, "error", f"{type(error).__name__}: {error}".encode())
        else:
            send(answers, "results", b"", results)


def main(name: str, options: str) -> None:
    """`name` is "interpreter" or a JAX platform; `options` are its compiler's, in JSON."""
    # Libraries print to file descriptor 1; only messages may reach the parent.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    if name == "interpreter":
        from ipujax.verification.interpreter import interpret as run
    else:

        def run(code: bytes | str, arrays: Sequence[np.ndarray]) -> list[Any]:
            return run_on_device(name, code, arrays, json.loads(options))

    serve(run, sys.stdin.buffer, answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
