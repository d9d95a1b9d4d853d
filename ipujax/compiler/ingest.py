"""Stage 1: the bytes from the plugin become an MLIR module and a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ipujax import jax_compat
from ipujax.compiler.async_ops import join_halves
from ipujax.compiler.composites import SCAN, rewrite_composites
from ipujax.compiler.engine_options import with_engine_options
from ipujax.config import options as config
from ipujax.errors import InvalidProgramError
from ipujax.types import PlatformConfig


@dataclass(slots=True)
class Request:
    """One program to compile, and the options for it."""

    module: Any  #: the MLIR module; owns its context
    name: str
    options: config.CompileConfig
    num_replicas: int
    num_partitions: int
    machine: config.MachineConfig
    #: Serialised xla.OpSharding of each parameter and result; empty for a program on one device.
    parameter_shardings: list[bytes] = field(default_factory=list)
    result_shardings: list[bytes] = field(default_factory=list)

    @property
    def num_devices(self) -> int:
        return self.num_replicas * self.num_partitions


def ingest(code: bytes, options: bytes, platform: PlatformConfig, context: Any = None) -> Request:
    """Reads a StableHLO portable artifact and a serialised CompileOptionsProto.

    Args:
        code, options, platform: see `compile_module`.
        context: the MLIR context to read into; None: the module makes its own.
    Raises:
        InvalidProgramError: the code is not such an artifact.
        ConfigError: an option of `jax.jit(..., compiler_options=...)` is unknown or not allowed.
    """
    try:
        module = jax_compat.deserialize_artifact(bytes(code), context)
    except Exception as error:  # the bindings raise more than one type
        raise InvalidProgramError(
            f"[ingest] needs a StableHLO portable artifact; got {len(code)} bytes that are not: "
            f"{error}. Pass the output of jax.jit or jax.export."
        ) from error
    if b"async_start" in code:
        join_halves(module)
    if any(name.encode() in code for name in (SCAN, jax_compat.COMPLEX_PREFIX)):
        rewrite_composites(module)
    num_replicas = num_partitions = 1
    overrides: dict[str, object] = {}
    if options:
        decoded = jax_compat.read_compile_options(bytes(options))
        num_replicas, num_partitions = decoded.num_replicas, decoded.num_partitions
        overrides = dict(decoded.env_option_overrides)
    settings = with_engine_options(
        config.with_compiler_options(config.from_environment().compile, overrides)
    )
    return Request(
        module=module,
        name=_module_name(module),
        options=settings,
        num_replicas=num_replicas,
        num_partitions=num_partitions,
        machine=config.machine_of(platform),
    )


def _module_name(module: Any) -> str:
    attributes = module.operation.attributes
    return attributes["sym_name"].value if "sym_name" in attributes else "main"
