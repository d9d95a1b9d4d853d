"""Reports that Poplar's engine options ask for: `autoReport.all` and `autoReport.directory`."""

from __future__ import annotations

import re
import threading
from collections import Counter
from pathlib import Path

from ipujax._poplar import _poplar as ipu
from ipujax.compiler.engine_options import engine_flags, report_folder
from ipujax.config.options import CompileConfig, warn_once
from ipujax.host.new_files import replacing

_lock = threading.Lock()
#: The number of programs written, by folder and name.
_written: Counter[tuple[str, str]] = Counter()


def write_report(name: str, options: CompileConfig, executable: bytes) -> None:
    """Writes `jit_f/profile.pop` to the folder that the options name, if they ask for reports.

    The file has the contents of the executable's profile, and one run by account;
    `pva::openReport` of the IPU Model reads it. Another program of the same name gets `jit_f-2`.
    Warns if the folder is not writable.
    """
    folder = report_folder(options)
    if not folder:
        return
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:80]
    with _lock:
        _written[folder, plain] += 1
        number = _written[folder, plain]
    place = Path(folder) / (plain if number == 1 else f"{plain}-{number}")
    report = ipu.engine.reportOfImage(executable, engine_flags(options))
    try:
        place.mkdir(parents=True, exist_ok=True)
        with replacing(place / "profile.pop") as file:
            file.write(report)
    except OSError as error:
        warn_once(
            "[config] autoReport.directory needs a writable folder; got %s (%s). "
            "Programs run without their reports.",
            folder,
            error.strerror,
        )
