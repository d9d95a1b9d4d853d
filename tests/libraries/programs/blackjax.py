"""BlackJAX: sampling kernels."""

from __future__ import annotations

import blackjax
import jax
import jax.numpy as jnp
import optax

from tests.libraries.program import program

LIBRARIES = ("blackjax", "optax")


def log_density(x):
    """A banana in two dimensions and a narrow normal in the third."""
    return -0.5 * (x[0] ** 2 + (x[1] - 0.5 * x[0] ** 2) ** 2 + 4 * x[2] ** 2)


def _states(algorithm, num_steps: int, start=None):
    state = algorithm.init(jnp.array([1.0, 0.0, 0.2]) if start is None else start)
    keys = jax.random.split(jax.random.key(0), num_steps)

    def step(state, key):
        state, _ = algorithm.step(key, state)
        return state, state.position

    return jax.jit(lambda state: jax.lax.scan(step, state, keys)[1])(state)


@program(1e-3, "sampling is chaotic: a short run")
def hmc():
    return _states(blackjax.hmc(log_density, 0.2, jnp.ones(3), 8), 12)


@program(1e-3, "sampling is chaotic: a short run")
def nuts():
    return _states(blackjax.nuts(log_density, 0.3, jnp.array([1.0, 2.0, 0.3])), 8)


@program(1e-2, "sampling is chaotic: a short run")
def window_adaptation():
    adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
    start = jnp.array([1.0, 0.0, 0.2])
    (state, parameters), _ = adaptation.run(jax.random.key(0), start, num_steps=20)
    return {"position": state.position, "step_size": parameters["step_size"]}


@program(1e-3, "sampling is chaotic: a short run")
def langevin():
    return {
        "mala": _states(blackjax.mala(log_density, 0.1), 20),
        "barker": _states(blackjax.barker_proposal(log_density, 0.3), 20),
        "slice": _states(
            blackjax.elliptical_slice(log_density, mean=jnp.zeros(3), cov=jnp.eye(3)), 12
        ),
    }


@program(1e-3, "particles are resampled by comparing cumulated weights")
def tempered_particles():
    kernel = blackjax.rmh.build_kernel()
    moves = {"transition_generator": lambda key, x: x + 0.3 * jax.random.normal(key, x.shape)}
    smc = blackjax.tempered_smc(
        lambda x: -0.5 * jnp.sum(x**2) / 4,
        log_density,
        lambda key, state, density, **given: kernel(key, state, density, **moves, **given),
        blackjax.rmh.init,
        {},
        blackjax.smc.resampling.systematic,
        num_mcmc_steps=4,
    )
    state = smc.init(2 * jax.random.normal(jax.random.key(1), (32, 3)))
    step = jax.jit(smc.step)
    for key, exponent in zip(jax.random.split(jax.random.key(2), 3), (0.2, 0.6, 1.0), strict=True):
        state, info = step(key, state, exponent)
    return {"particles": state.particles, "evidence": info.log_likelihood_increment}


@program(1e-3, "twenty steps of Adam on four draws each")
def mean_field_variational_inference():
    algorithm = blackjax.meanfield_vi(log_density, optax.adam(5e-2), 4)
    state = algorithm.init(jnp.zeros(3))
    step = jax.jit(algorithm.step)
    for key in jax.random.split(jax.random.key(0), 20):
        state, info = step(key, state)
    return {"mu": state.mu, "rho": state.rho, "elbo": info.elbo}
