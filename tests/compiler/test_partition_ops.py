"""Single ops with arguments dealt along each dimension, against one device."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.cases.sharded_ops import GROUPS, OpGroup
from tests.compiler.sharded_oracle import compare

ROWS = [(group, shape, specs) for group in GROUPS for shape, specs in group.specs()]


@cache
def on_one_device(group: OpGroup) -> Any:
    return jax.device_get(jax.jit(group.f)(*group.args))


def name_of(value: Any) -> str:
    if isinstance(value, OpGroup):
        return value.name
    if value and isinstance(value[0], P):
        return "+".join(str(tuple(spec)) for spec in value)
    return "x".join(map(str, value))


@pytest.mark.parametrize(("group", "shape", "specs"), ROWS, ids=name_of)
def test_blocks_are_those_of_one_device(
    group: OpGroup, shape: tuple[int, ...], specs: tuple[P, ...]
):
    devices = np.array(jax.devices("cpu")[:4]).reshape(shape)
    mesh = Mesh(devices, ("a", "b")[: len(shape)])
    shardings = tuple(NamedSharding(mesh, spec) for spec in specs)
    jitted = jax.jit(group.f, in_shardings=shardings, keep_unused=True)
    compare(jitted, group.args, lambda *args: on_one_device(group), 2e-4, 2e-5)
