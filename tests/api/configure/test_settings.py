"""`configure`, `get_config`, `reset_config`, `options`: what is in force, and where."""

from __future__ import annotations

import json
import logging
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.config import options as config
from ipujax.config.option import option
from ipujax.errors import ConfigError

ROOT = Path(__file__).resolve().parents[3]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    ipu.reset_config(keep_devices=True)


def test_the_last_source_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "a.json").write_text('{"x64": "demote", "outline": "off", "schedule": "program"}')
    monkeypatch.setenv("IPUJAX_CONFIG", str(tmp_path / "a.json"))
    monkeypatch.setenv("IPUJAX_OUTLINE", "auto")
    monkeypatch.setenv("IPUJAX_SCHEDULE", "liveness")
    ipu.configure(schedule="auto", **{"products.partials_type": "half"})
    found = ipu.get_config().compile
    assert (found.x64, found.outline, found.schedule) == ("demote", "auto", "auto")
    assert config.sources() == {
        "device_count": "JAX_IPU_DEVICE_COUNT",
        "x64": str(tmp_path / "a.json"),
        "outline": "IPUJAX_OUTLINE",
        "schedule": "ipu.configure",
        "partials_type": "ipu.configure",
    }
    changed = config.with_compiler_options(found, {"ipu_schedule": "program"})
    assert changed.schedule == "program"


def test_sections_are_frozen_views_of_the_same_values():
    tree = ipu.IPUConfig().replace(x64="error", num_tiles=8, seed=3)
    assert tree.floating_point.x64 == tree.compile.x64 == tree.get("floating_point.x64") == "error"
    assert tree.model.num_tiles == tree.machine.num_tiles == 8
    assert tree.process.seed == 3
    with pytest.raises(AttributeError):
        tree.floating_point.x64 = "demote"
    for section in config.SECTIONS:
        assert getattr(tree, section) is not None


def test_values_are_checked_and_nothing_changes_if_one_is_wrong():
    ipu.configure(x64="demote")
    for wrong in ({"x64": "maybe"}, {"x65": "demote"}, {"products.x64": "demote"}):
        with pytest.raises(ConfigError):
            ipu.configure(outline="auto", **wrong)
    assert ipu.get_config().changes() == {"device_count": 8, "x64": "demote"}


def test_a_tree_and_reset():
    ipu.configure(ipu.IPUConfig().replace(outline="auto", x64="demote"), x64="error")
    assert ipu.get_config().get("outline") == "auto"
    assert ipu.get_config().get("x64") == "error"
    assert ipu.reset_config(keep_devices=True).get("outline") == "marked"


def test_options_of_the_machine_come_before_the_devices(device):
    with pytest.raises(ConfigError, match="before JAX makes its devices; got num_tiles=8 after"):
        ipu.configure(num_tiles=8)
    assert ipu.get_config().get("num_tiles") == 0


def test_programs_are_compiled_again_with_what_is_configured(device):
    f = jax.jit(lambda x: x * jnp.float16(2))
    x = jnp.array([60000], jnp.float16)
    assert np.isinf(f(x)).all()
    ipu.configure(half_overflow="saturate")
    assert f(x).tolist() == [65504]
    ipu.reset_config(keep_devices=True)
    assert np.isinf(f(x)).all()


def test_reset_waits_and_makes_new_devices(run_python: Run):
    code = """
import jax, jax.numpy as jnp, ipujax as ipu
f = jax.jit(lambda x: x + 1)
y = f(jnp.arange(3.0))
for _ in range(50): y = f(y)
ipu.configure(reset=True, num_ipus=2)
print([d.num_ipus for d in jax.devices()], y.tolist(), f(jnp.zeros(2)).tolist())
ipu.reset_config()
print(len(jax.devices()), ipu.get_config().changes())
"""
    run = run_python("-c", code)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "[2] [51.0, 52.0, 53.0] [1.0, 1.0]",
        "8 {'device_count': 8}",
    ]


def test_a_scope_changes_the_operations_inside_alone(device):
    def f(x):
        with ipu.options(**{"floating_point.half_overflow": "saturate"}):
            inner = x * jnp.float16(2)
        return inner, x * jnp.float16(2)

    inside, outside = jax.jit(f)(jnp.array([60000], jnp.float16))
    assert inside.tolist() == [65504]
    assert np.isinf(outside).all()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"outline": "auto"}, "[ipu.options] needs options from"),
        ({"num_ipus": 2}, "Set others with jax.jit"),
        ({"half_overflow": "wrap"}, "needs one of infinity, saturate, nan; got 'wrap'"),
        ({"half_overflw": "nan"}, "Did you mean 'half_overflow'?"),
    ],
)
def test_a_scope_refuses_what_operations_cannot_have(values: dict[str, str], says: str):
    with pytest.raises(ConfigError) as caught, ipu.options(**values):
        pass
    assert says in str(caught.value)


def test_clear_pass_type_changes_the_plan_and_not_the_result(device):
    w, x = jnp.ones((64, 64), jnp.float16), jnp.ones((64, 64), jnp.float16)
    f = jax.jit(lambda w, x: x @ w)
    plain = f.lower(w, x).compile()
    options = {"ipu_clear_pass_type": True, "ipu_available_memory_proportion": 0.05}
    cleared = f.lower(w, x).compile(compiler_options=options)
    assert (plain(w, x) == cleared(w, x)).all()


