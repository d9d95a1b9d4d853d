"""The kinds of files that ipujax reads beside executables: how to write, read, open and seal one.

`parts` gives the JSON in a file and the bytes after it, and `seal` makes a file of both, with
checksums that are right for what it is given; an altered file is refused for what it says.
"""

from __future__ import annotations

import contextlib
import io
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu
from ipujax.api.embed.table.files import HEADER_BYTES, MAGIC
from ipujax.cli import main as cli
from ipujax.cli import program_inputs
from ipujax.convert import settings
from ipujax.errors import printable
from ipujax.host import array_files
from ipujax.runtime import structure

Parts = tuple[Any, bytes]


class Kind(NamedTuple):
    """One kind of file."""

    name: str  #: of the file; its suffix counts
    write: Callable[[Path], object]
    read: Callable[[Path], object]
    parts: Callable[[bytes], Parts] = lambda data: (json.loads(data), b"")
    seal: Callable[[Any, bytes], bytes] = lambda tree, _: json.dumps(tree).encode()


def _without_parts(data: bytes) -> Parts:
    return None, data


# Arrays, checkpoints and batches ------------------------------------------------------------------


def _header(magic: bytes) -> Callable[[bytes], Parts]:
    def parts(data: bytes) -> Parts:
        header, start = array_files.read_header(data, magic, 1)
        return header, data[start:]

    return parts


def _seal_arrays(header: Any, body: bytes) -> bytes:
    entries = header.get("arrays") if isinstance(header, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        with contextlib.suppress(Exception):  # an entry that has no place in the file
            size = array_files.dtype_of(entry["dtype"]).itemsize * int(np.prod(entry["shape"]))
            held = body[entry["offset"] : entry["offset"] + size]
            entry["checksum"] = zlib.crc32(held)
    return array_files.header_bytes(b"IPUARRAY", header) + body


def _write_arrays(path: Path) -> None:
    arrays = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.zeros((), np.int64)}
    array_files.write(path, arrays | {"none": np.zeros((0, 4), np.float16)}, {"a": [1, "b"]})


def _write_batches(path: Path) -> None:
    batch = {"x": np.ones((2, 3), np.float32), "y": (np.int32(1), [np.zeros(2, np.float16)])}
    ipu.data.export_dataset(path, [batch] * 3)


def _seal_batches(header: Any, body: bytes) -> bytes:
    with contextlib.suppress(Exception):
        sizes = [
            array_files.dtype_of(entry["dtype"]).itemsize * int(np.prod(entry["shape"]))
            for entry in header["arrays"]
        ]
        record = sum(sizes)
        records = [
            body[begin : begin + record] for begin in range(0, len(body), record + 4) if record
        ]
        body = b"".join(each + zlib.crc32(each).to_bytes(4, "little") for each in records)
    return array_files.header_bytes(b"IPUBATCH", header) + body


def _read_batches(path: Path) -> object:
    batches = ipu.data.DatasetFile(path)
    return len(batches), list(zip(batches, range(1000), strict=False))


def _loop(folder: Path) -> ipu.training.Loop:
    def step(state: Any, batch: Any) -> Any:
        return {"w": state["w"] + batch, "n": state["n"] + 1}, {"loss": jnp.sum(batch)}

    hooks = [ipu.training.Checkpoint(folder, every=2), ipu.training.EarlyStop("loss", patience=9)]
    return ipu.training.Loop(step, hooks=hooks)


_STATE = {"w": np.zeros(3, np.float32), "n": np.int32(0)}


def _write_checkpoint(path: Path) -> None:
    folder = path.parent / "training"
    _loop(folder).train(_STATE, [np.ones(3, np.float32)] * 2)
    (file,) = folder.iterdir()
    path.write_bytes(file.read_bytes())


def _read_checkpoint(path: Path) -> object:
    folder = path.parent / "resumed"
    folder.mkdir(exist_ok=True)
    (folder / "step-000000002.ipuarrays").write_bytes(path.read_bytes())
    return jax.device_get(_loop(folder).train(_STATE, [], steps=2))


# Tables -------------------------------------------------------------------------------------------


def _table(seed: int) -> ipu.HostEmbedding:
    rows = np.random.default_rng(seed).normal(size=(5, 4)).astype(np.float32)
    return ipu.HostEmbedding(rows, ipu.HostEmbeddingSGD(0.5, 3))


def _write_table(path: Path) -> None:
    table = _table(0)
    token = table.update(table.token(), np.arange(3), np.ones((3, 4), np.float32))
    table.save(token, path)


def _read_table(path: Path) -> object:
    loaded = ipu.HostEmbedding.load(path, ipu.HostEmbeddingSGD(0.5, 3))
    table = _table(1)
    return loaded.shape, table.read(table.restore(path))


def _table_parts(data: bytes) -> Parts:
    return json.loads(data[len(MAGIC) : HEADER_BYTES]), data[HEADER_BYTES:]


def _seal_table(header: Any, body: bytes) -> bytes:
    if isinstance(header, dict) and "checksum" in header:
        header["checksum"] = zlib.crc32(body)
    return (MAGIC + json.dumps(header).encode()).ljust(HEADER_BYTES) + body


# Plans, reports, options, settings ----------------------------------------------------------------


def _model(weights: Any, x: jax.Array) -> jax.Array:
    for w in weights:
        x = jnp.tanh(x @ w)
    return x.sum()


