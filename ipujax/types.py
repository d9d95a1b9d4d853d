"""Types that several packages share: element types, string choices, options of a client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import ml_dtypes
import numpy as np

#: The options of a PJRT client: properties of the machine by name (`config.platform_options`).
PlatformConfig: TypeAlias = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class ElementType:
    """One element type."""

    name: str  #: JAX's: "float32"
    stablehlo: str  #: StableHLO's: "f32"
    ifrt: int  #: its number in IFRT (xla/python/ifrt/dtype.proto)

    @property
    def numpy(self) -> np.dtype:
        return np.dtype(getattr(ml_dtypes, self.name, self.name))


ELEMENT_TYPES: tuple[ElementType, ...] = (
    ElementType("bool", "i1", 1),
    ElementType("int2", "i2", 26),
    ElementType("int4", "i4", 21),
    ElementType("int8", "i8", 2),
    ElementType("int16", "i16", 3),
    ElementType("int32", "i32", 4),
    ElementType("int64", "i64", 5),
    ElementType("uint2", "ui2", 27),
    ElementType("uint4", "ui4", 22),
    ElementType("uint8", "ui8", 6),
    ElementType("uint16", "ui16", 7),
    ElementType("uint32", "ui32", 8),
    ElementType("uint64", "ui64", 9),
    ElementType("float4_e2m1fn", "f4E2M1FN", 30),
    ElementType("float8_e3m4", "f8E3M4", 29),
    ElementType("float8_e4m3", "f8E4M3", 28),
    ElementType("float8_e4m3b11fnuz", "f8E4M3B11FNUZ", 23),
    ElementType("float8_e4m3fn", "f8E4M3FN", 20),
    ElementType("float8_e4m3fnuz", "f8E4M3FNUZ", 25),
    ElementType("float8_e5m2", "f8E5M2", 19),
    ElementType("float8_e5m2fnuz", "f8E5M2FNUZ", 24),
    ElementType("float8_e8m0fnu", "f8E8M0FNU", 31),
    ElementType("float16", "f16", 10),
    ElementType("bfloat16", "bf16", 16),
    ElementType("float32", "f32", 11),
    ElementType("float64", "f64", 12),
    ElementType("complex64", "complex<f32>", 15),
    ElementType("complex128", "complex<f64>", 18),
)

BY_NAME = {each.name: each for each in ELEMENT_TYPES}
BY_STABLEHLO = {each.stablehlo: each for each in ELEMENT_TYPES}

# Arguments that accept one of a fixed set of strings, typed for type checkers and editors.

#: How gradients are accumulated over micro-batches.
Accumulation: TypeAlias = Literal["mean", "sum", "running_mean"]
#: How gradients or losses are reduced over replicas.
Reduction: TypeAlias = Literal["mean", "sum"]
Activation: TypeAlias = Literal["sigmoid", "hard_sigmoid", "relu", "softmax", "tanh"]
Partials: TypeAlias = Literal["float", "half"]
SoftmaxKind: TypeAlias = Literal["plain", "stable", "scaled"]
ScheduleName: TypeAlias = Literal["grouped", "interleaved", "sequential"]
Priority: TypeAlias = Literal["cycles", "memory"]
#: When a pipeline stage is recomputed.
Recomputation: TypeAlias = Literal["auto", "then", "interleaved"]
OutfeedMode: TypeAlias = Literal["all", "last", "sum", "final"]
Operator: TypeAlias = Literal[
    "add", "mean", "square_add", "local", "mul", "min", "max", "logical_and", "logical_or"
]
WeightOperator: TypeAlias = Literal["local", "add", "mean"]
PartitionStrategy: TypeAlias = Literal["token", "encoding"]
EmbeddingUpdate: TypeAlias = Literal["add", "sorted", "combined"]
LossReduction: TypeAlias = Literal["sum", "mean", "none"]
Order: TypeAlias = Literal["descending", "ascending", "none"]
Float8Format: TypeAlias = Literal["F143", "F152"]
#: TensorFlow's and PopTorch's names of the dimension to split.
SerializationDimension: TypeAlias = Literal[
    "a_columns", "a_rows_b_columns", "b_rows", "input_channels", "reducing_dim", "output_channels"
]
CustomGradients: TypeAlias = Literal["separate", "joint"]
#: PopTorch's upper-case names are accepted, too.
ResetAction: TypeAlias = Literal[
    "ipu_reset",
    "partition_reset",
    "full_reset",
    "IPU_RESET",
    "PARTITION_RESET",
    "FULL_RESET",
]
Fetched: TypeAlias = Literal["none", "new", "all"]
OracleName: TypeAlias = Literal["cpu", "interpreter"]
Grouping: TypeAlias = Literal["line", "layer", "op", "direction", "stage", "block", "function"]
CheckpointBackend: TypeAlias = Literal["files", "orbax"]
BestMode: TypeAlias = Literal["min", "max"]
InitializerName: TypeAlias = Literal["zeros", "ones", "normal", "uniform"]
Fault: TypeAlias = Literal["link_error", "host_link_timeout", "ecc", "exchange_parity", "power"]
