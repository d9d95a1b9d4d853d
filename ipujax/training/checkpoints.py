"""`Checkpoint`: the state of a training on disk, intact at every moment."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import jax
import numpy as np

from ipujax import distributed
from ipujax.errors import ArrayFileError, ConfigError, check_choice
from ipujax.host import array_files
from ipujax.host.logs import logger_of
from ipujax.training.hooks import Hook
from ipujax.training.run import Run
from ipujax.training.states import from_host, to_host
from ipujax.types import CheckpointBackend

logger = logger_of("api")

_NAME = re.compile(r"step-(\d{9})\.ipuarrays")
_KEY, _STATE = "key", "state:"


class _Store(Protocol):
    """Checkpoints by their step."""

    def steps(self) -> list[int]: ...
    def save(self, step: int, arrays: dict[str, np.ndarray], meta: Any) -> None: ...
    def load(self, step: int) -> tuple[dict[str, np.ndarray], Any]: ...


class Checkpoint(Hook):
    """Saves the training every `every` steps and at its end; `Loop.train` resumes from the newest.

    A checkpoint has the state, the position in the data, the key, the metrics so far and what the
    other hooks remember. It is written under another name, synced and renamed: if the process is
    killed or the disk is full, earlier checkpoints stay intact; a full disk is an error. Loading
    first verifies checksums, names, shapes and dtypes. In a job of several processes each saves the
    whole state, in a shared folder or its own, and all resume from the newest that all have.

    Args:
        folder: created if it does not exist.
        every: steps between checkpoints; saved at the end of the first call at or after a multiple.
        keep: number of checkpoints to keep, the newest.
        backend: "files", of this package; or "orbax", by `orbax-checkpoint` (the extra
            `ipujax[training]`).
    Raises:
        ConfigError: an unknown backend, or one that is not installed.
        ArrayFileError: when training begins: the newest checkpoint is damaged, or of another model.
        OSError: when it saves: the disk is full, or the folder cannot be written.

    Example:
        >>> step = lambda w, batch: (w + batch, w)
        >>> loop = ipu.training.Loop(step, hooks=[ipu.training.Checkpoint("run", every=10)])
        >>> print(loop.train(0.0, [np.float32(1)] * 20), loop.train(0.0, [], steps=20))
        20.0 20.0
    """

    runs_last = True  # so that the other hooks remember this call

    def __init__(
        self, folder: str | Path, *, every: int, keep: int = 3, backend: CheckpointBackend = "files"
    ):
        check_choice("checkpoint", "backend", backend, ("files", "orbax"), ConfigError)
        if every < 1 or keep < 1:
            raise ConfigError(
                f"[checkpoint] needs every and keep of 1 or more; got {every} and {keep}. "
                "Pass more."
            )
        self._every = every
        path = Path(folder)
        self._store: _Store = _Files(path, keep) if backend == "files" else _orbax(path, keep)
        self._saved = 0

    def steps(self) -> list[int]:
        """The steps of the checkpoints that exist, oldest first."""
        return self._store.steps()

    def restore(self, run: Run) -> None:
        there = _everywhere(self._store.steps())
        if not there:
            return
        arrays, meta = self._store.load(there[-1])
        own = {name.removeprefix(_STATE): x for name, x in arrays.items() if name != _KEY}
        run.arrays = from_host(own, run.arrays, run.structure.array_names)
        if (run.key is None) != (_KEY not in arrays):
            raise ArrayFileError(
                "[checkpoint] needs a key where the training that was saved had one, and none "
                "where it had none; got the other. Pass the same arguments to ipu.training.Loop."
            )
        if run.key is not None:
            (run.key,) = from_host({_KEY: arrays[_KEY]}, [run.key], [_KEY])
        try:
            run.resume(meta["progress"])
            _remember(_others(run), meta)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise ArrayFileError(
                "[checkpoint] needs hooks that read what was kept of the hooks of their names; got "
                f"{type(error).__name__}: {error}. Pass them, or use another folder."
            ) from error
        self._saved = run.step

    def after_call(self, run: Run) -> None:
        if run.step // self._every > self._saved // self._every:
            self._save(run)

    def end(self, run: Run) -> None:
        if run.error is None and run.step > self._saved:
            self._save(run)

    def _save(self, run: Run) -> None:
        names = [_STATE + name for name in run.structure.array_names]
        arrays = dict(zip(names, to_host(run.arrays), strict=True))
        if run.key is not None:
            (arrays[_KEY],) = to_host([run.key])
        memories: dict[str, list[Any]] = {}
        for hook in _others(run):
            memories.setdefault(type(hook).__qualname__, []).append(hook.memory())
        self._store.save(run.step, arrays, {"progress": run.progress(), "memories": memories})
        self._saved = run.step


def _everywhere(steps: Sequence[int]) -> list[int]:
    """The steps whose checkpoints all processes have, as one may have ended before the others."""
    each = distributed.allgather(np.asarray(steps, np.int64))
    found, counts = np.unique(each, return_counts=True)
    return [int(step) for step in found[counts == distributed.process_count()]]


def _others(run: Run) -> Sequence[Hook]:
    return [hook for hook in run.loop.hooks if not isinstance(hook, Checkpoint)]


def _remember(hooks: Sequence[Hook], meta: Any) -> None:
    """Gives hooks their saved memories: the first of a class gets the first, and so on.

    Added hooks begin anew; memories of removed hooks are ignored.
    """
    if "hooks" in meta:  # files from before memories had names
        for hook, memory in zip(hooks, meta["hooks"], strict=True):
            hook.remember(memory)
        return
    held = {name: list(memories) for name, memories in meta["memories"].items()}
    for hook in hooks:
        name = type(hook).__qualname__
        if held.get(name):
            hook.remember(held[name].pop(0))
        else:
            logger.info("[checkpoint] has nothing of the hook %s, which begins anew.", name)
    for name in (name for name, memories in held.items() if any(memories)):
        logger.info("[checkpoint] has the memory of a hook %s, which this training lacks.", name)


class _Files:
    """One file for each checkpoint."""

    def __init__(self, folder: Path, keep: int):
        self._folder, self._keep = folder, keep
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, step: int) -> Path:
        return self._folder / f"step-{step:09d}.ipuarrays"

    def steps(self) -> list[int]:
        found = map(_NAME.fullmatch, (path.name for path in self._folder.iterdir()))
        return sorted(int(match[1]) for match in found if match)

    def save(self, step: int, arrays: dict[str, np.ndarray], meta: Any) -> None:
        array_files.write(self._path(step), arrays, meta)
        for old in self.steps()[: -self._keep]:
            self._path(old).unlink(missing_ok=True)

    def load(self, step: int) -> tuple[dict[str, np.ndarray], Any]:
        return array_files.read(self._path(step))


class _Orbax:
    """Orbax's own folders."""

    def __init__(self, ocp: Any, folder: Path, keep: int):
        self._ocp = ocp
        options = ocp.CheckpointManagerOptions(
            max_to_keep=keep,
            enable_async_checkpointing=False,
            cleanup_tmp_directories=True,  # of processes that were killed
        )
        self._folder = folder.absolute()
        self._manager = ocp.CheckpointManager(self._folder, options=options)

    def steps(self) -> list[int]:
        return sorted(self._manager.all_steps())

    def save(self, step: int, arrays: dict[str, np.ndarray], meta: Any) -> None:
        args = self._ocp.args
        # Names may hold anything, and a number is an array: lists keep both simple.
        parts = args.Composite(
            state=args.StandardSave([np.atleast_1d(x) for x in arrays.values()]),
            meta=args.JsonSave({"names": list(arrays), "meta": meta, "shapes": _shapes(arrays)}),
        )
        try:
            self._manager.save(step, args=parts, force=True)
            self._manager.wait_until_finished()
        except ValueError as error:
            for left in self._folder.glob(f"{step}.orbax-checkpoint-tmp*"):
                shutil.rmtree(left, ignore_errors=True)
            raise _as_os_error(error) from error

    def load(self, step: int) -> tuple[dict[str, np.ndarray], Any]:
        args = self._ocp.args
        saved = self._manager.restore(step, args=args.Composite(meta=args.JsonRestore()))["meta"]
        like = [
            jax.ShapeDtypeStruct(tuple(shape) or (1,), array_files.dtype_of(dtype))
            for dtype, shape in saved["shapes"]
        ]
        cpu = jax.sharding.SingleDeviceSharding(jax.local_devices(backend="cpu")[0])
        like = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=cpu) for x in like]
        parts = args.Composite(state=args.StandardRestore(like))
        found = self._manager.restore(step, args=parts)["state"]
        arrays = [
            np.asarray(x).reshape(s) for x, (_, s) in zip(found, saved["shapes"], strict=True)
        ]
        return dict(zip(saved["names"], arrays, strict=True)), saved["meta"]


def _as_os_error(error: ValueError) -> Exception:
    """Orbax writes files with tensorstore, whose errors have the error number in their text."""
    found = re.search(r"os_error_code='(\d+)'", str(error))
    return OSError(int(found[1]), f"[checkpoint] {error}") if found else error


def _shapes(arrays: dict[str, np.ndarray]) -> list[Any]:
    return [[x.dtype.name, list(x.shape)] for x in arrays.values()]


def _orbax(folder: Path, keep: int) -> _Orbax:
    try:
        import orbax.checkpoint as ocp
    except ImportError as error:
        raise ConfigError(
            f"[checkpoint] needs orbax-checkpoint for the backend orbax; got {error}. Install "
            "ipujax[training], or use the backend files."
        ) from error
    return _Orbax(ocp, folder, keep)
