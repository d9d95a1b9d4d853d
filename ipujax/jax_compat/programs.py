"""StableHLO programs that JAX did not trace: compiled, or interpreted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.export
import numpy as np

from ipujax.jax_compat.exports import platform_of_exported
from ipujax.jax_compat.modules import parse_module


def read_compile_options(options: bytes) -> Any:
    """The CompileOptionsProto that comes with a program, parsed by jaxlib's own class."""
    from jaxlib import _jax

    return _jax.CompileOptions.ParseFromString(options)


def write_compile_options(compiler_options: Mapping[str, Any], num_devices: int = 1) -> bytes:
    """A CompileOptionsProto for devices over which one program is sharded."""
    from jaxlib import _jax

    options = _jax.CompileOptions()
    options.num_replicas, options.num_partitions = 1, num_devices
    options.env_option_overrides = list(compiler_options.items())
    return bytes(options.SerializeAsString())


def load_program(
    code: bytes | str, device: Any, compiler_options: Mapping[str, Any] | None = None
) -> Callable[[Sequence[np.ndarray]], list[Any]]:
    """Compiles StableHLO for one device; returns a function that runs it on NumPy arrays.

    JAX's public functions compile only what JAX traced itself.
    """
    from jaxlib import _jax

    options = _jax.CompileOptions()
    options.num_replicas = options.num_partitions = 1
    options.env_option_overrides = list((compiler_options or {}).items())
    executable = device.client.compile_and_load(
        parse_module(code),
        executable_devices=_jax.DeviceList((device,)),
        compile_options=options,
    )

    def run(arrays: Sequence[np.ndarray]) -> list[Any]:
        results = executable.execute_sharded([jax.device_put(a, device) for a in arrays])
        return [np.asarray(r[0]) for r in results.disassemble_into_single_device_arrays()]

    return run


def evaluate_module(module: Any, arrays: Sequence[np.ndarray]) -> list[Any]:
    """Runs a module on jaxlib's copy of StableHLO's reference interpreter; returns attributes.

    Some programs make the interpreter abort the process: call it in a child process.
    """
    from jax._src.interpreters import mlir as private_mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    with module.context:
        arguments = [
            ir.DenseElementsAttr.get(
                np.ascontiguousarray(a), type=private_mlir.dtype_to_ir_type(a.dtype), shape=a.shape
            )
            for a in arrays
        ]
        return list(stablehlo.eval_module(module, arguments))


def exported_like(
    exported: jax.export.Exported,
    name: str,
    code: bytes,
    arguments: Sequence[Any],
    results: Sequence[Any],
    platforms: tuple[str, ...] = (),
) -> jax.export.Exported:
    """A portable artifact as an exported function of arrays, for these platforms, or by default
    for the platform for which `module_of_exported` takes `exported`.

    JAX's public functions export only what JAX traced itself.
    """
    import dataclasses

    from jax._src.core import ShapedArray

    def avals(arrays: Sequence[Any]) -> tuple[ShapedArray, ...]:
        return tuple(ShapedArray(a.shape, a.dtype) for a in arrays)

    takes, gives = avals(arguments), avals(results)
    changes: dict[str, Any] = {
        "fun_name": name,
        "in_tree": jax.tree.structure((tuple(takes), {})),
        "in_avals": takes,
        "out_tree": jax.tree.structure(tuple(gives)),
        "out_avals": gives,
        "in_shardings_hlo": (None,) * len(takes),
        "out_shardings_hlo": (None,) * len(gives),
        "_has_named_shardings": False,
        "_in_named_shardings": (None,) * len(takes),
        "_out_named_shardings": (None,) * len(gives),
        "nr_devices": 1,
        "ordered_effects": (),
        "unordered_effects": (),
        "mlir_module_serialized": code,
        "module_kept_var_idx": tuple(range(len(takes))),
        "_get_vjp": None,
        "platforms": platforms or (platform_of_exported(exported),),
    }
    known = {field.name for field in dataclasses.fields(exported)}
    return dataclasses.replace(exported, **{k: v for k, v in changes.items() if k in known})
