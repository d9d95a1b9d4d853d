"""Options: defaults, environment, per-call values, and the texts of the errors."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from ipujax.compiler.engine_options import with_engine_options
from ipujax.config import options as config
from ipujax.config import page
from ipujax.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]


def test_defaults_are_one_m2000_of_the_model():
    tree = config.from_environment({})
    assert tree == config.IPUConfig()
    assert config.platform_options(tree) == {
        "use_model": True,
        "machine": "gc200",
        "device_count": 4,
        "visible_devices": "",
        "ipus_per_device": 1,
        "num_ipus": "",
        "device_ids": "",
        "first_ipus": "0,1,2,3",
        "auto_round_num_ipus": False,
        "selection_order": "auto",
        "connection": "always",
        "enable_remote_buffers": True,
        "exclusive": False,
        "num_ipus_in_host": 16,
        "wait_for_ipu": False,
        "wait_seconds": 0.0,
        "num_tiles": 0,
        "streaming_gigabytes": 0,
        "compile_ipu_code": True,
    }


def test_environment_overrides():
    tree = config.from_environment(
        {
            "JAX_IPU_DEVICE_COUNT": "2",
            "JAX_IPU_MODEL_NUM_TILES": "8",
            "JAX_IPU_USE_MODEL": "true",
            "IPUJAX_MACHINE": "bow",
            "IPUJAX_OUT_OF_MEMORY": "error",
            "IPUJAX_AVAILABLE_MEMORY_PROPORTION": "0.25",
        }
    )
    assert (tree.machine.num_devices, tree.machine.num_tiles) == (2, 8)
    assert tree.compile.out_of_memory == "error"
    assert tree.compile.available_memory_proportion == 0.25
    assert config.platform_options(tree)["machine"] == "bow"


def test_an_empty_variable_counts_as_not_set():
    assert config.from_environment({"JAX_IPU_DEVICE_COUNT": ""}) == config.IPUConfig()


def test_visible_devices_are_the_device_count():
    tree = config.from_environment({"JAX_IPU_VISIBLE_DEVICES": "0,2"})
    assert tree.machine.num_devices == 2


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("JAX_IPU_DEVICE_COUNT", "0", "needs a whole number from 1 to 1024; got '0'"),
        ("JAX_IPU_DEVICE_COUNT", "many", "needs a whole number from 1 to 1024; got 'many'"),
        ("JAX_IPU_DEVICE_COUNT", "2.5", "needs a whole number"),
        ("JAX_IPU_MODEL_NUM_TILES", "x", "needs a whole number from 0 to 65536; got 'x'"),
        ("JAX_IPU_USE_MODEL", "maybe", "needs true or false; got 'maybe'"),
        ("JAX_IPU_USE_MODEL", "false", "needs a build against the Poplar SDK"),
        ("JAX_IPU_VISIBLE_DEVICES", "0,0", "distinct device numbers, comma-separated, below 1024"),
        ("IPUJAX_MACHINE", "mk3", "needs one of gc200, bow, c600, gc2; got 'mk3'"),
        ("IPUJAX_OUT_OF_MEMORY", "ignore", "needs one of log, run, error; got 'ignore'"),
        ("IPUJAX_AVAILABLE_MEMORY_PROPORTION", "1.5", "needs a number from 0.0 to 1.0; got '1.5'"),
    ],
)
def test_a_bad_environment_names_variable_value_and_remedy(name: str, value: str, text: str):
    with pytest.raises(ConfigError) as caught:
        config.from_environment({name: value})
    assert text in str(caught.value)
    assert name in str(caught.value)
    assert re.search(r"\. (Use|Unset) ", str(caught.value))


def test_a_dump_folder_that_cannot_be_made(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="IPUJAX_DUMP_DIR needs a folder that can be created"):
        config.from_environment({"IPUJAX_DUMP_DIR": str(tmp_path / "file" / "dump")})


@pytest.mark.parametrize("text", ["SNAKE", "SelectionOrder.SNAKE", "snake"])
def test_members_of_enumerations_are_written_as_graphcore_does(text: str):
    assert config.from_environment({"IPUJAX_SELECTION_ORDER": text}).machine.selection_order == (
        "snake"
    )
    values = {"floating_point_exceptions": "INV,OFLO"}
    assert config.IPUConfig().replace(**values).compile.floating_point_exceptions == "inv,oflo"


def test_per_call_options():
    base = config.CompileConfig(out_of_memory="error")
    changed = config.with_compiler_options(base, {"ipu_partials_type": "half"})
    assert changed == config.CompileConfig(out_of_memory="error", partials_type="half")
    assert base.partials_type == "float"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("ipu_out_of_memmory", "Did you mean 'ipu_out_of_memory'?"),
        ("fit", "Write 'ipu_fit'."),
        ("ipu_device_count", "use ipu.configure(device_count=...)"),
        ("ipu_qqq", "got 'ipu_qqq'. Run python -m ipujax options"),
    ],
)
def test_a_wrong_compiler_option_has_advice(name: str, advice: str):
    with pytest.raises(ConfigError, match=re.escape(advice)):
        config.with_compiler_options(config.CompileConfig(), {name: "1"})


def test_blanks_in_a_list_do_not_count():
    tree = config.from_environment({"IPUJAX_ENGINE_WITHOUT": "loops, rows "})
    assert tree.compile.engine_without == "loops,rows"
    options = {"ipu_floating_point_exceptions": " inv, oflo "}
    changed = config.with_compiler_options(tree.compile, options)
    assert changed.floating_point_exceptions == "inv,oflo"
    with pytest.raises(
        ConfigError, match="a comma-separated list of inv, div0, oflo; got 'inv, x'"
    ):
        config.with_compiler_options(tree.compile, {"ipu_floating_point_exceptions": "inv, x"})


@pytest.mark.parametrize("value", [True, "x", 7])
def test_a_bad_per_call_value(value: object):
    with pytest.raises(ConfigError, match=r"compiler_options\['ipu_partials_type'\] needs one of"):
        config.with_compiler_options(config.CompileConfig(), {"ipu_partials_type": value})


def test_the_tree_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.IPUConfig().machine.device_count = 3  # type: ignore[misc]


def test_the_options_page_is_up_to_date():
    assert (ROOT / "docs" / "options.md").read_text() == page.table(), "run make docs"


def test_every_environment_variable_that_the_sources_read_is_documented():
    read = set()
    sources = [
        *ROOT.glob("cpp/**/*.cpp"),
        *ROOT.glob("xla_plugin/*.cpp"),
        *ROOT.glob("ipujax/**/*.py"),
    ]
    for path in (each for each in sources if ROOT / "cpp/model/tests" not in each.parents):
        pattern = r'(?:getenv\(|environ\.get\(|environ\[)"(IPUJAX_\w+|JAX_IPU_\w+)"'
        read |= set(re.findall(pattern, path.read_text()))
    text = page.table()
    assert read
    assert [name for name in sorted(read) if f"`{name}`" not in text] == []


@pytest.mark.parametrize(
    ("name", "value", "needs"),
    [
        *(("IPUJAX_NUM_THREADS", v, "a whole number from 1 to 1024") for v in ("abc", "0", "-1")),
        ("IPUJAX_NUM_THREADS", "1000000000", "a whole number from 1 to 1024"),
        ("IPUJAX_MAX_ISA", "avx1024", "baseline, avx2 or avx512"),
        ("IPUJAX_CODELET_INCLUDE", "/nowhere", "a folder that exists"),
        ("IPUJAX_VERIFY", "yes", "0 or 1"),
    ],
)
def test_a_bad_variable_of_the_process(name: str, value: str, needs: str):
    with pytest.raises(ConfigError) as caught:
        config.from_environment({name: value})
    assert f"{name} needs {needs}; got {value!r}. Correct or unset it." in str(caught.value)


def test_jax_says_what_is_wrong_with_a_variable_of_the_process(run_python):
    """Not that the extension was not built; and it does not go on with the CPU backend."""
    for name, value in (("IPUJAX_MAX_ISA", "fast"), ("IPUJAX_NUM_THREADS", "all")):
        run = run_python("-c", "import jax; print(jax.devices())", env={name: value})
        assert run.returncode == 1
        assert f"[config] {name} needs" in run.stderr
        assert f"got {value!r}" in run.stderr
        assert "make build" not in run.stderr
        assert run.stdout == ""


@pytest.mark.parametrize("ids", ["12345678901234567890", "1024", "0,", "1," * 5000, "0,00"])
def test_ipu_numbers_are_bounded(ids: str):
    with pytest.raises(ConfigError, match="distinct device numbers, comma-separated, below 1024"):
        config.from_environment({"JAX_IPU_VISIBLE_DEVICES": ids})


def test_misspelt_variables_are_warned_of_once(caplog):
    environment = {"IPUJAX_NUM_THREDS": "4", "JAX_IPU_DEVICES": "2", "IPUJAX_X64": "demote"}
    for _ in range(2):
        assert config.from_environment(environment).compile.x64 == "demote"
    said = [record.getMessage() for record in caplog.records if record.name == "ipujax.config"]
    assert len(said) == 2
    assert "IPUJAX_NUM_THREDS is not known. Did you mean IPUJAX_NUM_THREADS?" in said[0]
    assert "JAX_IPU_DEVICES" in said[1]


def test_options_of_other_backends_are_ignored_with_one_line(caplog):
    caplog.set_level("INFO", "ipujax")
    options = {"xla_cpu_enable_fast_math": True, "xla_test_only": 1, "ipu_partials_type": "half"}
    for _ in range(2):
        changed = config.with_compiler_options(config.CompileConfig(), options)
        assert changed == config.CompileConfig(partials_type="half")
    (record,) = caplog.records
    assert "xla_cpu_enable_fast_math, xla_test_only" in record.getMessage()


def test_a_count_that_machines_do_not_attach_is_warned_of_once(caplog):
    for _ in range(2):
        config.from_environment({"JAX_IPU_IPUS_PER_DEVICE": "5"})
    said = [
        each.getMessage() for each in caplog.records if "ipus_per_device=5" in each.getMessage()
    ]
    (line,) = said
    assert "Use 8 there" in line
    caplog.clear()
    config.from_environment({"JAX_IPU_IPUS_PER_DEVICE": "4"})
    assert not caplog.records


@pytest.mark.parametrize("text", ["{", "[1]", '{"debug.outOfMemory": [1]}', '{"no.such": "1"}'])
def test_a_wrong_variable_of_the_engines_options_is_refused(monkeypatch, text):
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", text)
    with pytest.raises(ConfigError):
        with_engine_options(config.CompileConfig())


def test_the_variable_of_the_engines_options_comes_on_top(monkeypatch):
    given = config.CompileConfig(engine_options='{"debug.outOfMemory": "error"}')
    keys = [config.program_key(config.from_environment({}))]
    assert with_engine_options(given).out_of_memory == "error"
    options = {"debug.outOfMemory": "log", "debug.floatPointOpException": True}
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps(options))
    changed = with_engine_options(given)
    assert (changed.out_of_memory, changed.floating_point_exceptions) == ("log", "inv,div0,oflo")
    keys.append(config.program_key(config.from_environment({})))
    assert keys[0] != keys[1]
