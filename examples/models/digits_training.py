"""Shared by the digits examples: the training loop, and the test accuracy."""

from collections.abc import Callable

import digits_data
import jax
from progress import progress_bar
from step_cost import print_step_cost

WANTED_ACCURACY = 0.97


def train_and_test(
    title: str,
    train_step: Callable,
    state: tuple,
    logits_of: Callable,
    batch_size: int,
    num_epochs: int,
) -> None:
    """Trains, prints what a step costs on an IPU and the accuracy on images not trained on.

    Args:
        train_step: jitted, (state, images, labels) -> (state, loss).
        state: (params, optimizer state).
        logits_of: (params, images [n, 8, 8]) -> logits [n, 10].

    Raises:
        SystemExit: the accuracy is below 97 %.
    """
    print("devices:", jax.devices())
    digits = digits_data.load()
    num_steps = num_epochs * (len(digits.train_images) // batch_size)
    example = (digits.train_images[:batch_size], digits.train_labels[:batch_size])
    compiled = train_step.lower(state, *example).compile()
    with progress_bar(title, num_steps) as advance:
        for images, labels in digits_data.batches(
            digits.train_images, digits.train_labels, batch_size, num_epochs, seed=1
        ):
            state, loss = train_step(state, images, labels)
            advance(f"loss {loss:.3f}")

    @jax.jit
    def accuracy_of(params, images, labels):
        return (logits_of(params, images).argmax(-1) == labels).mean()

    accuracy = float(accuracy_of(state[0], digits.test_images, digits.test_labels))
    print_step_cost("training step", compiled)
    print(f"test accuracy: {accuracy:.4f}")
    if accuracy < WANTED_ACCURACY:
        raise SystemExit(f"test accuracy needs {WANTED_ACCURACY}; got {accuracy:.4f}")
