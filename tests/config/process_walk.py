"""Rows of the walk for options that concern the process: see walk.py."""

from __future__ import annotations

import contextlib
import ctypes
import io
import logging
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu
from ipujax.host.compile_progress import compile_progress
from tests.config.walk import Row, configured

#: A large mean, so that the two ways to compute a variance differ.
X = (1000 + np.random.default_rng(0).normal(size=(4, 8))).astype(np.float32)


def drawn() -> object:
    with contextlib.redirect_stderr(io.StringIO()) as text:
        bar = str(ipu.get_config().get("progress_bar"))
        with compile_progress(("a",), bar):
            time.sleep(0.05)
    return "compiling" in text.getvalue()


def logged(name: str, to_file: bool, folder: Path) -> object:
    """Whether a warning goes to the file that the option names."""
    path = folder / "log.txt"
    value: Any = str(path) if to_file else "stderr"
    ipu.configure(**{name: value})
    logging.getLogger("ipujax.config").warning("written by the walk")
    return path.exists()


def cached(name: str, value: str, folder: Path) -> object:
    """The folder that JAX caches in; it keeps one that it has."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    try:
        given: Any = str(folder) if value else ""
        ipu.configure(**{name: given})
        return jax.config.jax_compilation_cache_dir
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def changed_on_its_way() -> object:
    """What reading an array gives of which a bit changed after it was put on the device."""
    array: Any = jax.device_put(np.zeros(4096, np.float32), jax.devices("ipu")[0])
    address = jax.block_until_ready(array).unsafe_buffer_pointer()
    ctypes.c_uint8.from_address(address + 7).value ^= 4
    try:
        return float(np.asarray(jax.jit(jnp.sum)(array)))
    except jax.errors.JaxRuntimeError as error:
        return str(error)


def group_means() -> object:
    """The running means of four replicas with data of different means."""
    x = np.arange(4, dtype=np.float32)[:, None, None] + np.ones((4, 3, 2), np.float32)
    state = ipu.nn.batch_norm_init(2)
    norm = ipu.pmap(lambda x: ipu.nn.batch_norm(x, state)[1].mean, devices=jax.devices("ipu")[:4])
    return np.asarray(norm(x)).tolist()


#: Options of the process.
PROCESS: dict[str, Row] = {
    "seed": Row((1, 2), configured(lambda: ipu.ops.random_normal((3,)).tolist())),
    "executable_cache_dir": Row(("", "yes"), cached),
    "log_level": Row(("ERR", "DEBUG"), configured(lambda: logging.getLogger("ipujax").level)),
    "log_destination": Row((False, True), logged),
    "progress_bar": Row(("off", "on"), configured(drawn)),
    "use_stable_statistics": Row(
        (False, True), configured(lambda: jax.jit(ipu.nn.layer_norm)(X).tolist())
    ),
    "batch_norm_replica_group_size": Row((1, 2), configured(group_means)),
    "verified_transfers": Row((False, True), configured(changed_on_its_way)),
}
