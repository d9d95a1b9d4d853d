"""A name for what a function computes: equal for equal jaxprs, in this process and in others."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

_ADDRESS = re.compile(r"0x[0-9a-f]+")


def fingerprint(jaxpr: ClosedJaxpr) -> str:
    """Sixteen hexadecimal digits. Names of variables and values of captured arrays do not count."""
    digest = hashlib.sha256("\n".join(_lines(jaxpr.jaxpr)).encode())
    return digest.hexdigest()[:16]


def _lines(jaxpr: Jaxpr) -> Iterable[str]:
    numbers: dict[Any, int] = {}

    def name(atom: Any) -> str:
        if isinstance(atom, Literal):
            return f"{atom.aval.dtype}:{atom.val!r}"
        return f"%{numbers.setdefault(atom, len(numbers))}"

    def declared(atom: Any) -> str:
        return f"{name(atom)}:{_type(atom.aval)}"

    yield " ".join(map(declared, (*jaxpr.constvars, *jaxpr.invars)))
    for eqn in jaxpr.eqns:
        parameters = "\n".join(f"{key}={_text(value)}" for key, value in sorted(eqn.params.items()))
        operands, results = map(name, eqn.invars), map(declared, eqn.outvars)
        yield f"{' '.join(results)} = {eqn.primitive.name} {' '.join(operands)} {{{parameters}}}"
    yield " ".join(map(name, jaxpr.outvars))


def _type(aval: Any) -> str:
    return f"{getattr(aval, 'dtype', aval)}{list(getattr(aval, 'shape', ()))}"


def _text(value: Any) -> str:
    if isinstance(value, ClosedJaxpr):
        value = value.jaxpr
    if isinstance(value, Jaxpr):
        return "\n".join(_lines(value))
    if isinstance(value, (tuple, list)):
        return f"({','.join(map(_text, value))})"
    if isinstance(value, Mapping):
        return f"({','.join(f'{key}:{_text(value[key])}' for key in sorted(value, key=str))})"
    if isinstance(value, np.ndarray):
        return hashlib.sha256(value.tobytes()).hexdigest()
    if callable(value):
        return str(getattr(value, "__qualname__", type(value).__qualname__))
    return _ADDRESS.sub("", repr(value))
