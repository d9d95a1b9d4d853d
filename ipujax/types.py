"""The type alias that several packages share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

#: The options of a PJRT client: properties of the machine by name (`config.platform_options`).
PlatformConfig: TypeAlias = Mapping[str, str | int | float | bool]
