"""What is done with a pipeline: each row makes a function of (parameters, batch) of a subject.

A subject is `model.Pipelined` or `model.Plain`: both have `loss`, which returns (value, rest), and
`value_and_grad`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import lax

Step = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Transform:
    """One row.

    Attributes:
        of: from a subject to the function of (parameters, batch).
        weight: how often it is drawn.
        in_order: the plain form adds in the same order, so that results have equal bits.
        takes_outputs: the pipeline may return more than its loss.
        takes_state: state may go from micro-batch to micro-batch.
        is_derived: the loss must be one number.
        is_forward: it differentiates in forward mode, which custom_vjp refuses.
    """

    of: Callable[[Any], Step]
    weight: float
    in_order: bool
    takes_outputs: bool
    takes_state: bool
    is_derived: bool = True
    is_forward: bool = False


TRANSFORMS: dict[str, Transform] = {}


def transform(weight: float, **facts: Any) -> Callable[[Any], Any]:
    default = {"in_order": True, "takes_outputs": True, "takes_state": True}

    def register(of: Any) -> Any:
        TRANSFORMS[of.__name__] = Transform(of, weight, **{**default, **facts})
        return of

    return register


@transform(3, is_derived=False)
def value(subject: Any) -> Step:
    return subject.loss


@transform(5)
def value_and_grad(subject: Any) -> Step:
    return subject.value_and_grad


@transform(1)
def repeat_loop(subject: Any) -> Step:
    """Three steps of gradient descent in a loop on the device."""

    def train(parameters: Any, batch: Any) -> Any:
        def step(parameters: Any, _: None) -> Any:
            value, gradients = subject.value_and_grad(parameters, batch)
            return jax.tree.map(lambda p, g: p - g / 8, parameters, gradients), value

        return lax.scan(step, parameters, None, length=3)

    return train


@transform(1, takes_outputs=False, takes_state=False)
def counted_loop(subject: Any) -> Step:
    def train(parameters: Any, batch: Any) -> Any:
        def step(_: Any, parameters: Any) -> Any:
            gradients = subject.value_and_grad(parameters, batch)[1]
            return jax.tree.map(lambda p, g: p - g / 8, parameters, gradients)

        return lax.fori_loop(0, 2, step, parameters)

    return train


def _step_of(optimizer: Any) -> Callable[[Any], Step]:
    """A step in float32: the squares of a gradient in float16 are zero."""

    def of(subject: Any) -> Step:
        def step(parameters: Any, batch: Any) -> Any:
            wide = jax.tree.map(lambda p: p.astype(jnp.float32), parameters)
            state = optimizer.init(wide)
            value, gradients = subject.value_and_grad(parameters, batch)
            gradients = jax.tree.map(lambda g: g.astype(jnp.float32), gradients)
            updates, state = optimizer.update(gradients, state, wide)
            return optax.apply_updates(parameters, updates), state, value

        return step

    return of


@transform(1)
def adam_step(subject: Any) -> Step:
    """Eps is no smaller than what float16 tells apart in a gradient."""
    return _step_of(optax.adamw(0.01, eps=1e-3))(subject)


@transform(0.5)
def momentum_step(subject: Any) -> Step:
    return _step_of(optax.sgd(0.1, momentum=0.9, nesterov=True))(subject)


@transform(1)
def clipped_step(subject: Any) -> Step:
    optimizer = optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(0.1))
    return _step_of(optimizer)(subject)


@transform(1, takes_outputs=False, takes_state=False)
def accumulated(subject: Any) -> Step:
    return subject.accumulated


@transform(1, in_order=False)
def logarithm(subject: Any) -> Step:
    """A function of the loss, and a regulariser."""

    def objective(parameters: Any, batch: Any) -> Any:
        value, rest = subject.loss(parameters, batch)
        squares = [jnp.sum(p.astype(jnp.float32) ** 2) for p in jax.tree.leaves(parameters)]
        total = jnp.log(1.5 + value.astype(jnp.float32)) + 0.01 * sum(squares, jnp.float32(0))
        return total, rest

    return jax.value_and_grad(objective, has_aux=True)


@transform(0.7, in_order=False)
def scaled(subject: Any) -> Step:
    """The gradient of a scaled loss, as in float16 training."""

    def step(parameters: Any, batch: Any) -> Any:
        gradient = jax.grad(lambda p: subject.loss(p, batch)[0] * 16)(parameters)
        return jax.tree.map(lambda g: g / 16, gradient)

    return step


@transform(1, in_order=False)
def over_models(subject: Any) -> Step:
    def both(parameters: Any, batch: Any) -> Any:
        stacked = jax.tree.map(lambda p: jnp.stack([p, p * 0.5]), parameters)
        run = jax.vmap(subject.value_and_grad, in_axes=(0, None), axis_size=2)
        return run(stacked, batch)

    return both


@transform(1, in_order=False, takes_state=False)
def over_examples(subject: Any) -> Step:
    """A gradient for each of two batches, each clipped."""

    def both(parameters: Any, batch: Any) -> Any:
        twice = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf[::-1]], 1), batch)
        value, gradients = jax.vmap(subject.value_and_grad, in_axes=(None, 1))(parameters, twice)
        squares = [jnp.sum(g.astype(jnp.float32) ** 2) for g in jax.tree.leaves(gradients)]
        factor = lax.rsqrt(1 + sum(squares, jnp.float32(0)))
        return value, jax.tree.map(lambda g: (g * factor.astype(g.dtype)).sum(0), gradients)

    return both


@transform(1, in_order=False, is_forward=True)
def forward_mode(subject: Any) -> Step:
    def directional(parameters: Any, batch: Any) -> Any:
        halves = jax.tree.map(lambda p: p * 0.5, parameters)
        return jax.jvp(lambda p: subject.loss(p, batch)[0], (parameters,), (halves,))

    return directional


@transform(1, in_order=False, takes_outputs=False, is_forward=True)
def hessian_product(subject: Any) -> Step:
    def product(parameters: Any, batch: Any) -> Any:
        gradient = jax.grad(lambda p: subject.loss(p, batch)[0])
        halves = jax.tree.map(lambda p: p * 0.5, parameters)
        return jax.jvp(gradient, (parameters,), (halves,))[1]

    return product


@transform(0.7, in_order=False)
def by_batch(subject: Any) -> Step:
    """The gradient with respect to the inputs."""

    def gradient(parameters: Any, batch: Any) -> Any:
        micro_batches, state = batch

        def loss(x: Any) -> Any:
            return subject.loss(parameters, ({**micro_batches, "x": x}, state))[0]

        return jax.grad(loss)(micro_batches["x"])

    return gradient


@transform(0.7, in_order=False, takes_outputs=False)
def checkpointed(subject: Any) -> Step:
    return jax.grad(jax.checkpoint(lambda p, batch: subject.loss(p, batch)[0]))
