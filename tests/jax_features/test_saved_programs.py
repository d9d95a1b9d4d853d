"""Programs that outlive their process: JAX's compilation cache, serialisation, export."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import serialize_executable

#: Prints how often the compiler ran, how often the cache hit, and all warnings.
SCRIPT = """
import json, logging, sys, warnings
import jax, numpy as np
from jax import monitoring
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
hits = []
monitoring.register_event_listener(lambda event, **kw: hits.append(event))
import ipujax.compiler.compile as compiler
from ipujax import plugin
compiles = []
real = compiler.compile_module
compiler.compile_module = lambda *a, **k: (compiles.append(1), real(*a, **k))[1]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    x = jax.device_put(np.arange(4, dtype=np.float32))
    {body}
    np.testing.assert_array_equal(result, [1, 3, 5, 7])
print(json.dumps({{
    "compiles": len(compiles),
    "hits": hits.count("/jax/compilation_cache/cache_hits"),
    "warnings": [str(w.message) for w in caught],
}}))
"""
DOUBLE = "result = jax.jit(lambda x: x * 2 + 1)(x)"
WITH_CALLBACK = """
    same = jax.ShapeDtypeStruct((4,), np.float32)
    result = jax.jit(lambda x: jax.pure_callback(lambda v: np.asarray(v) * 2 + 1, same, x))(x)
"""


@pytest.fixture
def cached(run_python, tmp_path: Path):
    """Runs the script in a child process; all runs share one cache folder."""

    def run(body: str = DOUBLE, env: dict[str, str] | None = None) -> dict:
        script = tmp_path / "script.py"
        text = SCRIPT.format(body=body.strip())
        if not script.exists() or script.read_text() != text:  # another process may be reading it
            script.write_text(text)
        done = run_python(script, tmp_path / "cache", env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1]) | {"log": done.stderr}

    return run


def entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache").glob("*-cache"))


def test_the_second_process_compiles_nothing(cached, tmp_path: Path):
    first = cached()
    assert (first["compiles"], first["hits"]) == (1, 0)
    assert len(entries(tmp_path)) == 1
    second = cached()
    assert (second["compiles"], second["hits"]) == (0, 1)
    assert second["warnings"] == []


@pytest.mark.parametrize("damage", ["cut short", "altered", "another version", "empty"])
def test_a_damaged_entry_is_reported_once_and_replaced(cached, tmp_path: Path, damage: str):
    from jax._src import compilation_cache

    cached()
    (entry,) = entries(tmp_path)
    data = entry.read_bytes()
    if damage == "cut short":
        entry.write_bytes(data[: len(data) // 2])
    elif damage == "empty":
        entry.write_bytes(b"")
    else:
        # Inside JAX's compression, so that the checksum or the version that trips is ours.
        content = bytearray(compilation_cache.decompress_executable(data))
        if damage == "altered":
            content[len(content) * 3 // 4] ^= 0x55
        else:
            place = content.find(b"0.1.0")
            assert place > 0
            content[place : place + 5] = b"0.0.9"
        entry.write_bytes(compilation_cache.compress_executable(bytes(content)))
    again = cached()
    assert again["compiles"] == 1
    (warning,) = again["warnings"]
    assert "Error reading persistent compilation cache entry" in warning
    repaired = cached()
    assert (repaired["compiles"], repaired["hits"], repaired["warnings"]) == (0, 1, [])
    assert sorted(path.name for path in entry.parent.iterdir()) == [entry.name]


FULL_DISK = (
    """
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
"""
    + "    "
    + DOUBLE
)


def test_a_full_disk_leaves_no_half_entry(cached, tmp_path: Path):
    full = cached(FULL_DISK)
    assert full["compiles"] == 1
    (warning,) = full["warnings"]
    assert "Error writing persistent compilation cache entry" in warning
    assert list((tmp_path / "cache").iterdir()) == []
    assert cached()["warnings"] == []
    assert cached()["hits"] == 1


def test_a_full_disk_leaves_a_damaged_entry_as_it_was(cached, tmp_path: Path):
    cached()
    (entry,) = entries(tmp_path)
    entry.write_bytes(b"damaged")
    full = cached(FULL_DISK)
    assert [warning.split(" persistent")[0] for warning in full["warnings"]] == [
        "Error reading",
        "Error writing",
    ]
    assert entry.read_bytes() == b"damaged"
    assert list(entry.parent.iterdir()) == [entry]


def test_a_folder_that_takes_no_files_is_reported(run_python, tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(body=DOUBLE))
    done = run_python(script, "/proc/self/fdinfo")  # not even root can write there
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["compiles"] == 1
    assert all("Error writing" in warning for warning in result["warnings"])
    assert len(result["warnings"]) == 1


WITH_A_LIMIT = (
    """
    import types
    nothing = lambda *a, **k: None
    lock = type("Lock", (), {"__init__": nothing, "acquire": nothing, "release": nothing})
    from jax._src import lru_cache
    lru_cache.filelock = types.SimpleNamespace(FileLock=lock)
    jax.config.update("jax_compilation_cache_max_size", 1 << 20)
