"""NumPyro: probabilistic programs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import HMC, MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoMultivariateNormal

from tests.libraries.program import program

LIBRARIES = ("numpyro",)

EFFECTS = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def eight_schools(effects=None):
    mean = numpyro.sample("mean", dist.Normal(0, 5))
    spread = numpyro.sample("spread", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8):
        offset = numpyro.sample("offset", dist.Normal(0, 1))
        numpyro.sample("effect", dist.Normal(mean + spread * offset, ERRORS), obs=effects)


@program(1e-2, "sampling is chaotic: short runs, in which roundings grow some thousandfold")
def nuts():
    mcmc = MCMC(NUTS(eight_schools), num_warmup=12, num_samples=8, progress_bar=False)
    mcmc.run(jax.random.key(0), effects=EFFECTS)
    predicted = Predictive(eight_schools, mcmc.get_samples())(jax.random.key(1))
    return {"samples": mcmc.get_samples(), "predicted": predicted["effect"]}


@program(1e-3, "ten leapfrog trajectories with a fixed step size")
def hmc_of_logistic_regression():
    x = jax.random.normal(jax.random.key(0), (30, 3))
    y = (x @ jnp.array([1.0, -2.0, 0.5]) > 0).astype(jnp.int32)

    def model(x, y):
        weights = numpyro.sample("weights", dist.Normal(jnp.zeros(3), 1).to_event(1))
        bias = numpyro.sample("bias", dist.StudentT(4.0, 0.0, 1.0))
        numpyro.sample("y", dist.Bernoulli(logits=x @ weights + bias), obs=y)

    kernel = HMC(model, step_size=0.1, num_steps=7, adapt_step_size=False, adapt_mass_matrix=False)
    mcmc = MCMC(
        kernel,
        num_warmup=0,
        num_samples=10,
        num_chains=2,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(1), x, y)
    return mcmc.get_samples(group_by_chain=True)


@program(1e-3, "thirty steps of Adam, which divides by small gradients")
def variational_inference():
    svi = SVI(
        eight_schools,
        AutoMultivariateNormal(eight_schools),
        numpyro.optim.ClippedAdam(1e-2),
        Trace_ELBO(num_particles=4),
    )
    result = svi.run(jax.random.key(0), 30, effects=EFFECTS, progress_bar=False)
    return {"losses": result.losses, "params": result.params}


@program(1e-4, "draws of rejection samplers follow float32 logarithms; densities sum four terms")
def distributions():
    key = jax.random.key(0)
    chosen = {
        "gamma": dist.Gamma(2.0, 3.0),
        "beta": dist.Beta(2.0, 0.7),
        "dirichlet": dist.Dirichlet(jnp.array([0.5, 1.0, 4.0])),
        "student_t": dist.StudentT(3.0),
        "poisson": dist.Poisson(4.5),
        "negative_binomial": dist.NegativeBinomial2(3.0, 1.5),
        "lkj": dist.LKJCholesky(4, 1.3),
        "multinomial": dist.Multinomial(10, jnp.array([0.2, 0.3, 0.5])),
        "truncated": dist.TruncatedNormal(0.3, 1.0, low=0.0, high=2.0),
        "mixture": dist.MixtureSameFamily(
            dist.Categorical(jnp.array([0.3, 0.7])), dist.Normal(jnp.array([-1.0, 2.0]), 0.5)
        ),
        "normal": dist.MultivariateNormal(jnp.zeros(3), jnp.eye(3) + 0.4),
    }
    draws = {name: d.sample(key, (4,)) for name, d in chosen.items()}
    densities = {name: jax.jit(d.log_prob)(draws[name]) for name, d in chosen.items()}
    return {"draws": draws, "densities": densities}
