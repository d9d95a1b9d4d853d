"""Options of numbers and of what computes them: products, floating point, norms, linear algebra."""

from __future__ import annotations

from dataclasses import dataclass

from ipujax.config.option import option
from ipujax.config.product_options import (
    check_pooling_options,
    check_product_options,
    check_proportions,
)

#: Kinds of floating-point exceptions, named as in Poplar's FloatingPointBehaviour.
EXCEPTIONS = ("inv", "div0", "oflo")


@dataclass(frozen=True)
class ProductOptions:
    """Matrix products, convolutions and pooling."""

    partials_type: str = option(
        "float",
        "Type of the partial sums in float16 matmuls and convolutions.",
        "IPUJAX_PARTIALS_TYPE",
        ("float", "half"),
        scoped=True,
    )
    available_memory_proportion: float = option(
        0.6,
        "Share of tile memory that a matmul or convolution may use for temporaries; no effect "
        "on lookups of rows, which have one plan on the IPU Model.",
        "IPUJAX_AVAILABLE_MEMORY_PROPORTION",
        bounds=(0.0, 1.0),
        scoped=True,
    )
    available_memory_proportions: str = option(
        "",
        "available_memory_proportion of each IPU of a device, with commas between, for operations "
        "without one of their own; an empty place: as for all.",
        "IPUJAX_AVAILABLE_MEMORY_PROPORTIONS",
        check=check_proportions,
    )
    matmul_options: str = option(
        "",
        "More options of PopLibs for matrix products, as a JSON object; for all, or by layer or "
        "source line.",
        "IPUJAX_MATMUL_OPTIONS",
        check=check_product_options,
        scoped=True,
    )
    convolution_options: str = option(
        "",
        "More options of PopLibs for convolutions, as matmul_options.",
        "IPUJAX_CONVOLUTION_OPTIONS",
        check=check_product_options,
        scoped=True,
    )
    clear_pass_type: bool = option(
        False,
        "Do not tell PopLibs that products are of a training step's forward pass.",
        "IPUJAX_CLEAR_PASS_TYPE",
        scoped=True,
    )
    pooling_options: str = option(
        "",
        "Options of PopLibs for pooling, as a JSON object.",
        "IPUJAX_POOLING_OPTIONS",
        check=check_pooling_options,
        no_effect="the model has one plan for windows, which maps results linearly and sums in "
        "float32",
    )


@dataclass(frozen=True)
class FloatingPointOptions:
    """64-bit types, rounding, overflow and exceptions."""

    x64: str = option(
        "emulate",
        "64-bit types, which IPUs lack: emulate exactly, compute in 32 bits, or raise an error.",
        "IPUJAX_X64",
        ("emulate", "demote", "error"),
    )
    stochastic_rounding: bool = option(
        False,
        "Round float16 results up or down at random, so that the mean is exact.",
        "IPUJAX_STOCHASTIC_ROUNDING",
        scoped=True,
    )
    half_overflow: str = option(
        "infinity",
        "What float16 results beyond 65504 become; hardware has only saturate and nan.",
        "IPUJAX_HALF_OVERFLOW",
        ("infinity", "saturate", "nan"),
        scoped=True,
    )
    floating_point_exceptions: str = option(
        "",
        "Exceptions that end the program with an error: inv is NaN.",
        "IPUJAX_FLOATING_POINT_EXCEPTIONS",
        allowed=EXCEPTIONS,
        several=True,
        scoped=True,
    )
    fast_math: bool = option(
        False,
        "Allow rewrites that are valid for real numbers but not for every float.",
        "IPUJAX_FAST_MATH",
        scoped=True,
    )


@dataclass(frozen=True)
class NormOptions:
    """Norms of `ipu.nn`, read where they are traced."""

    use_stable_statistics: bool = option(
        False,
        "Norms of ipu.nn that are not told otherwise subtract the mean before the variance is "
        "computed.",
        "IPUJAX_USE_STABLE_STATISTICS",
    )
    batch_norm_replica_group_size: int = option(
        1,
        "Consecutive replicas that share statistics, in each ipu.nn.batch_norm that is not told "
        "otherwise.",
        "IPUJAX_BATCH_NORM_REPLICA_GROUP_SIZE",
        bounds=(1, 2**16),
    )


@dataclass(frozen=True)
class LibraryOptions:
    """Factorisations, and operations that share an operand."""

    cholesky_block_size: int = option(
        0,
        "Columns that a Cholesky factorization computes on one tile before it updates the others; "
        "0: PopLibs' choice.",
        "IPUJAX_CHOLESKY_BLOCK_SIZE",
        bounds=(0, 2**20),
    )
    triangular_solve_expander_block_size: int = option(
        0,
        "Rows that a triangular solve computes on one tile before it updates the others; 0: "
        "PopLibs' choice.",
        "IPUJAX_TRIANGULAR_SOLVE_EXPANDER_BLOCK_SIZE",
        bounds=(0, 2**20),
    )
    combine_matmuls: bool = option(
        False,
        "Make products that share an operand one product of all others.",
        "IPUJAX_COMBINE_MATMULS",
    )
    combine_embedding_lookups: bool = option(
        False,
        "Make lookups of one table one lookup, which may need more memory.",
        "IPUJAX_COMBINE_EMBEDDING_LOOKUPS",
    )