"""
    + "    "
    + DOUBLE
)


def test_a_folder_with_a_size_limit_keeps_the_time_of_access(cached, tmp_path: Path):
    cached(WITH_A_LIMIT)
    (entry,) = entries(tmp_path)
    names = {entry.name, entry.name.replace("-cache", "-atime")}
    assert {path.name for path in entry.parent.iterdir()} == names
    entry.write_bytes(b"damaged")
    assert len(cached(WITH_A_LIMIT)["warnings"]) == 1
    repaired = cached(WITH_A_LIMIT)
    assert (repaired["hits"], repaired["warnings"]) == (1, [])
    assert {path.name for path in entry.parent.iterdir()} == names


def test_processes_that_mend_an_entry_at_once(cached, tmp_path: Path):
    cached()
    (entry,) = entries(tmp_path)
    entry.write_bytes(b"damaged")
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: cached(), range(4)))
    assert all(run["compiles"] + run["hits"] == 1 for run in runs)
    assert list(entry.parent.iterdir()) == [entry]
    last = cached()
    assert (last["hits"], last["warnings"]) == (1, [])


def test_options_and_machine_are_part_of_the_key(cached):
    cached()
    assert cached(env={"JAX_IPU_MODEL_NUM_TILES": "16"})["compiles"] == 1
    assert cached(env={"IPUJAX_MACHINE": "bow"})["compiles"] == 1
    assert cached(env={"IPUJAX_OUT_OF_MEMORY": "error"})["compiles"] == 1
    assert cached()["compiles"] == 0


def test_programs_with_callbacks_are_not_cached(cached, tmp_path: Path):
    for _ in range(2):
        assert cached(WITH_CALLBACK)["compiles"] >= 1
    assert [entry for entry in entries(tmp_path) if "lambda" in entry.name] == []


def test_a_cache_folder_that_cannot_be_written_is_reported(run_python, tmp_path: Path):
    (tmp_path / "cache").write_text("a file, not a folder")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(body=DOUBLE))
    done = run_python(script, tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["compiles"] == 1


@pytest.mark.tiny
def test_serialise_and_load():
    x = jnp.arange(4.0)
    compiled = jax.jit(lambda a: a * 2 + 1).lower(x).compile()
    saved, in_tree, out_tree = serialize_executable.serialize(compiled)
    loaded = serialize_executable.deserialize_and_load(
        saved, in_tree, out_tree, execution_devices=jax.devices()[:1]
    )
    np.testing.assert_array_equal(loaded(x), [1, 3, 5, 7])


def test_export_round_trip():
    exported = jax.export.export(jax.jit(lambda a: jnp.tanh(a) * 2))(
        jax.ShapeDtypeStruct((4,), np.float32)
    )
    assert exported.platforms == ("ipu",)
    again = jax.export.deserialize(exported.serialize())
    x = np.linspace(-1, 1, 4, dtype=np.float32)
    np.testing.assert_allclose(again.call(x), np.tanh(x) * 2, rtol=1e-5)


def test_export_with_symbolic_shapes_for_two_platforms():
    (n,) = jax.export.symbolic_shape("n")
    exported = jax.export.export(jax.jit(lambda a: a.sum() + 1), platforms=("cpu", "ipu"))(
        jax.ShapeDtypeStruct((n,), np.float32)
    )
    again = jax.export.deserialize(exported.serialize())
    assert float(again.call(np.ones(7, np.float32))) == 8.0


def test_an_export_for_another_platform_is_refused():
    exported = jax.export.export(jax.jit(lambda a: a + 1), platforms=("cpu",))(
        jax.ShapeDtypeStruct((4,), np.float32)
    )
    with pytest.raises(ValueError, match="ipu"):
        exported.call(jnp.ones(4))
