"""Readable names of what an exported program takes and returns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jax
import jax.export

from ipujax import jax_compat
from ipujax.compiler.modules import main_of
from ipujax.compiler.sources import name_of


def argument_names(exported: jax.export.Exported) -> list[str]:
    """A name for each argument: that of the function's parameter with the path in it, as
    "params['kernel']", if the program has it; otherwise the position, as "0['kernel']"."""
    args, kwargs = jax.tree.unflatten(exported.in_tree, range(exported.in_tree.num_leaves))
    paths = [path for path, _ in jax.tree.flatten_with_path((args, kwargs))[0]]
    found = [_placed(path) for path in paths]
    module = jax_compat.module_of_exported(exported)
    arguments = main_of(module).regions[0].blocks[0].arguments
    kept = exported.module_kept_var_idx  # tokens of ordered effects come before these
    for index, argument in zip(kept, arguments[len(arguments) - len(kept) :], strict=True):
        found[index] = name_of(argument.location) or found[index]
    for arg in args:  # JAX drops unused arrays and their names; others of the parameter have it
        kept_names = [found[index] for index in jax.tree.leaves(arg) if index in kept]
        if head := _head(kept_names):
            for index in set(jax.tree.leaves(arg)).difference(kept):
                found[index] = f"{head}{jax.tree_util.keystr(paths[index][2:])}"
    return found


def result_names(exported: jax.export.Exported) -> list[str]:
    """A name for each result: "result" and its path, as "result[0]"."""
    tree = jax.tree.unflatten(exported.out_tree, range(exported.out_tree.num_leaves))
    paths = [path for path, _ in jax.tree.flatten_with_path(tree)[0]]
    return [f"result{jax.tree_util.keystr(path)}" for path in paths]


def parameter_names(exported: jax.export.Exported) -> tuple[str, ...]:
    """The names of the function's parameters if the program has them, else `args[0]`, ..."""
    args, _ = jax.tree.unflatten(exported.in_tree, argument_names(exported))
    return heads(args)


def heads(args: Sequence[Any]) -> tuple[str, ...]:
    """The names of parameters, from the names of all arrays in their arguments."""
    found = [_head(jax.tree.leaves(arg)) for arg in args]
    is_usable = [name.isidentifier() and found.count(name) == 1 for name in found]
    return tuple(
        name if usable else f"args[{i}]"
        for i, (name, usable) in enumerate(zip(found, is_usable, strict=True))
    )


def _head(names: Sequence[str]) -> str:
    """The common beginning of the names; empty if they differ."""
    begins = {re.split(r"\W", name)[0] for name in names}
    return begins.pop() if len(begins) == 1 else ""


def _placed(path: tuple[Any, ...]) -> str:
    first, *rest = path[1:]
    own = getattr(first, "idx", getattr(first, "key", first))
    return f"{own}{jax.tree_util.keystr(tuple(rest))}"
