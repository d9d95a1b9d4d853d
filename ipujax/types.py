"""Names of types that several rooms share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

#: What the PJRT client was created with: facts of the machine, by name (see
#: `config.platform_options`).
PlatformConfig: TypeAlias = Mapping[str, str | int | float | bool]

#: Turns a StableHLO artifact and serialised compile options into an executable's bytes.
CompileCallback: TypeAlias = Callable[[bytes, bytes, PlatformConfig], bytes]

#: Runs the host callback of that id on row-major arrays; returns its results.
HostCallback: TypeAlias = Callable[[str, Sequence[np.ndarray]], Sequence[np.ndarray]]
