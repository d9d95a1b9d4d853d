"""Factorisations and solves: two StableHLO ops, and the custom calls that JAX uses for the rest.

JAX lowers its primitives of linear algebra for "ipu" as it does for its CPU backend
(`jax_compat.lower_linalg_as_on_cpu`), so the targets are LAPACK's names, with a letter for the
type, and the few that JAX uses for any backend. A complex value is two tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ipujax.compiler.ir import Op, Shape, declare
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.call_signatures import SIGNATURES, parsed
from ipujax.compiler.rules.registry import custom_call_rule, rule
from ipujax.errors import UnsupportedOpError

declare(
    "cholesky",
    "triangular_solve",
    partition="matrices",
    complex="marked pairs",
)

#: The tensors of one value: [real], or [real, imaginary].
Parts: TypeAlias = "list[ipu.Tensor]"


def parts_of(builder: Builder, op: Op) -> list[Parts]:
    """The op's operands as float32 or float64, those of a complex value together."""
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
    """One triangle; NaN if the matrix is not positive definite."""
    (a,) = parts_of(builder, op)
    factor = ipu.popx.cholesky(
        builder.graph,
        a,
        bool(op.attrs["lower"]),
        builder.program,
        builder.debug(op),
        builder.options.cholesky_block_size,
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
        builder.options.triangular_solve_expander_block_size,
    )
    return results_of(builder, op, [solved])


# Custom calls ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """One custom call, as the function of its target sees it."""

    builder: Builder
    config: dict[str, Any]  #: its parameters
    operands: list[Parts]
    matrices: frozenset[Shape]  #: rows and columns of the results
    debug: ipu.DebugContext

    @property
    def graph(self) -> ipu.Graph:
        return self.builder.graph

    @property
    def program(self) -> ipu.Sequence:
        return self.builder.program

    def has(self, name: str, letter: str) -> bool:
        """Whether a parameter is this LAPACK letter; JAX passes letters as their codes."""
        return bool(self.config[name] == ord(letter))


#: The function of a target: it returns the results' parts.
Target: TypeAlias = Callable[[Call], Sequence[Parts]]


