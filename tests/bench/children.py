"""Child processes of the benchmark: what can be measured once in a process, or in a fresh one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ipujax.errors import IpuError
from tests.bench import source_tree


def json_lines(
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
    good_codes: Sequence[int] = (0,),
) -> list[Any]:
    """What `python <arguments>` prints, one JSON value a line.

    Raises:
        IpuError: the child ended with another code than `good_codes`.
    """
    command = [sys.executable, *arguments]
    paths = [str(source_tree.ROOT), os.environ.get("PYTHONPATH", "")]
    child = subprocess.run(
        command,
        env={
            **os.environ,
            **(environment or {}),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    if child.returncode not in good_codes:
        raise IpuError(
            f"[bench] needs a child process that ends well; got exit code {child.returncode}: "
            f"{child.stderr[-2000:]}. Run it alone: {' '.join(command)}"
        )
    return [json.loads(line) for line in child.stdout.splitlines()]
