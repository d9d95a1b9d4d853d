"""`HostEmbedding`: a table in the host's memory that compiled steps look up and update."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ipujax import jax_compat
from ipujax.api.arguments import (
    LARGEST_INT32,
    array,
    dtype_name,
    flag,
    floats,
    number,
    rate_of,
    whole_number,
)
from ipujax.api.embed.calls import Options, together
from ipujax.api.embed.rows import begin_ahead, hand_in, lookup_rows
from ipujax.api.embed.table import files, mapped
from ipujax.api.embed.table.sgd import HostEmbeddingSGD
from ipujax.api.embed.table.table import HostTable
from ipujax.api.replicate.replicas import resolve_axis
from ipujax.errors import ConfigError, check_choice
from ipujax.types import PartitionStrategy

WHERE = "HostEmbedding"
STRATEGIES = ("token", "encoding")


class HostEmbedding:
    """A table that stays in the host's memory, looked up and updated by compiled steps.

    The device holds the rows of one step. A *token*, a float32 number that steps take and return,
    tells which version of the table a lookup reads: the gradients of a step change the rows when
    the next step's token arrives. So all lookups of a step see one version, and a step that fails
    changes nothing. When `lookup` is differentiated with respect to its token, the derivative with
    respect to the rows is handed to the table, and the token's "gradient" is what to add to it.

    Args:
        table: [rows, columns] of float32, float16 or bfloat16. A NumPy array (also a memory-mapped
            file) is used and changed in place, so with an optimizer it must be writeable and
            row-major; JAX arrays and lists are copied.
        optimizer: how gradients change the rows; None: the table is not trained.
        partition_strategy: how replicas share the table if `axis_name` is given: "token": each
            looks up one block of rows for all replicas; "encoding": one block of columns; links
            between replicas carry indices, rows and gradients. None: each looks up what it needs.
        rewind_steps: number of steps that `rewind` can take back after their gradients reached the
            rows: the number of steps that one program runs (in a scan, or `ipu.repeat`). Each step
            keeps a copy of the rows that it replaced.
    Raises:
        ConfigError: a wrong rank, no rows, a wrong dtype, a NumPy array that cannot be changed in
            place, an unknown strategy, a negative number; an optimizer in a job of several
            processes.

    Source: `HostEmbedding` and `create_host_embedding` of Graphcore's TensorFlow.

    Example:
        >>> table = ipu.HostEmbedding(np.ones((1000, 4), np.float32), ipu.HostEmbeddingSGD(0.1))
        >>> @jax.jit
        ... def step(token, ids):
        ...     loss_of = lambda token: jnp.sum(table.lookup(token, ids) ** 2)
        ...     loss, count = jax.value_and_grad(loss_of)(token)
        ...     return token + count, loss
        >>> token, loss = step(table.token(), jnp.array([7, 7]))
        >>> print(table.read(token, 7, 9))  # 1 - 0.1 * (2 + 2)
        [[0.6 0.6 0.6 0.6]
         [1.  1.  1.  1. ]]
    """

    def __init__(
        self,
        table: Any,
        optimizer: HostEmbeddingSGD | None = None,
        *,
        partition_strategy: PartitionStrategy | None = None,
        rewind_steps: int = 0,
    ):
        num_kept = whole_number(rewind_steps)
        if num_kept is None or not 0 <= num_kept <= LARGEST_INT32:
            raise ConfigError(
                f"[{WHERE}] needs rewind_steps of at least 0; got {rewind_steps!r}. Pass the "
                "number of steps that one program runs."
            )
        if partition_strategy is not None:
            check_choice(WHERE, "partition_strategy", partition_strategy, STRATEGIES, ConfigError)
        if not isinstance(optimizer, (HostEmbeddingSGD, type(None))):
            raise ConfigError(
                f"[{WHERE}] needs a HostEmbeddingSGD or None as the optimizer; got "
                f"{type(optimizer).__name__}. Pass ipu.HostEmbeddingSGD(learning_rate)."
            )
        if optimizer is not None and jax_compat.num_processes() > 1:
            raise ConfigError(
                f"[{WHERE}] needs a job of one process to train a table; got "
                f"{jax_compat.num_processes()} processes, of which each would train its own. Train "
                "rows on the devices (ipu.embedding), or pass optimizer=None."
            )
        rows = table if isinstance(table, np.ndarray) else _rows_of(table)
        _check_table(rows.shape, rows.dtype)
        if optimizer is not None:
            _check_in_place(WHERE, rows)
        self._table = HostTable(rows, optimizer, num_kept)
        self._file = rows  # a memory-mapped file stays open
        self.partition_strategy = partition_strategy

    @classmethod
    def create(
        cls,
        shape: tuple[int, int],
        dtype: Any = np.float32,
        optimizer: HostEmbeddingSGD | None = None,
        *,
        initializer: Callable[[int, int], Any] | None = None,
        file: str | Path | None = None,
        partition_strategy: PartitionStrategy | None = None,
        rewind_steps: int = 0,
    ) -> HostEmbedding:
        """A new table, in memory or in a memory-mapped file.

        Args:
            shape: (rows, columns).
            initializer: takes the first row and the number of rows of a block, and returns the
                block; None: zeros.
            file: path of a .npy file to create. Its disk space is reserved now; the operating
                system keeps the used parts in memory. It is not a saved state: use `save` for that.
        Raises:
            ConfigError: as the constructor; the file exists; the initializer returns wrong shapes.
            OSError: the file cannot be created.

        Example:
            >>> ones = lambda first, count: np.ones((count, 8))
            >>> table = ipu.HostEmbedding.create((100, 8), initializer=ones)
            >>> table.shape, table.dtype
            ((100, 8), dtype('float32'))
        """
        sizes, kind = _checked_sizes(shape), _checked_dtype(dtype)
        _check_table(sizes, kind)
        if initializer is not None and not callable(initializer):
            raise ConfigError(
                f"[{WHERE}.create] needs initializer to be a function of the first row and the "
                f"number of rows; got {initializer!r}. Pass one that returns these rows."
            )
        path = None if file is None else _path("create", "file", file)
        rows = mapped.new_rows((sizes[0], sizes[1]), kind, path)
        try:
            if initializer is not None:
                mapped.fill(rows, initializer)
            return cls(
                rows, optimizer, partition_strategy=partition_strategy, rewind_steps=rewind_steps
            )
        except BaseException:
            if path is not None:
                path.unlink(missing_ok=True)
            raise

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        num_rows, num_columns = self._table.rows.shape
        return num_rows, num_columns

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the rows."""
        return self._table.rows.dtype

    # In steps ------------------------------------------------------------------------------------

    def token(self) -> jax.Array:
        """The token of the current table, with all gradients that were handed in; float32 [].

        Needed once, for the first step. Wait for running steps before.
        """
        return jnp.float32(self._table.token())

    def lookup(
        self,
        token: Any,
        indices: Any,
        *,
        clip_indices: bool = True,
        axis_name: Any = None,
        learning_rate: Any = None,
    ) -> Any:
        """Rows of the table, inside or outside of compiled functions.

        Differentiable with respect to the token, in reverse mode, once. The backward pass hands the
        gradient of the rows to the table and gives the token the gradient 1 (for each replica, and
        each lookup): the next step's token is token + gradient.

        Args:
            token: float32 [], the same for all lookups of a step.
            indices: [...] integers, or a pytree of such arrays, which is one lookup.
            clip_indices: whether indices outside the table are clipped to it; otherwise they are an
                error when the program runs, and nothing changes.
            axis_name: the mapped axis of the replicas (of `ipu.pmap`, `jax.shard_map`). Gradients
                of all replicas are added up, in their order.
            learning_rate: of the update, instead of the optimizer's; may be traced.
        Returns:
            [..., columns] for each array of indices. Under `jax.vmap` all examples are one lookup.
        Raises:
            ConfigError: indices that are not integers; a learning rate without an optimizer.
            CallbackError: when the program runs: an index outside the table, or a token that is not
                that of the current table, because an older one was passed again or a step failed.

        Source: `HostEmbedding.lookup` of Graphcore's TensorFlow.
        """
        options = self._options("lookup", clip_indices, axis_name, learning_rate)
        flat, rebuild = together(f"{WHERE}.lookup", indices)
        rate = rate_of(f"{WHERE}.lookup", learning_rate)
        return rebuild(lookup_rows(options, _number(token), rate, flat))

    def update(
        self,
        token: Any,
        indices: Any,
        gradients: Any,
        *,
        clip_indices: bool = True,
        axis_name: Any = None,
        learning_rate: Any = None,
    ) -> jax.Array:
        """Hands gradients of rows to the table; returns the next token.

        Use it for gradients that you took with respect to rows, or scaled. Rows that occur several
        times get the sum.

        Args:
            token: that of the lookup.
            indices: those of the lookup.
            gradients: as the lookup's result, of any float dtype.
            clip_indices, axis_name, learning_rate: as for `lookup`.
        Raises:
            ConfigError: wrong shapes; a table without an optimizer.
            CallbackError: as `lookup`; a learning rate that is negative, NaN or infinite.

        Example:
            >>> table = ipu.HostEmbedding(np.zeros((10, 2), np.float32), ipu.HostEmbeddingSGD(0.5))
            >>> token = table.update(table.token(), jnp.array([3]), jnp.array([[1.0, 2.0]]))
            >>> table.read(token, 3, 4).tolist()
            [[-0.5, -1.0]]
        """
        if self._table.optimizer is None:
            raise _untrained("update")
        options = self._options("update", clip_indices, axis_name, learning_rate)
        flat, _ = together(f"{WHERE}.update", indices)
        wanted = [(*np.shape(x), self.shape[1]) for x in jax.tree.leaves(indices)]
        values = [floats(f"{WHERE}.update", "gradients", x) for x in jax.tree.leaves(gradients)]
        if [x.shape for x in values] != wanted:
            raise ConfigError(
                f"[{WHERE}.update] needs gradients of shapes {wanted}; got "
                f"{[x.shape for x in values]}. Pass the gradient of the rows of these indices."
            )
        rows = jnp.concatenate([x.reshape(-1, self.shape[1]) for x in values])
        rate = rate_of(f"{WHERE}.update", learning_rate)
        return _number(token) + hand_in(options, _number(token), rate, flat, rows)

    def lookup_ahead(
        self, indices: Any, *, clip_indices: bool = True, axis_name: Any = None
    ) -> None:
        """Begins to read rows from the host's memory or disk, for a later lookup of these indices.

        Call it in a step, with the next step's indices, or between steps: a thread reads the rows
        while the device computes. It never changes a result: rows that are updated in between are
        read again. The later lookup must have the same indices in the same order.

        Args:
            indices: as for `lookup`.
            clip_indices, axis_name: those of the later lookup. Between steps, reads for replicas
                help only without a partition_strategy.
        Raises:
            ConfigError: indices that are not integers.
            CallbackError: an index outside the table, with clip_indices=False.
        """
        flat, _ = together(f"{WHERE}.lookup_ahead", indices)
        begin_ahead(self._options("lookup_ahead", clip_indices, axis_name, None), flat)

    # Between steps -------------------------------------------------------------------------------

    def read(self, token: Any, start: int = 0, stop: int | None = None) -> np.ndarray:
        """A copy of the rows from start to stop, in the token's version.

        Raises:
            CallbackError: the token is not that of the current table.
        """
        for name, row in (("start", start), ("stop", stop)):
            if row is not None and whole_number(row) is None:
                raise ConfigError(
                    f"[{WHERE}.read] needs {name} to be the number of a row; got {row!r}. Pass an "
                    "integer."
                )
        self._table.settle("read", _known_number("read", token))
        with self._table.lock.reading():
            return np.array(self._table.rows[start:stop])

    def rewind(self, token: Any = None) -> jax.Array:
        """Drops the gradients of a failed step; returns the token of the current rows.

        If a program ran several steps, those that already reached the rows are taken back to the
        token, as far as the table's `rewind_steps` allows: bit for bit, with accumulated gradients
        and the number of updates.

        Args:
            token: the token that the failed program was given; None: that of the current rows.
        Raises:
            CallbackError: the rows are not of this token, and were not in the last `rewind_steps`.

        Example:
            >>> table = ipu.HostEmbedding(
            ...     np.zeros((4, 1), np.float32), ipu.HostEmbeddingSGD(1.0), rewind_steps=2
            ... )
            >>> old = token = table.token()
            >>> for _ in range(2):
            ...     token = table.update(token, jnp.array([1]), jnp.ones((1, 1)))
            >>> float(table.read(token)[1, 0])
            -2.0
            >>> float(table.read(table.rewind(old))[1, 0])
            0.0
        """
        return jnp.float32(
            self._table.rewind(None if token is None else _known_number("rewind", token))
        )

    def save(self, token: Any, path: str | Path) -> None:
        """Saves the table with accumulated gradients; the file is replaced atomically.

        If that fails, for example on a full disk, or the process is killed, the file is as before.

        Raises:
            CallbackError: the token is not that of the current table.
            ConfigError: another process is saving to this path.
            OSError: the file cannot be written.
        """
        self._table.settle("save", _known_number("save", token))
        files.save(self._table, _path("save", "path", path))

    def restore(self, path: str | Path) -> jax.Array:
        """Replaces the rows by saved ones of the same shape and dtype; returns the new token.

        The whole file is checked first. Older tokens are no longer valid.

        Raises:
            ConfigError: the file is damaged, not a saved table, or of another shape or dtype; the
                rows cannot be changed in place.
            OSError: the file cannot be read.
        """
        with files.opened(_path("restore", "path", path)) as (file, header):
            found = (header.rows, header.columns)
            if found != self.shape or header.dtype != self.dtype.name:
                raise ConfigError(
                    f"[{WHERE}.restore] needs a table {self.dtype.name} {list(self.shape)}; got "
                    f"{header.dtype} {list(found)}. Use HostEmbedding.load for another table."
                )
            _check_steps(header, self._table.optimizer)
            _check_in_place(f"{WHERE}.restore", self._table.rows)
            files.read_into(self._table, file, header)
        return jnp.float32(self._table.replaced())

    @classmethod
    def load(
        cls,
        path: str | Path,
        optimizer: HostEmbeddingSGD | None = None,
        *,
        file: str | Path | None = None,
        partition_strategy: PartitionStrategy | None = None,
        rewind_steps: int = 0,
    ) -> HostEmbedding:
        """A table that `save` wrote, copied to memory or to a new memory-mapped file.

        Args:
            file: as for `create`.
        Raises:
            ConfigError, OSError: as `restore` and `create`.
        """
        with files.opened(_path("load", "path", path)) as (opened, header):
            _check_steps(header, optimizer)
            made = cls.create(
                (header.rows, header.columns),
                files.DTYPES[header.dtype],
                optimizer,
                file=file,
                partition_strategy=partition_strategy,
                rewind_steps=rewind_steps,
            )
            files.read_into(made._table, opened, header)
        return made

    # ---------------------------------------------------------------------------------------------

    def _options(self, where: str, clip: bool, axis_name: Any, learning_rate: Any) -> Options:
        if learning_rate is not None and self._table.optimizer is None:
            raise _untrained(where)
        return Options(
            weakref.ref(self._table),
            self.shape[1],
            self.dtype,
            self._table.optimizer is not None,
            flag(f"{WHERE}.{where}", "clip_indices", clip),
            None if axis_name is None else resolve_axis(f"{WHERE}.{where}", axis_name),
            self.partition_strategy if axis_name is not None else None,
            learning_rate is not None,
        )


