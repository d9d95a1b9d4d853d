"""StableHLO programs that JAX did not trace: compiled, or interpreted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from ipujax.jax_compat.modules import parse_module


def read_compile_options(options: bytes) -> Any:
    """The CompileOptionsProto that comes with a program, parsed by jaxlib's own class."""
    from jaxlib import _jax

    return _jax.CompileOptions.ParseFromString(options)


def write_compile_options(compiler_options: Mapping[str, Any]) -> bytes:
    """A CompileOptionsProto for one device."""
    from jaxlib import _jax

    options = _jax.CompileOptions()
    options.num_replicas = options.num_partitions = 1
    options.env_option_overrides = list(compiler_options.items())
    return bytes(options.SerializeAsString())


def load_program(
    code: bytes | str, device: Any, compiler_options: Mapping[str, str] | None = None
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

    Some programs make the interpreter end the process: call it in a child process.
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
