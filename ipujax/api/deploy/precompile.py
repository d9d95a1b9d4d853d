"""`precompile`: programs compiled on a machine without IPUs, and saved for others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np

from ipujax import jax_compat
from ipujax.api.cost.cost import as_function
from ipujax.config.machine import machine_names
from ipujax.config.options import (
    PER_CALL_PREFIX,
    CompileConfig,
    from_environment,
    platform_options,
    with_compiler_options,
)
from ipujax.errors import ConfigError, ExecutableError
from ipujax.runtime import structure
from ipujax.runtime.description import Leaf, checked
from ipujax.runtime.session import typed

WHERE = "precompile"
#: What describes a target, also in files.
TARGET = ("machine", "ipus_per_device", "num_tiles")


def precompile(
    fun: Callable[..., Any],
    *args: Any,
    target: str | Mapping[str, Any] | None = None,
    donate_argnums: int | tuple[int, ...] = (),
    options: Mapping[str, Any] | None = None,
) -> Precompiled:
    """Compiles a function for devices that need not exist.

    Args:
        fun: a function that `jax.jit` takes, or one that it or `ipu.pmap` returned; or a
            `jax.export.Exported`. Shardings determine the number of devices; their mesh may have
            devices of any platform.
        args: its arguments: arrays, or `jax.ShapeDtypeStruct`s, in pytrees of dicts, lists, tuples
            and None; none for an exported program.
        target: the machine, such as "bow", or a mapping with any of "machine", "ipus_per_device"
            and "num_tiles"; the rest is as in the environment.
        donate_argnums: arguments whose memory results may reuse; for a jitted function, pass them
            to `jax.jit`.
        options: compiler options, such as {"ipu_outline": "auto"}.
    Returns:
        The program, to be saved.
    Raises:
        ConfigError: an argument is invalid.
        ExecutableError: the function calls back into Python, or has arguments or results that a
            file cannot describe.
        IpuError: it cannot be compiled for IPUs.

    Source: `PoplarExecutor.compileAndExport` of PopTorch.

    Example:
        >>> x = jax.ShapeDtypeStruct((4,), jnp.float32)
        >>> program = ipu.precompile(lambda w, x: w * x, x, x, target="bow")
        >>> program.save("scale.ipu", weights={"w": np.full(4, 2, np.float32)})
        >>> ipu.runtime.Session("scale.ipu").description.target["machine"]
        'bow'
    """
    platform = _platform(target)
    given = dict(options or {})
    config = with_compiler_options(from_environment().compile, given)
    exported = fun if isinstance(fun, jax.export.Exported) else None
    fun, args = as_function(fun, args)
    if not callable(fun):
        raise ConfigError(
            f"[{WHERE}] needs a function; got {type(fun).__name__}. Pass the function, then its "
            "arguments."
        )
    if hasattr(fun, "trace") and donate_argnums != ():
        raise ConfigError(
            f"[{WHERE}] needs donate_argnums of functions that are not jitted; got a jitted one. "
            "Pass them to jax.jit."
        )
    jitted = fun if hasattr(fun, "trace") else jax.jit(fun, donate_argnums=donate_argnums)
    with jax_compat.short_locations():
        lowered = jitted.trace(*args).lower(lowering_platforms=(jax_compat.PLATFORM,))
    # Imported here, because JAX imports this package while it looks for plugins.
    from ipujax.api.deploy.exported import parameter_names
    from ipujax.compiler.compile import compile_module

    parameters = parameter_names(exported) if exported else _parameters(fun, len(args))
    described = _describe(parameters, args, lowered)

    num_devices = jax_compat.num_devices(lowered)
    executable = compile_module(
        jax_compat.serialize_artifact(lowered),
        jax_compat.write_compile_options(given, num_devices),
        platform,
    )
    if num_devices > 1:
        described |= _sharded(described, executable)
    return Precompiled(
        executable=executable,
        options=_changed(config),
        target={name: str(platform[name]) for name in TARGET},
        **described,
    )


def _sharded(described: Mapping[str, Any], executable: bytes) -> dict[str, Any]:
    """The arguments and results with the blocks that the compiler gave each device."""
    from ipujax._poplar._poplar import embedded

    def with_blocks(leaves: tuple[Leaf, ...], shardings: list[bytes]) -> tuple[Leaf, ...]:
        made = []
        for leaf in leaves:
            if leaf.slot >= 0:
                if jax_compat.is_unreduced(shardings[leaf.slot]):
                    raise ExecutableError(
                        f"[{WHERE}] needs arguments and results that are reduced; got {leaf.name}, "
                        "whose parts a file cannot describe. Reshard it in the function."
                    )
                counts, blocks = jax_compat.blocks_of(shardings[leaf.slot], len(leaf.shape))
                leaf = replace(leaf, counts=counts, blocks=blocks)
            made.append(leaf)
        return tuple(made)

    inputs, outputs = embedded.program_shardings(executable)
    return {
        "arguments": with_blocks(described["arguments"], inputs),
        "results": with_blocks(described["results"], outputs),
    }


@dataclass(frozen=True)
class Precompiled:
    """A program that `precompile` compiled.

    Attributes:
        name: name of the function.
        parameters: names of its parameters.
        arguments, results: the arrays that it takes and returns, in JAX's order.
        options: compiler options that are not at their defaults.
        target: the machine and the device that it was compiled for.
        executable: sealed bytes of only the program.
        timeout: seconds that a run may take in a session without its own timeout; None: no limit.
    """

    name: str
    parameters: tuple[str, ...]
    arguments: tuple[Leaf, ...]
    results: tuple[Leaf, ...]
    argument_nodes: tuple[structure.Node, ...]
    result_node: structure.Node
    options: Mapping[str, str]
    target: Mapping[str, str]
    executable: bytes
    timeout: float | None = None

    def save(self, file: str | Path, weights: Mapping[str, Any] | None = None) -> None:
        """Writes the program to a file, which appears whole or not at all.

        Args:
            file: path of the file.
            weights: values of parameters by name, which the file stores and callers do not pass. A
                donated one is state: see `ipujax.runtime.Session`.
        Raises:
            ConfigError: a name is not a parameter's.
            SessionError: a value has a wrong shape or dtype.
            IpuError: the file cannot be written.

        Example:
            >>> x = jnp.ones(3)
            >>> ipu.precompile(lambda w, x: w + x, x, x).save("sum.ipu", weights={"w": x})
            >>> ipu.load("sum.ipu")(x).tolist()
            [2.0, 2.0, 2.0]
        """
        from ipujax._poplar._poplar import embedded

        stored = self._stored(dict(weights or {}))
        arguments = [
            replace(leaf, stored=i in stored).in_file() for i, leaf in enumerate(self.arguments)
        ]
        text = structure.write(self.parameters, self.argument_nodes, self.result_node)
        with typed():
            embedded.write_package(
                str(file),
                self.name,
                text,
                arguments,
                [leaf.in_file() for leaf in self.results],
                list(self.options.items()) + self._runtime_options(),
                list(versions().items()),
                list(self.target.items()),
                self.executable,
                [stored[i] for i in sorted(stored) if self.arguments[i].slot >= 0],
            )

    def _runtime_options(self) -> list[tuple[str, str]]:
        return [] if self.timeout is None else [("timeout_us", str(round(self.timeout * 1e6)))]

    def _stored(self, weights: dict[str, Any]) -> dict[int, np.ndarray]:
        stored: dict[int, np.ndarray] = {}
        for name, tree in weights.items():
            if name not in self.parameters:
                raise ConfigError(
                    f"[{WHERE}] needs weights of the parameters {', '.join(self.parameters)}; got "
                    f"{name!r}. Use one of these names."
                )
            node = self.argument_nodes[self.parameters.index(name)]
            leaves: list[Any] = []
            structure.flatten(node, tree, name, leaves)
            for i, leaf in zip(structure.positions(node), leaves, strict=True):
                stored[i] = checked(self.arguments[i], leaf)
        return stored


def versions() -> dict[str, str]:
    """Versions of the software that compiles programs here."""
    from ipujax._poplar import _poplar

    return {name: version(name) for name in ("ipujax", "jax", "jaxlib")} | {
        "backend": _poplar.backend
    }


def _platform(target: str | Mapping[str, Any] | None) -> dict[str, Any]:
    found = platform_options(from_environment())
    wanted = {"machine": target} if isinstance(target, str) else dict(target or {})
    unknown = [name for name in wanted if name not in TARGET]
    if unknown:
        raise ConfigError(
            f"[{WHERE}] needs a target with {', '.join(TARGET)}; got {unknown[0]!r}. Use these."
        )
    if wanted.get("machine", found["machine"]) not in machine_names():
        raise ConfigError(
            f"[{WHERE}] needs a machine from {', '.join(machine_names())}; got "
            f"{wanted['machine']!r}. Use one of these."
        )
    for name, least in (("ipus_per_device", 1), ("num_tiles", 0)):
        value = wanted.get(name, least)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ConfigError(
                f"[{WHERE}] needs {name} of {least} or more; got {value!r}. Pass a whole number."
            )
    return found | wanted


def _changed(config: CompileConfig) -> dict[str, str]:
    default = CompileConfig()
    return {
        PER_CALL_PREFIX + spec.name: str(getattr(config, spec.name))
        for spec in fields(config)
        if getattr(config, spec.name) != getattr(default, spec.name)
    }


def _parameters(fun: Any, count: int) -> tuple[str, ...]:
    """The names of the positional parameters; `args[0]` and so on if they have none."""
    try:
        given = [*inspect.signature(fun).parameters.values()]
    except (TypeError, ValueError):
        given = []
    named = [p.name for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return tuple((named + [f"args[{i}]" for i in range(len(named), count)])[:count])


def _is_leaf(value: Any) -> bool:
    return bool(jax.tree_util.all_leaves([value]))


def _describe(parameters: tuple[str, ...], args: Any, lowered: Any) -> dict[str, Any]:
    """The arrays of a lowered program, and the slot of each in it."""
    name = lowered.compiler_ir().operation.attributes["sym_name"].value
    refused = jax_compat.needs_this_process(lowered)
    if refused:
        raise ExecutableError(
            f"[{WHERE}] needs a program that runs by itself; got {name}, which "
            f"{refused}. Use jax.jit for such a program."
        )
    found: list[tuple[str, Any]] = []
    nodes = tuple(
        structure.encode(tree, parameter, _is_leaf, found)
        for parameter, tree in zip(parameters, args, strict=True)
    )
    results: list[tuple[str, Any]] = []
    result_node = structure.encode(lowered.out_info, "result", _is_leaf, results)
    kept = jax_compat.kept_arguments(lowered)
    slots = {argument: slot for slot, argument in enumerate(kept)}
    return {
        "name": name,
        "parameters": parameters,
        "arguments": tuple(
            _leaf(each, value, slots.get(i, -1)) for i, (each, value) in enumerate(found)
        ),
        "results": tuple(_leaf(each, value, i) for i, (each, value) in enumerate(results)),
        "argument_nodes": nodes,
        "result_node": result_node,
    }


def _leaf(name: str, value: Any, slot: int) -> Leaf:
    dtype = jax.numpy.result_type(value)
    if jax.numpy.issubdtype(dtype, jax.dtypes.extended):
        raise ExecutableError(
            f"[{WHERE}] needs arrays of numbers; got the keys {dtype} for {name}. Pass "
            "jax.random.key_data(key), and jax.random.wrap_key_data inside the function."
        )
    return Leaf(name, dtype.name, tuple(np.shape(value)), slot, False)