def _check_steps(header: files.Header, optimizer: HostEmbeddingSGD | None) -> None:
    most = 0 if optimizer is None else optimizer.accumulation_factor - 1
    if header.steps > most:
        raise ConfigError(
            f"[{WHERE}.restore] needs at most {most} accumulated steps, by the optimizer; got "
            f"{header.steps}. Use the accumulation_factor with which the table was saved."
        )


def _number(token: Any) -> jax.Array:
    number = array(WHERE, "token", token)
    if number.shape or number.dtype != jnp.float32:
        raise ConfigError(
            f"[{WHERE}] needs a token float32 []; got {number.dtype} {list(number.shape)}. Pass "
            "what HostEmbedding.token or the last step returned."
        )
    return number


def _known_number(where: str, token: Any) -> float:
    advice = "Pass what HostEmbedding.token or the last step returned"
    return number(f"{WHERE}.{where}", "token", token, advice)


def _path(where: str, name: str, path: Any) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise ConfigError(
            f"[{WHERE}.{where}] needs {name} to be a path; got {path!r}. Pass a text or a "
            "pathlib.Path."
        ) from None


def _rows_of(table: Any) -> np.ndarray:
    return np.array(array(WHERE, "table", table))


def _check_in_place(where: str, rows: np.ndarray) -> None:
    """Refuses rows that would have to be copied, as the caller's would never change."""
    if rows.flags.writeable and rows.flags.c_contiguous:
        return
    is_view = rows.flags.writeable
    got = f"one with strides {list(rows.strides)}" if is_view else "a read-only one"
    advice = "the array, not a view of it" if is_view else 'a memory-mapped file with mode="r+"'
    raise ConfigError(
        f"[{where}] needs a writeable, row-major NumPy array, which it changes in place; got "
        f"{got}. Pass {advice}, or np.array(table, order='C') to train a copy."
    )


