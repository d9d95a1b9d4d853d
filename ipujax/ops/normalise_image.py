"""`normalise_image`: images with a fourth channel, each channel shifted and scaled."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from ipujax.api.arguments import array as as_array
from ipujax.api.arguments import real_number
from ipujax.errors import ConfigError
from ipujax.ops.definition import Op

WHERE = "ipu.ops.normalise_image"
_CHANNELS = 3


def _plain(image: jax.Array, offsets: jax.Array, scales: jax.Array, *, scale: float) -> jax.Array:
    pixels = image.astype(offsets.dtype)
    shifted = (pixels * jnp.asarray(scale, pixels.dtype) - offsets) * scales
    return jnp.pad(shifted, [(0, 0)] * (image.ndim - 1) + [(0, 1)])


_NORMALISE = Op("normalise_image", _plain, dimensions="...C, D, E -> ...F")


def normalise_image(
    image: Any, channel_offsets: Any, channel_scales: Any, scale: float = 1.0
) -> jax.Array:
    """(image[c] * scale - channel_offsets[c]) * channel_scales[c], and a channel of zeros.

    The IPU's convolutions work best with four channels.

    Args:
        image: [..., 3] of uint8, float16 or float32.
        channel_offsets, channel_scales: [3]; cast to the dtype of the result.
        scale: factor of all channels, applied before the offsets; a number.
    Returns:
        [..., 4] of the image's dtype, float16 for uint8.
    Raises:
        ConfigError: wrong shapes or dtypes, or a scale that is not finite.

    Source: `image_ops.normalise_image` of Graphcore's TensorFlow, `popops::normaliseImage`.

    Example:
        >>> image = jnp.array([[[0, 128, 255]]], jnp.uint8)
        >>> print(ipu.ops.normalise_image(image, [0.0, 0.5, 0.5], [1.0, 2.0, 4.0], 1 / 256))
        [[[0.    0.    1.984 0.   ]]]
    """
    pixels = as_array(WHERE, "image", image)
    known = (jnp.uint8, jnp.float16, jnp.float32)
    if pixels.ndim < 1 or pixels.shape[-1] != _CHANNELS or pixels.dtype not in known:
        raise ConfigError(
            f"[{WHERE}] needs an image [..., 3] of uint8, float16 or float32; got {pixels.dtype} "
            f"{list(pixels.shape)}. Move the channels to the last dimension, or cast it."
        )
    factor = real_number(scale)
    if not math.isfinite(factor):
        raise ConfigError(f"[{WHERE}] needs scale to be a finite number; got {scale!r}. Pass one.")
    dtype = jnp.float16 if pixels.dtype == jnp.uint8 else pixels.dtype
    offsets, scales = (
        _of_channels(name, value, dtype)
        for name, value in (
            ("channel_offsets", channel_offsets),
            ("channel_scales", channel_scales),
        )
    )
    return _NORMALISE(pixels, offsets, scales, scale=factor)


def _of_channels(name: str, value: Any, dtype: Any) -> jax.Array:
    array = as_array(WHERE, name, value)
    if array.shape != (_CHANNELS,):
        raise ConfigError(
            f"[{WHERE}] needs {name} [3]; got {list(array.shape)}. Pass one number for each "
            "channel."
        )
    return array.astype(dtype)
