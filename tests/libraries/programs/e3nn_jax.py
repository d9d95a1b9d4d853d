"""e3nn-jax: networks that commute with rotations."""

from __future__ import annotations

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp

from tests.libraries.program import program

LIBRARIES = ("e3nn-jax",)


def _message_passing(w, positions, features):
    """Features of every node after it took in those of all others."""
    difference = positions[:, None] - positions[None]
    harmonics = e3nn.spherical_harmonics("0e + 1o + 2e", difference, normalize=True)
    distances = jnp.linalg.norm(difference + 1e-6, axis=-1)
    radial = e3nn.bessel(distances, 4, 5.0) @ w
    messages = e3nn.tensor_product(features[None], harmonics, filter_ir_out=["0e", "1o"])
    messages = messages * radial.sum(-1, keepdims=True)
    return e3nn.gate(e3nn.concatenate([e3nn.sum(messages, axis=1), features]).regroup())


def _atoms():
    positions = jax.random.normal(jax.random.key(0), (5, 3)) * 1.5
    features = e3nn.normal("2x0e + 1x1o", jax.random.key(1), (5,))
    w = jax.random.normal(jax.random.key(2), (4, 3))
    return w, positions, features


@program(1e-4, "Clebsch-Gordan sums and a square root near the cut-off")
def message_passing_and_forces():
    w, positions, features = _atoms()

    def energy(positions):
        out = _message_passing(w, positions, features)
        return jnp.sum(out.filter("0e").array)

    return jax.jit(jax.value_and_grad(energy))(positions)


@program(1e-4, "rotation matrices of degree two are products of many cosines")
def rotated_alike():
    w, positions, features = _atoms()
    rotation = e3nn.rand_matrix(jax.random.key(3))
    run = jax.jit(_message_passing)
    first = run(w, positions @ rotation.T, features.transform_by_matrix(rotation)).array
    second = run(w, positions, features).transform_by_matrix(rotation).array
    return {"first": first, "second": second, "rotation": rotation}


@program(1e-4, "sums of a Fourier transform on the sphere")
def signals_on_the_sphere():
    coefficients = e3nn.normal(e3nn.s2_irreps(4), jax.random.key(0))
    signal = e3nn.to_s2grid(coefficients, 12, 15, quadrature="gausslegendre", fft=True)
    back = e3nn.from_s2grid(signal.apply(jnp.tanh), e3nn.s2_irreps(4))
    return {"grid": signal.grid_values, "back": back.array}
