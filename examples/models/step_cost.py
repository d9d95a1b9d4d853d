"""Prints the cost of one call of a compiled function on an IPU, from its `cost_analysis()`."""

from collections.abc import Mapping

import jax


def print_step_cost(what: str, compiled: jax.stages.Compiled) -> Mapping[str, float]:
    """Prints one line on an IPU; raises if the costs are missing or not positive."""
    cost = compiled.cost_analysis()
    if jax.default_backend() != "ipu":
        print(f"{what}: {jax.default_backend()} does not count IPU cycles")
        return cost
    cycles, seconds = cost["cycles"], cost["seconds"]
    if not (cycles > 0 and seconds > 0):
        raise SystemExit(f"{what}: needs a positive cost; got {cycles} cycles, {seconds} s")
    device = jax.devices()[0]
    print(
        f"{what} on one IPU: {cycles:,.0f} cycles = {seconds * 1e6:,.1f} us at "
        f"{device.clock_hz / 1e9:.2f} GHz, {cost['flops']:,.0f} flops, "
        f"{cost['exchange bytes']:,.0f} bytes exchanged"
    )
    return cost