_ARGUMENTS = ([np.eye(4, dtype=np.float32)] * 2, np.ones((2, 3, 4), np.float32))


def _write_plan(path: Path) -> None:
    ipu.plan_stages(_model, _ARGUMENTS, ipus=(2, 2), micro_batches=2, reduction="mean").save(path)


def _read_plan(path: Path) -> object:
    plan = ipu.Plan.load(path, _model)
    return str(plan), jax.eval_shape(ipu.pipeline(plan), *_ARGUMENTS)


def _write_report(path: Path) -> None:
    ipu.report(lambda x, w: jnp.tanh(x @ w), jnp.ones((8, 8)), jnp.ones((8, 8))).save(path)


def _printed(*words: object) -> str:
    """What `python -m ipujax` prints; raises ConfigError where it fails with a message."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        status = cli.main([str(word) for word in words])
    for text in (out.getvalue(), error.getvalue()):
        assert printable(text) == text, "control characters reach the terminal"
    if status:
        assert "Traceback" not in error.getvalue(), error.getvalue()
        raise ipu.ConfigError(error.getvalue())
    return out.getvalue()


def _read_report(path: Path) -> object:
    return _printed("report", path), _printed("report", path, "-o", path.with_suffix(".html"))


_CONFIG = {"floating_point": {"stochastic_rounding": True}, "prefetch_depth": 3, "num_ipus": "1,2"}
_TOML = "prefetch_depth = 3\n[floating_point]\nstochastic_rounding = true\nx64 = 'demote'\n"
_COMMANDS = "replicationFactor(2)\nTraining.gradientAccumulation(4)\nrandomSeed(3)\n"
_SETTINGS = {
    "num_ipus": 2,
    "batch_per_step": 4,
    "precision_mode": "FP16",
    "gelu_replacement": {"nodes": ["gelu.*"]},
    "pipeline_cfg": {"converter": "manual", "manual_pipeline_config": [["a"], ["b"]]}
    | {"device_info": [0, 1], "fine_tune_iter": 2},
    "embedded_runtime_save_config": {"embedded_runtime_exec_cachedir": "x"},
}


def _text_of(text: str | object) -> Callable[[Path], object]:
    return lambda path: path.write_text(text if isinstance(text, str) else json.dumps(text))


# Inputs of `ipujax run` ---------------------------------------------------------------------------

_SHAPES = {"x": ((2, 3), np.dtype(np.float32)), "n": ((), np.dtype(np.int32))}
_EXAMPLES = {"x": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "n": 3}


def _read_examples(path: Path) -> object:
    return program_inputs.gather(_SHAPES, [], [], str(path))


def _read_npz(path: Path) -> object:
    return program_inputs.gather(_SHAPES, [str(path)], [], None)


def _read_npy(path: Path) -> object:
    return program_inputs.gather(_SHAPES, [f"x={path}"], ["n=1"], None)


def _write_npz(path: Path) -> None:
    np.savez(path, x=np.ones((2, 3), np.float32), n=np.int32(1))


# Structures in executables, options as text -------------------------------------------------------


def _write_structure(path: Path) -> None:
    node = {"dict": [["a", {"list": [0, None]}], ["b", {"tuple": [1]}]]}
    path.write_text(structure.write(["x"], [node], {"tuple": [0]}))


def _read_structure(path: Path) -> object:
    return structure.read(path.read_text(errors="replace"), 2, 1)


_PRODUCTS = {
    "use128BitConvUnitLoad": True,
    "scopes": {"a/b": {"planConstraints": {"method": "AMP"}}},
}


def _read_products(path: Path) -> object:
    text = path.read_text(errors="replace")
    return ipu.IPUConfig().replace(matmul_options=text)


KINDS = {
    "arrays": Kind(
        "a.ipuarrays", _write_arrays, array_files.read, _header(b"IPUARRAY"), _seal_arrays
    ),
    "checkpoint": Kind(
        "c.ipuarrays", _write_checkpoint, _read_checkpoint, _header(b"IPUARRAY"), _seal_arrays
    ),
    "batches": Kind(
        "b.ipubatch", _write_batches, _read_batches, _header(b"IPUBATCH"), _seal_batches
    ),
    "table": Kind("table", _write_table, _read_table, _table_parts, _seal_table),
    "plan": Kind("plan.json", _write_plan, _read_plan),
    "report": Kind("report.json", _write_report, _read_report),
    "options": Kind("o.json", _text_of(_CONFIG), ipu.IPUConfig.from_file),
    "toml": Kind("o.toml", _text_of(_TOML), ipu.IPUConfig.from_file, _without_parts),
    "commands": Kind("o.cfg", _text_of(_COMMANDS), ipu.IPUConfig.from_file, _without_parts),
    "settings": Kind("settings.json", _text_of(_SETTINGS), settings.from_file),
    "examples": Kind("examples.json", _text_of(_EXAMPLES), _read_examples),
    "npz": Kind("x.npz", _write_npz, _read_npz, _without_parts),
    "npy": Kind(
        "x.npy", lambda p: np.save(p, np.ones((2, 3), np.float32)), _read_npy, _without_parts
    ),
    "structure": Kind("s.json", _write_structure, _read_structure),
    "products": Kind("p.json", _text_of(_PRODUCTS), _read_products),
}
