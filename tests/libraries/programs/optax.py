"""Optax: optimizers, losses and projections."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree

from tests.libraries.program import program

LIBRARIES = ("optax",)


def _problem():
    """A loss of the parameters (a matrix, a vector), and where to begin."""
    x = jax.random.normal(jax.random.key(0), (20, 5))
    y = jnp.sin(x @ jnp.arange(1.0, 6.0))
    params = {"w": 0.1 * jax.random.normal(jax.random.key(1), (5, 7)), "v": jnp.ones(7)}
    return (lambda p: jnp.mean((jnp.tanh(x @ p["w"]) @ p["v"] - y) ** 2)), params


def _run(optimizer, num_steps: int):
    loss_of, params = _problem()

    def step(carry, _):
        params, state = carry
        loss, grads = jax.value_and_grad(loss_of)(params)
        updates, state = optimizer.update(grads, state, params)
        return (optax.apply_updates(params, updates), state), loss

    start = (params, optimizer.init(params))
    (params, _), losses = jax.jit(lambda c: jax.lax.scan(step, c, None, num_steps))(start)
    return losses, params


@program(2e-4, "twelve steps; optimizers divide by gradients, which makes roundings larger")
def optimizers():
    schedule = optax.warmup_cosine_decay_schedule(1e-3, 2e-2, 4, 12)
    chosen = {
        "adamw": optax.adamw(schedule, eps=1e-4),
        "adafactor": optax.adafactor(1e-2, min_dim_size_to_factor=4),
        "lamb": optax.lamb(1e-2, eps=1e-4),
        "rmsprop": optax.rmsprop(1e-2, eps=1e-4, centered=True),
        "nesterov": optax.sgd(1e-2, momentum=0.9, nesterov=True),
        "novograd": optax.novograd(1e-2, eps=1e-4),
        "noisy": optax.noisy_sgd(1e-2, key=jax.random.key(3)),
        "schedule_free": optax.contrib.schedule_free_adamw(1e-2, eps=1e-4),
        "muon": optax.contrib.muon(1e-2),
    }
    return {name: _run(optimizer, 12) for name, optimizer in chosen.items()}


@program(1e-4, "eight accumulated steps of Adam")
def accumulated_and_masked():
    labels = {"w": "slow", "v": "fast"}
    optimizer = optax.chain(
        optax.clip_by_global_norm(0.5),
        optax.partition({"slow": optax.adam(1e-3, eps=1e-3), "fast": optax.sgd(1e-2)}, labels),
        optax.masked(optax.add_decayed_weights(1e-2), {"w": True, "v": False}),
    )
    accumulating = optax.MultiSteps(optimizer, every_k_schedule=2)
    finite = optax.apply_if_finite(accumulating.gradient_transformation(), 3)
    return _run(finite, 16)


@program(1e-3, "a line search evaluates differences of close losses")
def lbfgs():
    loss_of, params = _problem()
    optimizer = optax.lbfgs(memory_size=4)
    value_and_grad = optax.value_and_grad_from_state(loss_of)

    @jax.jit
    def step(params, state):
        value, grads = value_and_grad(params, state=state)
        updates, state = optimizer.update(
            grads, state, params, value=value, grad=grads, value_fn=loss_of
        )
        return optax.apply_updates(params, updates), state, value

    state, losses = optimizer.init(params), []
    for _ in range(6):
        params, state, loss = step(params, state)
        losses.append(loss)
    return {"losses": jnp.stack(losses), "params": ravel_pytree(params)[0]}


@program(1e-5, "one gradient of each loss")
def losses():
    logits = jax.random.normal(jax.random.key(0), (4, 9, 6))
    labels = jax.random.randint(jax.random.key(1), (4, 4), 1, 6)
    logit_paddings = (jnp.arange(9) >= jnp.array([9, 8, 7, 9])[:, None]).astype(jnp.float32)
    label_paddings = (jnp.arange(4) >= jnp.array([4, 2, 3, 1])[:, None]).astype(jnp.float32)

    def ctc(logits):
        return optax.ctc_loss(logits, logit_paddings, labels, label_paddings).sum()

    def others(logits):
        first, second = logits[0], logits[1]
        return (
            optax.sigmoid_focal_loss(first, jax.nn.sigmoid(second)).mean()
            + optax.huber_loss(first, second).mean()
            + optax.cosine_distance(first, second).mean()
            + optax.convex_kl_divergence(jax.nn.log_softmax(first), jax.nn.softmax(second)).mean()
            + optax.losses.ranking_softmax_loss(first, second)
        )

    return [jax.jit(jax.value_and_grad(f))(logits) for f in (ctc, others)]


@program(1e-5, "sums and sorts of ten numbers")
def projections_and_assignment():
    x = jax.random.normal(jax.random.key(0), (10,))
    costs = jax.random.uniform(jax.random.key(1), (5, 8))
    return {
        "simplex": jax.jit(optax.projections.projection_simplex)(x),
        "l1": jax.jit(optax.projections.projection_l1_ball)(x, 2.0),
        "jacobian": jax.jit(jax.jacobian(optax.projections.projection_simplex))(x),
        "assignment": jax.jit(optax.assignment.hungarian_algorithm)(costs),
    }
