"""RLax: losses of reinforcement learning."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import rlax

from tests.libraries.program import program

LIBRARIES = ("rlax",)


@program(1e-5, "returns over eight steps")
def returns_and_advantages():
    rewards, values = jax.random.normal(jax.random.key(0), (2, 8))
    discounts = jnp.full(8, 0.95).at[4].set(0.0)
    ratios = jnp.exp(0.3 * jax.random.normal(jax.random.key(1), (8,)))
    following = jnp.roll(values, -1)
    traces = rlax.vtrace_td_error_and_advantage(values, following, rewards, discounts, ratios)
    return {
        "lambda": jax.jit(rlax.lambda_returns)(rewards, discounts, following, 0.9),
        "n_step": rlax.n_step_bootstrapped_returns(rewards, discounts, following, 3),
        "vtrace": (traces.errors, traces.pg_advantage, traces.q_estimate),
        "gae": rlax.truncated_generalized_advantage_estimation(
            rewards, discounts, 0.9, jnp.append(values, 0.3)
        ),
    }


@program(1e-5, "one gradient of each loss")
def losses_and_their_gradients():
    logits = jax.random.normal(jax.random.key(0), (6, 4))
    actions = jnp.arange(6) % 4
    advantages, weights = jnp.linspace(-1, 1, 6), jnp.ones(6)
    old = jax.nn.log_softmax(jnp.roll(logits, 1))[jnp.arange(6), actions]

    def policy(logits):
        probabilities = jax.nn.log_softmax(logits)[jnp.arange(6), actions]
        ratios = jnp.exp(probabilities - old)
        return (
            rlax.policy_gradient_loss(logits, actions, advantages, weights)
            + rlax.clipped_surrogate_pg_loss(ratios, advantages, 0.2)
            + 0.01 * rlax.entropy_loss(logits, weights)
        )

    def values(q):
        errors = jax.vmap(rlax.double_q_learning)(
            q, actions, advantages, 0.9 * weights, jnp.roll(q, 1, 0), q * 0.9
        )
        return jnp.mean(rlax.l2_loss(errors))

    def distribution(logits):
        atoms = jnp.linspace(-1.0, 1.0, 4)
        errors = jax.vmap(rlax.categorical_td_learning, in_axes=(None, 0, 0, 0, None, 0))
        return errors(atoms, logits, advantages, 0.9 * weights, atoms, jnp.roll(logits, 1)).mean()

    return [jax.jit(jax.value_and_grad(f))(logits) for f in (policy, values, distribution)]
