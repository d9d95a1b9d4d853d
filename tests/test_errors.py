"""Error types carry the status code that JAX shows, and texts that help."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from ipujax import errors

ROOT = Path(__file__).resolve().parents[1]


def _error_types() -> list[type[errors.IpuError]]:
    members = inspect.getmembers(errors, inspect.isclass)
    return [kind for _, kind in members if issubclass(kind, errors.IpuError)]


@pytest.mark.parametrize("kind", _error_types(), ids=lambda kind: kind.__name__)
def test_every_error_has_a_status_code(kind: type[errors.IpuError]):
    codes = {v for k, v in vars(errors.PjrtCode).items() if not k.startswith("_")}
    assert kind.pjrt_code in codes


def test_unsupported_ops_are_listed_all_at_once():
    error = errors.UnsupportedOpError(
        [("stablehlo.fft", "no rule yet", "train.py:31"), ("stablehlo.cholesky", "no rule yet", "")]
    )
    assert error.found[0] == ("stablehlo.fft", "no rule yet", "train.py:31")
    text = str(error)
    assert "got 2 that have none" in text
    assert "stablehlo.fft: no rule yet (at train.py:31)" in text
    assert "stablehlo.cholesky: no rule yet\n" in text


def test_texts_say_what_to_do_in_plain_imperatives():
    """ "`Use one of these.`, not `Do use one of these.`"""
    found = []
    for pattern in ("ipujax/**/*.py", "cpp/**/*.[ch]pp", "xla_plugin/*.[ch]pp"):
        for path in ROOT.glob(pattern):
            emphatic = re.findall(r"(?:\bDo|\\nDo) (?!not\b)[a-z]+", path.read_text())
            found += [f"{path.name}: {text}" for text in emphatic]
    assert found == []
