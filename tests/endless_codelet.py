"""A program whose codelet does not end is interrupted twice; what it gives after that is printed.

`python -m tests.endless_codelet TILES`, with either extension.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time

import jax
import numpy as np

import ipujax as ipu

ENDLESS = """
#include <poplar/Vertex.hpp>
struct Endless : poplar::Vertex {
  poplar::InOut<poplar::Vector<float>> x;
  bool compute() {
    volatile float* first = &x[0];
    while (*first != 0.0f) {}
    return true;
  }
};
"""


def interrupt() -> None:
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)


def main(tiles: int) -> None:
    vertex = ipu.tile.create_vertex(
        "Endless", source=ENDLESS, inputs=["x"], in_place=["x"], cycles=lambda x: 10
    )

    @jax.jit
    def program(x):
        x = ipu.tile.put_sharded(x, tiles=range(tiles))
        return ipu.tile.map(vertex, x).array

    zeros, ones = np.zeros((tiles, 2)), np.ones((tiles, 2))
    jax.block_until_ready(program(zeros))
    outcomes = []
    for _ in range(2):
        threading.Thread(target=interrupt, daemon=True).start()
        begin = time.monotonic()
        try:
            jax.block_until_ready(program(ones))
            outcomes.append("finished")
        except KeyboardInterrupt:
            outcomes.append("interrupted")
        assert time.monotonic() - begin < 20
        after = np.asarray(program(zeros)).ravel().tolist()
    print(json.dumps([outcomes, after]))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(int(sys.argv[1]))
