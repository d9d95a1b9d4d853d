"""Single ops with arguments sharded along each dimension, against one device."""

from __future__ import annotations

from typing import Any

import jax
import pytest

from tests.cases.sharded_ops import ROWS, OpGroup, jitted, name_of, on_one_device
from tests.compiler.partition.sharded_oracle import compare


@pytest.mark.parametrize(("group", "shape", "specs"), ROWS, ids=name_of)
def test_blocks_are_those_of_one_device(group: OpGroup, shape: Any, specs: Any):
    f = jitted(group, shape, specs, jax.devices("cpu"))
    compare(f, group.args, lambda *args: on_one_device(group), 2e-4, 2e-5)
