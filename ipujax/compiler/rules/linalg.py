"""Factorisations and solves: two ops of StableHLO, and the custom calls that JAX makes of the rest.

JAX lowers its primitives of linear algebra for "ipu" as it does for its CPU backend
(`jax_compat.lower_linalg_as_on_cpu`), so the targets are LAPACK's names, with a letter for the
type; beside them stand the few that JAX makes for any backend. A complex value is two tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ipujax.compiler.ir import Op, declare
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.registry import custom_call_rule, rule
from ipujax.errors import UnsupportedOpError

declare(
    "cholesky",
    "triangular_solve",
    partition="matrices",
    complex="pairs told",
    no_double=True,
)

#: The tensors of one value: [real], or [real, imaginary].
Parts: TypeAlias = "list[ipu.Tensor]"


def parts_of(builder: Builder, op: Op) -> list[Parts]:
    """The op's operands as float32, those of a complex value together."""
    tensors = iter(_as_float(builder, tensor, op) for tensor in builder.operands(op))
    kinds = op.attrs.get("complex_operands", (False,) * len(op.operands))
    return [[next(tensors) for _ in range(2 if kind else 1)] for kind in kinds]


def _as_float(builder: Builder, tensor: ipu.Tensor, op: Op) -> ipu.Tensor:
    poplar = ipu.poplar
    if tensor.elementType() != poplar.HALF:
        return tensor
    return ipu.popops.cast(builder.graph, tensor, poplar.FLOAT, builder.program, builder.debug(op))


def results_of(builder: Builder, op: Op, values: Sequence[Parts]) -> list[ipu.Tensor]:
    """The tensors of all values in order, in the types that the op's results have."""
    tensors = [tensor for parts in values for tensor in parts]
    for index, value in enumerate(op.results):
        if value.dtype == "f16":
            tensors[index] = ipu.popops.cast(
                builder.graph,
                tensors[index],
                ipu.poplar.HALF,
                builder.program,
                builder.debug(op),
            )
    return builder.round_bfloat16(op, tensors)


