"""Files of options: JSON, TOML, PopTorch's commands; names of other frameworks; damaged files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ipujax import IPUConfig
from ipujax.config import files
from ipujax.config.options import SECTION_OF, SPECS
from ipujax.config.theirs import CONVERTED, RENAMED, WITHOUT
from ipujax.errors import ConfigError


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def changes(path: Path) -> dict[str, object]:
    return dict(IPUConfig.from_file(path).changes())


def test_json_by_section_by_name_and_round_trip(tmp_path: Path):
    text = '{"floating_point": {"x64": "demote"}, "num_ipus": [1, 2], "matmul_options": {"a": 1}}'
    config = IPUConfig.from_file(written(tmp_path, "a.json", text))
    assert config.changes() == {"x64": "demote", "num_ipus": "1,2", "matmul_options": '{"a": 1}'}
    assert json.loads(config.to_json())["floating_point"] == {"x64": "demote"}
    assert IPUConfig.from_json(config.to_json()) == config


def test_every_option_round_trips_through_json():
    other: dict[str, object] = {}
    for name, spec in SPECS.items():
        default, bounds = spec.default, spec.metadata["bounds"]
        if isinstance(default, bool):
            other[name] = not default
        elif isinstance(default, (int, float)):
            other[name] = bounds[1] if default != bounds[1] else bounds[0]
    assert len(other) > 40
    config = IPUConfig().replace(**other)
    assert config.changes() == other
    assert IPUConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize(
    ("version", "machine"),
    [("ipu1", "gc2"), ("ipu2", "gc200"), ("ipu21", "c600"), ("1", "gc2"), ("", "gc200")],
)
@pytest.mark.parametrize("name", ["ipu_model.version", "device_connection.version"])
def test_versions_of_ipus(name: str, version: str, machine: str):
    config = IPUConfig.from_json(json.dumps({name: version}))
    assert config.machine.machine == machine


def test_toml(tmp_path: Path):
    text = (
        'schedule = "program"\n[products]\npartials_type = "half"\n[devices]\nnum_ipus = [2, 2]\n'
    )
    assert changes(written(tmp_path, "a.toml", text)) == {
        "schedule": "program",
        "partials_type": "half",
        "num_ipus": "2,2",
    }


def test_poptorchs_commands(tmp_path: Path):
    text = """
