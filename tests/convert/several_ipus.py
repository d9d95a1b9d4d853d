"""Conversions for a device of two IPUs, in a process of their own: prints results as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ipujax.convert.conversion import Conversion
from ipujax.convert.settings import settings_of
from tests.convert.test_conversion import X, exported

BATCHES = np.stack([X, -X, 2 * X])


def main(folder: str) -> None:
    program = exported()
    wanted = np.stack([program.call(x) for x in BATCHES])
    found = {"sharded": _sharded(program, wanted[0])}
    plan = str(Path(folder, "program.plan.json"))
    expressions = [["layer_0/"], ["layer_1/"]]
    for name, own in {
        "auto": {"converter": "auto", "max_ipu_quantity": 2},
        "manual": {
            "converter": "manual",
            "manual_pipeline_config": expressions,
            "device_info": [0, 1],
            "solution_dir": folder,
            "profiling_enable": True,
            "profiling_root_dir": folder,
        },
        "load": {"converter": "load", "solution_path": plan},
    }.items():
        settings = settings_of({"batch_per_step": 3, "batch_size": 4, "pipeline_cfg": own})
        made = Conversion(program, settings)
        difference = float(np.abs(made.program.call(BATCHES) - wanted).max())
        ipus = _busy(made.program, BATCHES)
        found[name] = {"difference": difference, "ipus": ipus, "notes": made.notes}
    print(json.dumps(found))


def _sharded(program: jax.export.Exported, wanted: Any) -> dict[str, Any]:
    settings = settings_of({"manual_sharding": [["layer_0"], ["layer_1"]], "num_ipus": 2})
    made = Conversion(program, settings).program
    difference = float(np.abs(made.call(X) - wanted).max())
    return {"difference": difference, "ipus": _busy(made, X)}


def _busy(program: jax.export.Exported, *args: Any) -> int:
    """The IPUs that compute something."""
    cost = jax.jit(program.call).lower(*args).compile().cost_analysis()
    return sum(cost[f"ipu {i} compute cycles"] > 0 for i in range(2))


if __name__ == "__main__":
    main(sys.argv[1])
