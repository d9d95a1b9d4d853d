"""Type aliases that several packages share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

#: The options of a PJRT client: properties of the machine by name (`config.platform_options`).
PlatformConfig: TypeAlias = Mapping[str, str | int | float | bool]

#: (StableHLO artifact, serialised compile options, client options) -> executable.
CompileCallback: TypeAlias = Callable[[bytes, bytes, PlatformConfig], bytes]
