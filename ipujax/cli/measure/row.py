"""One line of the benchmark table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """`value` must not exceed `bound`; `detail` says what the value was made of."""

    name: str
    value: float
    bound: float
    detail: str

    @property
    def passed(self) -> bool:
        return self.value <= self.bound


def seconds(value: float) -> str:
    """A time with three digits and a fitting unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value * 1e6:.3g} us"
