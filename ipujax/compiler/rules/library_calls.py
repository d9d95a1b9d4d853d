"""Reads from a rule's source which Poplar library functions it calls; for docs/ops.md."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any

from ipujax.compiler.rules.builder import Builder

LIBRARIES = ("popops", "poplin", "popnn", "poprand", "gcl", "popx")

_BETWEEN_REPLICAS = ("poplar.program.CrossReplicaCopy", "popops.multiSlice")
#: What each function of popx is on hardware (cpp/popx/hardware): the public calls and the codelets
#: of cpp/popx/codelets it is composed of (none: it does nothing), or text for what the host does.
HARDWARE: Mapping[str, tuple[str, ...] | str] = {
    "allGatherToDestination": ("gcl.allGatherCrossReplica", *_BETWEEN_REPLICAS),
    "allReduce": ("gcl.allReduceCrossReplica", *_BETWEEN_REPLICAS, "popops.map"),
    "allToAllToDestination": ("gcl.allToAllCrossReplica", *_BETWEEN_REPLICAS),
    "broadcast": ("gcl.broadcastCrossReplica", *_BETWEEN_REPLICAS),
    "cholesky": ("codelets/Triangular.cpp",),
    "collectivePermute": _BETWEEN_REPLICAS,
    "copyRemoteBuffer": ("poplar.program.Copy",),
    "count": (),
    "ctcLoss": (
        "popnn.ctc.calcLossAndGradientLogits",
        "popnn.ctc.calcLossAndGradientLogProbabilities",
    ),
    "dropoutBlock": ("poprand.bernoulli", "popops.dynamicSlice", "popops.map"),
    "dynamicSlice": ("popops.map", "popops.dynamicSlice"),
    "dynamicUpdate": ("popops.map", "popops.dynamicUpdate"),
    "eig": ("codelets/Eigen.cpp",),
    "eigh": ("codelets/Hermitian.cpp",),
    "fft": ("codelets/Fourier.cpp", "popops.map"),
    "fillFromHost": "the host writes: `poplar::Engine::copyToRemoteBuffer`",
    "foldKey": (),
    "gather": ("popops.gather",),
    "giveToHost": "the host reads: `poplar::Engine::copyFromRemoteBuffer`",
    "hessenberg": ("codelets/Eigen.cpp",),
    "hostCallback": ("poplar.program.Copy",),
    "householderMultiply": ("codelets/Qr.cpp",),
    "householderProduct": ("codelets/Qr.cpp",),
    "lu": ("codelets/Lu.cpp",),
    "makeKey": ("poplar.Graph.addVariable",),
    "map": ("poplar.Tensor.reinterpret", "popops.map"),
    "pad": ("poplar.program.Copy",),
    "permutationOfPivots": ("codelets/Lu.cpp",),
    "qr": ("codelets/Qr.cpp",),
    "qrWithPivots": ("codelets/Qr.cpp",),
    "readEntry": ("poplar.program.Copy", "popops.map"),
    "reduce": ("popops.map",),
    "reduceScatter": ("gcl.reduceScatterCrossReplica", *_BETWEEN_REPLICAS, "popops.map"),
    "reduceWindow": ("poplar.program.Copy", "popops.map"),
    "rngBitGenerator": ("codelets/Random.cpp",),
    "runKeys": ("poplar.program.Copy", "poprand.setSeed"),
    "sameLayout": ("poplar.Tensor.isContiguous",),
    "scatter": ("popops.dynamicSlice", "popops.dynamicUpdate", "popops.map"),
    "schur": ("codelets/Eigen.cpp",),
    "selectAndScatter": ("poplar.program.Copy", "popops.map"),
    "setHalfOverflow": ("poplar.setFloatingPointBehaviour",),
    "setLayoutGroup": (),
    "setRoundingKey": (),
    "setVariableUse": (),
    "sort": ("popops.map",),
    "startCount": ("poplar.Graph.setTileMapping",),
    "svd": ("codelets/Svd.cpp",),
    "triangularSolve": ("codelets/Triangular.cpp",),
    "tridiagonal": ("codelets/Hermitian.cpp",),
    "tridiagonalSolve": ("codelets/Triangular.cpp",),
    "withRepeats": ("poplar.program.Copy",),
    "writeEntry": ("poplar.program.Copy", "popops.map"),
}


def calls_of(function: Callable[..., Any]) -> list[str]:
    """The library functions ("popops.map") that a rule may call, itself or through its helpers."""
    found: set[str] = set()
    pending, seen = [inspect.unwrap(function)], set()
    while pending:
        current = pending.pop()
        if current in seen or not isinstance(current, FunctionType):
            continue
        seen.add(current)
        tree = _tree(current)
        found.update(_library_calls(tree))
        pending.extend(_helpers(current, tree))
    return sorted(found)


@functools.cache
def _tree(function: FunctionType) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(function)))


def _library_calls(tree: ast.AST) -> Iterator[str]:
    """Calls of `ipu.popops.map`, and of `popops.map` where `popops` is such a module's name."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or node.attr[:1].isupper() or node.attr == "expr":
            continue
        library = node.value.attr if isinstance(node.value, ast.Attribute) else _name(node.value)
        if library in LIBRARIES:
            yield f"{library}.{node.attr}"


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _helpers(function: FunctionType, tree: ast.AST) -> Iterator[Any]:
    """Functions of the compiler, and methods of the builder, that it names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            value = function.__globals__.get(node.id)
            if getattr(value, "__module__", "").startswith("ipujax.compiler"):
                yield value
        elif isinstance(node, ast.Attribute) and _name(node.value) in ("builder", "self"):
            yield getattr(Builder, node.attr, None)
