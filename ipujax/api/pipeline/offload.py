"""Values that a pipeline keeps in the host's memory ("streaming memory"), not on the tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ipujax import jax_compat
from ipujax.annotations.placement import DEVICE, HOST
from ipujax.api.arguments import whole_number
from ipujax.errors import PipelineError


@dataclass(frozen=True)
class Offload:
    """What a pipeline keeps in the host's memory while it runs, if it is large enough."""

    activations: bool  #: what forward passes keep for backward passes
    accumulators: bool  #: sums over the micro-batches, between two micro-batches
    weights: bool  #: what all micro-batches share
    minimum_bytes: int

    def attribute(self) -> int | None:
        """The smallest activation to offload, in bytes; None if none is offloaded."""
        return self.minimum_bytes if self.activations else None

    def store(self, x: Any) -> Any:
        """The array in the host's memory, if it is large enough."""
        return to_memory_p.bind(x, kind=HOST) if self._is_large(x) else x

    def load(self, x: Any) -> Any:
        """The array on the device again."""
        return to_memory_p.bind(x, kind=DEVICE) if self._is_large(x) else x

    def _is_large(self, x: Any) -> bool:
        return int(x.size * x.dtype.itemsize) >= self.minimum_bytes


def check_minimum(where: str, minimum_bytes: object) -> int:
    """Checks a user's `minimum_remote_tensor_size`."""
    number = whole_number(minimum_bytes)
    if number is None or number < 1:
        raise PipelineError(
            f"[{where}] needs a minimum_remote_tensor_size of at least 1 byte; got "
            f"{minimum_bytes!r}. Pass a number of bytes."
        )
    return number


#: The array itself, in another memory of an IPU. Its type does not show the memory: leaving it out,
#: as on other platforms, changes nothing.
to_memory_p = Primitive("ipu_to_memory")
to_memory_p.def_impl(lambda x, kind: x)
to_memory_p.def_abstract_eval(lambda aval, kind: aval)
ad.deflinear2(to_memory_p, lambda cotangent, x, kind: [cotangent])
batching.defvectorized(to_memory_p)
mlir.register_lowering(to_memory_p, jax_compat.lower_to_memory)
