"""Fits the two constants of a damped oscillator by differentiating through Diffrax's solver.

Run: python examples/libraries/diffrax_oscillator.py
"""

import diffrax
import jax
import jax.numpy as jnp
import optax

NUM_STEPS = 200
TRUE_CONSTANTS = jnp.array([2.0, 0.3])  # stiffness, damping
TOLERATED_ERROR = 0.02
TIMES = jnp.linspace(0.0, 4.0, 33)


def positions(constants):
    """The oscillator's position at TIMES, let go at 1 without speed."""

    def acceleration(time, state, constants):
        position, speed = state
        return jnp.stack([speed, -constants[0] * position - constants[1] * speed])

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(acceleration),
        diffrax.Tsit5(),
        t0=TIMES[0],
        t1=TIMES[-1],
        dt0=0.05,
        y0=jnp.array([1.0, 0.0]),
        args=constants,
        saveat=diffrax.SaveAt(ts=TIMES),
        stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-5),
        max_steps=256,
    )
    return solution.ys[:, 0]


def main():
    print("devices:", jax.devices())
    optimizer = optax.adam(5e-2)
    observed = jax.jit(positions)(TRUE_CONSTANTS)

    @jax.jit
    def train_step(constants, opt_state):
        loss, grads = jax.value_and_grad(
            lambda constants: jnp.mean((positions(constants) - observed) ** 2)
        )(constants)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(constants, updates), opt_state, loss

    constants = jnp.array([1.0, 0.0])
    opt_state = optimizer.init(constants)
    for _ in range(NUM_STEPS):
        constants, opt_state, loss = train_step(constants, opt_state)
    error = float(jnp.abs(constants - TRUE_CONSTANTS).max())
    print(f"loss: {float(loss):.2e}")
    print(f"stiffness and damping: {constants}, error: {error:.4f}")
    if not error < TOLERATED_ERROR:
        raise SystemExit(f"the error needs to be below {TOLERATED_ERROR}; got {error:.4f}")


if __name__ == "__main__":
    main()
