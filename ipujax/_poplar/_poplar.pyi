"""The Poplar API as `cpp/bindings` gives it to Python, with the names of the C++ API.

One submodule for each library; `engine` seals a graph and its program into an executable.
"""

from collections.abc import Callable
from typing import Any

version: str

#: Submodules. Their classes and functions are the public Poplar API's, so the types here stay open.
poplar: Any
popops: Any
poplin: Any
popnn: Any
poprand: Any
popx: Any
gcl: Any
engine: Any

def set_compile_callback(
    function: Callable[[bytes, bytes, dict[str, Any]], bytes],
) -> None: ...
def set_host_callback(function: Callable[..., list[bytes]]) -> None: ...
def set_stablehlo_version(version: list[int]) -> None: ...
def show_program_text(show: bool) -> None: ...
def guard_transfers(thread: bool | None, process: bool) -> None: ...
def device_stats() -> list[dict[str, int]]: ...
