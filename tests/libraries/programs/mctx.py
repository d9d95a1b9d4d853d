"""mctx: Monte Carlo tree search."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mctx

from tests.libraries.program import program

LIBRARIES = ("mctx",)

REWARDS = jnp.linspace(-1, 1, 12).reshape(4, 3)


def _step(params, key, action, embedding):
    """A walk over four places; the action chooses the next."""
    following = (embedding + action + 1) % 4
    logits = REWARDS[following]
    output = mctx.RecurrentFnOutput(
        reward=REWARDS[embedding, action],
        discount=jnp.full(action.shape, 0.9),
        prior_logits=logits,
        value=logits.mean(-1),
    )
    return output, following


def _root():
    places = jnp.arange(4)
    return mctx.RootFnOutput(prior_logits=REWARDS[places], value=REWARDS.mean(-1), embedding=places)


@program(1e-5, "values are means of at most 24 rewards")
def search():
    @jax.jit
    def run(key):
        gumbel = mctx.gumbel_muzero_policy((), key, _root(), _step, 24, max_depth=6)
        muzero = mctx.muzero_policy((), key, _root(), _step, 16)
        return [
            (policy.action, policy.action_weights, policy.search_tree.summary().value)
            for policy in (gumbel, muzero)
        ]

    return run(jax.random.key(0))
