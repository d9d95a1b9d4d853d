"""Paths of modules, such as "Model/encoder/norm", from call frames and named scopes.

flax linen and haiku name the scope of each module, so that the names of operations have its path.
flax nnx and equinox name none, or only the class. For these the path comes from the frames of the
modules' methods: a module that its caller calls as `self.encoder(x)` is "encoder", any other has
the name of its class.
"""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType

from ipujax.annotations.frames import Frame

#: The name of the base class of modules, in each library.
_BASE = "Module"
#: Libraries whose modules name their own scopes.
_NAMING = ("flax.linen.", "haiku.")
#: Functions without a name of their own.
NAMELESS = frozenset({"<lambda>", "<module>", "<genexpr>", "<listcomp>", "<dictcomp>"})
_LOCALS = "<locals>"


@dataclass(frozen=True)
class Called:
    """A module that was called."""

    kind: str  #: its class's name
    name: str  #: in the path
    depth: int  #: of its frame, from the outermost
    names_scopes: bool = False  #: whether its library names a scope for it


def layer_path(scopes: Sequence[str], frames: Sequence[Frame]) -> str:
    """The layer that an operation belongs to.

    Args:
        scopes: the named scopes and jitted functions around it, outermost first.
        frames: the call frames around it, innermost first.
    Returns:
        Scopes and modules as a path; if there are none, the user's function, as "loss()".

    Example:
        >>> layer_path([], [Frame("Model.__call__", "model.py", 3), Frame("loss", "train.py", 8)])
        'Model'
        >>> layer_path([], [Frame("loss", "train.py", 8)])
        'loss()'
    """
    called = called_modules(frames)
    path = _joined(scopes, called, frames)
    inner = own_function(frames)
    is_of_function = not path or (path[-1] in own_names(frames) and path[-1] != inner[:-2])
    return "/".join([*path, inner] if inner and is_of_function and not called else path)


def own_function(frames: Sequence[Frame]) -> str:
    """The user's innermost function with a name, as "loss()"; empty if there is none."""
    for frame in frames:
        name = frame.function.rpartition(f"{_LOCALS}.")[2]
        if frame.is_own and name and name not in NAMELESS:
            return f"{name}()"
    return ""


def own_names(frames: Sequence[Frame]) -> set[str]:
    """The names of the user's functions: jitted ones are scopes."""
    return {each.function.rpartition(".")[2] for each in frames if each.is_own} - NAMELESS


def _joined(scopes: Sequence[str], called: Sequence[Called], frames: Sequence[Frame]) -> list[str]:
    if not called:
        return list(scopes)
    if scopes and any(each.names_scopes for each in called):
        return list(scopes)
    if any(_is_scope_of(scope, called[0].kind) for scope in scopes):
        return list(scopes)
    kinds = {each.kind for each in called}
    # equinox names scopes "eqx.nn.Linear", which is less than the frames say.
    kept = [each for each in scopes if not ("." in each and each.rpartition(".")[2] in kinds)]
    return _in_order(kept, called, frames) or [*kept, *(each.name for each in called)]


def _in_order(
    scopes: Sequence[str], called: Sequence[Called], frames: Sequence[Frame]
) -> list[str] | None:
    """Scopes and modules in the order they were entered; None if the source does not tell."""
    modules = {each.depth: each.name for each in called}
    path, rest = [], list(scopes)
    for depth, frame in enumerate(reversed(frames)):
        if rest and frame.is_own and rest[0] == frame.function.rpartition(".")[2]:
            path.append(rest.pop(0))  # it is jitted
        if depth in modules:
            path.append(modules[depth])
        if rest:
            count = _scopes_entered(frame.file, frame.line)
            path += rest[:count]
            del rest[:count]
    return None if rest else path


@lru_cache(maxsize=1 << 12)
def _scopes_entered(file: str, line: int) -> int:
    """The number of named scopes that a function enters around a line."""
    node: ast.AST | None = _tree_of(file)
    count = 0
    while node is not None:
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            count = 0
        elif isinstance(node, ast.With):
            count += sum("named_scope(" in ast.unparse(item) for item in node.items)
        children = ast.iter_child_nodes(node)
        node = next((each for each in children if _contains(each, line)), None)
    return count