def test_options_of_collectives_reach_gcl():
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    total = jax.pmap(lambda v: jax.lax.psum(v, "i"), "i", devices=jax.devices("ipu")[:2])
    ipu.configure(collective_options='{"method": "clockwise_ring"}')
    assert np.asarray(total(x))[0].tolist() == [2, 4]
    ipu.configure(collective_options='{"method": "pigeon"}')
    with pytest.raises(jax.errors.JaxRuntimeError, match="'method' needs one of auto"):
        total(x)


def test_what_has_no_effect_is_said_once(caplog: pytest.LogCaptureFixture):
    for _ in range(2):
        ipu.configure(replication_factor=4)
        config.with_compiler_options(config.CompileConfig(), {"ipu_merge_infeed_copies": True})
    said = [r.getMessage() for r in caplog.records if "has no effect" in r.getMessage()]
    assert len(said) == 2
    assert any("replication_factor has no effect: replicas are the devices" in s for s in said)
    assert "no effect: replicas are the devices of a mesh" in ipu.get_config().describe()


def test_options_without_a_reason_are_read_and_others_are_not():
    """A name that nothing reads would be ignored in silence."""
    sources = {
        path: path.read_text()
        for path in (ROOT / "ipujax").rglob("*.py")
        if path.parent.name != "configuration" or path.name == "tree.py"
    }
    folders = (ROOT / "xla_plugin", ROOT / "cpp" / "engine")
    cpp = "".join(path.read_text() for folder in folders for path in folder.rglob("*.cpp"))
    for name, spec in config.SPECS.items():
        read = [p for p, text in sources.items() if re.search(rf'\.{name}\b(?!\()|"{name}"', text)]
        read += [name] if f'"{name}"' in cpp else []
        if spec.metadata["no_effect"]:
            assert not [p for p in read if "/compiler/" in str(p)], name
        else:
            assert read, f"nothing reads the option {name}"


def test_the_seed_and_the_cache_folder_are_set(run_python: Run, tmp_path: Path):
    code = """
import jax, jax.numpy as jnp, ipujax as ipu
jax.devices()
first = ipu.ops.random_normal((3,)).block_until_ready()
ipu.configure(seed=7)
second = ipu.ops.random_normal((3,)).block_until_ready()
ipu.reset_seed(7)
assert (ipu.ops.random_normal((3,)) == second).all()
print(first.tolist() != second.tolist(), jax.config.jax_compilation_cache_dir)
"""
    env = {"IPUJAX_EXECUTABLE_CACHE_DIR": str(tmp_path / "cache"), "IPUJAX_SEED": "3"}
    run = run_python("-c", code, env=env)
    assert run.stdout.split() == ["True", str(tmp_path / "cache")], run.stderr


def test_where_programs_run():
    assert ipu.running_on_ipu_model()
    assert ipu.is_running_on_ipu()
    with jax.default_device(jax.devices("cpu")[0]):
        assert not ipu.is_running_on_ipu()
    assert jax.jit(lambda x: x * ipu.is_running_on_ipu())(jnp.ones(())) == 1


def test_the_command_shows_values_and_their_sources(run_python: Run):
    env = {"IPUJAX_X64": "demote", "IPUJAX_REPLICATION_FACTOR": "2"}
    run = run_python("-m", "ipujax", "options", env=env)
    assert "  x64 = 'demote'  (IPUJAX_X64)" in run.stdout
    assert "  outline = 'marked'  (default)" in run.stdout
    assert "replication_factor = 2  (IPUJAX_REPLICATION_FACTOR; no effect: replicas" in run.stdout
    found = json.loads(run_python("-m", "ipujax", "options", "--json", env=env).stdout)
    assert found["floating_point"]["x64"]["value"] == "demote"
    assert found["floating_point"]["x64"]["source"] == "IPUJAX_X64"
    assert found["products"]["partials_type"]["scoped"] is True
    assert sum(map(len, found.values())) == len(config.SPECS)


def test_what_the_environment_had_is_overridden_with_a_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("IPUJAX_X64", "error")
    caplog.set_level(logging.INFO, "ipujax")
    assert ipu.configure(x64="demote").get("x64") == "demote"
    assert "x64 overrides the environment variable IPUJAX_X64" in caplog.text


def test_what_is_known_of_an_option():
    found = ipu.IPUConfig.metadata("products.partials_type")
    assert (found.name, found.type, found.default) == ("products.partials_type", str, "float")
    assert found.allowed == ("float", "half")
    assert found.scoped
    assert found.environment_variable == "IPUJAX_PARTIALS_TYPE"
    assert ipu.IPUConfig.metadata("replication_factor").no_effect
    with pytest.raises(ConfigError, match="Did you mean 'partials_type'"):
        ipu.IPUConfig.metadata("partial_type")


def test_a_deprecated_option_is_warned_of_once(caplog: pytest.LogCaptureFixture):
    old: str = option("", "Was used.", "IPUJAX_OLD", deprecated="use x64 instead")
    old.name = "old_option"  # type: ignore[attr-defined]
    for _ in range(2):
        config._say_what_is_ignored(old)  # type: ignore[arg-type]
    assert [r.getMessage() for r in caplog.records] == [
        "[config] old_option is deprecated: use x64 instead."
    ]


def test_a_file_that_changes_is_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    path = tmp_path / "a.toml"
    monkeypatch.setenv("IPUJAX_CONFIG", str(path))
    with pytest.raises(ConfigError, match="IPUJAX_CONFIG needs a file that exists"):
        ipu.get_config()
    for value in ("demote", "error"):
        path.write_text(f'x64 = "{value}"\n')
        assert ipu.get_config().get("x64") == value
