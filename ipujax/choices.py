"""What arguments with a fixed choice of texts may be, as type checkers and editors know it."""

from __future__ import annotations

from typing import Literal, TypeAlias

#: Of gradients over micro-batches.
Accumulation: TypeAlias = Literal["mean", "sum", "running_mean"]
#: Of gradients or of losses over replicas.
Reduction: TypeAlias = Literal["mean", "sum"]
Activation: TypeAlias = Literal["sigmoid", "hard_sigmoid", "relu", "softmax", "tanh"]
Partials: TypeAlias = Literal["float", "half"]
SoftmaxKind: TypeAlias = Literal["plain", "stable", "scaled"]
ScheduleName: TypeAlias = Literal["grouped", "interleaved", "sequential"]
Priority: TypeAlias = Literal["cycles", "memory"]
#: When a stage of a pipeline is computed again.
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
#: TensorFlow's names of the dimension that is cut, and PopTorch's.
SerializationDimension: TypeAlias = Literal[
    "a_columns", "a_rows_b_columns", "b_rows", "input_channels", "reducing_dim", "output_channels"
]
CustomGradients: TypeAlias = Literal["separate", "joint"]
#: In PopTorch's upper case, too.
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
