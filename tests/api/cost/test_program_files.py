"""`python -m ipujax report` of programs: exported, StableHLO, and damaged files."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import pytest

import ipujax as ipu
from ipujax.api.cost.program_files import report_of_file
from ipujax.cli.main import main

SHAPE = jax.ShapeDtypeStruct((256, 256), jnp.float32)


def program(w: Any, x: Any) -> Any:
    with jax.named_scope("first"):
        return jnp.tanh(x @ w)


def exported(*platforms: str) -> Any:
    return jax.export.export(jax.jit(program), platforms=platforms)(SHAPE, SHAPE)


WRITTEN: dict[str, Callable[[], bytes]] = {
    "ipu.export": lambda: exported("ipu").serialize(),
    "cpu.export": lambda: exported("cpu").serialize(),
    "both.export": lambda: exported("cpu", "ipu").serialize(),
    "text.mlir": lambda: exported("ipu").mlir_module().encode(),
    "artifact.mlirbc": lambda: exported("ipu").mlir_module_serialized,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("programs")
    for name, write in WRITTEN.items():
        (made / name).write_bytes(write())
    return made


@pytest.mark.parametrize("name", WRITTEN)
def test_the_report_is_that_of_the_function(folder: Path, name: str) -> None:
    found, wanted = report_of_file(folder / name), ipu.report(program, SHAPE, SHAPE)
    assert found.cycles == wanted.cycles
    assert found.fullest_tile_bytes == wanted.fullest_tile_bytes
    if name != "both.export":  # is for several platforms, and simplified to one
        assert [step.scope for step in found.steps] == [step.scope for step in wanted.steps]


def test_options_of_the_command(folder: Path, capsys: Any) -> None:
    plain = str(folder / "ipu.export")
    assert main(["report", plain, "--option", "available_memory_proportion=0.001"]) == 0
    tight = capsys.readouterr().out
    assert main(["report", plain]) == 0
    assert tight != capsys.readouterr().out
    assert main(["report", plain, str(folder / "text.mlir"), "--option", "ipu_outline=auto"]) == 0
    for option, text in (
        ("outline", "needs --option name=value; got 'outline'"),
        ("what=1", "got 'ipu_what'"),
        ("outline=never", "got 'never'"),
    ):
        assert main(["report", plain, "--option", option]) == 1
        assert text in capsys.readouterr().err


def test_a_saved_report_takes_no_options(folder: Path, capsys: Any) -> None:
    path = folder / "step.json"
    assert main(["report", str(folder / "ipu.export"), "-o", str(path)]) == 0
    assert report_of_file(path) == ipu.load_report(path)
    assert main(["report", str(path), "--option", "outline=auto"]) == 1
    assert "needs a program to compile with options" in capsys.readouterr().err


def symbolic() -> bytes:
    (n,) = jax.export.symbolic_shape("n")
    shape = jax.ShapeDtypeStruct((n, 256), jnp.float32)
    return bytes(jax.export.export(jax.jit(program), platforms=["ipu"])(SHAPE, shape).serialize())


BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "got other bytes"),
    "text": (lambda: b"hello " * 100, "got other bytes"),
    "half": (lambda: exported("ipu").serialize()[:-200], "got other bytes"),
    "mlir": (lambda: b"module { func.func @main( }", "StableHLO that cannot be read"),
    "utf8": (lambda: b"module \xff\xfe {}", "StableHLO that cannot be read"),
    "bytecode": (lambda: b"ML\xefR" + bytes(100), "StableHLO"),
    "json": (lambda: b'{"schema": 3}', "a report that this version of ipujax saved"),
    "symbolic": (symbolic, "needs fixed shapes; got float32[256,256], float32[n,256]"),
    "others": (lambda: exported("cpu", "tpu").serialize(), "got one for cpu, tpu"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused(name: str, tmp_path: Path, capfd: Any) -> None:
    write, text = BAD[name]
    path = tmp_path / name
    path.write_bytes(write())
    assert main(["report", str(path)]) == 1
    shown = capfd.readouterr().err
    assert text in shown
    assert "Traceback" not in shown


def test_a_missing_file_is_refused(capsys: Any) -> None:
    assert main(["report", "/nowhere/step.export"]) == 1
    assert "No such file" in capsys.readouterr().err


def test_damaged_programs_end_no_process_but_their_own(folder: Path, tmp_path: Path) -> None:
    rng = random.Random(0)
    path = tmp_path / "damaged"
    for name in ("ipu.export", "artifact.mlirbc"):
        whole = (folder / name).read_bytes()
        for _ in range(6):
            damaged = bytearray(whole)
            for _ in range(rng.choice([1, 3, 10])):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            path.write_bytes(damaged)
            with contextlib.suppress(ipu.IpuError):
                report_of_file(path)


def test_what_does_not_fit_is_listed_with_options(tmp_path: Path) -> None:
    def loss(w: Any, x: Any) -> Any:
        for i in range(24):
            with jax.named_scope(f"layer{i}"):
                x = jax.nn.gelu(x @ w)
        return jnp.mean(x**2)

    w, x = (jax.ShapeDtypeStruct((n, 1024), jnp.float32) for n in (1024, 4096))
    found = jax.export.export(jax.jit(jax.grad(loss)), platforms=["cpu"])(w, x)
    (tmp_path / "large.export").write_bytes(found.serialize())
    tried = report_of_file(tmp_path / "large.export").remedies
    assert any(each.fits for each in tried)
    assert any("ipu_recompute_layers=layer*" in each.text for each in tried)
