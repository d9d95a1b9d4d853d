"""Draws costs_report.png, the picture of costs.md: python docs/guides/costs_report.py"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp

import ipujax as ipu

HERE = Path(__file__).resolve().parent


def step(w, x):
    for i in range(4):
        with jax.named_scope(f"layer{i}"):
            x = jax.nn.softmax(x @ w)
    return jax.lax.fori_loop(0, 9, lambda _, c: jnp.tanh(c @ w), x).sum()


def main() -> None:
    w = jax.ShapeDtypeStruct((512, 512), jnp.float32)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "step.html"
        ipu.report(jax.grad(step), w, w).save(page)
        command = ["chromium", "--headless", "--no-sandbox", "--window-size=1260,2400"]
        picture = f"--screenshot={HERE / 'costs_report.png'}"
        wait = "--virtual-time-budget=8000"
        subprocess.run([*command, wait, picture, page.as_uri()], check=True, timeout=120)


if __name__ == "__main__":
    main()
