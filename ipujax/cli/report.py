"""Prints where time and memory of a program go, or compares two; with -o writes a file.

Takes reports that report.save wrote, programs that jax.export serialised, and StableHLO as text or
bytecode.
"""

from __future__ import annotations

import argparse

from ipujax.cli.installation import check_installation
from ipujax.config.options import PER_CALL_PREFIX
from ipujax.errors import ConfigError, printable
from ipujax.reporting.document import load_report
from ipujax.reporting.figures import figures
from ipujax.reporting.model import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", help="a saved report, an exported program or StableHLO")
    parser.add_argument("other", nargs="?", help="a second one, to compare with the first")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write a file instead: .html, and of one report also .json or .trace.json",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the figures and groups as JSON, not as tables"
    )
    parser.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a compiler option of the programs, such as outline=auto; may be repeated",
    )


def run(arguments: argparse.Namespace) -> int:
    options = dict(map(_option, arguments.option))
    report = _report(arguments.report, options)
    shown = report.compare(_report(arguments.other, options)) if arguments.other else report
    if arguments.output:
        shown.save(arguments.output)
    if arguments.json:
        print(printable(figures(shown)))
    elif not arguments.output:
        print(printable(str(shown)))
    return 0


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ConfigError(
            f"[report] needs --option name=value; got {text!r}. Use for example "
            "--option outline=auto."
        )
    return (name if name.startswith(PER_CALL_PREFIX) else PER_CALL_PREFIX + name), value


def _report(path: str, options: dict[str, str]) -> Report:
    if path.endswith(".json") and not options:
        return load_report(path)  # needs no extension
    check_installation()
    from ipujax.api.cost.program_files import report_of_file

    return report_of_file(path, options)
