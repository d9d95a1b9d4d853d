"""Files that others made: deep, endless, of other bytes, with text that steers terminals."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ipujax as ipu
from ipujax.cli.main import main
from ipujax.errors import (
    ArrayFileError,
    AttachError,
    ConfigError,
    IpuError,
    PipelineError,
    printable,
)
from ipujax.host import array_files, attached
from ipujax.host.file_reading import DEEPEST_JSON, content_of, json_of


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("depth", [DEEPEST_JSON + 1, 5000, 1_000_000])
def test_deep_json_is_a_value_error(depth: int):
    assert json_of(nested(DEEPEST_JSON)) is not None
    with pytest.raises(ValueError, match="nested deeper than 200"):
        json_of(nested(depth))


def test_only_regular_files_of_bounded_size_are_read(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe", tmp_path):
        with pytest.raises(OSError, match=r"Not a regular file|Is a directory"):
            content_of(path)
    (tmp_path / "a").write_bytes(b"12345")
    assert content_of(tmp_path / "a", 5) == b"12345"
    with pytest.raises(ValueError, match="5 bytes, more than 4"):
        content_of(tmp_path / "a", 4)


def test_control_characters_of_errors_are_escaped():
    assert str(ConfigError("[run] got \x1b[2J.")) == "[run] got \\x1b[2J."


def test_control_characters_are_escaped():
    assert printable("größe\tβ\n\x1b[2J\x9b31m\u202e\r") == "größe\tβ\n\\x1b[2J\\x9b31m\\u202e\\r"


def of_arrays(path: Path, text: bytes) -> None:
    path.write_bytes(_with_header(b"IPUARRAY", text))
    array_files.read(path)


def of_batches(path: Path, text: bytes) -> None:
    ipu.data.export_dataset(path, [np.zeros(3, np.float32)])
    magic = path.read_bytes()[:8]
    path.write_bytes(_with_header(magic, text))
    list(ipu.data.DatasetFile(path))


def of_plan(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    ipu.Plan.load(path, lambda x: x)


def of_report(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    ipu.load_report(path)


def of_options(path: Path, text: bytes) -> None:
    path = path.with_suffix(".json")
    path.write_bytes(text)
    ipu.IPUConfig.from_file(path)


def _with_header(magic: bytes, text: bytes) -> bytes:
    """A header with the right checksum, whatever its text is."""
    made = array_files.header_bytes(magic, {})
    lengths = array_files._LENGTHS.pack(len(text), array_files.zlib.crc32(text))
    return made[: len(magic)] + lengths + text


@pytest.mark.parametrize("text", [nested(10**5).encode(), b"\xff\xfe{}", b'{"a": 1', b"7"])
@pytest.mark.parametrize(
    ("load", "kind"),
    [
        (of_arrays, ArrayFileError),
        (of_batches, IpuError),
        (of_plan, PipelineError),
        (of_report, ipu.ReportError),
        (of_options, ConfigError),
    ],
)
def test_other_text_is_a_typed_error(
    tmp_path: Path, load: Callable[[Path, bytes], Any], kind: type[Exception], text: bytes
):
    with pytest.raises(kind, match=r"^\[.* needs .*; got "):
        load(tmp_path / "file", text)


def test_commands_refuse_them_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["report", "/dev/zero"]) == 1
    assert "Not a regular file" in capsys.readouterr().err
    program = tmp_path / "a.jax"
    import jax
    import jax.export

    made = jax.export.export(jax.jit(lambda x: x), platforms=["ipu"])(np.float32(1))
    program.write_bytes(made.serialize())
    assert main(["run", str(program), "--input-examples", nested(10**5)]) == 1
    assert "nested deeper" in capsys.readouterr().err


def test_text_of_a_report_does_not_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    import jax
    import jax.numpy as jnp

    path = tmp_path / "report.json"
    ipu.report(jnp.tanh, jax.ShapeDtypeStruct((8,), jnp.float32)).save(path)
    document = json.loads(path.read_text())
    document["report"]["name"] = "\x1b]0;owned\x07"
    path.write_text(json.dumps(document))
    assert main(["report", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "\\x1b]0;owned\\x07" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/null", path)])
def test_locks_are_plain_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[str], None]
):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    make(str(attached._folder() / "ipu0.lock"))
    with pytest.raises(AttachError, match=r"needs .*ipu0\.lock as a plain file to lock; got"):
        attached._take(0)
