"""Runs the processes of a job and ends all of them with the first that fails."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from ipujax.errors import ConfigError

#: What others may still say after the first failure, and what SIGTERM may take.
_LAST_WORDS_SECONDS = 1.0
_GRACE_SECONDS = 5.0
_LOOK_SECONDS = 0.05
_LINES_SHOWN = 25
#: How mpiexec marks a line with its rank.
_MARK = re.compile(rb"^\[(\d+)\] ?")
_TRACEBACK = b"Traceback (most recent call last)"
#: In errors of processes that another one has failed.
_OF_ANOTHER = b"[hosts] needs all processes"


class Job:
    """The processes of one try, started at once.

    Args:
        commands: one for each rank, or one that starts all of them and marks their lines.
        size: number of ranks.
        logs: folder of a file for each rank.
    """

    def __init__(self, commands: Sequence[Sequence[str]], size: int, logs: Path) -> None:
        if shutil.which(commands[0][0]) is None:
            raise ConfigError(
                f"[launch] needs {commands[0][0]} to start processes on other hosts; got none. "
                "Install it (pip install mpich), or start the processes with srun."
            )
        logs.mkdir(parents=True, exist_ok=True)
        self._files = ExitStack()
        self._logs = [
            self._files.enter_context((logs / f"{rank}.log").open("ab")) for rank in range(size)
        ]
        self._lines: list[list[bytes]] = [[] for _ in range(size)]
        self._raised: list[int] = []  #: ranks, in the order of their tracebacks
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._readers: list[threading.Thread] = []
        for index, command in enumerate(commands):
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
            self._processes.append(process)
            rank = index if len(commands) == size else None
            assert process.stdout is not None
            reader = threading.Thread(target=self._read, args=(process.stdout, rank), daemon=True)
            reader.start()
            self._readers.append(reader)

    def wait(self) -> int:
        """Waits for all processes; the exit code of the first that failed, or 0.

        Whatever happens, no process of the job is left.
        """
        try:
            while True:
                codes = self._codes()
                if any(codes):
                    time.sleep(_LAST_WORDS_SECONDS)
                    codes = self._codes()
                    self._end((signal.SIGTERM,))
                    return self._report(codes)
                if None not in codes:
                    return 0
                time.sleep(_LOOK_SECONDS)
        except BaseException:  # Ctrl-C
            self._end((signal.SIGINT, signal.SIGTERM))
            raise
        finally:
            for reader in self._readers:
                reader.join(timeout=_GRACE_SECONDS)
            self._files.close()

    def _codes(self) -> list[int | None]:
        return [each.poll() for each in self._processes]

    def _read(self, stream: IO[bytes], rank: int | None) -> None:
        """Passes the lines of one process on, with their rank before them."""
        for line in stream:
            mark = _MARK.match(line) if rank is None else None
            own = int(mark[1]) if mark and int(mark[1]) < len(self._logs) else rank or 0
            text = line[mark.end() :] if mark else line
            with self._lock:
                if _TRACEBACK in text:
                    self._raised.append(own)
                self._lines[own] = [*self._lines[own][-_LINES_SHOWN + 1 :], text]
                self._logs[own].write(text)
                self._logs[own].flush()
                sys.stdout.buffer.write(b"[%d] " % own + text)
                sys.stdout.flush()

    def _end(self, signals: Sequence[signal.Signals]) -> None:
        """Sends each signal to what still runs, then SIGKILL."""
        for number in (*signals, signal.SIGKILL):
            running = [each for each in self._processes if each.poll() is None]
            for process in running:
                with suppress(ProcessLookupError):
                    process.send_signal(number)
            deadline = time.monotonic() + _GRACE_SECONDS
            while any(each.poll() is None for each in running) and time.monotonic() < deadline:
                time.sleep(_LOOK_SECONDS)

    def _report(self, codes: Sequence[int | None]) -> int:
        """Says which rank failed first, and returns its exit code.

        Args:
            codes: of all processes before the others were ended; None: it still ran.
        """
        with self._lock:
            index = self._culprit(codes)
            code = codes[index] if index < len(codes) else None
            code = code or 1
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            print(f"[launch] rank {index} failed first ({how}). Its last lines:", file=sys.stderr)
            for line in self._lines[index]:
                print("  " + line.decode(errors="replace").rstrip("\n"), file=sys.stderr)
        return 128 - code if code < 0 else code

    def _culprit(self, codes: Sequence[int | None]) -> int:
        """The rank whose failure is the cause of the others'.

        A process that raised may end later than those that miss it, so the first traceback counts
        that does not name another process, unless a process was killed.
        """
        killed = [rank for rank, code in enumerate(codes) if code is not None and code < 0]
        causes = [rank for rank in self._raised if _OF_ANOTHER not in b"".join(self._lines[rank])]
        ended = [rank for rank, code in enumerate(codes) if code]
        return [*killed, *causes, *self._raised, *ended][0]
