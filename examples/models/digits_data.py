"""scikit-learn's bundled handwritten digits: 1,797 images of 8x8 pixels, ten classes."""

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits


class Digits(NamedTuple):
    """Images are [n, 8, 8] float32 in 0..1, labels [n] int32."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load(num_test: int = 360, seed: int = 0) -> Digits:
    """Splits the digits by a fixed permutation."""
    bunch = load_digits()
    images = (bunch.images / 16.0).astype(np.float32)
    labels = bunch.target.astype(np.int32)
    order = np.random.default_rng(seed).permutation(len(images))
    test, train = order[:num_test], order[num_test:]
    return Digits(images[train], labels[train], images[test], labels[test])


def batches(images: np.ndarray, labels: np.ndarray, batch_size: int, num_epochs: int, seed: int):
    """Shuffled full batches of all epochs, one after the other."""
    rng = np.random.default_rng(seed)
    for _ in range(num_epochs):
        order = rng.permutation(len(images))
        for start in range(0, len(order) - batch_size + 1, batch_size):
            chosen = order[start : start + batch_size]
            yield images[chosen], labels[chosen]
