"""`python -m ipujax`: words, their output, their exit codes."""

from __future__ import annotations

import json

import pytest

from ipujax.cli.main import WORDS, main


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
def test_doctor_finds_all_well(run_python):
    run = run_python("-m", "ipujax", "doctor")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "self-test    right" in run.stdout
    assert run.stdout.endswith("all is well\n")


def test_doctor_reports_a_bad_environment_and_fails(run_python):
    run = run_python("-m", "ipujax", "doctor", env={"JAX_IPU_DEVICE_COUNT": "none"})
    assert run.returncode == 1
    assert "FAIL  options" in run.stdout
    assert "JAX_IPU_DEVICE_COUNT needs a whole number from 1 to 1024; got 'none'" in run.stdout


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