def _contains(node: ast.AST, line: int) -> bool:
    last = getattr(node, "end_lineno", None)
    return isinstance(last, int) and getattr(node, "lineno", line + 1) <= line <= last


@lru_cache(maxsize=64)
def _tree_of(file: str) -> ast.AST | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None


def _is_scope_of(scope: str, kind: str) -> bool:
    """Whether a library that names scopes named this one for a module of a class."""
    bare = re.sub(r"_\d+$", "", scope.partition(".")[0])
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind)
    return bare in (kind, words.lower())


def called_modules(frames: Sequence[Frame]) -> list[Called]:
    """The modules whose methods are running, outermost first."""
    found: list[Called] = []
    caller: Frame | None = None  #: the frame around it, without wrappers of libraries
    is_in_module = False  #: whether it is a method of the last module found
    for depth, frame in enumerate(reversed(frames)):
        owner, method = _method_of(frame)
        base = _base_of(frame, owner) if owner else None
        kind = owner.rpartition(".")[2]
        is_public = frame.is_own or not kind.startswith("_")  # libraries wrap functions in others
        if owner and found and found[-1].name == method and found[-1].kind != kind:
            found.pop()  # equinox wraps a method in a module of its own
        is_known = bool(found) and kind == found[-1].kind
        is_likely = frame.is_own and (method == "__call__" or is_known)
        if is_likely or (base is not None and is_public):
            names_scopes = base is not None and base.startswith(_NAMING)
            attribute = _attribute_called(caller, method) if is_in_module and caller else None
            if attribute != "":  # another object than the caller
                is_same = attribute is None and method != "__call__" and found
                if not (is_same and found[-1].kind == kind):
                    found.append(Called(kind, attribute or kind, depth, names_scopes))
            caller, is_in_module = frame, True
        elif frame.is_own:
            outer = f"{caller.function}." if caller else ""
            is_in_module = is_in_module and frame.function.startswith(outer)
            caller = frame
    return found


def _method_of(frame: Frame) -> tuple[str, str]:
    """The class and the method of a frame; empty if it is not a method's."""
    owner, _, method = frame.function.rpartition(".")
    return ("", "") if owner.endswith(_LOCALS) else (owner, method)


@lru_cache(maxsize=1 << 12)
def _base_of(frame: Frame, owner: str) -> str | None:
    """The library of the class's base `Module`, if Python can find the class."""
    found: object = _module_of(frame.file)
    for part in owner.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type) or found.__name__ == _BASE:
        return None
    bases = (base for base in found.__mro__[1:] if base.__name__ == _BASE)
    return next((f"{base.__module__}." for base in bases), None)


def _module_of(file: str) -> ModuleType | None:
    modules = tuple(sys.modules.values())
    return next((each for each in modules if getattr(each, "__file__", None) == file), None)


def _attribute_called(caller: Frame, method: str) -> str | None:
    """The attribute of `self` that is called, as "layers[0]", "" for `self`, None for others."""
    text = _text_of(caller)
    try:
        call = ast.parse(text.strip(), mode="eval").body if text else None
    except (SyntaxError, ValueError):
        return None
    target: ast.expr | None = call.func if isinstance(call, ast.Call) else None
    while isinstance(target, ast.Call):  # jax.vmap(self.norm)(x)
        target = target.args[0] if target.args else None
    if method != "__call__":
        target = target.value if isinstance(target, ast.Attribute) else None
    root: ast.expr | None = target
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    if target is None or not isinstance(root, ast.Name) or root.id != "self":
        return None
    return ast.unparse(target).removeprefix("self").removeprefix(".").replace(".", "/")


@lru_cache(maxsize=1 << 12)
def _text_of(frame: Frame) -> str:
    """The expression at a frame's place; empty if the source or its columns are unknown."""
    last = frame.line if frame.end_line < 0 else frame.end_line
    if frame.column < 0 or frame.end_column < 0:
        return ""
    lines = [linecache.getline(frame.file, i).encode() for i in range(frame.line, last + 1)]
    lines[-1] = lines[-1][: frame.end_column]
    lines[0] = lines[0][frame.column :]
    return b"".join(lines).decode(errors="replace")
