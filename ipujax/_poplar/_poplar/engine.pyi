import collections.abc
import typing

from ipujax._poplar._poplar import poplar

class TensorSpec:
    def __init__(
        self,
        dtype: str,
        shape: collections.abc.Sequence[typing.SupportsIndex],
        bytes: typing.SupportsIndex,
        sharding: bytes = b"",
    ) -> None: ...

class Signature:
    def __init__(
        self,
        name: str,
        inputs: collections.abc.Sequence[TensorSpec] = [],
        outputs: collections.abc.Sequence[TensorSpec] = [],
        output_alias: collections.abc.Sequence[typing.SupportsIndex] = [],
        has_host_callbacks: bool = False,
        num_replicas: typing.SupportsIndex = 1,
        interface: str = "",
    ) -> None: ...
    @property
    def inputs(self) -> list[TensorSpec]: ...

def buildImage(
    graph: poplar.Graph,
    program: poplar.program.Program,
    signature: Signature,
    stablehlo: bytes = b"",
    options: collections.abc.Mapping[str, int | float | str] = {},
) -> bytes: ...
def inspectImage(image: bytes) -> dict[str, typing.Any]: ...

mechanisms: list[str]
