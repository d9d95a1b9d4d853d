"""A compiler that reads the Poplar headers once for many small libraries of custom ops."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

#: It precompiles the headers with the flags of the first library. Where a later library has flags
#: that do not fit, GCC reads the headers as text. Two thirds of a compilation are these headers.
WRAPPER = """#!/bin/bash
case " $* " in *" -shared "*) ;; *) exec {compiler} "$@" ;; esac
if [ ! -e {prelude}.gch ]; then
  flags=() after=
  for word in "$@"; do
    case "$after$word" in
      -o) after=output: ;;
      output:* | -shared | *.cpp) after= ;;
      *) flags+=("$word") ;;
    esac
  done
  {compiler} "${{flags[@]}}" -x c++-header {prelude} -o {prelude}.$$ &&
    mv {prelude}.$$ {prelude}.gch
fi
exec {compiler} -include {prelude} "$@"
"""


def compiler_with(headers: str) -> Iterator[None]:
    """For a fixture: while it lives, $CXX begins each library with these headers."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        prelude, wrapper = Path(folder) / "prelude.hpp", Path(folder) / "c++"
        prelude.write_text(headers)
        compiler = os.environ.get("CXX") or "c++"
        wrapper.write_text(WRAPPER.format(compiler=compiler, prelude=prelude))
        wrapper.chmod(0o755)
        patch.setenv("CXX", str(wrapper))
        yield
