"""Prints a saved report, or compares two of them; with -o writes a page or a trace."""

from __future__ import annotations

import argparse

from ipujax.reporting.document import load_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", help="what report.save wrote, such as step.json")
    parser.add_argument("other", nargs="?", help="a second report, to compare with the first")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write a file instead: .html, and of one report also .json or .trace.json",
    )


def run(arguments: argparse.Namespace) -> int:
    report = load_report(arguments.report)
    shown = report.compare(load_report(arguments.other)) if arguments.other else report
    if arguments.output:
        shown.save(arguments.output)
    else:
        print(shown)
    return 0
