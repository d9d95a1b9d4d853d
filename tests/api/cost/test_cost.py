"""`ipu.cost` and `ipu.assert_fits` say what `cost_analysis` says, and fail clearly."""

from __future__ import annotations

import json
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from tests.conftest import RunPython

LARGE = jax.ShapeDtypeStruct((30000, 30000), jnp.float32)
SMALL = jax.ShapeDtypeStruct((64, 64), jnp.float32)


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_cost_what_their_analysis_says(seed: int, device: jax.Device) -> None:
    random = np.random.default_rng(seed)
    kinds = [jnp.tanh, lambda x: x @ x, lambda x: x.T + 1, lambda x: x * x.sum()]
    chosen = [kinds[i] for i in random.integers(len(kinds), size=5)]
    n = int(random.integers(1, 200))

    def program(x: jax.Array) -> jax.Array:
        for kind in chosen:
            x = kind(x)
        return x

    x = jax.ShapeDtypeStruct((n, n), jnp.float32)
    found = ipu.cost(program, x)
    with jax.default_device(device):
        analysis = jax.jit(program).lower(x).compile().cost_analysis()
    assert found.analysis == analysis
    assert found.cycles == analysis["cycles"]
    assert sum(found.parts.values()) == found.fullest_tile_bytes == analysis["worst tile bytes"]


@pytest.mark.parametrize("options", [{}, {"ipu_out_of_memory": "error"}])
def test_a_program_that_does_not_fit_has_a_cost(options: dict[str, str]) -> None:
    found = ipu.cost(jax.jit(lambda x: x * 2, compiler_options=options), LARGE)
    assert not found.fits
    assert found.headroom < 0
    assert str(found).startswith("does not fit: ")


def test_each_limit_that_is_exceeded_is_named() -> None:
    with pytest.raises(ipu.FitError, match=r"needs at most 638976 bytes on a tile") as caught:
        ipu.assert_fits(lambda x: x * 2, LARGE)
    assert isinstance(caught.value, AssertionError)
    assert not caught.value.cost.fits
    assert " s; got" not in str(caught.value)
    assert f"; got {caught.value.cost.fullest_tile_bytes} bytes.\n" in str(caught.value)
    with pytest.raises(ipu.FitError, match=r"needs at most 1e-09 s; got") as caught:
        ipu.assert_fits(jnp.tanh, SMALL, seconds=1e-9)
    assert caught.value.cost.fits
    with pytest.raises(ipu.FitError, match=r"bytes on a tile .* and at most 1e-09 s; got"):
        ipu.assert_fits(lambda x: x * 2, LARGE, seconds=1e-9)


def test_limits_are_inclusive() -> None:
    found = ipu.cost(jnp.tanh, SMALL)
    ipu.assert_fits(jnp.tanh, SMALL, seconds=found.seconds)
    with pytest.raises(ipu.FitError, match="headroom"):
        ipu.assert_fits(jnp.tanh, SMALL, headroom=found.headroom + 1e-4)


@pytest.mark.parametrize("headroom", [-0.1, 1, float("nan"), "5%", None, True])
def test_a_headroom_out_of_range(headroom: object) -> None:
    with pytest.raises(ipu.ConfigError, match=re.escape(f"got {headroom!r}")):
        ipu.assert_fits(jnp.tanh, SMALL, headroom=headroom)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), "2 ms"])
def test_seconds_out_of_range(seconds: object) -> None:
    with pytest.raises(ipu.ConfigError, match=re.escape(f"got {seconds!r}")):
        ipu.assert_fits(jnp.tanh, SMALL, seconds=seconds)  # type: ignore[arg-type]


def test_what_is_no_function_or_on_no_ipu() -> None:
    with pytest.raises(ipu.ConfigError, match="needs a function; got int"):
        ipu.cost(3)  # type: ignore[arg-type]
    x = jax.device_put(np.ones(4, np.float32), jax.devices("cpu")[0])
    with pytest.raises(ipu.PlacementError, match="got some on cpu"):
        ipu.cost(jnp.tanh, x)


STAGES = """
import json, jax.numpy as jnp, ipujax as ipu
first, last = ipu.stage(jnp.tanh, ipu=0), ipu.stage(lambda x: x @ x, ipu=1)
found = ipu.cost(lambda x: last(first(x)), jnp.ones((256, 256)))
print(json.dumps([found.fullest_ipu, found.fullest_tile_bytes, found.parts, found.analysis]))
"""


def test_of_several_ipus_the_fullest_counts(run_python: RunPython) -> None:
    done = run_python("-c", STAGES, env={"JAX_IPU_IPUS_PER_DEVICE": "2", "JAX_PLATFORMS": "ipu"})
    assert done.returncode == 0, done.stderr
    fullest, size, parts, analysis = json.loads(done.stdout)
    sizes = [analysis[f"ipu {i} worst tile bytes"] for i in range(2)]
    assert size == max(sizes) == sizes[fullest] == sum(parts.values())


def test_costs_are_of_the_program_that_runs() -> None:
    def loss(w: Any, x: Any) -> Any:
        for _ in range(24):
            x = jax.nn.gelu(x @ w)
        return jnp.mean(x**2)

    w, x = (jax.ShapeDtypeStruct((n, 1024), jnp.float32) for n in (1024, 4096))
    fitted = jax.jit(jax.grad(loss), compiler_options={"ipu_fit": "auto"})
    assert not ipu.cost(jax.grad(loss), w, x).fits
    assert ipu.cost(fitted, w, x).fits
    report = ipu.report(fitted, w, x)
    assert report.fits
    assert report.remedies == ()
