"""`Outfeed`: results that a program hands out while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ipujax import jax_compat
from ipujax.api.feed import at_exit, ports
from ipujax.api.feed.keys import as_keys, check_none
from ipujax.api.feed.ports import Replicas, replicas_here
from ipujax.errors import FeedError, check_choice
from ipujax.host import interrupts
from ipujax.types import OutfeedMode

ALL: Final = "all"
LAST: Final = "last"
SUM: Final = "sum"
FINAL: Final = "final"
MODES = (ALL, LAST, SUM, FINAL)
#: Seconds between checks of `items` whether the program has ended.
_GLANCE = 0.01


class Outfeed:
    """Collects the results of a loop's steps, which its body returns besides the state.

    Args:
        mode: "all": each step's result goes to the host at once, and is kept there until it is
            taken. "last": the same, but the host keeps only the newest one. "sum": results are
            added up on the device, and the sum goes to the host at the end. "final": the last
            step's result goes to the host at the end.
        every: for "all" and "last": take the result of only every `every`-th step.
        max_bytes: limit for results that wait on the host to be taken; None: no limit. If the next
            one does not fit, the program waits until some are taken. One always fits.
        timeout: seconds that a program waits for this before it fails; None: for ever.

    A reader that is slower than the program makes it wait: take results with `items` while it runs.
    Results that are taken only after the program must fit into `max_bytes`. Results that were
    handed out before an error are kept.

    Results of the replicas of `jax.shard_map` and `ipujax.pmap` are stacked: they get a new
    dimension, after that of the steps. In a job of several processes these are the replicas of this
    process.

    Raises:
        FeedError: an unknown mode, a bound that is not positive, or nothing to take.
        JaxRuntimeError: when the program runs: its results were not taken in time.

    Source: `IPUOutfeedQueue` of Graphcore's TensorFlow; `OutputMode` of PopTorch.

    Example:
        >>> outfeed = ipu.Outfeed()
        >>> halve = lambda x: (x / 2, x)
        >>> result = jax.jit(lambda x: ipu.repeat(3, halve, x, outfeed=outfeed))(8.0)
        >>> print(result, outfeed.dequeue())
        1.0 [8. 4. 2.]
    """

    def __init__(
        self,
        mode: OutfeedMode = ALL,
        *,
        every: int = 1,
        max_bytes: int | None = 2**30,
        timeout: float | None = 60.0,
    ):
        check_choice("outfeed", "mode", mode, MODES, FeedError)
        if every < 1 or (every > 1 and mode not in (ALL, LAST)):
            raise FeedError(
                f"[outfeed] needs every=1, or more where mode is all or last; got {every} with "
                f"{mode!r}. Pass another mode."
            )
        if (max_bytes is not None and max_bytes < 1) or (timeout is not None and timeout <= 0):
            raise FeedError(
                f"[outfeed] needs max_bytes of 1 or more and a timeout above 0; got {max_bytes} "
                f"and {timeout}. Pass None for no bound."
            )
        self.mode = mode
        self.every = every
        self._queue = ports.native().Outfeed(mode != ALL)
        self._queue.set_bound(max_bytes or 0, timeout or 0.0)
        at_exit.close(self, self._queue.close, "outfeed")
        self._ports: dict[Any, jax_compat.Port] = {}
        self._tree: Any = None
        self._specs: tuple[jax.ShapeDtypeStruct, ...] = ()
        self._replicas = Replicas()

    # The public interface.

    def dequeue(self) -> Any:
        """Takes the results that programs have handed out, without waiting for them.

        Block on a result of the program first (`jax.block_until_ready`) to get everything.

        Returns:
            a pytree of NumPy arrays like the results (of JAX arrays for typed PRNG keys); in mode
            "all" with a first dimension of steps, which may be 0.
        Raises:
            FeedError: there is no result, in modes other than "all".
        """
        items = self._take()
        if self.mode == ALL:
            return self._tree_of([self._stacked(i, items) for i in range(len(self._specs))])
        if not items:
            raise FeedError(
                "[outfeed] needs a result; got none yet. Wait for the program's results with "
                "jax.block_until_ready."
            )
        return self._tree_of(items[-1])

    def items(self, result: Any) -> Iterator[Any]:
        """Each step's result as it comes, until the program that makes `result` has ended.

        Args:
            result: any result of the program. The program's error is raised at the end.
        """
        leaves = jax.tree.leaves(result)
        while True:
            ended = all(leaf.is_ready() for leaf in leaves)
            yield from map(self._tree_of, self._take())
            if ended:
                break
            self._queue.wait_for_item(_GLANCE)
        jax.block_until_ready(leaves)
        yield from map(self._tree_of, self._take())

    def clear(self) -> None:
        """Drops all results."""
        self._queue.clear()

    @property
    def wait_seconds(self) -> float:
        """Time in which programs waited for results to be taken."""
        return self._queue.wait_seconds

    # The interface for loops.

    def begin(self) -> jax.Array:
        """The cursor at the beginning of a run."""
        interrupts.watch()
        here = replicas_here()
        if ("begin", here.count) not in self._ports:
            id_ = self._queue.begin_port(here.count)
            self._ports["begin", here.count] = ports.make(self, id_)
        return jax_compat.call_port(self._ports["begin", here.count], here.cursor())[0]

    def held(self, item: Any) -> Any:
        """What the loop carries, given one result's shapes: sums, the last one, or nothing."""
        if self.mode in (ALL, LAST):
            return ()
        if self.mode == SUM:
            check_none("outfeed", "to add them up", item)
        return jax.tree.map(_zeros, item)

    def step(self, cursor: Any, held: Any, index: Any, item: Any) -> tuple[Any, Any]:
        """The next cursor and what is held, after step `index` gave `item`."""
        if self.mode == SUM:
            return cursor, jax.tree.map(jnp.add, held, item)
        if self.mode == FINAL:
            return cursor, item
        if self.every == 1:
            return self._push(cursor, item), held
        due = (index + 1) % self.every == 0
        return lax.cond(due, lambda: self._push(cursor, item), lambda: cursor), held

    def end(self, cursor: Any, held: Any, steps: Any) -> Any:
        """The last cursor, after all steps."""
        if self.mode in (ALL, LAST):
            return cursor
        return lax.cond(steps > 0, lambda: self._push(cursor, held), lambda: cursor)

    def _push(self, cursor: Any, item: Any) -> Any:
        leaves, tree = jax.tree.flatten(item)
        leaves = list(map(jnp.asarray, leaves))
        specs = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves)
        here = replicas_here()
        found = (tree, specs, here.count)
        if self._tree is not None and found != (self._tree, self._specs, self._replicas.count):
            raise FeedError(
                f"[outfeed] needs results like those of the loop that used it first: {self._tree} "
                f"of {self._replicas.count} replicas; got {tree} of {here.count} with other shapes "
                "or structure. Use one Outfeed for each."
            )
        self._tree, self._specs, self._replicas = tree, specs, here
        if "push" not in self._ports:
            sizes = [x.size * np.dtype(x.dtype).itemsize for x in specs]
            self._ports["push"] = ports.make(self, self._queue.push_port(here.count, sizes))
        return jax_compat.call_port(self._ports["push"], cursor, *leaves)[0]

    def _take(self) -> list[list[np.ndarray]]:
        return [
            [self._array(i, held) for i, held in enumerate(item)] for item in self._queue.take()
        ]

    def _array(self, i: int, held: bytearray) -> np.ndarray:
        return np.frombuffer(held, self._specs[i].dtype).reshape(self._shape(i))

    def _shape(self, i: int) -> tuple[int, ...]:
        replicas = (self._replicas.count,) if self._replicas.axes else ()
        return (*replicas, *self._specs[i].shape)

    def _stacked(self, i: int, items: list[list[np.ndarray]]) -> np.ndarray:
        arrays = [item[i] for item in items]
        if arrays:
            return np.stack(arrays)
        return np.zeros((0, *self._shape(i)), self._specs[i].dtype)

    def _tree_of(self, leaves: list[Any]) -> Any:
        return None if self._tree is None else as_keys(jax.tree.unflatten(self._tree, leaves))


def _zeros(like: Any) -> jax.Array:
    return jax_compat.varying_over(jnp.zeros(like.shape, like.dtype), jax_compat.varying_axes(like))
