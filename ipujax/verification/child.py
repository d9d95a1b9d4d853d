"""The child process of an oracle: reads programs from stdin, writes results to stdout.

Messages are pickles, each preceded by its length in 8 bytes. A request is `(code, arrays)`:
StableHLO as bytecode or text, and one NumPy array for each parameter. The answer is
`("results", arrays)` or `("error", text)`.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
from collections.abc import Callable, Sequence
from typing import IO, Any

import numpy as np

Answer = tuple[str, Any]
_LENGTH = struct.Struct("<Q")


def send(stream: IO[bytes], message: Any) -> None:
    """Writes one message."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Reads one message; EOFError where the other process has ended."""
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(header)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)


def run_on_device(platform: str, code: bytes | str, arrays: Sequence[np.ndarray]) -> list[Any]:
    """Compiles and runs a program on the first device of a JAX platform."""
    import jax

    from ipujax import jax_compat

    return jax_compat.load_program(code, jax.devices(platform)[0])(arrays)


def serve(
    run: Callable[[bytes | str, Sequence[np.ndarray]], list[Any]],
    requests: IO[bytes],
    answers: IO[bytes],
) -> None:
    """Answers requests until the pipe is closed."""
    while True:
        try:
            code, arrays = receive(requests)
        except EOFError:
            return
        try:
            answer: Answer = ("results", run(code, arrays))
        except Exception as error:  # any error is an answer
            answer = ("error", f"{type(error).__name__}: {error}")
        send(answers, answer)


def main(name: str) -> None:
    """`name` is "interpreter" or a JAX platform."""
    # Libraries print to file descriptor 1; only messages may reach the parent.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    if name == "interpreter":
        from ipujax.verification.interpreter import interpret as run
    else:

        def run(code: bytes | str, arrays: Sequence[np.ndarray]) -> list[Any]:
            return run_on_device(name, code, arrays)

    serve(run, sys.stdin.buffer, answers)


if __name__ == "__main__":
    main(sys.argv[1])
