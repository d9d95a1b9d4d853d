"""The line that a long compile draws on a terminal."""

from __future__ import annotations

import io
import sys
import threading
import time

import pytest

from ipujax.host import compile_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def use_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Called in the test itself: pytest sets its own standard error after fixtures ran."""
    monkeypatch.setattr(compile_progress, "_QUIET_SECONDS", 0.02)
    monkeypatch.setattr(compile_progress, "_REFRESH_SECONDS", 0.01)
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    return stream


def test_a_long_compile_draws_its_stage_and_wipes_the_line(monkeypatch):
    terminal = use_terminal(monkeypatch)
    with compile_progress.compile_progress(("ingest", "lower")) as progress:
        progress.stage("ingest")
        time.sleep(0.1)
    assert "compiling [##########..........] ingest 0 s" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_what_is_tried_is_beside_the_bar(monkeypatch):
    terminal = use_terminal(monkeypatch)
    with (
        compile_progress.compile_note("trial 3"),
        compile_progress.compile_progress(("ingest", "lower")) as progress,
    ):
        progress.stage("ingest")
        time.sleep(0.1)
        progress.stage("tries ipu_outline=auto")
        time.sleep(0.1)
    shown = terminal.getvalue()
    assert "] ingest 0 s: trial 3" in shown
    assert "] ingest 0 s: tries ipu_outline=auto" in shown
    with compile_progress.compile_progress(("ingest",)) as progress:
        assert "trial" not in progress.line()


def test_a_short_compile_draws_nothing(monkeypatch):
    terminal = use_terminal(monkeypatch)
    with compile_progress.compile_progress(("ingest",)):
        pass
    assert terminal.getvalue() == ""


def test_nothing_is_drawn_where_there_is_no_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    before = threading.active_count()
    with compile_progress.compile_progress(("ingest",)):
        assert threading.active_count() == before
    assert stream.getvalue() == ""


class Notebook(io.StringIO):
    """Stands for `ipykernel.iostream.OutStream`, which is no terminal."""

    __module__ = "ipykernel.iostream"


def test_notebooks_draw_by_default_and_wipe_the_line_with_spaces(monkeypatch):
    use_terminal(monkeypatch)
    monkeypatch.setattr(sys, "stderr", notebook := Notebook())
    with compile_progress.compile_progress(("ingest", "lower")) as progress:
        progress.stage("ingest")
        time.sleep(0.1)
    shown = notebook.getvalue()
    assert "compiling [##########..........] ingest 0 s" in shown
    assert "\x1b" not in shown
    *_, spaces, last = shown.split("\r")
    assert last == ""
    assert set(spaces) == {" "}
    assert len(spaces) == len("compiling [##########..........] ingest 0 s")


def test_notebooks_draw_nothing_if_told_so(monkeypatch):
    use_terminal(monkeypatch)
    monkeypatch.setattr(sys, "stderr", notebook := Notebook())
    with compile_progress.compile_progress(("ingest",), "off"):
        time.sleep(0.1)
    assert notebook.getvalue() == ""
