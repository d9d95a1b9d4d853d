"""Where torch.optim gets in 100 steps; written to tests/optim/torch_optim.json.

    python -m tests.optim.torch_trajectories

needs PyTorch, which is too large for the other tests: they read the file. Float64, so that the
roundings of the tested optimizers are all that differs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("torch_optim.json")
NUM_STEPS = 100
#: name -> the class of torch.optim, and its arguments.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {"lr": 0.1}),
    "sgd_dampened": (
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.25, "weight_decay": 0.01},
    ),
    "sgd_nesterov": (
        "SGD",
        {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    ),
    "adam": ("Adam", {"lr": 0.01, "betas": (0.9, 0.99), "eps": 1e-6, "weight_decay": 0.01}),
    "adamw": ("AdamW", {"lr": 0.01, "weight_decay": 0.1}),
    "adamax": ("Adamax", {"lr": 0.01, "weight_decay": 0.01}),
    "rmsprop": (
        "RMSprop",
        {"lr": 0.002, "alpha": 0.9, "eps": 1e-3, "momentum": 0.5, "weight_decay": 0.01},
    ),
    "rmsprop_centered": (
        "RMSprop",
        {"lr": 0.003, "alpha": 0.95, "eps": 1e-3, "centered": True},
    ),
}


def problem() -> dict[str, np.ndarray]:
    """Parameters w, b and data x, y of a small regression, float64."""
    rng = np.random.default_rng(0)
    shapes = {"w": (4, 3), "b": (3,), "x": (16, 4), "y": (16, 3)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def trajectory(name: str) -> list[float]:
    """The parameters after NUM_STEPS, w then b."""
    import torch

    kind, arguments = CASES[name]
    start = {key: torch.tensor(value) for key, value in problem().items()}
    w, b = (start[key].requires_grad_() for key in ("w", "b"))
    optimizer = getattr(torch.optim, kind)([w, b], **arguments)
    for _ in range(NUM_STEPS):
        optimizer.zero_grad()
        ((torch.tanh(start["x"] @ w + b) - start["y"]) ** 2).mean().backward()
        optimizer.step()
    return [*w.detach().numpy().ravel().tolist(), *b.detach().numpy().tolist()]


def main() -> None:
    import torch

    ends = {name: trajectory(name) for name in CASES}
    lines = ",\n".join(f'    "{name}": {json.dumps(end)}' for name, end in ends.items())
    version = torch.__version__.split("+")[0]
    FILE.write_text(f'{{\n  "torch": "{version}",\n  "ends": {{\n{lines}\n  }}\n}}\n')


if __name__ == "__main__":
    main()
