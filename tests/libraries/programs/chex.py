"""Chex: data classes and checks."""

from __future__ import annotations

import unittest

import chex
import jax
import jax.numpy as jnp

from tests.libraries.program import program

LIBRARIES = ("chex",)


@chex.dataclass
class Particles:
    """positions and speeds [n, 2]"""

    positions: chex.Array
    speeds: chex.Array


@program(1e-5, "twenty steps of an oscillator")
def data_class_through_scan_and_vmap():
    def step(particles: Particles, _):
        chex.assert_equal_shape([particles.positions, particles.speeds])
        speeds = particles.speeds - 0.1 * particles.positions
        moved = particles.replace(positions=particles.positions + 0.1 * speeds, speeds=speeds)
        return moved, jnp.sum(moved.speeds**2)

    def simulate(start):
        return jax.lax.scan(step, start, None, length=20)

    start = Particles(
        positions=jax.random.normal(jax.random.key(0), (3, 5, 2)), speeds=jnp.ones((3, 5, 2))
    )
    final, energies = jax.jit(jax.vmap(simulate))(start)
    chex.assert_tree_all_finite(final)
    chex.assert_shape(energies, (3, 20))
    return {"final": dict(final), "energies": energies}


@program(1e-6, "a logarithm and whether an error was raised")
def checks_of_values():
    @chex.chexify
    @jax.jit
    def logarithm(x):
        chex.assert_tree_all_finite(x)
        chex.assert_scalar_positive(len(x))
        return jnp.log(x)

    good = logarithm(jnp.array([1.0, 2.0]))
    logarithm.wait_checks()
    try:
        logarithm(jnp.array([1.0, jnp.inf]))
        logarithm.wait_checks()
        raised = False
    except AssertionError:
        raised = True
    return {"good": good, "raised": jnp.asarray(raised)}


@program(1e-6, "one exponential")
def variants():
    shown = []

    class Test(chex.TestCase):
        @chex.variants(with_jit=True, without_jit=True, with_device=True)
        def test_softmax(self):
            y = self.variant(jax.nn.softmax)(jnp.arange(4.0))
            chex.assert_trees_all_close(y.sum(), 1.0, rtol=1e-6)
            shown.append(y)

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Test).run(result)
    assert result.wasSuccessful(), result.errors + result.failures
    assert len(shown) == 3
    return shown
