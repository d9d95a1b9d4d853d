"""Names of types that several rooms share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

#: What the PJRT client was created with: facts of the machine, by name (see
#: `config.platform_options`).
PlatformConfig: TypeAlias = Mapping[str, str | int | float | bool]

#: Turns a StableHLO artifact and serialised compile options into an executable's bytes.
CompileCallback: TypeAlias = Callable[[bytes, bytes, PlatformConfig], bytes]
