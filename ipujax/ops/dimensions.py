"""The dimensions of an op's operands and results, written as in einsum."""

from __future__ import annotations

from collections.abc import Sequence

#: For each array, the number of each dimension; None if it is whole on every device.
Numbered = list[list[int | None]]


class Dimensions:
    """ "...c, C -> ...c", or "C..., C... -> C...", as `Op` describes.

    Attributes:
        leads: for each operand, whether it has the leading dimensions "...".
    """

    def __init__(self, text: str):
        self._text = text
        self._operands, self._results = (
            [each.strip() for each in side.split(",")] for side in text.split("->")
        )
        self.leads = [each.startswith("...") for each in self._operands]

    def can_lead(self, mapped: Sequence[bool]) -> bool:
        """Whether one more dimension can lead all mapped operands, and all results."""
        operands = zip(self.leads, mapped, strict=True)
        return all(leads or not is_mapped for leads, is_mapped in operands) and all(
            each.startswith("...") for each in self._results
        )

    def numbered(self, operand_ranks: Sequence[int], result_ranks: Sequence[int]) -> list[Numbered]:
        """Numbers the dimensions of operands and results; equal dimensions get equal numbers.

        Raises:
            ValueError: an array's rank differs from that of its text.
        """
        numbers: dict[str, int] = {}
        return [
            [self._array(*each, numbers) for each in zip(texts, ranks, strict=True)]
            for texts, ranks in ((self._operands, operand_ranks), (self._results, result_ranks))
        ]

    def _array(self, text: str, rank: int, numbers: dict[str, int]) -> list[int | None]:
        first, has_rest, last = text.partition("...")
        rest = rank - len(first) - len(last) if has_rest else 0
        names = [*first, *(f"...{d}" for d in range(rest)), *last]
        if len(names) != rank:
            raise ValueError(
                f"[ipu.ops] needs arrays with the dimensions {self._text!r}; got rank {rank} for "
                f"{text!r}. Write one letter for each dimension."
            )
        return [
            None if name.isupper() else numbers.setdefault(name, len(numbers)) for name in names
        ]
