"""Pytrees of dicts, lists, tuples and None as JSON, without JAX.

A dict is `{"dict": [[key, node], ...]}` in the order of its sorted keys, a list `{"list": [...]}`,
a tuple `{"tuple": [...]}`, None `null`, and an array the number of its leaf. Leaves are numbered as
JAX does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ipujax.errors import ExecutableError, SessionError
from ipujax.host.file_reading import json_of

Node = Any
#: Deeper pytrees are refused, also in files.
DEEPEST = 64


def encode(tree: Any, name: str, is_leaf: Callable[[Any], bool], leaves: list[Any]) -> Node:
    """The node of a pytree; its leaves are appended to `leaves` as (name, leaf).

    Raises:
        ExecutableError: a node is of another type, or a key of a dict is not a string or an
            integer.
    """
    if name.count("[") > DEEPEST:
        raise ExecutableError(
            f"[precompile] needs pytrees of at most {DEEPEST} levels; got more in {name[:60]}... . "
            "Pass a flatter one."
        )
    if tree is None:
        return None
    if type(tree) is dict:
        return {"dict": [[k, encode(v, n, is_leaf, leaves)] for k, v, n in _items(tree, name)]}
    if type(tree) in (list, tuple):
        children = [encode(x, f"{name}[{i}]", is_leaf, leaves) for i, x in enumerate(tree)]
        return {type(tree).__name__: children}
    if not is_leaf(tree):
        raise ExecutableError(
            f"[precompile] needs pytrees of dicts, lists, tuples and None; got a "
            f"{type(tree).__name__} in {name}, which a file cannot describe. Pass its leaves, "
            "jax.tree.leaves(...), and rebuild it inside the function."
        )
    leaves.append((name, tree))
    return len(leaves) - 1


def _items(tree: dict[Any, Any], name: str) -> list[tuple[Any, Any, str]]:
    if not all(type(key) in (str, int) for key in tree) or len({type(key) for key in tree}) > 1:
        raise ExecutableError(
            f"[precompile] needs dicts whose keys are all texts or all integers; got "
            f"{list(tree)!r} in {name}. Use others."
        )
    return [(key, tree[key], f"{name}[{key!r}]") for key in sorted(tree)]


def write(names: Sequence[str], nodes: Sequence[Node], result: Node) -> str:
    """The text of a file for the parameters' names and nodes, and the result's."""
    made = {"parameters": list(names), "arguments": list(nodes), "result": result}
    return json.dumps(made, separators=(",", ":"))


def read(text: str, num_arguments: int, num_results: int) -> tuple[list[str], list[Node], Node]:
    """Reads a file's text: the parameters' names, their nodes, and the node of the result.

    Raises:
        ExecutableError: the text is not what `encode` made for these numbers of leaves.
    """
    try:
        made = json_of(text)
        names, nodes, result = made["parameters"], made["arguments"], made["result"]
        if len(names) != len(nodes) or not all(type(name) is str for name in names):
            raise ValueError("names")
        found: list[int] = []
        for node in nodes:
            _check(node, found, 0)
        results: list[int] = []
        _check(result, results, 0)
        if found != [*range(num_arguments)] or results != [*range(num_results)]:
            raise ValueError("leaves")
    except (ValueError, KeyError, TypeError) as error:
        raise ExecutableError(
            "[load] needs a file that ipujax.precompile saved; got one with another description "
            f"of its pytrees ({error}). Save it again."
        ) from None
    return names, nodes, result


def _check(node: Node, leaves: list[int], depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError("depth")
    if node is None:
        return
    if type(node) is int:
        leaves.append(node)
        return
    if type(node) is not dict or len(node) != 1:
        raise ValueError("node")
    ((kind, children),) = node.items()
    if kind not in ("dict", "list", "tuple") or type(children) is not list:
        raise ValueError("kind of node")
    for child in children:
        if kind == "dict":
            key, child = child
            if type(key) not in (str, int):
                raise ValueError("key")
        _check(child, leaves, depth + 1)


def flatten(node: Node, tree: Any, name: str, leaves: list[Any]) -> None:
    """Appends the leaves of a pytree, which must match the node.

    Raises:
        SessionError: it does not match; says where.
    """
    if node is None or type(node) is int:
        if node is None and tree is not None:
            raise _other(name, "None", tree)
        if node is not None:
            leaves.append(tree)
        return
    ((kind, children),) = node.items()
    if type(tree).__name__ != kind:
        raise _other(name, f"a {kind}", tree)
    if kind == "dict":
        keys = [key for key, _ in children]
        if set(tree) != set(keys):
            raise _other(name, f"the keys {keys}", sorted(tree, key=repr))
        for key, child in children:
            flatten(child, tree[key], f"{name}[{key!r}]", leaves)
        return
    if len(tree) != len(children):
        raise _other(name, f"{len(children)} elements", len(tree))
    for i, (child, each) in enumerate(zip(children, tree, strict=True)):
        flatten(child, each, f"{name}[{i}]", leaves)


def _other(name: str, needs: str, got: Any) -> SessionError:
    shown = got if isinstance(got, list | int) else f"a {type(got).__name__}"
    return SessionError(
        f"[runtime] needs {needs} for {name}; got {shown}. Pass what the program was compiled for."
    )


def unflatten(node: Node, leaves: Sequence[Any] | Mapping[int, Any]) -> Any:
    """The pytree of a node."""
    if node is None:
        return None
    if type(node) is int:
        return leaves[node]
    ((kind, children),) = node.items()
    if kind == "dict":
        return {key: unflatten(child, leaves) for key, child in children}
    made = [unflatten(child, leaves) for child in children]
    return made if kind == "list" else tuple(made)


def positions(node: Node) -> list[int]:
    """The numbers of the leaves of a node."""
    found: list[int] = []
    _check(node, found, 0)
    return found
