"""Options of matrix products and convolutions that commands share."""

from __future__ import annotations

import argparse


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"needs a number above 0, at most 1; got {text!r}")
    return share


def add_product_arguments(parser: argparse.ArgumentParser) -> None:
    for kind, what in (("matmul", "matrix products"), ("conv", "convolutions")):
        parser.add_argument(
            f"--{kind}-amp",
            type=_share,
            metavar="SHARE",
            help=f"available memory proportion of {what}, 0 to 1; default 0.6",
        )
        parser.add_argument(
            f"--{kind}-partial-type",
            choices=("float", "half"),
            help=f"type of the partial sums of {what} of float16; default float",
        )
