"""The first calls of `python -m tests.fuzz --kind functions`, and what they would see."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.fuzz.functions import calls
from tests.fuzz.functions.compare import MODES, close, compared, differences

#: A prime, so that seeds walk through the whole list of functions.
STEP = 41


@pytest.mark.parametrize("seed", range(0, 20 * STEP, STEP))
def test_calls_by_seed(seed: int) -> None:
    assert compared(seed)["differences"] == []


def test_names_are_found_by_introspection() -> None:
    found = calls.functions()
    assert len(found) > 500
    for name in ("jax.numpy.sin", "jax.nn.gelu", "jax.numpy.linalg.cholesky", "jax.lax.erf_inv"):
        assert name in found
    assert any(name.startswith("jax.scipy.stats.") for name in found)


def test_equal_seeds_make_equal_calls() -> None:
    one, again = calls.from_seed(3), calls.from_seed(3)
    assert one is not None
    assert again is not None
    assert one.text == again.text
    assert [x.tobytes() for x in one.arrays] == [x.tobytes() for x in again.arrays]


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "value"])
def test_a_wrong_derivative_is_seen(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a function whose derivative is a thousandth too large on IPUs alone."""

    def steeper(x: jax.Array) -> jax.Array:
        more = lax.platform_dependent(x, ipu=lambda x: 1e-3 * jnp.sin(x), default=jnp.zeros_like)
        return jnp.sin(x) + more - lax.stop_gradient(more)

    monkeypatch.setitem(calls.functions(), "jax.numpy.sin", steeper)
    made = calls.call("jax.numpy.sin", "m", calls.normal, 0)
    assert differences(made, "value") == []
    assert differences(made, mode)
    monkeypatch.setitem(calls.functions(), "jax.numpy.sin", jnp.sin)
    assert differences(calls.call("jax.numpy.sin", "m", calls.normal, 0), mode) == []


def test_comparison_knows_nan_and_bounds() -> None:
    one = np.array([1, np.nan, np.inf], np.float32)
    assert close(one, np.array([1 + 1e-6, np.nan, np.inf]), 1e-5)
    assert not close(one, np.array([1 + 1e-4, np.nan, np.inf]), 1e-5)
    assert not close(one, np.array([1, 0, np.inf]), 1e-5)
    assert not close(np.array([1]), np.array([2]), 9.0)
