"""Diffrax: differential equations."""

from __future__ import annotations

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import lineax
import optax
import optimistix

from tests.libraries.program import program

LIBRARIES = ("diffrax", "equinox", "lineax", "optax", "optimistix")


def _lotka_volterra(time, state, args):
    prey, predators = state
    a, b, c, d = args
    return jnp.stack([a * prey - b * prey * predators, -c * predators + d * prey * predators])


def _solve(args, solver, adjoint, dt0, **controller):
    """A first step so short that its error is below rounding would choose the second at random."""
    return diffrax.diffeqsolve(
        diffrax.ODETerm(_lotka_volterra),
        solver,
        t0=0.0,
        t1=4.0,
        dt0=dt0,
        y0=jnp.array([1.0, 0.5]),
        args=args,
        saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 4.0, 9)),
        stepsize_controller=diffrax.PIDController(**controller),
        adjoint=adjoint,
        max_steps=256,
    )


@program(1e-4, "steps follow an error estimate of 1e-5, whose roundings are visible")
def adaptive_steps_and_their_gradient():
    args = jnp.array([1.1, 0.4, 0.4, 0.1])

    @jax.jit
    @jax.value_and_grad
    def energy(args):
        adjoint = diffrax.RecursiveCheckpointAdjoint()
        return jnp.sum(_solve(args, diffrax.Tsit5(), adjoint, 0.5, rtol=1e-4, atol=1e-5).ys ** 2)

    adjoint = diffrax.DirectAdjoint()
    solution = _solve(args, diffrax.Bosh3(), adjoint, 0.1, rtol=1e-4, atol=1e-5)
    return {"gradient": energy(args), "ys": solution.ys, "steps": solution.stats["num_steps"]}


@program(1e-3, "the adjoint is integrated backwards with errors of 1e-4")
def backsolve_adjoint():
    @jax.jit
    @jax.grad
    def energy(args):
        adjoint = diffrax.BacksolveAdjoint()
        return jnp.sum(_solve(args, diffrax.Heun(), adjoint, 0.1, rtol=1e-3, atol=1e-4).ys[-1])

    return energy(jnp.array([1.1, 0.4, 0.4, 0.1]))


@program(1e-3, "Newton's iterations inside each step stop at errors of 1e-4")
def stiff():
    def robertson(time, y, args):
        x, y, z = y
        first = -0.04 * x + 1e2 * y * z
        return jnp.stack([first, -first - 3e4 * y**2, 3e4 * y**2])

    def final(scale):
        return diffrax.diffeqsolve(
            diffrax.ODETerm(robertson),
            diffrax.Kvaerno5(),
            t0=0.0,
            t1=10.0,
            dt0=1e-3,
            y0=scale * jnp.array([1.0, 0.0, 0.0]),
            stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-5),
            max_steps=512,
        ).ys[0]

    return jax.jit(final)(1.0)


@program(1e-4, "sixty-four steps without error control")
def stochastic():
    brownian = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-2, shape=(2,), key=jax.random.key(0))
    noise = diffrax.ControlTerm(
        lambda time, y, args: lineax.DiagonalLinearOperator(0.3 * y), brownian
    )
    terms = diffrax.MultiTerm(diffrax.ODETerm(lambda time, y, args: -y), noise)

    solution = diffrax.diffeqsolve(
        terms,
        diffrax.EulerHeun(),
        t0=0.0,
        t1=1.0,
        dt0=1 / 64,
        y0=jnp.array([1.0, -2.0]),
        saveat=diffrax.SaveAt(ts=jnp.linspace(0, 1, 5)),
    )
    return solution.ys


@program(1e-3, "the time of the bounce is a root found to 1e-5, and steps follow it")
def event():
    def fall(time, state, args):
        return jnp.stack([state[1], -9.8])

    solution = jax.jit(
        lambda height: diffrax.diffeqsolve(
            diffrax.ODETerm(fall),
            diffrax.Tsit5(),
            t0=0.0,
            t1=10.0,
            dt0=0.1,
            y0=jnp.stack([height, 0.0]),
            event=diffrax.Event(lambda t, y, args, **kwargs: y[0], optimistix.Newton(1e-5, 1e-5)),
        )
    )(jnp.array(3.0))
    return {"time": solution.ts, "speed": solution.ys[0, 1]}


@program(1e-4, "five steps of Adam through a fixed number of solver steps")
def neural_differential_equation():
    field = eqx.nn.MLP(2, 2, 16, 1, activation=jax.nn.softplus, key=jax.random.key(0))
    times = jnp.linspace(0.0, 1.0, 6)
    wanted = jnp.stack([jnp.cos(3 * times), jnp.sin(3 * times)], -1)
    optimizer = optax.adam(1e-2, eps=1e-3)

    @eqx.filter_jit
    def train_step(field, opt_state):
        def loss_of(field):
            solution = diffrax.diffeqsolve(
                diffrax.ODETerm(lambda time, y, args: field(y)),
                diffrax.Midpoint(),
                t0=0.0,
                t1=1.0,
                dt0=0.1,
                y0=wanted[0],
                saveat=diffrax.SaveAt(ts=times),
            )
            return jnp.mean((solution.ys - wanted) ** 2)

        loss, grads = eqx.filter_value_and_grad(loss_of)(field)
        updates, opt_state = optimizer.update(grads, opt_state)
        return eqx.apply_updates(field, updates), opt_state, loss

    opt_state, losses = optimizer.init(eqx.filter(field, eqx.is_inexact_array)), []
    for _ in range(5):
        field, opt_state, loss = train_step(field, opt_state)
        losses.append(loss)
    return {"losses": jnp.stack(losses), "weight": field.layers[0].weight}