# a comment
deviceIterations(1)
setExecutionStrategy(poptorch.ShardedExecution())
replicationFactor(4)
enableSyntheticData(True)
opts.Precision.setPartialsType(torch.float16)
Precision.enableStochasticRounding(True)
Training.gradientAccumulation(16)
setAvailableMemoryProportion({"IPU0": 0.2, "IPU1": 0.2})
TensorLocations.setOptimizerLocation(
"""
    lines = text.rstrip().rsplit("\n", 1)[0]
    location = (
        "TensorLocations.setOptimizerLocation(poptorch.TensorLocationSettings()"
        ".useOnChipStorage(False).useReplicatedTensorSharding(True))"
    )
    path = written(tmp_path, "poptorch.conf", f"{lines}\n{location}\nuseOfflineIpuTarget(21)\n")
    assert changes(path) == {
        "execution_strategy": "poptorch.ShardedExecution",
        "replication_factor": 4,
        "synthetic_data": True,
        "partials_type": "half",
        "stochastic_rounding": True,
        "gradient_accumulation": 16,
        "available_memory_proportion": 0.2,
        "offload_optimizer_state": True,
        "shard_optimizer_state": True,
        "connection": "never",
        "machine": "c600",
    }


def test_poparts_options_by_their_names(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    text = (
        '_Popart.set("outlineThreshold", 10.0)\n_Popart.set("saveInitializersToFile", "a")\n'
        '_Popart.set("engineOptions", {"debug.outOfMemory": "true"})\n'
        "Distributed.configureProcessId(1, 2)\n"
    )
    assert changes(written(tmp_path, "a.conf", text)) == {
        "outline": "auto",
        "outline_threshold": 10,
        "engine_options": '{"debug.outOfMemory": "true"}',
        "process_index": 1,
        "process_count": 2,
    }
    assert "saveInitializersToFile has no effect: weights are arguments" in caplog.text


def test_tensorflows_tree(tmp_path: Path):
    tree = {
        "auto_select_ipus": [1, 2],
        "allow_recompute": True,
        "floating_point_behaviour": {"inv": True, "oflo": True, "esr": True, "nanoo": True},
        "matmuls": {"poplar_options": {"availableMemoryProportion": "0.1"}},
        "device_connection": {"type": "DeviceConnectionType.ON_DEMAND", "version": "ipu21"},
        "optimizations": {"enable_graph_outlining": True, "prefetch_data_streams": False},
        "scheduling": {"algorithm": "SchedulingAlgorithm.POST_ORDER"},
        "ipu_model": {"tiles_per_ipu": 8},
    }
    assert changes(written(tmp_path, "tf.json", json.dumps(tree))) == {
        "num_ipus": "1,2",
        "allow_recompute": True,
        "floating_point_exceptions": "inv,oflo",
        "stochastic_rounding": True,
        "half_overflow": "nan",
        "matmul_options": '{"availableMemoryProportion": "0.1"}',
        "connection": "on_demand",
        "machine": "c600",
        "outline": "auto",
        "prefetch_depth": 0,
        "schedule": "program",
        "num_tiles": 8,
    }


def test_optimums_configuration(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    text = """{"layers_per_ipu": [3, 7], "matmul_proportion": [0.1, 0.1], "seed": 42,
               "enable_half_partials": true, "optimizer_state_offchip": true}"""
    assert changes(written(tmp_path, "ipu_config.json", text)) == {
        "available_memory_proportion": 0.1,
        "seed": 42,
        "partials_type": "half",
        "offload_optimizer_state": True,
    }
    assert "layers_per_ipu has no effect: stages are parts of the function" in caplog.text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"IPU1": 0.3, "IPU0": 0.2}', "0.2,0.3"),
        ('{"IPU2": 0.3, "IPU0": 0.2}', "0.2,,0.3"),
        ('{"IPU1": 0.3}', ",0.3"),
        ("[0.1, 0.2, 0.3]", "0.1,0.2,0.3"),
    ],
)
def test_proportions_of_each_ipu(tmp_path: Path, text: str, wanted: str):
    command = f"setAvailableMemoryProportion({text})"
    found = changes(written(tmp_path, "a.conf", command))
    assert found == {"available_memory_proportions": wanted}


def test_the_tables_of_their_names_lead_to_options():
    assert set(RENAMED.values()) <= set(SECTION_OF)
    assert not set(RENAMED) & set(CONVERTED) or not set(RENAMED) & set(WITHOUT)
    assert all(WITHOUT.values())


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", "[1]", "needs an object of options; got list"),
        ("a.json", "{", "needs JSON"),
        ("a.json", "[" * 100_000, "needs JSON"),
        ("a.json", '{"x65": 1}', "got 'x65'. Did you mean 'x64'?"),
        ("a.json", '{"x64": "maybe"}', "x64 needs one of emulate, demote, error; got 'maybe'"),
        ("a.json", '{"scheduling": {"algorithm": "FASTEST"}}', "one of choosebest, postorder"),
        ("a.json", '{"matmul_proportion": [0.1, 2]}', "numbers from 0 to 1 with commas between"),
        ("a.conf", 'setAvailableMemoryProportion({"I0": 1})', "needs names of IPUs such as IPU0"),
        ("a.json", '{"ipu_model": {"version": "ipu3"}}', "one of ipu1, ipu2"),
        ("a.toml", "x64 = ", "needs TOML"),
        ("a.conf", "import os", "needs one command with constants"),
        ("a.conf", "replicationFactor(1 + 1)", "needs one command with constants"),
        ("a.conf", "replicationFactor(open('x'))", "needs a whole number"),
        ("a.conf", "__import__('os').system('true')", "needs one command with constants"),
        ("a.conf", "f(" + "[" * 5000, "needs one command with constants"),
        ("a.conf", "a" * 20_000, "needs one command with constants"),
        ("a.conf", "\n\nunheardOf(1)", "a.conf:3"),
    ],
)
def test_a_file_that_is_wrong_is_refused(tmp_path: Path, name: str, text: str, says: str):
    path = written(tmp_path, name, text)
    with pytest.raises(ConfigError) as caught:
        IPUConfig.from_file(path)
    assert says in str(caught.value)


def test_a_file_that_is_too_large_or_no_text(tmp_path: Path):
    path = written(tmp_path, "a.json", " " * (files.MOST_BYTES + 1))
    with pytest.raises(ConfigError, match="at most 1048576 bytes"):
        IPUConfig.from_file(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="bytes of UTF-8 text"):
        IPUConfig.from_file(path)
    with pytest.raises(OSError, match="No such file"):
        IPUConfig.from_file(tmp_path / "nowhere.json")
