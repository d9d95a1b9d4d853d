"""The SavedModel command line: sections 19.2.1 to 19.2.5 of the add-ons of TensorFlow."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

import ipujax as ipu
from ipujax.cli.main import main
from ipujax.convert.conversion import Conversion
from ipujax.convert.settings import settings_of
from tests.features.entry import Entry, Example, Reason

X = np.arange(6, dtype=np.float32).reshape(2, 3)
#: Between two numbers of float16.
TENTH = np.float32(0.1)
HALF_TENTH = float(np.float16(0.1))
RUN, CONVERT = "19.2.1, run", "19.2.2, convert"


def command(*arguments: str) -> str:
    """What a command prints; its exit code must be 0."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = main(list(arguments))
    assert code == 0, printed.getvalue()
    return printed.getvalue()


def exported(function: Callable[..., Any], *arguments: Any) -> jax.export.Exported:
    made = jax.export.export(jax.jit(function), platforms=["ipu"])(*arguments)
    return jax.export.deserialize(bytearray(made.serialize()))


def converted(function: Callable[..., Any], x: Any, **settings: Any) -> Any:
    """The result of a program that is converted with settings, which are options of convert."""
    return Conversion(exported(function, x), settings_of(settings)).program.call(x)


@functools.cache
def ran(matrix: bool, *given: str) -> Any:
    """The results of `run` for a program that doubles X, or multiplies it by its transpose."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jax"
        path.write_bytes(exported(lambda x: x @ x.T if matrix else 2 * x, X).serialize())
        examples = json.dumps({"x": X.tolist()})
        printed = command("run", str(path), "--input-examples", examples, *given, "--json")
        return [each["values"] for each in json.loads(printed)["results"].values()]


def doubled(**settings: Any) -> Any:
    return converted(lambda x: 2 * x, X, **settings)


def halved(**settings: Any) -> Any:
    return converted(lambda x: x * 1.0, TENTH, precision_mode="FP16", **settings)


@functools.cache
def with_expressions() -> Any:
    """An input from a file and one from an expression, with results in a folder."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jax"
        made = jax.export.export(jax.jit(lambda x, s: x * s), platforms=["ipu"])(X, np.float32(1))
        path.write_bytes(made.serialize())
        np.save(Path(folder) / "x.npy", X)
        given = ("--inputs", f"x={folder}/x.npy", "--input-exprs", "s=2.5 * 2")
        for more in ((), ("--overwrite",)):
            command("run", str(path), *given, "--outdir", folder, *more)
        with np.load(Path(folder) / "results.npz") as written:
            return [written[name] for name in written]


def micro_batches() -> Any:
    """Three micro-batches of two rows each in one call."""
    settings = settings_of({"batch_size": 2, "batch_per_step": 3})
    program = Conversion(exported(lambda x: x * 2, X), settings).program
    return program.in_avals[0].shape, program.call(np.stack([X, X, X]))


def narrow() -> Any:
    with jax.enable_x64(True):
        program = exported(lambda i: i * 2, np.arange(3))
    made = Conversion(program, settings_of({"int64_to_int32_conversion": True})).program
    return [str(each.in_avals[0].dtype) for each in (program, made)]


def gelu() -> Any:
    """How many are replaced, and whether the result is the same."""
    program = exported(lambda x: jax.nn.gelu(x, approximate=True), X)
    made = Conversion(program, settings_of({"gelu_replacement": True}))
    return made.notes, np.abs(made.program.call(X) - program.call(X)).max() < 1e-5


