"""Keras 3 on its JAX backend: fit, predict, save."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"

import jax
import jax.numpy as jnp
import keras
import numpy as np

from tests.libraries.program import program

LIBRARIES = ("keras",)


def _data(*shape: int, num_classes: int = 3):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape, np.float32)
    return x, np.arange(shape[0]) % num_classes


def _fitted(model, x, y, loss="sparse_categorical_crossentropy", **settings):
    """Losses of two epochs, then predictions and weights (predict replaces the arrays)."""
    model.compile(optimizer=keras.optimizers.Adam(1e-3, epsilon=1e-3), loss=loss)
    history = model.fit(x, y, epochs=2, batch_size=8, shuffle=False, verbose=0, **settings)
    return {
        "losses": np.array(history.history["loss"]),
        "predicted": model.predict(x, verbose=0),
        "weights": [weight.value for weight in model.trainable_weights],
    }


@program(1e-4, "six steps of Adam")
def dense():
    keras.utils.set_random_seed(0)
    x, y = _data(24, 10)
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((10,)),
            layers.Dense(16, activation="gelu", kernel_regularizer="l2"),
            layers.LayerNormalization(),
            layers.Dropout(0.2),
            layers.Dense(3, activation="softmax"),
        ]
    )
    return _fitted(model, x, y, validation_split=0.25)


@program(1e-3, "batch norm divides by the deviations of eight images")
def convolutional():
    keras.utils.set_random_seed(0)
    x, y = _data(16, 12, 12, 2)
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((12, 12, 2)),
            layers.RandomFlip("horizontal"),
            layers.Conv2D(6, 3, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPooling2D(),
            layers.SeparableConv2D(8, 3, activation="relu"),
            layers.Conv2DTranspose(4, 2, strides=2),
            layers.GlobalAveragePooling2D(),
            layers.Dense(3, activation="softmax"),
        ]
    )
    return _fitted(model, x, y)


@program(1e-4, "four steps of Adam through nine time steps")
def recurrent():
    keras.utils.set_random_seed(0)
    x, y = _data(16, 9, 5)
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((9, 5)),
            layers.Masking(),
            layers.Bidirectional(layers.LSTM(6, return_sequences=True)),
            layers.GRU(7),
            layers.Dense(3, activation="softmax"),
        ]
    )
    x[:5, 6:] = 0
    return _fitted(model, x, y)


@program(1e-4, "four steps of Adam")
def transformer():
    keras.utils.set_random_seed(0)
    tokens = np.random.default_rng(1).integers(0, 11, (16, 7))
    layers = keras.layers
    given = keras.Input((7,), dtype="int32")
    x = layers.Embedding(11, 16)(given)
    attended = layers.MultiHeadAttention(2, 8)(x, x, use_causal_mask=True)
    x = layers.LayerNormalization()(x + attended)
    x = layers.Dense(11)(x)
    model = keras.Model(given, x)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return _fitted(model, tokens, np.roll(tokens, -1, axis=1), loss=loss)


@program(1e-4, "four steps of Adam; what is saved is bits")
def saved_and_loaded():
    keras.utils.set_random_seed(0)
    x, y = _data(16, 6)
    model = keras.Sequential(
        [keras.Input((6,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(3, "softmax")]
    )
    fitted = _fitted(model, x, y)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.keras"
        model.save(file)
        loaded = keras.models.load_model(file)
    assert np.array_equal(loaded.predict(x, verbose=0), fitted["predicted"])
    loaded.train_on_batch(x, y)
    return [weight.value for weight in loaded.trainable_weights]


@program(1e-5, "one gradient")
def stateless_calls_in_a_jit_of_the_user():
    keras.utils.set_random_seed(0)
    x, _ = _data(8, 6)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(5, "swish")])

    @jax.jit
    def loss_of(trainable, other):
        y, _ = model.stateless_call(trainable, other, x)
        return jnp.sum(y**2)

    trainable = [weight.value for weight in model.trainable_variables]
    other = [weight.value for weight in model.non_trainable_variables]
    return jax.value_and_grad(loss_of)(trainable, other)
