"""No program of a generator may meet a bug of the compiler, whatever its test looks at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ipujax.compiler import bugs, compile
from ipujax.errors import InternalError


@pytest.fixture(autouse=True)
def no_bugs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[InternalError]]:
    """Those that were reported while the test ran."""
    found: list[InternalError] = []

    def report(error: Exception, stage: str) -> InternalError:
        found.append(bugs.report(error, stage))
        return found[-1]

    monkeypatch.setattr(compile, "report", report)
    yield found
    assert found == []