@rule("cholesky")
def cholesky(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """One triangle; NaN where the matrix is not positive definite."""
    (a,) = parts_of(builder, op)
    factor = ipu.popx.cholesky(
        builder.graph, a, bool(op.attrs["lower"]), builder.program, builder.debug(op)
    )
    return results_of(builder, op, [factor])


@rule("triangular_solve")
def triangular_solve(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """X of op(A) X = B or X op(A) = B."""
    a, b = parts_of(builder, op)
    attrs = op.attrs
    letter = {"NO_TRANSPOSE": "N", "TRANSPOSE": "T", "ADJOINT": "C"}[attrs["transpose_a"]]
    solved = ipu.popx.triangularSolve(
        builder.graph,
        a,
        b,
        bool(attrs["left_side"]),
        bool(attrs["lower"]),
        bool(attrs["unit_diagonal"]),
        letter,
        builder.program,
        builder.debug(op),
    )
    return results_of(builder, op, [solved])


# Custom calls ------------------------------------------------------------------------------------

#: What a target does: (builder, its parameters, the operands' parts) -> the results' parts.
Target: TypeAlias = (
    "Callable[[Builder, dict[str, Any], list[Parts], ipu.DebugContext], Sequence[Parts]]"
)


def _target(*names: str) -> Callable[[Target], Target]:
    def register(function: Target) -> Target:
        def call(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
            config = op.attrs.get("mhlo.backend_config") or {}
            made = function(builder, config, parts_of(builder, op), builder.debug(op))
            return results_of(builder, op, made)

        custom_call_rule(*names)(call)
        return function

    return register


def _lapack(real: str, imaginary: str = "") -> tuple[str, str]:
    """JAX's names of a LAPACK routine for float32 and complex64."""
    return f"lapack_s{real}_ffi", f"lapack_c{imaginary or real}_ffi"


def _is(config: dict[str, Any], name: str, letter: str) -> bool:
    """JAX hands LAPACK's letters on as their codes."""
    return bool(config[name] == ord(letter))


@_target(*_lapack("trsm"))
def trsm(
    builder: Builder, config: dict[str, Any], operands: list[Parts], debug: ipu.DebugContext
) -> Sequence[Parts]:
    """As `triangular_solve`."""
    a, b = operands
    return [
        ipu.popx.triangularSolve(
            builder.graph,
            a,
            b,
            _is(config, "side", "L"),
            _is(config, "uplo", "L"),
            _is(config, "diag", "U"),
            chr(config["trans_x"]),
            builder.program,
            debug,
        )
    ]


@_target(*_lapack("getrf"))
def getrf(
    builder: Builder, config: dict[str, Any], operands: list[Parts], debug: ipu.DebugContext
) -> Sequence[Parts]:
    """LU with partial pivoting: factors, rows swapped (from 1), status."""
    return ipu.popx.lu(builder.graph, operands[0], builder.program, debug)


@custom_call_rule("ipu_lu_pivots_to_permutation")
def lu_pivots_to_permutation(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """The order of rows that swaps, counted from 0, make one after another."""
    (pivots,) = builder.operands(op)
    size = op.results[0].shape[-1]
    return [
        ipu.popx.permutationOfPivots(
            builder.graph, pivots, size, builder.program, builder.debug(op)
        )
    ]


@_target("Qr", *_lapack("geqrf"))
def geqrf(
    builder: Builder, config: dict[str, Any], operands: list[Parts], debug: ipu.DebugContext
) -> Sequence[Parts]:
    """Householder QR: R over the reflectors, and their factors."""
    return ipu.popx.qr(builder.graph, operands[0], builder.program, debug)


@_target(*_lapack("geqp3"))
def geqp3(
    builder: Builder, config: dict[str, Any], operands: list[Parts], debug: ipu.DebugContext
) -> Sequence[Parts]:
    """The same with column pivoting; columns count from 1."""
    a, (columns,) = operands
    return ipu.popx.qrWithPivots(builder.graph, a, columns, builder.program, debug)


@_target("ProductOfElementaryHouseholderReflectors", *_lapack("orgqr", "ungqr"))
def orgqr(
    builder: Builder, config: dict[str, Any], operands: list[Parts], debug: ipu.DebugContext
) -> Sequence[Parts]:
    """Q from the reflectors."""
    factors, tau = operands
    return [ipu.popx.householderProduct(builder.graph, factors, tau, builder.program, debug)]


@_target(*_lapack("ormqr", "unmqr"))
def ormqr(
    builder: Builder, config: dict[str, Any], operands: list[Parts], debug: ipu.DebugContext
) -> Sequence[Parts]:
    """Q C, C Q, or with Q^H."""
    factors, tau, c = operands
    left, adjoint = bool(config["left"]), bool(config["transpose"])
    return [
        ipu.popx.householderMultiply(
            builder.graph, factors, tau, c, left, adjoint, builder.program, debug
        )
    ]


@_target(*_lapack("syevd", "heevd"))
def syevd(
    builder: Builder, config: dict[str, Any], operands: list[Parts], debug: ipu.DebugContext
) -> Sequence[Parts]:
    """Eigenvectors, eigenvalues, status."""
    lower = _is(config, "uplo", "L")
    return ipu.popx.eigh(builder.graph, operands[0], lower, builder.program, debug)


@_target(*_lapack("sytrd", "hetrd"))
def sytrd(
    builder: Builder, config: dict[str, Any], operands: list[Parts], debug: ipu.DebugContext
) -> Sequence[Parts]:
    """Tridiagonal form: reflectors, diagonal, off-diagonal, factors, status."""
    lower = _is(config, "uplo", "L")
    return ipu.popx.tridiagonal(builder.graph, operands[0], lower, builder.program, debug)


@_target(*_lapack("geev"))
def geev(
    builder: Builder, config: dict[str, Any], operands: list[Parts], debug: ipu.DebugContext
) -> Sequence[Parts]:
    """Eigenvalues (of a real matrix as two results), left and right vectors, status."""
    left, right = _is(config, "compute_left", "V"), _is(config, "compute_right", "V")
    return ipu.popx.eig(builder.graph, operands[0], left, right, builder.program, debug)


@_target(*_lapack("gees"))
def gees(
    builder: Builder, config: dict[str, Any], operands: list[Parts], debug: ipu.DebugContext
) -> Sequence[Parts]:
    """Schur form, vectors, eigenvalues (as above), how many were put first, status."""
    if not _is(config, "sort", "N"):
        raise UnsupportedOpError([("schur", "it does not sort eigenvalues; do that after it", "")])
    vectors = _is(config, "mode", "V")
    *made, status = ipu.popx.schur(builder.graph, operands[0], vectors, builder.program, debug)
    shape = status[0].shape
    zeros = np.zeros(shape, np.int32).tobytes()
    none = builder.graph.addConstantBytes(ipu.poplar.INT, shape, zeros, debug)
    return [*made, [none], status]


@_target(*_lapack("gehrd"))
def gehrd(
    builder: Builder, config: dict[str, Any], operands: list[Parts], debug: ipu.DebugContext
) -> Sequence[Parts]:
    """Hessenberg form over the reflectors, their factors, status."""
    return ipu.popx.hessenberg(builder.graph, operands[0], builder.program, debug)


def _svd(
    builder: Builder, config: dict[str, Any], a: Parts, divide: bool, debug: ipu.DebugContext
) -> Sequence[Parts]:
    vectors, full = not _is(config, "mode", "N"), _is(config, "mode", "A")
    s, u, vt, status = ipu.popx.svd(builder.graph, a, vectors, full, divide, builder.program, debug)
    return [a, s, u, vt, status]  # LAPACK destroys A; nothing reads that result


@_target(*_lapack("gesdd"))
def gesdd(
    builder: Builder, config: dict[str, Any], operands: list[Parts], debug: ipu.DebugContext
) -> Sequence[Parts]:
    """Singular values and vectors by divide and conquer."""
    return _svd(builder, config, operands[0], True, debug)


@_target(*_lapack("gesvd"))
def gesvd(
    builder: Builder, config: dict[str, Any], operands: list[Parts], debug: ipu.DebugContext
) -> Sequence[Parts]:
    """Singular values and vectors by QR iteration."""
    return _svd(builder, config, operands[0], False, debug)


def _tridiagonal_solve(
    builder: Builder, operands: list[Parts], perturb: bool, debug: ipu.DebugContext
) -> Sequence[Parts]:
    lower, diagonal, upper, b = operands
    return ipu.popx.tridiagonalSolve(
        builder.graph, lower, diagonal, upper, b, perturb, builder.program, debug
    )


@_target(*_lapack("gtsv"))
def gtsv(
    builder: Builder, config: dict[str, Any], operands: list[Parts], debug: ipu.DebugContext
) -> Sequence[Parts]:
    """Tridiagonal systems: the diagonals (destroyed in LAPACK; nothing reads them), X, status."""
    return [*operands[:3], *_tridiagonal_solve(builder, operands, False, debug)]


@_target("tridiagonal_solve_perturbed_ffi")
def perturbed(
    builder: Builder, config: dict[str, Any], operands: list[Parts], debug: ipu.DebugContext
) -> Sequence[Parts]:
    """The same with tiny pivots raised, so that X stays finite."""
    return _tridiagonal_solve(builder, operands, True, debug)[:1]
