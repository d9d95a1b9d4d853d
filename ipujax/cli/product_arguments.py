"""Options of matrix products and convolutions that commands share."""

from __future__ import annotations

import argparse


def add_product_arguments(parser: argparse.ArgumentParser) -> None:
    for kind, what in (("matmul", "matrix products"), ("conv", "convolutions")):
        parser.add_argument(
            f"--{kind}-amp",
            type=float,
            metavar="SHARE",
            help=f"available memory proportion of {what}, 0 to 1; default 0.6",
        )
        parser.add_argument(
            f"--{kind}-partial-type",
            choices=("float", "half"),
            help=f"type of the partial sums of {what} of float16; default float",
        )
