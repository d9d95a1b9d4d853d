"""`python -m ipujax`: words, their output, their exit codes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ipujax.cli.main import LABORATORY, WORDS, main

ROOT = Path(__file__).resolve().parents[2]


def test_without_a_word_it_says_what_there_is(capsys):
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 2
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert [word for word in WORDS if word not in shown] == []


@pytest.mark.tiny
def test_doctor_passes_all_checks(run_python):
    run = run_python("-m", "ipujax", "doctor")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "self-test    correct" in run.stdout
    assert run.stdout.endswith("all checks passed\n")


def test_doctor_reports_a_bad_environment_and_fails(run_python):
    run = run_python("-m", "ipujax", "doctor", env={"JAX_IPU_DEVICE_COUNT": "none"})
    assert run.returncode == 1
    assert "FAIL  options" in run.stdout
    assert "JAX_IPU_DEVICE_COUNT needs a whole number from 1 to 1024; got 'none'" in run.stdout


def test_doctor_says_that_another_platform_is_the_default(run_python):
    run = run_python("-m", "ipujax", "doctor", env={"JAX_PLATFORM_NAME": "cpu"})
    assert "ok    default      cpu, not ipu: unset JAX_PLATFORM_NAME" in run.stdout


def test_the_first_compilation_says_that_a_library_chose_another_platform(run_python):
    code = (
        "import jax, jax.numpy as jnp\n"
        "jax.config.update('jax_platform_name', {!r})\n"
        "for n in (2, 3): jax.jit(jnp.tanh)(jnp.ones(n))\n"
    )
    run = run_python("-c", code.format("cpu"))
    assert run.stderr.count("programs compile for cpu, not IPUs") == 1, run.stderr
    run = run_python("-c", code.format("ipu"))
    assert "programs compile for" not in run.stderr


def test_doctor_prints_json(run_python):
    run = run_python("-m", "ipujax", "doctor", "--json")
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["passed"] is True
    by_name = {check["check"]: check for check in found["checks"]}
    assert len(by_name) == len(found["checks"]) > 5
    assert by_name["self-test"]["message"].startswith("correct")

    run = run_python("-m", "ipujax", "doctor", "--json", env={"JAX_IPU_DEVICE_COUNT": "none"})
    assert run.returncode == 1
    found = json.loads(run.stdout)
    assert found["passed"] is False
    failed = {check["check"]: check["message"] for check in found["checks"] if not check["passed"]}
    assert "got 'none'" in failed["options"]
    assert "versions" not in failed


def test_devices_lists_what_the_environment_asks_for(run_python):
    env = {"JAX_IPU_DEVICE_COUNT": "2", "JAX_IPU_MODEL_NUM_TILES": "16", "IPUJAX_MACHINE": "bow"}
    run = run_python("-m", "ipujax", "devices", "--json", env=env)
    assert run.returncode == 0, run.stderr
    devices = json.loads(run.stdout)
    assert [device["id"] for device in devices] == [0, 1]
    assert {device["num_tiles"] for device in devices} == {16}
    assert {device["clock_hz"] for device in devices} == {1.85e9}
    assert all(device["is_ipu_model"] is True for device in devices)


def test_devices_under_a_bad_environment_says_why(run_python):
    run = run_python("-m", "ipujax", "devices", env={"JAX_IPU_MODEL_NUM_TILES": "4096"})
    assert run.returncode != 0
    assert "JAX_IPU_MODEL_NUM_TILES needs a whole number from 1 to 1472" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("word", ["devices", "bench", "conformance"])
@pytest.mark.parametrize(
    ("name", "value"),
    [("IPUJAX_NUM_THREADS", "abc"), ("IPUJAX_MAX_ISA", "foo"), ("JAX_IPU_DEVICE_COUNT", "none")],
)
def test_words_that_compute_refuse_a_bad_environment_in_one_line(
    monkeypatch, capsys, word, name, value
):
    monkeypatch.setenv(name, value)
    assert main([word]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert name in said.err
    assert repr(value) in said.err


def test_devices_without_the_platform_says_what_to_run(run_python):
    run = run_python("-m", "ipujax", "devices", env={"JAX_PLATFORMS": "cpu"})
    assert run.returncode == 1
    assert '[devices] needs the platform "ipu"' in run.stderr
    assert "Run python -m ipujax doctor." in run.stderr
    assert "Traceback" not in run.stderr


def test_without_the_extension_words_say_so(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ipujax._poplar._poplar", None)
    assert main(["devices"]) == 1
    assert "[plugin] needs its built extension" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["ops", "tanh"], r"^chlo\.atanh: rules/elementwise\.py\n  .*\n  in blocks\ntanh: "),
        (["ops", "INFEED"], r"^infeed: refused: "),
        (
            ["options", "half"],
            r"^products\.partials_type = 'float'  \(default\)\n.*\n  one of float",
        ),
        (["options", "IPUJAX_SEED"], r"^process\.seed = "),
    ],
)
def test_words_select_ops_and_options(capsys, arguments: list[str], shown: str):
    assert main(arguments) == 0
    assert re.search(shown, capsys.readouterr().out)


@pytest.mark.parametrize("command", ["ops", "options"])
def test_words_that_are_in_none(capsys, command: str):
    assert main([command, "zzz"]) == 1
    assert re.match(
        rf"\[{command}\] needs .*; got 'zzz', which is in none\.", capsys.readouterr().err
    )


def test_the_nearest_command_is_named(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["docter", "--json"])
    assert caught.value.code == 2
    assert "got 'docter'. Did you mean 'doctor'?" in capsys.readouterr().err


def test_an_unbuilt_source_tree_says_how_to_build_it(run_python, tmp_path: Path):
    """It hides an installed ipujax where Python starts in it."""
    shutil.copytree(
        ROOT / "ipujax", tmp_path / "ipujax", ignore=shutil.ignore_patterns("__pycache__", "*.so")
    )
    missing = rf"got: no _poplar\S+\.so in {tmp_path}/ipujax/_poplar\. .* run make build; .*folder"
    env = {"PYTHONPATH": str(tmp_path), "JAX_PLATFORMS": ""}
    ran = run_python("-P", "-c", "import jax; print(jax.default_backend())", env=env)
    assert (ran.returncode, ran.stdout) == (0, "cpu\n"), ran.stderr
    assert re.search(missing, ran.stderr), ran.stderr
    ran = run_python("-P", "-m", "ipujax", "doctor", env=env)
    assert ran.returncode == 1
    assert re.search(rf"FAIL +extension +.*{missing}", ran.stdout), ran.stdout


@pytest.mark.parametrize("word", sorted(LABORATORY))
def test_an_installed_package_says_where_its_laboratory_is(run_python, tmp_path: Path, word):
    """A copy of the package stands for a wheel: it holds no tests."""
    shutil.copytree(
        ROOT / "ipujax", tmp_path / "ipujax", ignore=shutil.ignore_patterns("__pycache__", "*.so")
    )
    run = run_python("-P", "-m", "ipujax", word, "--all", env={"PYTHONPATH": str(tmp_path)})
    assert run.returncode == 1
    assert run.stderr == (
        f"[{word}] needs the source tree of ipujax; got the installed package in {tmp_path}. "
        f"Clone the repository and run python -m ipujax {word} there.\n"
    )
    run = run_python("-P", "-m", "ipujax", "--help", env={"PYTHONPATH": str(tmp_path)})
    assert run.returncode == 0
    assert word in run.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["bench", "--devices", "0"],
        ["bench", "--devices", "99999"],
        ["bench", "--devices", "many"],
        ["conformance", "--shard", "3"],
        ["conformance", "--shard", "2/2"],
        ["conformance", "--jobs", "0"],
        ["conformance", "--limit", "-1"],
    ],
)
def test_arguments_out_of_bounds_are_refused(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert re.search(r"needs (a whole number|i/n).*; got", capsys.readouterr().err)


def test_a_file_that_is_not_there_is_one_line(capsys):
    assert main(["conformance", "--from-results", "/nowhere/results"]) == 1
    assert "[conformance] needs files that it can read and write; got:" in capsys.readouterr().err


def test_a_reader_that_leaves_ends_the_output_quietly():
    command = [sys.executable, "-m", "ipujax", "options"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        assert run.stderr.read() == b""


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_a_script_completes_every_word(shell: str, capsys: pytest.CaptureFixture[str]):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert [word for word in WORDS if word not in script] == []


def test_bash_completes_words_and_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    main(["completion", "bash"])
    (tmp_path / "completion").write_text(capsys.readouterr().out)

    def completed(*words: str) -> set[str]:
        ask = (
            f"source {tmp_path}/completion; COMP_WORDS=(ipujax {' '.join(words)}); "
            f"COMP_CWORD={len(words)}; _shtab_ipujax ipujax {words[-1]} 2>&1; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        ran = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
        return set(ran.stdout.split())

    assert completed("con") == {"convert", "conformance"}
    assert "--input-exprs" in completed("run", "--input")
