"""`Buffered`: items of a data set in whole groups, without a remainder."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from ipujax.api.arguments import whole_number
from ipujax.errors import FeedError


class Buffered:
    """Items of `data`; `buffer_size` of them are read before the first of these is given.

    The number of items is a multiple of `buffer_size`: a remainder at the end is left out. So a
    loop that takes `buffer_size` items at a time never stops in the middle. Items are neither
    stacked nor changed; for batches of examples use `Loader`.

    Args:
        data: an iterable of items, such as a `Loader` or a tf.data data set.
        buffer_size: number of items read at a time.
    Raises:
        FeedError: data that cannot be iterated, or a size below 1.

    Source: `BufferDataset` of Graphcore's TensorFlow.

    Example:
        >>> print(list(ipu.data.Buffered(range(10), 4)))
        [0, 1, 2, 3, 4, 5, 6, 7]
    """

    def __init__(self, data: Iterable[Any], buffer_size: int):
        size = whole_number(buffer_size)
        if size is None or size < 1:
            raise FeedError(
                f"[buffered] needs a buffer_size of 1 or more; got {buffer_size!r}. Pass the "
                "number of items that a loop takes."
            )
        if not isinstance(data, Iterable):
            raise FeedError(
                f"[buffered] needs data that can be iterated; got {type(data).__name__}. Pass a "
                "list of items, or a loader."
            )
        self._data, self.buffer_size = data, size

    def set_epoch(self, epoch: int) -> None:
        """Tells the data the epoch of the next iteration, if they have `set_epoch`."""
        if hasattr(self._data, "set_epoch"):
            self._data.set_epoch(epoch)

    def __len__(self) -> int:
        """Items of an epoch."""
        length: int = len(self._data)  # type: ignore[arg-type]
        return length - length % self.buffer_size

    def __iter__(self) -> Iterator[Any]:
        items = iter(self._data)
        while len(group := list(itertools.islice(items, self.buffer_size))) == self.buffer_size:
            yield from group
