"""One line of the benchmark table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """`value` must not exceed `bound`, unless None; `detail` says what the value was made of."""

    name: str
    value: float
    bound: float | None
    detail: str

    @property
    def passed(self) -> bool:
        return self.bound is None or self.value <= self.bound

    @property
    def text(self) -> str:
        """The line as it is printed."""
        verdict = "" if self.bound is None else "ok" if self.passed else "MISS"
        bound = "" if self.bound is None else f"{self.bound:.3g}"
        return f"{verdict:5}{self.name:40}{self.value:8.3g}{bound:>8}  {self.detail}"


HEADING = f"{'':5}{'what':40}{'value':>8}{'bound':>8}  detail"


def seconds(value: float) -> str:
    """A time with three digits and a fitting unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value * 1e6:.3g} us"
