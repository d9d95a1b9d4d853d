"""What an error of a wrong argument has to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ipujax as ipu

#: A call, what the error says that is needed, and what it got.
Refusal = tuple[Callable[[], Any], str, str]


def check_refused(refusal: Refusal, error: type[ipu.IpuError] = ipu.ConfigError) -> None:
    """The call raises this error, whose text is `[where] needs X; got Y. <imperative>.`"""
    call, needs, got = refusal
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert text.startswith("["), text
    assert f"] {needs}" in text, text
    assert f"; got {got}" in text, text
    assert text.endswith("."), text
