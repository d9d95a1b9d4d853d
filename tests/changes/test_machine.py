"""A machine is a row in one file, from which devices, options and costs follow."""

from __future__ import annotations

from pathlib import Path

from tests.changes.tree import Tree

CHECK = """
import jax, jax.numpy as jnp
from ipujax.config import page

assert "mk3" in page.table()
device = jax.devices("ipu")[0]
assert device.device_kind == "IPU Mk3 Model", device.device_kind
assert (device.num_tiles, device.clock_hz, device.bytes_per_tile) == (2000, 2.5e9, 1 << 20)
cost = jax.jit(lambda x: x @ x).lower(jnp.ones((256, 256))).compile().cost_analysis()
assert abs(cost["seconds"] * 2.5e9 / cost["cycles"] - 1) < 1e-4, cost
"""


def test_a_machine_is_added_in_one_file(run_python, tmp_path: Path):
    tree = Tree(tmp_path)
    tree.replace(
        "cpp/model/engine/Machine.cpp",
        "  return {gc200, bow, c600, gc2(gc200)};",
        """  Machine mk3 = gc200;
  mk3.name = "mk3";
  mk3.device_kind = "IPU Mk3 Model";
  mk3.tiles_per_ipu = 2000;
  mk3.bytes_per_tile = 1 << 20;
  mk3.clock_hz = 2.5e9;
  return {gc200, bow, c600, gc2(gc200), mk3};""",
    )
    assert tree.changed() == ["cpp/model/engine/Machine.cpp"]
    tree.build()
    (tmp_path / "check.py").write_text(CHECK)
    settings = {**tree.environment(), "IPUJAX_MACHINE": "mk3"}
    run = run_python(tmp_path / "check.py", env=settings)
    assert run.returncode == 0, run.stdout + run.stderr
