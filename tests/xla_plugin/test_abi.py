"""The function table as jaxlib reads it: sizes, version, and what an absent entry says."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENTRY = re.compile(r"ENTRY\((\w+), (\d+), (\d+)\)")
HEADER_BYTES = 40  # struct_size, extension_start, version


def entries() -> list[tuple[str, int, int]]:
    """Name, offset and size of the arguments of each entry."""
    text = (ROOT / "xla_plugin" / "abi" / "api.hpp").read_text()
    return [(name, int(offset), int(size)) for name, offset, size in ENTRY.findall(text)]


def bound() -> set[str]:
    """Entries that some object binds."""
    sources = (ROOT / "xla_plugin").glob("*.cpp")
    return {
        name
        for source in sources
        if source.name != "unimplemented.cpp"
        for name in re.findall(r"api\.PJRT_(\w+) = ", source.read_text())
    }


@pytest.fixture(scope="module")
def api() -> int:
    from ipujax._poplar import _poplar

    function = ctypes.CDLL(_poplar.__file__).GetPjrtApi
    function.restype = ctypes.c_void_p
    return int(function())


def word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def test_size_and_version(api: int):
    assert word(api) == 1144
    version = (ctypes.c_int * 2).from_address(api + 32)
    assert tuple(version) == (0, 112)


def test_the_table_has_no_gaps():
    offsets = [offset for _, offset, _ in entries()]
    assert offsets == list(range(HEADER_BYTES, 1144, 8))


def test_every_entry_points_somewhere(api: int):
    assert all(word(api + offset) for _, offset, _ in entries())


def message_of(api: int, error: int) -> str:
    arguments = (ctypes.c_size_t * 5)(40, 0, error, 0, 0)
    by_name = {name: offset for name, offset, _ in entries()}
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(word(api + by_name["Error_Message"]))
    call(ctypes.addressof(arguments))
    text = ctypes.string_at(arguments[3], arguments[4]).decode()
    destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(word(api + by_name["Error_Destroy"]))
    destroy(ctypes.addressof((ctypes.c_size_t * 3)(24, 0, error)))
    return text


@pytest.mark.parametrize(
    ("name", "offset", "size"), [e for e in entries() if e[0] not in bound()], ids=lambda v: str(v)
)
def test_an_absent_entry_names_itself(api: int, name: str, offset: int, size: int):
    arguments = ctypes.create_string_buffer(size + 8)
    call = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(word(api + offset))
    error = call(ctypes.addressof(arguments))
    assert error is not None
    message = message_of(api, error)
    assert f"PJRT_{name} is not implemented: " in message
    assert "it was not bound" not in message, "the table of reasons misses this entry"


def test_what_jax_requires_is_bound():
    required = {"Client_Compile", "LoadedExecutable_Execute", "Executable_DeserializeAndLoad"}
    assert required <= bound() <= {name for name, _, _ in entries()}
