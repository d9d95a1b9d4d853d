"""Ctrl-C while JAX loads the plugin, in a process of its own."""

from __future__ import annotations

from tests.conftest import RunPython

PROGRAM = """
import os, signal, time
import ipujax.jax_compat as jax_compat

allow_callbacks = jax_compat.allow_callbacks

def interrupted():
    os.kill(os.getpid(), signal.SIGINT)
    allow_callbacks()

jax_compat.allow_callbacks = interrupted
import jax
try:
    jax.devices()
    time.sleep(10)
    print("lost")
except KeyboardInterrupt:
    print("interrupted", jax.devices("ipu")[0].platform)
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


def test_an_interrupt_is_not_lost(run_python: RunPython):
    ran = run_python("-c", PROGRAM, env={"JAX_PLATFORMS": "ipu,cpu"})
    assert (ran.stdout, ran.returncode) == ("interrupted ipu\n", 0), ran.stderr
    assert "Traceback" not in ran.stderr
