"""Oracles for what a StableHLO program computes, each in a child process, which may crash."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Any

import numpy as np

from ipujax.errors import OracleError
from ipujax.types import OracleName
from ipujax.verification import child

#: In the order of reports: JAX's CPU backend, and StableHLO's reference interpreter.
ORACLES: tuple[OracleName, ...] = ("cpu", "interpreter")

#: By default XLA may keep float16 values in float32 between ops; an oracle must round each.
_XLA_FLAGS = "--xla_allow_excess_precision=false --xla_cpu_multi_thread_eigen=false"


class Oracle:
    """One child process, started at the first program and again after a crash.

    Not thread-safe. `close` ends the process; so does the end of this one, which closes its stdin.

    Args:
        name: "interpreter" or a JAX platform.
        timeout: seconds that one program may take.
        options: of the platform's compiler.
    """

    def __init__(self, name: str, timeout: float = 60.0, options: Mapping[str, Any] | None = None):
        self.name = name
        self._options = dict(options or {})
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def run(self, code: bytes | str, arrays: Sequence[np.ndarray]) -> list[Any]:
        """The results of a program; `code` is StableHLO as bytecode or text.

        Raises:
            OracleError: it refused the program, took too long, or crashed.
        """
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if isinstance(code, str):
                child.send(process.stdin, "text", code.encode(), arrays)
            else:
                child.send(process.stdin, "bytecode", code, arrays)
            self._wait(process)
            kind, text, results = child.receive(process.stdout)
        except (EOFError, BrokenPipeError) as error:
            raise self._died(process) from error
        if kind == "error":
            raise OracleError(
                f"[verify] needs a program that {self.name} can run; got {text.decode()}. "
                "Use another oracle for it."
            )
        return results

    def close(self) -> None:
        """Ends the process, if it is running."""
        process, self._process = self._process, None
        log, self._log = self._log, None
        if log is not None:
            log.close()
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()

    def _start(self) -> subprocess.Popen[bytes]:
        platform = "cpu" if self.name == "interpreter" else self.name
        flags = " ".join(filter(None, (os.environ.get("XLA_FLAGS"), _XLA_FLAGS)))
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_ENABLE_X64": "1"}
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        path = os.pathsep.join(filter(None, sys.path))
        return subprocess.Popen(
            [sys.executable, "-m", child.__name__, self.name, json.dumps(self._options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={
                **os.environ,
                **quiet,
                "JAX_PLATFORMS": platform,
                "XLA_FLAGS": flags,
                "PYTHONPATH": path,
            },
        )

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(self._timeout):
                self.close()
                raise OracleError(
                    f"[verify] needs an answer from {self.name} within {self._timeout:g} s; "
                    "got none. Verify a smaller program, or pass a larger timeout."
                )

    def _died(self, process: subprocess.Popen[bytes]) -> OracleError:
        status, words = process.wait(), ""
        if self._log is not None:
            self._log.seek(0)
            lines = self._log.read().decode(errors="replace").strip().splitlines()
            words = f" and said {lines[-1][:300]!r}" if lines else ""
        self.close()
        return OracleError(
            f"[verify] needs {self.name} to survive the program; got exit status {status}{words}. "
            "Use another oracle for it."
        )