def runtime() -> Any:
    """The folder and the time-out of the document's example reach the executable."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"embedded_runtime_exec_cachedir": folder, "runtime_api_timeout_us": 5000}
        program = jax.export.export(jax.jit(lambda x: 2 * x), platforms=["ipu"])(X)
        path = Path(folder) / "a.jax"
        path.write_bytes(program.serialize())
        command(
            "convert",
            str(path),
            "-o",
            str(Path(folder) / "b.jax"),
            "--embedded-runtime-save-config",
            json.dumps(settings),
        )
        session = ipu.runtime.Session(Path(folder) / "b.ipu")
        return session.description.options["timeout_us"]


def settings_file() -> Any:
    """A file of settings, and an option of the command on top of it."""
    with tempfile.TemporaryDirectory() as folder:
        path, made, file = (Path(folder) / name for name in ("a.jax", "b.jax", "settings.json"))
        path.write_bytes(exported(lambda x: x * 1.0, TENTH).serialize())
        file.write_text('{"precision_mode": "FP16"}')
        found = []
        for more in ((), ("--precision-mode", "FP32")):
            given = ("-o", str(made), "--overwrite", "--config-file", str(file))
            command("convert", str(path), *given, *more)
            found.append(jax.export.deserialize(bytearray(made.read_bytes())).call(TENTH))
        return found


def default_of(function: Callable[..., Any], name: str) -> Any:
    return inspect.signature(function).parameters[name].default


PLAN = "tests/planner/test_plan_stages.py"
FILE = "tests/planner/test_plan_file.py"
TWICE = 2 * X

SAVED_MODEL: dict[str, Entry] = {
    "--dir": Example(f"{RUN}: a saved program is run", lambda: ran(False), [TWICE]),
    "--inputs": Example(
        f"{RUN}: inputs from files, expressions and examples", with_expressions, [X * 5]
    ),
    "--outdir": Example(
        f"{RUN}: results in a folder, and once more over them", with_expressions, [X * 5]
    ),
    "--tf_debug": Reason("TensorFlow's debugger and workers have no counterpart and no numbers"),
    "--init_ipu": Example(
        f"{RUN}: devices are there without a call before", lambda: ran(False), [TWICE]
    ),
    "--num_ipus": Example(
        f"{RUN}: one IPU is the default", lambda: ran(False, "--num-ipus", "1"), [TWICE]
    ),
    "--matmul_amp": Example(
        f"{RUN}: a proportion from 0 to 1, 0.6 by default, keeps results",
        lambda: ran(True, "--matmul-amp", "0.6", "--conv-amp", "0.6"),
        [X @ X.T],
    ),
    "--matmul_partial_type": Example(
        f"{RUN}: float or half; products of small whole numbers are the same",
        lambda: ran(True, "--matmul-partial-type", "half", "--conv-partial-type", "float"),
        [X @ X.T],
    ),
    "--excluded_nodes": Example(
        f"{CONVERT}: nodes that are excluded run elsewhere, or are removed",
        lambda: [
            converted(lambda x: jnp.tanh(2 * x), X, excluded_nodes=["tanh$"], **more)
            for more in ({}, {"remove_excluded_nodes": True})
        ],
        [np.tanh(2 * X), TWICE],
    ),
    "--batch_size": Example(
        f"{CONVERT}: the micro-batch, and how many of them one call has",
        micro_batches,
        ((3, 2, 3), np.stack([TWICE] * 3)),
    ),
    "--precision_mode": Example(
        f"{CONVERT}: FP16, but for nodes that are excluded",
        lambda: [halved(), halved(precision_conversion_excluded_nodes=["mul"])],
        [HALF_TENTH, TENTH],
    ),
    "--gelu_replacement": Example(
        f"{CONVERT}: nodes of a GELU become one, with the same results",
        gelu,
        (["1 GELUs replaced"], True),
    ),
    "--no_ipu_placement": Example(
        f"{CONVERT}: no nodes on the IPU, and the same results",
        lambda: doubled(no_ipu_placement=True),
        TWICE,
    ),
    "--int64_to_int32_conversion": Example(
        f"{CONVERT}: arguments of int64 become int32", narrow, ["int64", "int32"]
    ),
    "--manual_sharding": Reason(
        "it needs two IPUs, and so a process of its own", "tests/convert/test_conversion.py"
    ),
    "--merge_subgraphs": Example(
        f"{CONVERT}: a program is one graph with or without it",
        lambda: doubled(merge_subgraphs=True),
        TWICE,
    ),
    "--embedded_runtime_save_config": Example(
        f"{CONVERT}: its example of 5000 microseconds", runtime, "5000"
    ),
    "--pipeline_cfg": Reason(
        "it needs two IPUs, and so a process of its own", "tests/convert/test_conversion.py"
    ),
    "--config_file": Example(
        f"{CONVERT}: a file of settings, with options on top",
        settings_file,
        [HALF_TENTH, TENTH],
    ),
    "converter": Reason("ways to make a plan, which have no documented numbers", PLAN),
    "fine_tune_iter": Reason("a number of attempts without a documented result", PLAN),
    "ipu_model": Example(
        "19.2.3: programs run on the IPU Model unless told otherwise",
        lambda: ipu.IPUConfig().get("use_model"),
        True,
    ),
    "profiling_root_dir": Reason(
        "a folder of reports without documented numbers", "tests/reporting/test_report.py"
    ),
    "priority": Example(
        "19.2.3: cycles are the default, memory the other priority",
        lambda: default_of(ipu.plan_stages, "priority"),
        "cycles",
    ),
    "max_ipu_quantity": Example(
        "19.2.3: from 2 to 64 IPUs by default", lambda: default_of(ipu.plan_stages, "ipus"), (2, 64)
    ),
    "solution_dir": Reason("a file of a plan, whose form differs from theirs", FILE),
    "manual_pipeline_config": Reason(
        "it needs two IPUs, and so a process of its own", "tests/convert/test_conversion.py"
    ),
    "device_info": Reason(
        "a mapping of stages to several IPUs, without numbers", "tests/stages/test_pipelines.py"
    ),
}
