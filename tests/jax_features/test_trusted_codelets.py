"""Programs with codelets, cached and saved: their native code runs where the user said so."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

#: argv: "save" or "load" a compiled program, or "call" a function; the file. No compiler runs where
#: CXX names none.
SCRIPT = '''
import pickle, sys
import jax, jax.numpy as jnp
import ipujax as ipu
from jax.experimental import serialize_executable

SOURCE = """
#include <poplar/Vertex.hpp>
struct Triple : poplar::Vertex {
  poplar::InOut<poplar::Vector<float>> x;
  bool compute() { for (auto& e : x) e *= 3; return true; }
};
"""
what, file = sys.argv[1:]
x = jnp.ones((2, 4))
if what == "load":
    with open(file, "rb") as f:
        saved, *trees = pickle.load(f)
    call = serialize_executable.deserialize_and_load(
        saved, *trees, execution_devices=jax.devices()[:1]
    )
else:
    triple = ipu.tile.create_vertex("Triple", source=SOURCE, inputs=["x"], in_place=["x"])
    call = jax.jit(lambda x: ipu.tile.map(triple, ipu.tile.put_sharded(x, (0, 1))).array)
if what == "save":
    with open(file, "wb") as f:
        pickle.dump(serialize_executable.serialize(call.lower(x).compile()), f)
print("sum", float(call(x).sum()))
'''
NO_COMPILER = {"CXX": "no-such-compiler"}


class Processes:
    """Runs the script with a folder for codelets and JAX's cache."""

    def __init__(self, run_python, folder: Path) -> None:
        self.run_python, self.folder = run_python, folder
        self.trusted = folder / "trusted"
        self.trusted.mkdir(mode=0o700)
        (folder / "script.py").write_text(SCRIPT)

    def __call__(self, what: str, trusts: bool = True, **more: str) -> subprocess.CompletedProcess:
        environment = {
            "JAX_COMPILATION_CACHE_DIR": str(self.folder / "cache"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
            **({"IPUJAX_TRUST_NATIVE_CODE": str(self.trusted)} if trusts else {}),
            **more,
        }
        file = self.folder / "saved"
        return self.run_python(self.folder / "script.py", what, file, env=environment)


@pytest.fixture
def processes(run_python, tmp_path: Path) -> Processes:
    return Processes(run_python, tmp_path)


def test_entries_of_the_cache(processes: Processes) -> None:
    assert "sum 24.0" in processes("call").stdout
    assert any((processes.folder / "cache").iterdir())
    from_cache = processes("call", **NO_COMPILER)
    assert "sum 24.0" in from_cache.stdout, from_cache.stderr
    compiled_again = processes("call", trusts=False)
    assert "sum 24.0" in compiled_again.stdout
    assert "IPUJAX_TRUST_NATIVE_CODE" in compiled_again.stderr  # JAX warns
    refused = processes("call", trusts=False, **NO_COMPILER)
    assert refused.returncode != 0
    assert "needs a C++ compiler on this host" in refused.stderr


def test_saved_programs(processes: Processes) -> None:
    assert "sum 24.0" in processes("save").stdout
    loaded = processes("load", **NO_COMPILER)
    assert "sum 24.0" in loaded.stdout, loaded.stderr
    refused = processes("load", trusts=False)
    assert refused.returncode != 0
    assert "executable with codelets of neither. Set IPUJAX_TRUST_NATIVE_CODE" in refused.stderr
    os.chmod(processes.trusted, 0o777)
    for what in ("load", "save"):
        unsafe = processes(what)
        assert unsafe.returncode != 0
        assert "neither its group nor others may write to" in unsafe.stderr


def test_damaged_libraries(processes: Processes) -> None:
    """A library that a disk cut off or changed is as one that is not there."""
    assert "sum 24.0" in processes("save").stdout
    (library,) = processes.trusted.glob("*.so")
    whole = library.read_bytes()
    middle = len(whole) // 2
    changed = whole[:middle] + bytes(255 - byte for byte in whole[middle:])
    for damaged in (whole[:middle], whole[:100], changed):
        library.write_bytes(damaged)
        refused = processes("load", **NO_COMPILER)
        assert refused.returncode == 1, refused.stderr
        assert "executable with codelets of neither" in refused.stderr
    assert "sum 24.0" in processes("call").stdout
    assert "sum 24.0" in processes("load", **NO_COMPILER).stdout  # it was compiled again
