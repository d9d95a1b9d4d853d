"""As many devices as a POD64 has."""

from __future__ import annotations

import json
from pathlib import Path

SCRIPT = """
import json, os, resource, sys
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

count = int(sys.argv[1])
mesh = Mesh(np.array(jax.devices("ipu")[:count]), ("data",))
WIDTH = 256

def loss(w, x):
    for _ in range(4):
        x = jnp.tanh(x @ w)
    return (x * x).mean()

@jax.jit
def step(w, x):
    value, slope = jax.value_and_grad(loss)(w, x)
    return w - slope, value

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

rng = np.random.default_rng(0)
x = rng.standard_normal((64 * 16, WIDTH)).astype(np.float32)[: count * 16]
w = rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 16
expected = np.asarray(step(*(jax.device_put(a, jax.devices("ipu")[0]) for a in (w, x)))[0])
before = resident()
x = jax.device_put(x, NamedSharding(mesh, P("data")))
w = jax.device_put(w, NamedSharding(mesh, P()))
for _ in range(3):
    result, value = step(w, x)
    jax.block_until_ready(result)
np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-4, atol=1e-6)
print(json.dumps([resident() - before, step.lower(w, x).compile().cost_analysis()["link cycles"]]))
"""


def test_sixty_four_devices_take_no_more_than_sixty_four_times_the_memory(
    run_python, tmp_path: Path
):
    script = tmp_path / "many.py"
    script.write_text(SCRIPT)
    memory, link_cycles = {}, {}
    for count in (1, 4, 64):
        run = run_python(script, str(count), env={"JAX_IPU_DEVICE_COUNT": "64"}, timeout=300)
        assert run.returncode == 0, run.stderr
        memory[count], link_cycles[count] = json.loads(run.stdout.splitlines()[-1])
    assert memory[64] <= 64 * max(memory[1], 1 << 20)
    assert 0 == link_cycles[1] < link_cycles[4] < link_cycles[64]