def _target(*names: str, signature: str) -> Callable[[Target], Target]:
    """Registers the function of these targets; `call_signatures` says what a signature is."""
    SIGNATURES.update(dict.fromkeys(names, parsed(signature)))

    def register(function: Target) -> Target:
        def lower(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
            config = op.attrs.get("mhlo.backend_config") or {}
            matrices = frozenset(value.shape[-2:] for value in op.results)
            call = Call(builder, config, parts_of(builder, op), matrices, builder.debug(op))
            return results_of(builder, op, function(call))

        custom_call_rule(*names, double=True, complex="marked pairs")(lower)
        return function

    return register


def _lapack(real: str, imaginary: str = "") -> list[str]:
    """JAX's names of a LAPACK routine for float32, float64, complex64 and complex128."""
    stems = {"s": real, "d": real, "c": imaginary or real, "z": imaginary or real}
    return [f"lapack_{letter}{stem}_ffi" for letter, stem in stems.items()]


@_target(
    *_lapack("trsm"),
    signature="""
    side=L uplo=LU diag=NU trans_x=NTC: T[m m] T[m n] -> T[m n]
    side=R uplo=LU diag=NU trans_x=NTC: T[n n] T[m n] -> T[m n]
    """,
)
def trsm(call: Call) -> Sequence[Parts]:
    """As `triangular_solve`."""
    a, b = call.operands
    return [
        ipu.popx.triangularSolve(
            call.graph,
            a,
            b,
            call.has("side", "L"),
            call.has("uplo", "L"),
            call.has("diag", "U"),
            chr(call.config["trans_x"]),
            call.program,
            call.debug,
            call.builder.options.triangular_solve_expander_block_size,
        )
    ]


@_target(*_lapack("getrf"), signature="T[m n] -> T[m n] i32[k] i32[]")
def getrf(call: Call) -> Sequence[Parts]:
    """LU with partial pivoting: factors, rows swapped (from 1), status."""
    return ipu.popx.lu(call.graph, call.operands[0], call.program, call.debug)


SIGNATURES["ipu_lu_pivots_to_permutation"] = parsed("i32[p] -> i32[m]")


@custom_call_rule("ipu_lu_pivots_to_permutation")
def lu_pivots_to_permutation(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """The order of rows after all swaps, which count from 0."""
    (pivots,) = builder.operands(op)
    size = op.results[0].shape[-1]
    return [
        ipu.popx.permutationOfPivots(
            builder.graph, pivots, size, builder.program, builder.debug(op)
        )
    ]


@_target("Qr", *_lapack("geqrf"), signature="T[m n] -> T[m n] T[k]")
def geqrf(call: Call) -> Sequence[Parts]:
    """Householder QR: R over the reflectors, and their factors."""
    return ipu.popx.qr(call.graph, call.operands[0], call.program, call.debug)


@_target(*_lapack("geqp3"), signature="T[m n] i32[n] -> T[m n] i32[n] T[k]")
def geqp3(call: Call) -> Sequence[Parts]:
    """The same with column pivoting; columns count from 1."""
    a, (columns,) = call.operands
    return ipu.popx.qrWithPivots(call.graph, a, columns, call.program, call.debug)


@_target(
    "ProductOfElementaryHouseholderReflectors",
    *_lapack("orgqr", "ungqr"),
    signature="T[m n] T[p] -> T[m n]",
)
def orgqr(call: Call) -> Sequence[Parts]:
    """Q from the reflectors."""
    factors, tau = call.operands
    return [ipu.popx.householderProduct(call.graph, factors, tau, call.program, call.debug)]


@_target(
    *_lapack("ormqr", "unmqr"),
    signature="""
    left=1 transpose=01: T[m q] T[p] T[m n] -> T[m n]
    left=0 transpose=01: T[n q] T[p] T[m n] -> T[m n]
    """,
)
def ormqr(call: Call) -> Sequence[Parts]:
    """Q C, C Q, or with Q^H."""
    factors, tau, c = call.operands
    left, adjoint = bool(call.config["left"]), bool(call.config["transpose"])
    return [
        ipu.popx.householderMultiply(
            call.graph, factors, tau, c, left, adjoint, call.program, call.debug
        )
    ]


@_target(*_lapack("syevd", "heevd"), signature="uplo=LU: T[n n] -> T[n n] R[n] i32[]")
def syevd(call: Call) -> Sequence[Parts]:
    """Eigenvectors, eigenvalues, status."""
    lower = call.has("uplo", "L")
    return ipu.popx.eigh(call.graph, call.operands[0], lower, call.program, call.debug)


@_target(*_lapack("sytrd", "hetrd"), signature="uplo=LU: T[n n] -> T[n n] R[n] R[n-1] T[n-1] i32[]")
def sytrd(call: Call) -> Sequence[Parts]:
    """Tridiagonal form: reflectors, diagonal, off-diagonal, factors, status."""
    lower = call.has("uplo", "L")
    return ipu.popx.tridiagonal(call.graph, call.operands[0], lower, call.program, call.debug)


@_target(
    *_lapack("geev"),
    signature="""
    compute_left=NV compute_right=NV: R[n n] -> R[n] R[n] C[n n] C[n n] i32[]
    compute_left=NV compute_right=NV: C[n n] -> C[n] C[n n] C[n n] i32[]
    """,
)
def geev(call: Call) -> Sequence[Parts]:
    """Eigenvalues (of a real matrix as two results), left and right vectors, status."""
    left, right = call.has("compute_left", "V"), call.has("compute_right", "V")
    return ipu.popx.eig(call.graph, call.operands[0], left, right, call.program, call.debug)


@_target(
    *_lapack("gees"),
    signature="""
    mode=NV sort=NS: R[n n] -> R[n n] R[n n] R[n] R[n] i32[] i32[]
    mode=NV sort=NS: C[n n] -> C[n n] C[n n] C[n] i32[] i32[]
    """,
)
def gees(call: Call) -> Sequence[Parts]:
    """Schur form, vectors, eigenvalues (as above), how many were put first, status."""
    if not call.has("sort", "N"):
        raise UnsupportedOpError([("schur", "it does not sort eigenvalues; do that after it", "")])
    vectors = call.has("mode", "V")
    *made, status = ipu.popx.schur(call.graph, call.operands[0], vectors, call.program, call.debug)
    shape = status[0].shape
    zeros = np.zeros(shape, np.int32).tobytes()
    none = call.graph.addConstantBytes(ipu.poplar.INT, shape, zeros, call.debug)
    return [*made, [none], status]


@_target(*_lapack("gehrd"), signature="T[n n] -> T[n n] T[n-1] i32[]")
def gehrd(call: Call) -> Sequence[Parts]:
    """Hessenberg form over the reflectors, their factors, status."""
    return ipu.popx.hessenberg(call.graph, call.operands[0], call.program, call.debug)


_SVD = """
    mode=A: T[m n] -> T[m n] R[k] T[m m] T[n n] i32[]
    mode=S: T[m n] -> T[m n] R[k] T[m k] T[k n] i32[]
    mode=N: T[m n] -> T[m n] R[k] T[m m] T[n n] i32[]
    mode=N: T[m n] -> T[m n] R[k] T[m k] T[k n] i32[]
    """


def _svd(call: Call, divide: bool) -> Sequence[Parts]:
    (a,) = call.operands
    (m, n), vectors = a[0].shape[-2:], not call.has("mode", "N")
    full = call.matrices >= {(m, m), (n, n)}
    s, u, vt, status = ipu.popx.svd(call.graph, a, vectors, full, divide, call.program, call.debug)
    return [a, s, u, vt, status]  # LAPACK destroys A; nothing reads that result


@_target(*_lapack("gesdd"), signature=_SVD)
def gesdd(call: Call) -> Sequence[Parts]:
    """Singular values and vectors by divide and conquer."""
    return _svd(call, True)


@_target(*_lapack("gesvd"), signature=_SVD)
def gesvd(call: Call) -> Sequence[Parts]:
    """Singular values and vectors by QR iteration."""
    return _svd(call, False)


def _tridiagonal_solve(call: Call, perturb: bool) -> Sequence[Parts]:
    lower, diagonal, upper, b = call.operands
    return ipu.popx.tridiagonalSolve(
        call.graph, lower, diagonal, upper, b, perturb, call.program, call.debug
    )


@_target(*_lapack("gtsv"), signature="T[m] T[m] T[m] T[m n] -> T[m] T[m] T[m] T[m n] i32[]")
def gtsv(call: Call) -> Sequence[Parts]:
    """Tridiagonal systems: the diagonals (destroyed in LAPACK; nothing reads them), X, status."""
    return [*call.operands[:3], *_tridiagonal_solve(call, False)]


@_target("tridiagonal_solve_perturbed_ffi", signature="T[m] T[m] T[m] T[m n] -> T[m n]")
def perturbed(call: Call) -> Sequence[Parts]:
    """The same with tiny pivots raised, so that X stays finite."""
    return _tridiagonal_solve(call, True)[:1]
