"""What public names cannot do ends in an error that says so, and the process goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import RunPython

#: The words that each error must have.
EXPECTED = {
    "nested": ("[ipu execute] needs devices that are free", "NumPy"),
    "nested_on_replicas": ("[ipu execute] needs devices that are free",),
    "waits_for_its_device": ("whose program has waited for a host callback for 1 seconds",),
    "wide_integers": (
        "moved, cast or known to fit 32 bits; got int64 in multiply (at refusals.py:",
    ),
    "cost": ("[cost] needs the IPU Model's own build", "POPLAR_ENGINE_OPTIONS"),
    "wide": ("[x64] needs types of 32 bits", 'ipu_x64="demote"'),
    "report": ("needs the IPU Model's own build",),
    "altered": ("[Executable]", "Compile it again."),
    "scattered_devices": ("[ipu load] needs devices whose IPUs follow one another",),
    "afterwards": ("[1.0, 2.0, 3.0, 4.0]",),
}


@pytest.fixture(scope="module")
def errors(sdk_environment: dict[str, str]) -> dict[str, str]:
    settings = {"JAX_PLATFORMS": "ipu,cpu", "IPUJAX_CALLBACK_TIMEOUT": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "tests.sdk.refusals"],
        env={**os.environ, **settings, **sdk_environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, str] = json.loads(run.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", EXPECTED)
def test_refusal(name: str, errors: dict[str, str]) -> None:
    for words in EXPECTED[name]:
        assert words in errors[name]


def test_doctor_says_which_build_is_in_use(
    run_python: RunPython, sdk_environment: dict[str, str]
) -> None:
    run = run_python("-m", "ipujax", "doctor", env={"JAX_PLATFORMS": "ipu,cpu", **sdk_environment})
    assert run.returncode == 0, run.stdout
    assert "built for the Poplar SDK" in run.stdout
    assert "cycles not known" in run.stdout


def test_a_folder_without_an_extension_is_refused(run_python: RunPython, tmp_path) -> None:
    run = run_python("-m", "ipujax", "doctor", env={"IPUJAX_EXTENSION": str(tmp_path)})
    assert run.returncode != 0
    assert "IPUJAX_EXTENSION needs a folder with a built extension" in run.stdout + run.stderr


def test_without_ipus_the_error_says_how_to_have_some(
    run_python: RunPython, sdk_environment: dict[str, str]
) -> None:
    code = "import jax; print(jax.jit(lambda x: x + 1)(1.0))"
    environment = {"JAX_PLATFORMS": "ipu,cpu", **sdk_environment, "IPUJAX_MODEL_AS_IPU": "0"}
    run = run_python("-c", code, env=environment)
    assert run.returncode != 0
    assert "IPUJAX_MODEL_AS_IPU=1" in run.stderr
