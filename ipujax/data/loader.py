"""`Loader`: batches from examples, by several threads, in a fixed order."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from ipujax.data.batch_sizes import BatchSizes
from ipujax.errors import FeedError


class Loader:
    """Batches of examples for `ipujax.Infeed`.

    Args:
        data: a pytree of arrays with equal first dimensions (a dict or tuple of NumPy arrays);
            or a sequence of examples with `len` and indices, such as a torch `Dataset`;
            or an iterable of examples; with `rebatch`, an iterable of batches of any size.
        batch_size: examples in a batch; or the `BatchSizes` of a program, whose `step` is used.
        seed: seed of the order of examples, which differs from epoch to epoch; None: keep the
            order. Not for iterables.
        workers: number of threads that make batches; 0: the iterating thread makes them. The order
            of batches does not depend on it. If reading the data holds the GIL, use the processes
            of torch's or grain's loaders instead, which an `Infeed` takes as well.
        buffer: number of batches that the workers may make ahead.
        drop_remainder: leave out the last batch if it is smaller: programs need one size.
        rebatch: cut and join the batches of the data.
        collate: makes a batch from a list of examples; by default `np.stack` of each leaf.
    Raises:
        FeedError: arrays of different lengths, a seed with an iterable, sizes below 1.

    Source: `DataLoader` and `AsynchronousDataAccessor` of PopTorch.

    Example:
        >>> loader = ipu.data.Loader({"x": np.arange(10), "y": np.ones(10)}, 4, workers=2)
        >>> print([batch["x"].tolist() for batch in loader])
        [[0, 1, 2, 3], [4, 5, 6, 7]]
    """

    def __init__(
        self,
        data: Any,
        batch_size: int | BatchSizes,
        *,
        seed: int | None = None,
        workers: int = 0,
        buffer: int = 4,
        drop_remainder: bool = True,
        rebatch: bool = False,
        collate: Callable[[list[Any]], Any] | None = None,
    ):
        size = batch_size.step if isinstance(batch_size, BatchSizes) else batch_size
        if size < 1 or buffer < 1 or workers < 0:
            raise FeedError(
                f"[loader] needs batch_size and buffer of 1 or more and workers of 0 or more; got "
                f"{size}, {buffer} and {workers}. Pass others."
            )
        self._data, self.batch_size = data, size
        self._seed, self._workers, self._buffer = seed, workers, buffer
        self._drop, self._rebatch = drop_remainder, rebatch
        self._collate = _stack if collate is None else collate
        self._epoch = 0
        self._length = None if rebatch else _length_of(data)
        if seed is not None and self._length is None:
            raise FeedError(
                "[loader] needs data with a length to shuffle them; got an iterable. Shuffle there."
            )

    def set_epoch(self, epoch: int) -> None:
        """Sets the order of examples of the next iteration; `ipujax.training.Loop` calls it."""
        self._epoch = epoch

    def __len__(self) -> int:
        """Batches of an epoch."""
        if self._length is None:
            raise TypeError(
                "[loader] needs data with a length; got an iterable. Count its batches."
            )
        whole, rest = divmod(self._length, self.batch_size)
        return whole + (rest > 0 and not self._drop)

    def __iter__(self) -> Iterator[Any]:
        return self.skip(0)

    def skip(self, number: int) -> Iterator[Any]:
        """The batches after the first `number`, which are not read if the data have a length."""
        if self._length is None:
            return itertools.islice(self._of_iterable(), number, None)
        order = np.arange(self._length)
        if self._seed is not None:
            order = np.random.default_rng([self._seed, self._epoch]).permutation(order)
        starts = range(number * self.batch_size, len(self) * self.batch_size, self.batch_size)
        parts = (order[start : start + self.batch_size] for start in starts)
        if self._workers == 0:
            return map(self._batch, parts)
        return self._ahead(parts)

    def _batch(self, indices: np.ndarray) -> Any:
        if _is_arrays(self._data):
            return jax.tree.map(lambda x: np.asarray(x)[indices], self._data)
        return self._collate([self._data[int(i)] for i in indices])

    def _ahead(self, parts: Iterable[np.ndarray]) -> Iterator[Any]:
        """Batches in order, up to `buffer` of them made ahead."""
        rest = iter(parts)
        with ThreadPoolExecutor(self._workers, "ipujax loader") as pool:
            waiting: deque[Future[Any]] = deque()
            try:
                for part in itertools.islice(rest, self._buffer):
                    waiting.append(pool.submit(self._batch, part))
                while waiting:
                    made = waiting.popleft().result()
                    for part in itertools.islice(rest, 1):
                        waiting.append(pool.submit(self._batch, part))
                    yield made
            finally:
                for future in waiting:
                    future.cancel()

    def _of_iterable(self) -> Iterator[Any]:
        if self._rebatch:
            yield from self._rebatched()
            return
        examples = iter(self._data)
        while group := list(itertools.islice(examples, self.batch_size)):
            if len(group) == self.batch_size or not self._drop:
                yield self._collate(group)

    def _rebatched(self) -> Iterator[Any]:
        held: Any = None
        for batch in self._data:
            batch = jax.tree.map(np.asarray, batch)
            held = batch if held is None else jax.tree.map(_join, held, batch)
            while _rows(held) >= self.batch_size:
                yield jax.tree.map(lambda x: x[: self.batch_size], held)
                held = jax.tree.map(lambda x: x[self.batch_size :], held)
        if held is not None and _rows(held) and not self._drop:
            yield held


def _join(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.concatenate([a, b])


def _rows(batch: Any) -> int:
    return len(jax.tree.leaves(batch)[0])


def _stack(examples: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(x) for x in leaves]), *examples)


def _is_arrays(data: Any) -> bool:
    """Whether it is a pytree of arrays, not a list of examples."""
    if isinstance(data, (np.ndarray, jax.Array)):
        return True
    if not isinstance(data, (dict, tuple)):
        return False
    return all(getattr(x, "ndim", 0) > 0 for x in jax.tree.leaves(data))


def _length_of(data: Any) -> int | None:
    if not _is_arrays(data):
        return len(data) if hasattr(data, "__len__") and hasattr(data, "__getitem__") else None
    lengths = sorted({len(x) for x in jax.tree.leaves(data)})
    if len(lengths) != 1:
        raise FeedError(
            f"[loader] needs arrays with equal first dimensions; got {lengths}. Cut them to one "
            "length."
        )
    return lengths[0]
