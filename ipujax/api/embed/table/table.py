"""`HostTable`: the rows of a `HostEmbedding`, their versions, and pending gradients.

A token names a version: the number of gradients that are in the rows. Gradients that a step hands
in are pending until a token arrives that counts them; only then are they applied. So all lookups of
a step see one version, and a step that fails leaves the rows as they were.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ipujax.api.embed.table.ahead import Ahead
from ipujax.api.embed.table.mapped import check_of
from ipujax.api.embed.table.sgd import Change, HostEmbeddingSGD, checked_rate, combine, subtract
from ipujax.api.embed.table.shared_lock import SharedLock
from ipujax.api.embed.table.undo import Before, History
from ipujax.errors import CallbackError

#: Tokens are float32, which counts exactly up to here; then they wrap around.
TOKENS = 1 << 23


@dataclass(frozen=True)
class Part:
    """What one replica holds of a table: all of it, a block of rows, or a block of columns."""

    strategy: str = ""  #: "", "token" or "encoding"
    index: int = 0
    count: int = 1

    def rows(self, num_rows: int) -> tuple[int, int]:
        """Its first row and the one after its last."""
        if self.strategy != "token":
            return 0, num_rows
        size = -(-num_rows // self.count)
        return min(self.index * size, num_rows), min((self.index + 1) * size, num_rows)

    def columns(self, num_columns: int) -> slice:
        """Its columns."""
        if self.strategy != "encoding":
            return slice(0, num_columns)
        size = num_columns // self.count
        return slice(self.index * size, (self.index + 1) * size)


@dataclass(frozen=True)
class Deposit:
    """Pending gradients: ids [n], gradients [n, columns of the part], float32."""

    ids: np.ndarray
    gradients: np.ndarray
    part: Part
    replica: int  #: gradients are added up in the order of replicas
    learning_rate: float | None


class HostTable:
    """rows [num_rows, num_columns], changed in place. All methods may be called on any thread.

    Args:
        rewind_steps: number of steps that can be taken back after their gradients reached the rows.
    """

    def __init__(self, rows: np.ndarray, optimizer: HostEmbeddingSGD | None, rewind_steps: int = 0):
        self.rows = np.asarray(rows)  # for a memory-mapped file, its memory
        self.optimizer = optimizer
        self.ahead = Ahead()
        self.lock = SharedLock(check_of(self.rows))
        self.version = 0
        self.num_updates = 0  #: updates of the rows by the optimizer
        self.accumulated: list[tuple[slice, Change]] = []
        self.num_accumulated = 0  #: steps in `accumulated`
        self._mutex = threading.Lock()
        self._waiting: list[Deposit] = []
        self._history = History(rewind_steps)

    # Lookups -------------------------------------------------------------------------------------

    def lookup(self, token: float, ids: np.ndarray, part: Part, clip: bool) -> np.ndarray:
        """Rows [..., columns] of ids [...] in the token's version; zeros outside the part."""
        flat = self._checked_ids("lookup", ids, clip)
        self.settle("lookup", token)
        with self.lock.reading():
            self._expect("lookup", token)
            found = self.ahead.take((part, flat.tobytes()))
            if found is None:
                rows = self._read(flat, part)
            else:
                rows, changed = found
                again = np.flatnonzero(np.isin(flat, changed)) if len(changed) else changed
                if len(again):
                    rows[again] = self._read(flat[again], part)
        return rows.reshape(*ids.shape, rows.shape[-1])

    def lookup_ahead(self, ids: np.ndarray, part: Part, clip: bool) -> None:
        """Begins to read the rows of a later lookup with the same ids."""
        flat = self._checked_ids("lookup_ahead", ids, clip).copy()
        self.ahead.begin((part, flat.tobytes()), lambda: self._read_unlocked(flat, part))

    def _read_unlocked(self, ids: np.ndarray, part: Part) -> np.ndarray:
        self.lock.check()
        rows = self._read(ids, part)
        self.lock.check()
        return rows

    def _read(self, ids: np.ndarray, part: Part) -> np.ndarray:
        begin, end = part.rows(len(self.rows))
        rows = self.rows[:, part.columns(self.rows.shape[1])]
        if end - begin == len(self.rows):
            return np.take(rows, ids, axis=0)
        here = np.flatnonzero((ids >= begin) & (ids < end))
        found = np.zeros((len(ids), rows.shape[1]), rows.dtype)
        found[here] = np.take(rows, ids[here], axis=0)
        return found

    def _checked_ids(self, where: str, ids: np.ndarray, clip: bool) -> np.ndarray:
        """ids as [n] int64 of rows that exist."""
        flat = ids.astype(np.int64).ravel()
        last = len(self.rows) - 1
        if clip:
            return np.clip(flat, 0, last)
        if len(flat) and (flat.min() < 0 or flat.max() > last):
            wrong = flat[(flat < 0) | (flat > last)][0]
            raise CallbackError(
                f"[HostEmbedding.{where}] needs indices from 0 to {last}; got {wrong}. Pass "
                "indices of rows, or clip_indices=True."
            )
        return flat

    # Gradients -----------------------------------------------------------------------------------

    def deposit(
        self,
        token: float,
        ids: np.ndarray,
        gradients: np.ndarray,
        part: Part,
        *,
        replica: int,
        learning_rate: float | None,
        clip: bool,
    ) -> int:
        """Keeps gradients [..., columns] of the rows ids [...] until a token counts them.

        Returns:
            what they add to the token.
        """
        flat = self._checked_ids("update", ids, clip)
        if learning_rate is not None:
            learning_rate = checked_rate(learning_rate)
        self.settle("update", token)
        values = gradients.astype(np.float32).reshape(len(flat), gradients.shape[-1])
        begin, end = part.rows(len(self.rows))
        if end - begin < len(self.rows):
            here = np.flatnonzero((flat >= begin) & (flat < end))
            flat, values = flat[here], values[here]
        with self._mutex:
            self._expect("update", token)
            self._waiting.append(Deposit(flat, values, part, replica, learning_rate))
            begins_again = token >= TOKENS and len(self._waiting) == 1
            return 1 - TOKENS if begins_again else 1

    def token(self) -> int:
        """The token that counts all gradients handed in so far."""
        with self._mutex:
            return (self.version + len(self._waiting)) % TOKENS

    def rewind(self, token: float | None = None) -> int:
        """Drops pending gradients, and takes steps back until the rows are the token's.

        Returns:
            the token of the rows.
        """
        with self.lock.writing(), self._mutex:
            if token is not None and self._behind(token):
                self._take_back(token)
            self._waiting.clear()
            return self.version % TOKENS

    def _take_back(self, token: float) -> None:
        """Takes steps back, after checking that all of them are kept."""
        version = self.version + self._behind(token) - TOKENS
        steps = self._history.back_to(version) if float(token).is_integer() else None
        if steps is None:
            raise self._stale("rewind", token)
        for step in steps:
            for ids, columns, rows in step.replaced:
                self._write(ids, columns, rows)
        self.version, self.num_updates = version, step.num_updates
        self.accumulated, self.num_accumulated = step.accumulated, step.num_accumulated

    def replaced(self) -> int:
        """Notes that all rows were replaced: returns a new token and invalidates older ones."""
        with self._mutex:
            self.version += len(self._waiting) + 1
            self._waiting.clear()
            self._history.clear()
            return self.version % TOKENS

    def settle(self, where: str, token: float) -> None:
        """Applies the gradients that the token counts and the rows do not have yet."""
        if not self._behind(token):
            return
        with self.lock.writing(), self._mutex:
            behind = self._behind(token)
            if not behind:
                return  # another replica was first
            if behind != len(self._waiting):
                raise self._stale(where, token)
            self._apply()
            self.version += behind
            self._waiting.clear()

    @np.errstate(over="ignore", invalid="ignore")  # infinities and NaN, as on the device
    def _apply(self) -> None:
        """Applies or accumulates all pending gradients, or none of them."""
        optimizer = self.optimizer
        assert optimizer is not None  # nothing is deposited without one
        rate = optimizer.rate(self.num_updates)
        changes = [*self.accumulated, *self._changes(rate)]
        num_steps = self.num_accumulated + 1
        if num_steps < optimizer.accumulation_factor:
            self._remember([])
            self.accumulated, self.num_accumulated = changes, num_steps
            return
        written = [
            (ids, columns, subtract(self.rows[:, columns], (ids, values)))
            for columns, (ids, values) in _by_columns(changes)
        ]
        self._remember([(ids, columns) for ids, columns, _ in written])
        for ids, columns, rows in written:
            self._write(ids, columns, rows)
        self.accumulated, self.num_accumulated = [], 0
        self.num_updates += 1

    def _write(self, ids: np.ndarray, columns: slice, rows: np.ndarray) -> None:
        with self.ahead.changing(ids):
            self.rows[:, columns][ids] = rows

    def _remember(self, written: Sequence[tuple[np.ndarray, slice]]) -> None:
        """Remembers rows that are about to be replaced."""
        if not self._history.keeps():
            return
        replaced = [
            (ids, columns, np.take(self.rows[:, columns], ids, axis=0)) for ids, columns in written
        ]
        self._history.add(
            Before(self.version, self.num_updates, self.accumulated, self.num_accumulated, replaced)
        )

    def _changes(self, rate: float) -> list[tuple[slice, Change]]:
        """The pending gradients, times their learning rates."""
        num_columns = self.rows.shape[1]
        return [
            (
                deposit.part.columns(num_columns),
                (deposit.ids, deposit.gradients * np.float32(_first(deposit.learning_rate, rate))),
            )
            for deposit in sorted(self._waiting, key=lambda deposit: deposit.replica)
        ]

    # Versions ------------------------------------------------------------------------------------

    def _behind(self, token: float) -> int:
        """Number of gradients that the token counts and the rows lack; large for a wrong token."""
        number = float(token)
        if not number.is_integer():
            return TOKENS
        return (int(number) - self.version) % TOKENS

    def _expect(self, where: str, token: float) -> None:
        if self._behind(token):
            raise self._stale(where, token)

    def _stale(self, where: str, token: float) -> CallbackError:
        waiting = len(self._waiting)
        known = f"{self.version % TOKENS}"
        if waiting:
            known += f" or {(self.version + waiting) % TOKENS}"
        return CallbackError(
            f"[HostEmbedding.{where}] needs the token {known}, of the table as it is or with the "
            f"gradients that wait; got {float(token):g}. Pass the token that the last step "
            "returned; after a step that failed, call rewind(), with rewind_steps= of the table "
            "where a program runs several steps."
        )


def _first(rate: float | None, otherwise: float) -> float:
    return otherwise if rate is None else rate


def _by_columns(changes: Sequence[tuple[slice, Change]]) -> list[tuple[slice, Change]]:
    """The changes of each block of columns as one."""
    groups: dict[tuple[int, int], list[Change]] = {}
    for columns, change in changes:
        groups.setdefault((columns.start, columns.stop), []).append(change)
    return [(slice(*key), combine(group)) for key, group in groups.items()]
