"""Tracks which process has which modelled IPUs: one lock file for each IPU, in a private folder.

Locks are the operating system's (`flock`), so a process that ends in any way frees its IPUs. The
folder belongs to the user and nobody else may enter it, so users do not share a table.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from ipujax.errors import AttachError
from ipujax.host.logs import logger_of

logger = logger_of("devices")

#: IPUs of one device: the first, and their number.
Group = tuple[int, int]

_PAUSE_SECONDS = 0.05
#: Another process may hold a lock for a moment, just to see whether it is free.
_TRIES = 3

_lock = threading.Lock()
#: The descriptor of the lock file of each IPU that this process has.
_held: dict[int, int] = {}


def held() -> list[int]:
    """The IPUs that this process has."""
    return sorted(_held)


def attach(
    counts: Sequence[int],
    num_ipus_in_host: int,
    groups: Sequence[Group] = (),
    wait: bool = False,
    seconds: float = 0.0,
) -> list[int]:
    """Takes IPUs for each device, and first gives back those that this process has.

    Args:
        counts: numbers of IPUs of the devices.
        num_ipus_in_host: the user's processes share this many IPUs, from 0.
        groups: the IPUs of each device; empty: any that are free, from a multiple of their number.
        wait: wait until other processes give them back, at most `seconds`; 0 is no limit.
    Returns:
        the first IPU of each device.
    Raises:
        AttachError: another process has them, or there are too few.
    """
    if sum(counts) > num_ipus_in_host:
        raise AttachError(
            f"[devices] needs at most the {num_ipus_in_host} IPUs of the host; got devices of "
            f"{sum(counts)}. Use fewer, or raise num_ipus_in_host."
        )
    detach()
    deadline = time.monotonic() + seconds if seconds else float("inf")
    tries = 0
    said = False
    while True:
        with _lock:
            firsts = _try(counts, num_ipus_in_host, groups)
        tries += 1
        if firsts is not None:
            logger.info("[devices] attached IPUs %s", ", ".join(map(str, held())))
            return firsts
        if (not wait and tries >= _TRIES) or time.monotonic() > deadline:
            raise _busy(counts, num_ipus_in_host, groups, seconds if wait else 0.0)
        if wait and not said:
            said = True
            logger.warning("[devices] waiting for %d free IPUs", sum(counts))
        time.sleep(_PAUSE_SECONDS)


def detach() -> None:
    """Gives back all IPUs of this process."""
    with _lock:
        for descriptor in _held.values():
            os.close(descriptor)
        _held.clear()


def owners(num_ipus_in_host: int) -> dict[int, int]:
    """The number of the process that has each taken IPU, 0 if it is not known."""
    found = {ipu: os.getpid() for ipu in held()}
    for ipu in range(num_ipus_in_host):
        path = _folder() / f"ipu{ipu}.lock"
        if ipu in found or not path.exists():
            continue
        descriptor = _take(ipu)
        if descriptor is not None:
            os.close(descriptor)
            continue
        text = path.read_text()
        found[ipu] = int(text) if text.isdecimal() and len(text) < 12 else 0
    return found


def _try(counts: Sequence[int], limit: int, groups: Sequence[Group]) -> list[int] | None:
    """Takes all or nothing."""
    firsts: list[int] = []
    for index, count in enumerate(counts):
        starts = [groups[index][0]] if groups else range(0, limit - count + 1, _step(count))
        first = next((start for start in starts if _take_all(start, count)), None)
        if first is None:
            for descriptor in _held.values():
                os.close(descriptor)
            _held.clear()
            return None
        firsts.append(first)
    for descriptor in _held.values():
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return firsts


def _step(count: int) -> int:
    """Groups whose size is a power of two begin at its multiples."""
    return count if count & (count - 1) == 0 else 1


def _take_all(first: int, count: int) -> bool:
    taken: dict[int, int] = {}
    for ipu in range(first, first + count):
        descriptor = None if ipu in _held else _take(ipu)
        if descriptor is None:
            for each in taken.values():
                os.close(each)
            return False
        taken[ipu] = descriptor
    _held.update(taken)
    return True


def _take(ipu: int) -> int | None:
    """A descriptor that locks the IPU; None if another process has it."""
    path = _folder() / f"ipu{ipu}.lock"
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise _no_lock(path, error.strerror or str(error)) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _no_lock(path, "a file of another kind")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _no_lock(path: Path, got: str) -> AttachError:
    return AttachError(
        f"[devices] needs {path} as a plain file to lock; got {got}. Remove it, or set "
        "XDG_RUNTIME_DIR."
    )


def _folder() -> Path:
    """The folder of the lock files, which only this user can enter.

    Raises:
        AttachError: a folder of that name belongs to another user, or others may enter it.
    """
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(base) / f"ipujax-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise AttachError(
            f"[devices] needs {folder} as a folder of this user that no other may enter; got mode "
            f"{stat.filemode(found.st_mode)} of user {found.st_uid}. Remove it, or set "
            "XDG_RUNTIME_DIR."
        )
    return folder


def _busy(
    counts: Sequence[int], limit: int, groups: Sequence[Group], seconds: float
) -> AttachError:
    others = owners(limit)
    named = ", ".join(f"IPU {ipu} (process {pid})" for ipu, pid in sorted(others.items()))
    wanted = " and ".join(f"{first} to {first + count - 1}" for first, count in groups)
    wanted = f"IPUs {wanted}" if groups else f"{' + '.join(map(str, counts))} free IPUs"
    waited = f" after {seconds:g} s" if seconds else ""
    return AttachError(
        f"[devices] needs {wanted} of {limit}; got these attached{waited}: {named}. Use others, "
        "end those processes, or set IPUJAX_WAIT_FOR_IPU=1."
    )


def _forget() -> None:
    """Runs in a forked child: the parent keeps its IPUs."""
    for descriptor in _held.values():
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_forget)
