"""Prints a script that completes commands, options and files in bash, zsh or tcsh.

For bash: python -m ipujax completion bash > ~/.local/share/bash-completion/completions/ipujax
"""

from __future__ import annotations

import argparse

from ipujax.errors import ConfigError

SHELLS = ("bash", "zsh", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def run(arguments: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise ConfigError(
            "[completion] needs shtab; got an environment without it. Install ipujax[completion]."
        ) from None
    from ipujax.cli.main import whole_parser

    print(shtab.complete(whole_parser(), shell=arguments.shell))
    return 0
