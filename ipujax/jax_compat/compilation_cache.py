"""JAX's persistent compilation cache."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import uuid
from collections.abc import Callable
from typing import Any

from ipujax.jax_compat.platform import PLATFORM
from ipujax.jax_compat.topologies import is_compile_only


def allow_persistent_cache(options_key: Callable[[], str]) -> None:
    """Adds the platform to those that use JAX's compilation cache.

    Args:
        options_key: returns text that differs whenever compiled programs would.
    """
    from jax._src import cache_key, compilation_cache

    others = compilation_cache.is_cache_used
    other_key = cache_key.custom_hook

    def is_cache_used(backend: Any) -> bool:
        if backend.platform == PLATFORM:
            # Without a cache directory JAX would still compute a key of every program. A described
            # machine cannot load entries, and the key does not name it.
            on_devices = not is_compile_only(backend)
            return on_devices and bool(compilation_cache.is_persistent_cache_enabled())
        return bool(others(backend))

    def custom_key() -> str:
        return str(other_key()) + hashlib.sha256(options_key().encode()).hexdigest()

    compilation_cache.is_cache_used = is_cache_used
    cache_key.custom_hook = custom_key


def replace_cache_entries() -> None:
    """Lets a new cache entry replace one that could not be read.

    JAX never overwrites an entry, and leaves half of one behind when the disk is full. Entries for
    IPUs are written under a unique name and then renamed, so each is complete or absent.
    """
    from jax._src import compilation_cache

    put = compilation_cache.put_executable_and_time

    @functools.wraps(put)
    def replacing(
        key: str, module_name: str, executable: Any, backend: Any, compile_time: int
    ) -> None:
        cache = compilation_cache._get_cache(backend)
        # A VerificationCache compares entries under the key itself.
        if backend.platform != PLATFORM or not isinstance(cache, compilation_cache.LRUCache):
            put(key, module_name, executable, backend, compile_time)
            return
        unique = f"{key}.{uuid.uuid4().hex}"
        try:
            put(unique, module_name, executable, backend, compile_time)
            _rename_entry(cache.path, unique, key)
        finally:
            for suffix in ("-cache", "-atime"):
                with contextlib.suppress(OSError):
                    (cache.path / f"{unique}{suffix}").unlink(missing_ok=True)

    compilation_cache.put_executable_and_time = replacing


def _rename_entry(folder: Any, old: str, new: str) -> None:
    """Renames an entry, if there is one, after its access time, if JAX keeps one.

    Another process that evicts entries reads the access time of each entry it finds.
    """
    entry, time = folder / f"{old}-cache", folder / f"{old}-atime"
    if time.exists():
        (folder / f"{new}-atime").write_bytes(time.read_bytes())
    if entry.exists():
        entry.replace(folder / f"{new}-cache")
