"""Two reports side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ipujax.errors import ConfigError
from ipujax.host.html_tables import html_table, paragraphs
from ipujax.reporting.model import Report
from ipujax.reporting.summary import LISTED, Table, table, verdict
from ipujax.types import Grouping


@dataclass(frozen=True)
class Change:
    """A line, layer or op, and its cycles in two reports; 0 if it is absent."""

    name: str
    before: float
    after: float

    @property
    def difference(self) -> float:
        """Positive if it takes longer now."""
        return self.after - self.before


@dataclass(frozen=True)
class Comparison:
    """What changed from one report to another. Print it, or save it as a page.

    Attributes:
        before: a report.
        after: a report of the same program after a change, or of another one.
    """

    before: Report
    after: Report

    def by(self, grouping: Grouping) -> list[Change]:
        """Changes by a grouping of `Report.by`, the greatest first."""
        before = {group.name: group.cycles for group in self.before.by(grouping)}
        after = {group.name: group.cycles for group in self.after.by(grouping)}
        changes = [
            Change(name, before.get(name, 0.0), after.get(name, 0.0)) for name in before | after
        ]
        return sorted(changes, key=lambda change: (-abs(change.difference), change.name))

    @property
    def groupings(self) -> list[Grouping]:
        """The groupings of either report."""
        return list(dict.fromkeys([*self.before.groupings, *self.after.groupings]))

    def totals(self) -> list[tuple[str, float, float]]:
        """Figures of the whole program: name, before, after."""
        return [
            ("cycles", self.before.cycles, self.after.cycles),
            (
                "bytes on the fullest tile",
                self.before.fullest_tile_bytes,
                self.after.fullest_tile_bytes,
            ),
            *self._parts(),
            ("always live bytes", self.before.always_live_bytes, self.after.always_live_bytes),
            ("peak live bytes", self.before.peak_live_bytes, self.after.peak_live_bytes),
            ("steps", len(self.before.steps), len(self.after.steps)),
            *self._replicas(),
        ]

    def _replicas(self) -> list[tuple[str, float, float]]:
        before, after = self.before, self.after
        if max(before.num_replicas, after.num_replicas) == 1:
            return []
        return [
            ("replicas", before.num_replicas, after.num_replicas),
            ("cycles of collectives", before.collective_cycles, after.collective_cycles),
        ]

    def _parts(self) -> list[tuple[str, float, float]]:
        before, after = self.before.parts, self.after.parts
        return [
            (f"of them {name}", before.get(name, 0), after.get(name, 0)) for name in before | after
        ]

    def save(self, path: str | Path) -> None:
        """Writes a page; the file name must end in ".html".

        Raises:
            ConfigError: the file name has another suffix.
            ReportError: the file cannot be written, or the drawing library is missing.
        """
        from ipujax.reporting.comparison_page import comparison_page
        from ipujax.reporting.saving import write_whole

        if not str(path).endswith(".html"):
            raise ConfigError(
                f"[comparison.save] needs a file name that ends in .html; got {str(path)!r}. "
                "Use that suffix."
            )
        write_whole(path, comparison_page(self))

    def __str__(self) -> str:
        parts = [f"before: {verdict(self.before)}", f"after:  {verdict(self.after)}", ""]
        whole, *groups = self._tables()
        parts += table(*whole)
        for found in groups:
            parts += ["", *table(*found)]
        return "\n".join(parts)

    def __repr__(self) -> str:
        return f"Comparison(before={self.before!r}, after={self.after!r})"

    def _repr_html_(self) -> str:
        lines = [f"before: {verdict(self.before)}", f"after: {verdict(self.after)}"]
        said = paragraphs(line for text in lines for line in text.splitlines())
        return said + "".join(html_table(*found) for found in self._tables())

    def _tables(self) -> list[Table]:
        """The figures of the whole program, then the groups that changed the most."""
        rows = [(name, f"{a:.0f}", f"{b:.0f}", relative(a, b)) for name, a, b in self.totals()]
        tables: list[Table] = [(("", "before", "after", "change"), rows)]
        for grouping in self.groupings:
            changes = [change for change in self.by(grouping) if change.difference][:LISTED]
            rows = [
                (
                    c.name or f"(no {grouping})",
                    f"{c.before:.0f}",
                    f"{c.after:.0f}",
                    relative(c.before, c.after),
                )
                for c in changes
            ]
            if rows:
                tables.append(((grouping, "cycles before", "after", "change"), rows))
        return tables


def relative(before: float, after: float) -> str:
    """Such as "+12.5%"."""
    if before == after:
        return "0.0%"
    return f"{after / before - 1:+.1%}" if before else "new"