def _checked_sizes(shape: Any) -> tuple[int, ...]:
    is_sequence = isinstance(shape, list | tuple) or (isinstance(shape, np.ndarray) and shape.ndim)
    given = tuple(shape) if is_sequence else (shape,)
    sizes = [whole_number(size) for size in given]
    if len(sizes) != 2 or any(size is None for size in sizes):
        raise ConfigError(
            f"[{WHERE}.create] needs shape to be (rows, columns); got {shape!r}. Pass two integers."
        )
    return tuple(size for size in sizes if size is not None)


def _checked_dtype(dtype: Any) -> np.dtype:
    name = dtype_name(dtype)
    if name not in files.DTYPES:
        raise ConfigError(
            f"[{WHERE}.create] needs dtype to be one of {', '.join(files.DTYPES)}; got {name}. Use "
            "one of these."
        )
    return np.dtype(dtype)


def _check_table(shape: tuple[int, ...], dtype: np.dtype) -> None:
    if len(shape) != 2 or not 0 < min(shape) <= shape[0] < 2**31 or dtype.name not in files.DTYPES:
        raise ConfigError(
            f"[{WHERE}] needs a table [rows, columns] of {', '.join(files.DTYPES)}, of 1 to "
            f"2**31 - 1 rows; got {dtype} {list(shape)}. Pass such a table."
        )


def _untrained(where: str) -> ConfigError:
    return ConfigError(
        f"[{WHERE}.{where}] needs a table with an optimizer; got one with None. Pass "
        "optimizer=ipu.HostEmbeddingSGD(learning_rate) where it is made."
    )
