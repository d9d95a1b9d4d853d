"""Distrax, and TensorFlow Probability on JAX, which it brings."""

from __future__ import annotations

import distrax
import jax
import jax.numpy as jnp
from tensorflow_probability.substrates import jax as tfp

from tests.libraries.program import program

LIBRARIES = ("distrax",)


@program(1e-4, "five steps of gradient descent through a spline's inverse")
def normalizing_flow():
    mask = jnp.array([True, False, True, False])
    num_params = 3 * 4 + 1  # widths and heights of four bins, slopes at five places

    def flow(params):
        def bijector(values):
            return distrax.RationalQuadraticSpline(values, -3.0, 3.0)

        def conditioner(x, w):
            return jnp.tanh(x @ w).reshape(*x.shape, num_params)

        layers = [
            distrax.MaskedCoupling(
                mask if even else ~mask, lambda x, w=w: conditioner(x, w), bijector
            )
            for even, w in zip((True, False), params, strict=True)
        ]
        base = distrax.MultivariateNormalDiag(jnp.zeros(4), jnp.ones(4))
        return distrax.Transformed(base, distrax.Chain(layers))

    params = 0.1 * jax.random.normal(jax.random.key(0), (2, 4, 4 * num_params))
    x = jax.random.normal(jax.random.key(1), (16, 4)) * 0.5 + 0.3

    @jax.jit
    def train_step(params):
        loss, grads = jax.value_and_grad(lambda p: -flow(p).log_prob(x).mean())(params)
        return params - 0.05 * grads, loss

    losses = []
    for _ in range(5):
        params, loss = train_step(params)
        losses.append(loss)
    draws = flow(params).sample(seed=jax.random.key(2), sample_shape=3)
    return {"losses": jnp.stack(losses), "draws": draws}


@program(1e-4, "sums over twelve time steps in logarithms")
def hidden_markov_model():
    model = distrax.HMM(
        trans_dist=distrax.Categorical(probs=jnp.array([[0.9, 0.1], [0.3, 0.7]])),
        init_dist=distrax.Categorical(probs=jnp.array([0.5, 0.5])),
        obs_dist=distrax.Normal(jnp.array([-1.0, 1.0]), jnp.array([0.5, 0.8])),
    )
    states, observed = model.sample(seed=jax.random.key(0), seq_len=12)
    alphas, betas, marginals, likelihood = jax.jit(model.forward_backward)(observed)
    return {
        "states": states,
        "observed": observed,
        "marginals": marginals,
        "likelihood": likelihood,
        "viterbi": jax.jit(model.viterbi)(observed),
        "sums": (alphas.sum(), betas.sum()),
    }


@program(1e-3, "sampling is chaotic: a short run")
def monte_carlo_of_tfp():
    target = tfp.distributions.JointDistributionSequential(
        [
            tfp.distributions.Normal(0.0, 1.0),
            lambda mean: tfp.distributions.Independent(
                tfp.distributions.Normal(mean * jnp.ones(3), 0.5), 1
            ),
        ]
    )
    kernel = tfp.mcmc.HamiltonianMonteCarlo(
        lambda mean: target.log_prob(mean, jnp.array([0.5, 1.0, 0.2])),
        step_size=0.2,
        num_leapfrog_steps=4,
    )

    @jax.jit
    def sample(key):
        return tfp.mcmc.sample_chain(
            12, current_state=jnp.zeros(()), kernel=kernel, trace_fn=None, seed=key
        )

    return sample(jax.random.key(0))


@program(1e-3, "a Cholesky factor of a matrix with condition number 1e3")
def gaussian_process_of_tfp():
    kernel = tfp.math.psd_kernels.MaternFiveHalves(jnp.float32(1.2), jnp.float32(0.7))
    x = jnp.linspace(0, 3, 10)[:, None]
    model = tfp.distributions.GaussianProcessRegressionModel(
        kernel,
        index_points=jnp.linspace(0, 3, 5)[:, None],
        observation_index_points=x,
        observations=jnp.sin(3 * x[:, 0]),
        observation_noise_variance=0.05,
    )
    return {"mean": model.mean(), "deviation": model.stddev()}
