"""The inputs of `ipujax run`: from files, expressions and examples."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ipujax.cli.expressions import evaluate
from ipujax.errors import ConfigError, printable
from ipujax.host.file_reading import MOST_JSON_BYTES, content_of, json_of


def gather(
    shapes: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]],
    files: Sequence[str],
    expressions: Sequence[str],
    examples: str | None,
) -> dict[str, np.ndarray]:
    """One array for each input, checked against its shape and dtype.

    Floats from files that are wider than the input are rounded, with a line on standard error; a
    number outside the input's dtype is refused.

    Args:
        shapes: shape and dtype of each input, by name.
        files: "name=file.npy", "name=file.npz[key]", or "file.npz" with inputs by their names.
        expressions: "name=expression", see `expressions.evaluate`.
        examples: JSON, or a JSON file: an object of lists by input, or a list of such objects,
            which are stacked.
    """
    found: dict[str, Any] = {}
    for text in files:
        _add(found, _of_file(text, shapes), "--inputs")
    written = list(found)
    if examples is not None:
        _add(found, _examples(examples), "--input-examples")
    for text in expressions:
        name, expression = _split(text, "--input-exprs", "x=ones((2, 3))")
        _add(found, {name: evaluate(expression)}, "--input-exprs")
    missing, unknown = shapes.keys() - found.keys(), found.keys() - shapes.keys()
    if missing or unknown:
        lists = [printable(", ".join(sorted(names))) or "none" for names in (missing, unknown)]
        raise ConfigError(
            f"[run] needs the inputs {', '.join(shapes) or '(none)'}; got none for {lists[0]}, "
            f"and unknown ones: {lists[1]}. Pass --inputs, --input-exprs or --input-examples for "
            "each."
        )
    inputs = {name: _checked(name, found[name], *shapes[name]) for name in shapes}
    for name in written:
        _say_if_rounded(name, found[name], inputs[name])
    return inputs


def _add(found: dict[str, Any], more: Mapping[str, Any], where: str) -> None:
    twice = found.keys() & more.keys()
    if twice:
        raise ConfigError(
            f"[run] needs each input once; got {', '.join(sorted(twice))} again in {where}. "
            "Omit one of them."
        )
    found.update(more)


def _split(text: str, where: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise ConfigError(f"[run] needs {where} name=value; got {text!r}. Use {where} {example}.")
    return name.strip(), value.strip()


def _of_file(text: str, shapes: Mapping[str, Any]) -> dict[str, Any]:
    # Names may have "=" in brackets, but the names of inputs are known.
    name = next((n for n in shapes if text.startswith(f"{n}=")), "")
    if not name and "=" not in text:
        read = _arrays(text)
        if isinstance(read, np.ndarray):
            raise ConfigError(
                f"[run] needs the name of the input that {text!r} is; got one array. Write "
                f"--inputs '{next(iter(shapes), 'x')}={text}'."
            )
        return dict(read)
    if not name:
        name, path = _split(text, "--inputs", "x=x.npy")
    else:
        path = text[len(name) + 1 :]
    path, bracket, key = path.partition("[")
    read = _arrays(path)
    if isinstance(read, np.ndarray):
        return {name: read}
    key = key.removesuffix("]") if bracket else next(iter(read), "")
    if key not in read or (not bracket and len(read) > 1):
        raise ConfigError(
            f"[run] needs the name of an array in {path}; got {key!r} of {', '.join(read)}. "
            f"Write --inputs '{name}={path}[{next(iter(read), 'key')}]'."
        )
    return {name: read[key]}


def _arrays(path: str) -> Any:
    """The array of a .npy file, or the arrays of a .npz file by name; never pickled objects."""
    try:
        with Path(path).open("rb") as file:  # NumPy leaves it open if it fails
            read = np.load(file, allow_pickle=False)
            return read if isinstance(read, np.ndarray) else dict(read)
    except Exception as error:  # NumPy and zipfile fail in many ways on other bytes
        said = "other bytes, or Python objects" if "pickle" in str(error) else error
        raise ConfigError(
            f"[run] needs a .npy or .npz file of numbers; got {path!r}: {said}. Write it with "
            "numpy.save or numpy.savez."
        ) from None


def _examples(text: str) -> dict[str, Any]:
    try:
        is_file = not text.lstrip().startswith(("{", "["))
        read = json_of(content_of(text, MOST_JSON_BYTES) if is_file else text)
        if isinstance(read, list):
            names = {name: None for example in read for name in example}
            return {name: np.array([example[name] for example in read]) for name in names}
        return {name: np.array(values) for name, values in read.items()}
    except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
        raise ConfigError(
            "[run] needs --input-examples as JSON, an object of lists or a list of objects with "
            f'the same names; got {text[:60]!r}: {error}. Write for example {{"x": [1.0, 2.0]}}.'
        ) from None


def _checked(
    name: str, value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    array = np.asarray(value)
    same_kind = np.can_cast(array.dtype, dtype, "same_kind") or array.dtype.kind in "iu"
    if array.shape != shape or array.dtype.kind not in "biufc" + "V" or not same_kind:
        raise ConfigError(
            f"[run] needs {name} of shape {shape} and {dtype}; got shape {array.shape} and "
            f"{array.dtype}. Convert it."
        )
    with np.errstate(over="ignore"):  # refused below
        cast = array.astype(dtype)
    is_exact = array.dtype.kind in "iu"
    same = np.array_equal(cast, array) if is_exact else not _has_overflowed(array, cast)
    if not same:
        raise ConfigError(f"[run] needs {name} in {dtype}; got values beyond it. Convert it.")
    return cast


def _has_overflowed(array: np.ndarray, cast: np.ndarray) -> bool:
    return bool(np.any(np.isfinite(array) & ~np.isfinite(cast)))


def _say_if_rounded(name: str, array: np.ndarray, cast: np.ndarray) -> None:
    if not np.array_equal(array, cast.astype(array.dtype), equal_nan=True):
        print(f"[run] {name}: {array.dtype} rounded to {cast.dtype}", file=sys.stderr)
