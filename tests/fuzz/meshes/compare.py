"""One program over IPUs, against one device and against JAX's CPU backend over as many."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding

from tests.fuzz.meshes.place import Place
from tests.fuzz.meshes.program import Program

#: What values may differ by, of the largest: casts to bfloat16 may fall to either side.
TOLERANCE = 2e-3
CAST_TOLERANCE = 5e-2


def compared(program: Program, with_cpu: bool = True) -> dict[str, Any]:
    """What differs, and why an oracle was left out.

    The values are those of one device. The CPU backend tells how JAX reports their shardings; where
    it is wrong alone, as about carries that stay unreduced, only that counts.
    """
    found: dict[str, Any] = {"differences": [], "refused": {}}
    truth = [np.asarray(x) for x in program.run(Place(None, False)) if x is not None]
    mesh = program.mesh
    theirs = _ran(program, Place(mesh.of("cpu"), mesh.explicit)) if with_cpu else None
    ours = _ran(program, Place(mesh.of("ipu"), mesh.explicit))
    if isinstance(ours, str):
        kind, _, text = ours.partition(":")
        if theirs is None and kind != "JaxRuntimeError":  # no backend has raised it
            theirs = _ran(program, Place(mesh.of("cpu"), mesh.explicit))
        both = isinstance(theirs, str) and theirs.startswith(f"{kind}:")
        if both and kind != "JaxRuntimeError":
            found["refused"]["jax"] = text
        else:
            found["differences"].append(f"raises {ours}")
        return found
    found["differences"] += _unlike(program, ours, truth)
    if isinstance(theirs, str):
        found["refused"]["cpu"] = theirs
    elif theirs is not None:
        wrong = _unlike(program, theirs, truth)
        if wrong:
            found["refused"]["cpu"] = f"it is wrong alone: {wrong[0]}"
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            one, other = (_described(x, mesh.explicit) for x in (a, b))
            if one != other:
                text = f"result {k} is reported as {one} instead of {other}"
                found["differences"].append(text)
    return found


def _ran(program: Program, place: Place) -> list[jax.Array] | str:
    try:
        return [jax.block_until_ready(x) for x in program.run(place) if x is not None]
    except Exception as error:  # whatever it is, the other backend's is compared with it
        return f"{type(error).__name__}: {str(error)[:400]}"


def _unlike(program: Program, found: list[jax.Array], truth: list[np.ndarray]) -> list[str]:
    has_cast = any(step.name == "cast" for part in program.parts for step in part.steps)
    texts = []
    for k, (array, expected) in enumerate(zip(found, truth, strict=True)):
        value = Place(None, False).whole(array)
        if value.shape != expected.shape or value.dtype != expected.dtype:
            texts.append(
                f"result {k} is {value.dtype}{value.shape}, not {expected.dtype}{expected.shape}"
            )
            continue
        largest = float(np.abs(expected).max(initial=1.0))
        allowed = (CAST_TOLERANCE if has_cast else TOLERANCE) * largest
        off = np.abs(value - expected)
        if not off.size or (off <= allowed).all():
            continue
        at = tuple(int(i) for i in np.argwhere(~(off <= allowed))[0])
        texts.append(f"result {k} at {list(at)} is {value[at]} instead of {expected[at]}")
    return texts


def _described(array: jax.Array, explicit: bool) -> str:
    """The sharding that JAX tells, in the form of its array.

    Over automatic meshes only its kind: where shardings meet, Shardy's order of ops decides, and
    XLA's is another one.
    """
    sharding = array.sharding
    if not isinstance(sharding, NamedSharding):
        return str(sharding)
    if not explicit:
        return f"named {sharding.memory_kind}"
    entries = list(sharding.spec.partitions)
    while entries and entries[-1] in (None, ()):
        entries.pop()
    texts = [str(entries), sharding.memory_kind]
    for name in ("unreduced", "reduced"):
        axes = sorted(getattr(sharding.spec, name))
        texts += [f"{name} over {axes}"] if axes else []
    return " ".join([*texts, *sorted({str(s.data.shape) for s in array.addressable_shards})])
