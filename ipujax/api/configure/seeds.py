"""`reset_seed`: the seed of stochastic rounding, and of random operations that are given none."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ipujax import jax_compat
from ipujax.api.arguments import array, known_outside, whole_number
from ipujax.errors import ConfigError

_MOST = 2**64 - 1


class _Generator:
    """Gives seeds, one after the other for each replica."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset(0, False)

    def reset(self, seed: int, identical_replicas: bool) -> None:
        with self._lock:
            self._seed, self._identical = seed, identical_replicas
            self._drawn: Counter[int] = Counter()

    def next(self, replica: Any) -> np.ndarray:
        number = int(replica)
        with self._lock:
            count = self._drawn[number]
            self._drawn[number] += 1
            words = [self._seed & 0xFFFFFFFF, self._seed >> 32, count]
            if not self._identical:
                words.append(number)
        return np.random.SeedSequence(words).generate_state(2, np.uint32)


_GENERATOR = _Generator()


def reset_seed(seed: int, identical_replicas: bool = False) -> None:
    """Sets the seed of stochastic rounding and of the random operations that are given none.

    After it, a process that makes the same calls gets the same numbers, and rounds in the same way.
    Programs that are running, or were dispatched before, may still draw from the old seed: wait for
    them.

    Args:
        seed: 0 to 2**64 - 1.
        identical_replicas: replicas draw the same numbers, as long as each makes the same calls;
            otherwise each has numbers of its own. Values that are equal on all replicas, such as
            parameters that each of them holds, are rounded alike in both cases.
    Raises:
        ConfigError: an invalid seed.

    Source: `utils.reset_ipu_seed` of Graphcore's TensorFlow.

    Example:
        >>> ipu.reset_seed(42)
        >>> first = ipu.ops.random_normal((3,))
        >>> ipu.reset_seed(42)
        >>> bool((ipu.ops.random_normal((3,)) == first).all())
        True
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed <= _MOST:
        raise ConfigError(
            f"[ipu.reset_seed] needs a seed from 0 to 2**64 - 1; got {seed!r}. Pass an integer."
        )
    _GENERATOR.reset(int(seed), identical_replicas)
    try:
        from ipujax._poplar import _poplar
    except ImportError:
        return  # `ipujax.plugin` says what is missing
    _poplar.reset_seed(int(seed), identical_replicas)


def seed_words(where: str, seed: Any, what: str = "seed") -> jax.Array:
    """Two uint32 from a JAX key, an integer or two integers; for None the next of `reset_seed`."""
    if seed is None:
        # Imported here, because JAX imports this package while it looks for plugins.
        from jax.experimental import io_callback

        words: jax.Array = io_callback(
            _GENERATOR.next, jax.ShapeDtypeStruct((2,), jnp.uint32), _replica()
        )
        return words
    return words_of(where, what, seed)


def words_of(where: str, what: str, seed: Any) -> jax.Array:
    """Two uint32 from a JAX key of any kind, an integer or two integers.

    Raises:
        ConfigError: it is something else.
    """
    number = whole_number(seed)
    if number is not None and -(2**31) <= number <= _MOST:
        high = number >> 32 if number > 0 else 0
        return jnp.array([high, number & 0xFFFFFFFF], jnp.uint32)
    # A list may have numbers beyond int32, which JAX refuses.
    is_list = isinstance(seed, list | tuple) and all(isinstance(each, int) for each in seed)
    if is_list or isinstance(seed, np.ndarray):
        given = np.asarray(seed)
        are_words = given.dtype.kind in "iu" and known_outside(given, 0, 2**32 - 1) is None
        seed = given.astype(np.uint32) if are_words else given
    made = array(where, what, seed)
    is_key = jnp.issubdtype(made.dtype, jax.dtypes.prng_key)
    if made.dtype == jnp.uint32 and made.shape == (4,):
        made, is_key = jax.random.wrap_key_data(made, impl="rbg"), True
    if is_key and made.shape == ():
        data = jax.random.key_data(made)
        return data if data.shape == (2,) else jax.random.bits(made, (2,), jnp.uint32)
    if jnp.issubdtype(made.dtype, jnp.integer) and made.shape in ((), (2,)):
        words = made.astype(jnp.uint32).reshape(-1)
        return jnp.concatenate([jnp.zeros(1, jnp.uint32), words]) if made.shape == () else words
    raise ConfigError(
        f"[{where}] needs {what} to be a key of JAX, an integer or two of them; got "
        f"{made.dtype} {list(made.shape)}{f', {number}' if number is not None else ''}. "
        "Pass jax.random.key(0)."
    )


def _replica() -> jax.Array:
    """A number for each replica: the index in the mapped axes of devices."""
    manual = set(jax.sharding.get_abstract_mesh().manual_axes)
    axes = tuple(name for name in jax_compat.mapped_axes() if name in manual)
    return lax.axis_index(axes) if axes else jnp.int32(0)
