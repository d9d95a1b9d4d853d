"""Random alterations of JSON values and of bytes, as a hostile author of files would make them."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

_DEEP = 5000

#: Values of the wrong type, out of range, or meant for the terminal of whoever reads them.
_ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        255,
        2**31,
        2**32 - 1,
        -(2**31),
        2**62,
        2**63,
        -(2**63),
        10**40,
    ),
    *(0.5, -0.0, 1e-320, 1e308, float("inf"), float("-inf"), float("nan")),
    *(
        "",
        "0",
        "-1",
        "nan",
        "float32",
        "object",
        "O8",
        "V8",
        "U1000000",
        "../../etc/passwd",
        "/dev/zero",
    ),
    *("\x1b[2J\x1b]0;owned\x07", "\0", "\ud800", "größe", "{0.__class__}", "%s%n", "a" * 100_000),
    *([], {}, [[]], [0], [-1], ["a"], [None], {"": None}, {"a": {"b": []}}),
)


def _odd(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(_ODD))


def json_value(tree: Any, rng: random.Random) -> Any:
    """The tree with up to three values replaced, removed, repeated, renamed or exchanged."""
    tree = json.loads(json.dumps(tree))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(tree))
        if not places:
            return _odd(rng)
        container, key = rng.choice(places)
        rng.choice(_CHANGES)(container, key, rng, places)
    return tree


def _places(tree: Any) -> Any:
    waiting = [tree]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            keys: Any = list(each)
        elif isinstance(each, list):
            keys = range(len(each))
        else:
            continue
        for key in keys:
            yield each, key
            waiting.append(each[key])


def _replace(container: Any, key: Any, rng: random.Random, places: Any) -> None:
    container[key] = _odd(rng)


def _nudge(container: Any, key: Any, rng: random.Random, places: Any) -> None:
    """Changes a number or a text a little, which leaves its type right."""
    value = container[key]
    if isinstance(value, bool):
        container[key] = not value
    elif isinstance(value, (int, float)):
        container[key] = rng.choice((value + 1, value - 1, -value, value * 2, value * 1000003))
    elif isinstance(value, str):
        at = rng.randrange(len(value) + 1)
        container[key] = value[:at] + rng.choice(("x", "\x1b", " ", "\n", "\0")) + value[at + 1 :]
    else:
        container[key] = _odd(rng)


def _remove(container: Any, key: Any, rng: random.Random, places: Any) -> None:
    del container[key]


def _repeat(container: Any, key: Any, rng: random.Random, places: Any) -> None:
    if isinstance(container, list):
        container[key:key] = [container[key]] * rng.choice((1, 2, 1000))
    else:
        container[f"{key}2"] = container[key]


def _rename(container: Any, key: Any, rng: random.Random, places: Any) -> None:
    if isinstance(container, dict):
        container[rng.choice(("", "x", "\x1b[2J", str(key).upper()))] = container.pop(key)
    else:
        container.reverse()


def _exchange(container: Any, key: Any, rng: random.Random, places: Any) -> None:
    other, at = rng.choice(places)
    copied = json.loads(json.dumps(other[at]))
    other[at] = json.loads(json.dumps(container[key]))
    container[key] = copied


def _nest(container: Any, key: Any, rng: random.Random, places: Any) -> None:
    for _ in range(rng.choice((1, 3, 60, 190))):
        container[key] = rng.choice((lambda x: [x], lambda x: {"a": x}))(container[key])


_CHANGES: tuple[Callable[..., None], ...] = (
    *(_replace, _replace, _replace, _nudge, _nudge, _remove, _repeat, _rename, _exchange, _nest),
)


def content(data: bytes, rng: random.Random) -> bytes:
    """Bytes with some changed, left out, repeated or put in."""
    at = rng.randrange(len(data) + 1)
    till = min(len(data), at + rng.choice((1, 2, 8, 64, 4096)))
    piece = rng.choice(_PIECES)(rng)
    return rng.choice(
        (
            lambda: data[:at] + piece + data[at + len(piece) :],
            lambda: data[:at] + piece + data[at:],
            lambda: data[:at],
            lambda: data[:at] + data[till:],
            lambda: data[:till] + data[at:],
            lambda: data + piece,
            lambda: piece,
        )
    )()


_PIECES: tuple[Callable[[random.Random], bytes], ...] = (
    lambda rng: bytes([rng.randrange(256)]),
    lambda rng: rng.randbytes(8),
    lambda rng: b"\xff" * rng.choice((1, 4, 8)),
    lambda rng: b"\0" * rng.choice((1, 8, 512)),
    lambda rng: rng.choice((b"[", b'{"a":', b"[[", b"(")) * _DEEP,
    lambda rng: rng.choice((b"1e999", b"NaN", b"-Infinity", b"1" * 5000, b'"\\ud800"', b"\x1b[2J")),
    lambda rng: rng.choice(
        (b"}", b"]", b",", b":", b'"', b"\n", b"\r", b"\xef\xbb\xbf", b"=", b".")
    ),
)
