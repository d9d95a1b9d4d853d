"""Prints how busy each IPU of a device is, from a compiled function's `cost_analysis()`."""

import jax


def print_busy_ipus(compiled: jax.stages.Compiled) -> None:
    """One line for each IPU that works: busy time, and bytes of the fullest tile."""
    cost = compiled.cost_analysis()
    print(f"one step: {cost['cycles']:,.0f} cycles = {cost['seconds'] * 1e3:.2f} ms")
    for i in range(jax.devices()[0].num_ipus):
        parts = {part: cost[f"ipu {i} {part} cycles"] for part in ("compute", "exchange", "link")}
        busy = sum(parts.values()) / cost["cycles"]
        if busy == 0:
            continue
        shown = ", ".join(f"{part} {cycles:,.0f}" for part, cycles in parts.items())
        tile = cost[f"ipu {i} worst tile bytes"]
        print(f"IPU {i}: busy {busy:.0%} ({shown} cycles), fullest tile {tile:,.0f} bytes")
