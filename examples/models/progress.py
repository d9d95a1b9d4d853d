"""A progress bar for the examples: drawn by rich on a terminal, silent elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Advance(Protocol):
    """Call it once a step; `note` is shown right of the bar."""

    def __call__(self, note: str = "") -> None: ...


@contextmanager
def progress_bar(title: str, num_steps: int) -> Iterator[Advance]:
    """A bar of `num_steps` steps for the time of the `with` block."""
    console = Console()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=num_steps, note="")

        def advance(note: str = "") -> None:
            progress.update(task, advance=1, note=note)

        yield advance
