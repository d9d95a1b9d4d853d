"""evosax: evolution strategies."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from evosax.algorithms import CMA_ES, SNES, Open_ES

from tests.libraries.program import program

LIBRARIES = ("evosax",)


def _run(strategy, num_generations: int):
    params = strategy.default_params

    def generation(state, key):
        ask_key, tell_key = jax.random.split(key)
        population, state = strategy.ask(ask_key, state, params)
        fitness = jax.vmap(lambda x: jnp.sum((x - 0.5) ** 2) + 0.1 * jnp.sum(jnp.cos(6 * x)))(
            population
        )
        state, _ = strategy.tell(tell_key, population, fitness, state, params)
        return state, fitness.min()

    state = strategy.init(jax.random.key(0), jnp.zeros(4), params)
    keys = jax.random.split(jax.random.key(1), num_generations)
    state, best = jax.jit(lambda s: jax.lax.scan(generation, s, keys))(state)
    return {"best": best, "mean": strategy.get_mean(state)}


@program(1e-3, "a population's order is compared for eight generations")
def covariance_adaptation():
    return _run(CMA_ES(population_size=12, solution=jnp.zeros(4)), 8)


@program(1e-3, "a population's order is compared for fifteen generations")
def natural_gradients():
    return {
        "open_es": _run(Open_ES(population_size=16, solution=jnp.zeros(4)), 15),
        "snes": _run(SNES(population_size=16, solution=jnp.zeros(4)), 15),
    }
