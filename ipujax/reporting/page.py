"""A report as one self-contained page."""

from __future__ import annotations

from ipujax.reporting.drawing import Section, check_library, header, render
from ipujax.reporting.model import Report


def page(report: Report) -> str:
    """HTML that opens without a network.

    Raises:
        ReportError: the drawing library is missing.
    """
    check_library()
    sections = [*_of_remedies(report), *_of_time(report), *_of_memory(report)]
    return render(f"{report.name}: ipujax report", header(report), sections)


def _of_remedies(report: Report) -> list[Section]:
    from ipujax.reporting import tables

    if not report.remedies:
        return []
    return [
        Section(
            "Changes that were tried",
            "The program was compiled with each. Results that change are rounded otherwise, or are "
            "of other samples in a step.",
            tables.remedy_table(report),
        )
    ]


def _of_time(report: Report) -> list[Section]:
    from ipujax.reporting import charts, tables

    return [
        Section(
            "Time",
            "Cycles of one run by source line, layer (named scopes and modules) or op; by module, "
            "each has the time of all that is inside of it. A pointer on a name shows the call "
            "stack of its longest step. IPUs that work at one time are added up. Click on a head "
            "to sort.",
            tables.time_tables(report),
        ),
        Section(
            "Timeline",
            "What each IPU does when. Zoom with the wheel. Very short steps are drawn together; "
            "of a loop the first iteration is drawn.",
            charts.timeline(report),
        ),
        Section(
            "Steps",
            "The most expensive steps, with their operands and plans. Utilisation is flops as a "
            "proportion of what the device can do at most in that time.",
            tables.step_table(report),
        ),
    ]


def _of_memory(report: Report) -> list[Section]:
    from ipujax.reporting import charts, tables

    at_peak = sorted(
        (tensor for tensor in report.tensors if tensor.peak_tile_bytes),
        key=lambda tensor: -tensor.peak_tile_bytes,
    )
    return [
        Section(
            "Memory of each tile",
            "Bytes of each tile when the fullest one is fullest, by what they are for. "
            "The dashed line is what a tile has.",
            charts.tiles(report),
        ),
        Section(
            "Liveness",
            "Bytes of tensors that are live while each step runs, on all tiles. "
            "The mark is where the fullest tile is fullest.",
            charts.liveness(report),
        ),
        Section(
            "The fullest tile",
            "What it holds when it is fullest, by what it is for.",
            tables.part_table(report),
        ),
        Section(
            "Live at the peak",
            "Tensors on the fullest tile when it is fullest.",
            tables.tensor_table(at_peak, 240),
        ),
        Section(
            "Largest tensors",
            "By bytes on all tiles, whenever they are live.",
            tables.tensor_table(report.tensors),
        ),
    ]
