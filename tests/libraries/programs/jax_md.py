"""JAX MD: molecular dynamics."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax_md import energy, minimize, partition, simulate, space

from tests.libraries.program import program

LIBRARIES = ("jax-md",)

BOX = 5.0


def _lattice():
    grid = jnp.stack(jnp.meshgrid(jnp.arange(4.0), jnp.arange(4.0)), -1).reshape(-1, 2)
    noise = 0.05 * jax.random.normal(jax.random.key(0), (16, 2))
    return (grid * BOX / 4 + noise) % BOX


@program(1e-4, "forty steps that descend, which forgets roundings")
def minimised_energy():
    displacement, shift = space.periodic(BOX)
    energy_of = energy.soft_sphere_pair(displacement, sigma=1.4)
    init, apply = minimize.fire_descent(energy_of, shift)
    state = jax.jit(lambda state: jax.lax.fori_loop(0, 40, lambda i, s: apply(s), state))(
        init(_lattice())
    )
    return {"position": state.position, "energy": energy_of(state.position)}


@program(1e-3, "dynamics are chaotic: fifty steps")
def dynamics_with_neighbour_lists():
    displacement, shift = space.periodic(BOX)
    neighbour_fn, energy_of = energy.lennard_jones_neighbor_list(
        displacement,
        BOX,
        sigma=0.9,
        r_cutoff=2.0,
        dr_threshold=0.3,
        format=partition.NeighborListFormat.OrderedSparse,
    )
    init, apply = simulate.nve(energy_of, shift, 2e-3)
    positions = _lattice()
    neighbours = neighbour_fn.allocate(positions)
    state = init(jax.random.key(1), positions, kT=0.1, neighbor=neighbours)

    @jax.jit
    def run(state, neighbours):
        def step(_, carry):
            state, neighbours = carry
            state = apply(state, neighbor=neighbours)
            return state, neighbours.update(state.position)

        return jax.lax.fori_loop(0, 50, step, (state, neighbours))

    state, neighbours = run(state, neighbours)
    assert not neighbours.did_buffer_overflow
    return {"position": state.position, "momentum": state.momentum}
