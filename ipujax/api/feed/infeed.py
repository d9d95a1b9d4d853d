"""`Infeed`: batches that a program fetches while it runs."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from ipujax import jax_compat
from ipujax.api.feed import at_exit, checksums, keys, ports
from ipujax.api.feed.batches import (
    Data,
    check_data,
    check_same,
    iterate,
    leaves_of,
    part_of,
    specs_of,
)
from ipujax.api.feed.ports import Replicas, replicas_here
from ipujax.config import options as config
from ipujax.errors import FeedError
from ipujax.host import interrupts

#: What an iterator gives at its end.
_NONE = object()


class Infeed:
    """Batches for `ipujax.repeat` and `ipujax.while_loop`, made while the program runs.

    A thread iterates over the data and copies each batch into a ring in the host's memory, from
    which the program fetches it at the step that needs it, without Python. The thread makes a batch
    only when the ring has room for it, so no more than `prefetch_depth` are waiting.

    A batch is a pytree of arrays: NumPy's, JAX's, or anything that NumPy takes, such as the tensors
    of torch and TensorFlow. All have the shapes and dtypes of the first; float64 becomes float32 as
    in `jnp.asarray`. Programs get it as a pytree of `jax.Array`; typed PRNG keys arrive as keys.

    Inside `jax.shard_map` and `ipujax.pmap` one batch is for all replicas: replica r of n gets part
    r of the n parts of every array's first dimension. In a plain `jit` over several devices pass
    `sharding`. In a job of several processes, a batch is for the replicas of this process, and each
    process feeds its own; the devices of the mesh are ordered by process, as in `jax.devices()`.

    When the data end, a program that requests another batch fails, unless its loop has
    `stop_at_end=True`. An exception of the iterator becomes the program's error, once the batches
    before it are used. An iterator that hangs makes the program wait, up to `timeout` seconds.
    Ctrl-C ends programs half a second later. After an error the arrays that were passed to the
    program still exist unless they were donated, batches that it fetched are used up, and `restart`
    begins again.

    Args:
        data: an iterable of batches (a list, a generator, `tf.data.Dataset`, a `DataLoader` of
            torch or grain, `ipujax.data.Loader`), or a function that returns one.
        prefetch_depth: number of batches that may wait in the ring, 1 or more. None: the value of
            the option of that name, with 0 taken as 1.
        axes: names of the mapped axes that split batches; None: all.
        sharding: a `NamedSharding` whose first entry names the mesh axes over which batches are
            split, for loops outside of `shard_map`.
        timeout: seconds that a program waits for a batch before it fails; None: for ever.
        position: number of the first batch; those before it are skipped, by the data's own `skip`
            if they have it.
        verify: let the device compute a checksum of each array that it fetched; the program fails
            at the step where it differs from that of the array that was made. None: the option
            `verified_transfers`.
    Raises:
        FeedError: no batch, a batch unlike the first, or one that cannot be split.

    Source: `IPUInfeedQueue` of Graphcore's TensorFlow, `poplar::StreamCallback`.

    Example:
        >>> infeed = ipu.Infeed([np.float32(1), np.float32(2), np.float32(3)])
        >>> add = jax.jit(lambda x: ipu.repeat(3, lambda x, y: x + y, x, infeed=infeed))
        >>> print(add(0.0), infeed.position)
        6.0 3
    """

    def __init__(
        self,
        data: Data,
        *,
        prefetch_depth: int | None = None,
        axes: str | Sequence[Any] | None = None,
        sharding: NamedSharding | None = None,
        timeout: float | None = None,
        position: int = 0,
        verify: bool | None = None,
    ):
        if prefetch_depth is None:
            prefetch_depth = max(1, config.from_environment().compile.prefetch_depth)
        if verify is None:
            verify = config.from_environment().process.verified_transfers
        check_data(data)
        if prefetch_depth < 1:
            raise FeedError(
                f"[infeed] needs a prefetch_depth of 1 or more; got {prefetch_depth}. Use 2, so "
                "that one batch is made while another waits."
            )
        self._data = data
        self._depth = prefetch_depth
        self._axes = (axes,) if isinstance(axes, str) else axes
        self._sharding = sharding
        self._timeout = timeout
        self._first = position
        self._verifies = verify
        self._ring: Any = None
        self._thread: threading.Thread | None = None
        self._ports: dict[Any, jax_compat.Port] = {}
        self._lock = threading.RLock()

    # The public interface.

    @property
    def spec(self) -> Any:
        """A pytree of `jax.ShapeDtypeStruct`: one batch, for all replicas. Makes the first."""
        self._start()
        return self._batch_of(self._specs)

    @property
    def data(self) -> Data:
        """The data that it is made from."""
        return self._data

    @property
    def is_used(self) -> bool:
        """Whether a program has fetched a batch since the last `restart`, or the data ended."""
        return self._ring is not None and (self._ring.fetched > 0 or self._ring.pushed == 0)

    @property
    def position(self) -> int:
        """Batches that programs have fetched, from the beginning of the data."""
        return self._first + (0 if self._ring is None else self._ring.fetched)

    @property
    def num_prefetched(self) -> int:
        """Batches that wait in the ring."""
        return 0 if self._ring is None else self._ring.pushed - self._ring.fetched

    @property
    def wait_seconds(self) -> float:
        """Time in which programs waited for batches."""
        return 0.0 if self._ring is None else self._ring.wait_seconds

    def restart(self, data: Data | None = None, *, position: int = 0) -> None:
        """Begins again: with the same data, or with new data of the same shapes and dtypes.

        Programs stay compiled. Call it when no program that uses this feed is running; batches that
        wait in the ring are dropped. An iterator that has ended stays at its end: pass data that
        can be iterated over again, or a function.

        Args:
            data: the new data; None: the same.
            position: number of the first batch.
        """
        with self._lock:
            if data is not None:
                check_data(data)
            self.close()
            self._data = self._data if data is None else data
            self._first = position
            if self._ring is not None:
                self._ring.reset()
                self._produce()

    def close(self) -> None:
        """Ends the thread and drops the batches that wait; programs that request one fail."""
        with self._lock:
            if self._ring is not None:
                self._ring.close(
                    "[infeed] needs an open feed; got one that was closed. Call restart()."
                )
            if self._thread is not None and self._thread is not threading.current_thread():
                self._thread.join(timeout=5)  # it may hang in the user's iterator
            self._thread = None

    def __enter__(self) -> Infeed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reader(self) -> Callable[[], list[np.ndarray] | None]:
        """Fetches batches in Python instead of in a program: their arrays, None at the end."""
        self._start()
        here = Replicas()
        begin, fetch = self._port(here, "begin"), self._port(here, "stop")
        cursor = np.zeros((), np.int32)
        ports.call(begin.id, [cursor], begin.results)

        def read() -> list[np.ndarray] | None:
            _, found, *arrays = ports.call(fetch.id, [cursor], fetch.results)
            return arrays if found else None

        return read

    # The interface for loops, which `Synthetic` has, too.

    def begin(self) -> Any:
        """The cursor at the beginning of a run."""
        self._start()
        return self._over_devices(self._begin_here, starts=True)()

    def fetch(self, cursor: Any) -> tuple[Any, Any]:
        """The next cursor and batch."""
        cursor, batch = self._over_devices(self._fetch_here)(cursor)
        return cursor, self._batch_of(batch)

    def fetch_or_stop(self, cursor: Any) -> tuple[Any, Any, Any]:
        """The next cursor, whether there was a batch, and the batch (zeros if not)."""
        cursor, found, batch = self._over_devices(self._fetch_or_stop_here)(cursor)
        return cursor, found, self._batch_of(batch)

    def _batch_of(self, leaves: Any) -> Any:
        return keys.as_keys(jax.tree.unflatten(self._tree, leaves))

    def _begin_here(self) -> Any:
        here = replicas_here(self._split_over())
        keys.check_split(jax.tree.unflatten(self._tree, self._specs), here.parts)
        for spec in self._specs:
            part_of(spec, here.parts, here.axes)
        return jax_compat.call_port(self._port(here, "begin"), here.cursor())[0]

    def _fetch_here(self, cursor: Any) -> tuple[Any, Any]:
        here = replicas_here(self._split_over())
        cursor, *batch = jax_compat.call_port(self._port(here, "fetch"), cursor)
        return self._checked(here, cursor, batch), batch

    def _fetch_or_stop_here(self, cursor: Any) -> tuple[Any, Any, Any]:
        here = replicas_here(self._split_over())
        cursor, found, *batch = jax_compat.call_port(self._port(here, "stop"), cursor)
        return self._checked(here, cursor, batch), found, batch

    def _checked(self, here: Replicas, cursor: Any, batch: list[Any]) -> Any:
        """The cursor, after comparing the arrays that arrived with those that were sent."""
        if not self._verifies or not batch:
            return cursor
        return jax_compat.call_port(self._port(here, "check"), cursor, checksums.of_arrays(batch))[
            0
        ]

    def _port(self, here: Replicas, call: str) -> jax_compat.Port:
        """The port for each kind of call and number of replicas; it lives as long as the feed."""
        if (here, call) not in self._ports:
            parts = [part_of(spec, here.parts, here.axes) for spec in self._specs]
            if call == "begin":
                made = ports.make(self, self._ring.begin_port(here.count))
            elif call == "check":
                made = ports.make(self, self._ring.check_port(here.count))
            else:
                id_ = self._ring.fetch_port(here.count, here.copies, call == "stop")
                made = ports.make(self, id_, parts, has_flag=call == "stop")
            self._ports[here, call] = made
        return self._ports[here, call]

    # A loop outside of shard_map on several devices.

    def _split_over(self) -> Sequence[Any] | None:
        return self._axes if self._sharding is None else _first_entry(self._sharding)

    def _over_devices(self, local: Any, starts: bool = False) -> Any:
        """Runs the function on each device of the sharding; cursors have an entry for each."""
        if self._sharding is None:
            return local
        mesh = self._sharding.mesh
        cursors, same = PartitionSpec(mesh.axis_names), PartitionSpec()
        batch = [PartitionSpec(_first_entry(self._sharding)) for _ in self._specs]
        outs = {
            self._begin_here: cursors,
            self._fetch_here: (cursors, batch),
            self._fetch_or_stop_here: (cursors, same, batch),
        }[local]

        def with_axis(*cursor: Any) -> Any:
            made = local(*(x[0] for x in cursor))
            return made[None] if starts else (made[0][None], *made[1:])

        specs = () if starts else (cursors,)
        return jax.shard_map(with_axis, mesh=mesh, in_specs=specs, out_specs=outs, check_vma=False)

    # The thread.

    def _start(self) -> None:
        with self._lock:
            if self._ring is None:
                self._produce()

    def _produce(self) -> None:
        """Makes the first batch here, so that the caller gets its errors; a thread makes others."""
        try:
            self._begin_data()
        except BaseException:
            if self._ring is not None:  # nobody fills it
                self._ring.close("[infeed] needs data; got an error where they began. Restart it.")
            raise

    def _begin_data(self) -> None:
        iterator = iterate(self._data, self._first)
        batch = next(iterator, _NONE)
        if batch is _NONE:
            self._end_at_once()
            return
        leaves, tree = leaves_of(batch)
        if self._ring is None:
            self._make_ring(leaves, tree)
        else:
            check_same(self._first, leaves, tree, self._specs, self._tree)
        interrupts.watch()
        self._ring.push(list(map(ports.bytes_of, leaves)))
        produce = functools.partial(
            _produce, self._ring, iterator, self._first + 1, self._specs, self._tree
        )
        self._thread = threading.Thread(target=produce, name="ipujax infeed", daemon=True)
        self._thread.start()
        at_exit.close(self, self._ring.close, "infeed")

    def _end_at_once(self) -> None:
        """There is no batch from this position on; the very first one tells shapes and dtypes."""
        if self._ring is None:
            batch = next(iterate(self._data), _NONE) if self._first else _NONE
            if batch is _NONE:
                raise FeedError(
                    f"[infeed] needs data with at least one batch; got none from position "
                    f"{self._first}. Pass other data."
                )
            self._make_ring(*leaves_of(batch))
        self._ring.end()

    def _make_ring(self, leaves: list[np.ndarray], tree: Any) -> None:
        self._specs, self._tree = specs_of(leaves), tree
        self._ring = ports.native().Infeed([x.nbytes for x in leaves], self._depth)
        self._ring.set_timeout(self._timeout or 0.0)
        if self._verifies:
            self._ring.verify(checksums.widths(self._specs))

    def __del__(self) -> None:
        if getattr(self, "_ring", None) is not None:
            self._ring.close(
                "[infeed] needs a feed that exists; got one that was deleted. Keep it."
            )


def _produce(ring: Any, iterator: Iterator[Any], number: int, specs: Any, first: Any) -> None:
    """The thread's work; it refers to the ring and the data, not to the feed."""
    try:
        while ring.wait_for_room():
            try:
                batch = next(iterator)
            except StopIteration:
                why = ""
                break
            leaves, tree = leaves_of(batch)
            check_same(number, leaves, tree, specs, first)
            if at_exit.ending.is_set():
                return
            ring.push(list(map(ports.bytes_of, leaves)))
            number += 1
        else:
            return  # closed
    except FeedError as error:
        why = str(error)
    except BaseException as error:  # whatever the user's iterator raises
        why = (
            f"[infeed] needs data that can be read to their end; got {type(error).__name__} for "
            f"batch {number}: {error}. Correct the iterator, and call restart()."
        )
    if not at_exit.ending.is_set():
        ring.fail(why) if why else ring.end()


def _first_entry(sharding: NamedSharding) -> tuple[Any, ...]:
    """The mesh axes that split the first dimension."""
    spec = tuple(sharding.spec)
    if any(entry is not None for entry in spec[1:]):
        raise FeedError(
            f"[infeed] needs a sharding of the first dimension alone; got {sharding.spec}. Reshard "
            "the batch in the loop's body."
        )
    entry = spec[0] if spec else None
    return () if entry is None else entry if isinstance(entry, tuple) else (entry,)
