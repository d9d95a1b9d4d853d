"""Clients come and go, options are checked, processes fork and end with work in flight."""

from __future__ import annotations

import sys

import jax
import pytest
from jaxlib import xla_client

HEAD = """
import time
import jax, jax.numpy as jnp, numpy as np
def waiting(x, seconds=0.1):
    def wait(v):
        time.sleep(seconds)
        return v + np.float32(1)
    return jax.pure_callback(wait, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
slow = jax.jit(waiting)
add_one = jax.jit(lambda x: x + 1)
x = jnp.arange(4.0)
"""


@pytest.fixture
def run(run_python):
    def call(code: str, **env: str) -> str:
        done = run_python("-c", HEAD + code, env=env, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_exit_while_a_callback_runs(run):
    assert "end" in run("slow(x).copy_to_host_async(); print('end')")


def test_exit_with_a_long_queue(run):
    assert "end" in run("y = slow(x)\nfor _ in range(30): y = slow(y)\nprint('end')")


def test_exit_with_a_long_loop_in_flight(run):
    code = """
spin = jax.jit(lambda v: jax.lax.fori_loop(0, 2_000_000_000, lambda i, c: c * 1.0000001, v))
spin(x)
print('end')
"""
    assert "end" in run(code)


def test_a_new_client_after_clear_backends(run):
    code = """
import jax.extend
for count in range(3):
    assert add_one(jnp.arange(4.0)).tolist() == [1, 2, 3, 4]
    slow(jnp.arange(4.0))
    jax.extend.backend.clear_backends()
print(len(jax.devices()))
"""
    assert run(code).split()[-1] == str(len(jax.devices("ipu")))


def test_arrays_outlive_their_client(run):
    code = """
import jax.extend
old = add_one(x)
jax.extend.backend.clear_backends()
print(np.asarray(old).tolist())
"""
    assert "[1.0, 2.0, 3.0, 4.0]" in run(code)


#: What a process may still have when Python ends, or JAX has let go of its clients.
HELD = {
    "a view": "held = np.asarray(add_one(x))",
    "a view of one of many": "for _ in range(5): held = np.asarray(add_one(big))",
    "a view in a cycle": "held = [np.asarray(add_one(x))]; held.append(held)",
    "a capsule": "held = add_one(x).__dlpack__()",
    "what took a capsule": "held = np.from_dlpack(add_one(x))",
    "a traceback": """
def fail():
    y = add_one(big); view = np.asarray(y)
    raise ValueError
try: fail()
except ValueError as error: held = error
""",
    "a thread": """
import threading
def work():
    array = add_one(big); view = np.asarray(array)
    time.sleep(1000)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
""",
    "a view made later": """
old = add_one(x)
jax.extend.backend.clear_backends()
held = np.asarray(old)
del old; gc.collect()
""",
    "an array made later": """
d = jax.devices()[0]
jax.extend.backend.clear_backends()
held = np.asarray(jax.device_put(big, d))
del d; gc.collect()
""",
}


@pytest.mark.parametrize("clears", [False, True], ids=["exit", "clear_backends"])
@pytest.mark.parametrize("what", HELD)
def test_what_outlives_the_client(run, what: str, clears: bool):
    code = "import gc, jax.extend\nbig = np.ones(20000, np.float32)\n" + HELD[what]
    if clears:
        code += "\njax.extend.backend.clear_backends(); gc.collect()"
        code += "\nassert add_one(jnp.ones(3)).tolist() == [2, 2, 2]; gc.collect()"
    # What is freed is filled, so that nobody reads from there what was.
    assert "end" in run(code + "\nprint('end')", MALLOC_PERTURB_="165")


def test_clients_with_views_go_with_the_views(run):
    code = """
import gc, os, weakref, jax.extend
held, clients = [], []
for _ in range(12):
    held = held[-1:] + [np.asarray(add_one(jnp.arange(4.0)))]
    clients.append(weakref.ref(jax.devices()[0].client))
    jax.extend.backend.clear_backends()
    gc.collect()
print(sum(client() is not None for client in clients), len(os.listdir("/proc/self/task")) < 40)
del held
for _ in range(5):
    add_one(x); gc.collect()
print(sum(client() is not None for client in clients))
"""
    alive, few_threads, left = run(code).split()
    assert int(alive) <= 3
    assert few_threads == "True"
    assert int(left) <= 1  # the newest may still be JAX's


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_a_fork_does_not_break_the_parent(run):
    code = """
import os, warnings
warnings.simplefilter("ignore")
y = slow(x)
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
print(add_one(y).tolist(), add_one(slow(x)).tolist())
"""
    assert run(code).count("[2.0, 3.0, 4.0, 5.0]") == 2


def test_a_machine_of_another_size(run):
    code = "d = jax.devices(); print(len(d), d[1].num_tiles, d[0].memory_stats()['bytes_limit'])"
    out = run(code, JAX_IPU_DEVICE_COUNT="2", JAX_IPU_MODEL_NUM_TILES="8")
    assert out.split() == ["2", "8", str(8 * 624 * 1024)]


OPTIONS = [
    ("device_count", 0, "an integer from 1"),
    ("device_count", "four", "an integer from 1"),
    ("num_tiles", -3, "an integer from 0 to 1472"),
    ("num_tiles", 1473, "an integer from 0 to 1472"),
    ("machine", 3, "a name"),
]


@pytest.mark.parametrize(("name", "value", "needs"), OPTIONS)
def test_a_wrong_option_is_named(name, value, needs):
    jax.devices("ipu")
    with pytest.raises(Exception, match=rf"\[ipu options\] {name} needs {needs}"):
        xla_client.make_c_api_client("ipu", {name: value}, None)
