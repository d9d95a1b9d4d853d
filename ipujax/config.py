"""All options of ipujax: one frozen tree, each option with its help, default, and allowed values.

An option is set in three ways, of which the last one wins: its default here, its environment
variable, and, for options of `CompileConfig`, `jax.jit(f, compiler_options={"ipu_<name>": value})`
for one function. `python -m ipujax options` generates `docs/options.md` from this file.

The names JAX_IPU_* are those of Graphcore's experimental JAX for IPU
(graphcore-research/jax-experimental, README, "Useful JAX backend flags").
"""

from __future__ import annotations

import dataclasses
import difflib
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ipujax.errors import ConfigError
from ipujax.option import Value as Value
from ipujax.option import option, parse, shown
from ipujax.process_variables import (
    BUILD_VARIABLES,
    PROCESS_VARIABLES,
    check_process_variables,
)
from ipujax.product_options import check_product_options

logger = logging.getLogger("ipujax")

PER_CALL_PREFIX = "ipu_"
#: Prefix of the options of XLA's other backends, which users may set for any backend.
XLA_PREFIX = "xla_"


def machine_names() -> tuple[str, ...]:
    """The machines of the model, which cpp/engine/Machine.cpp lists."""
    from ipujax._poplar import _poplar

    return tuple(_poplar.poplar.machineNames())


def mechanisms() -> tuple[str, ...]:
    """The engine's optimizations, which cpp/engine/Mechanisms.hpp names."""
    from ipujax._poplar import _poplar

    return tuple(_poplar.engine.mechanismNames())


#: Largest number of JAX devices, and of IPUs.
MAX_DEVICES = 1024


def _check_visible_devices(text: str) -> str | None:
    if not text:
        return None
    ids = [part.strip() for part in text.split(",")]
    # Length first: Python refuses to convert thousands of digits.
    known = all(i.isdecimal() and len(i) <= 4 and int(i) < MAX_DEVICES for i in ids)
    if not known or len({int(i) for i in ids}) != len(ids):
        return f"distinct device numbers, comma-separated, below {MAX_DEVICES}, such as 0,1"
    return None


def _check_dump_dir(text: str) -> str | None:
    if not text:
        return None
    path = Path(text)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"a folder that can be created ({error.strerror or error})"
    return None if os.access(path, os.W_OK | os.X_OK) else "a writable folder"


#: Kinds of floating-point exceptions, named as in Poplar's FloatingPointBehaviour.
EXCEPTIONS = ("inv", "div0", "oflo")


PREFIXES = ("IPUJAX_", "JAX_IPU_")


@dataclass(frozen=True)
class MachineConfig:
    """Which IPUs the platform has. Read when JAX creates the backend."""

    use_model: bool = option(
        True,
        "Run on the IPU Model, the only target of a build without the Poplar SDK.",
        "JAX_IPU_USE_MODEL",
    )
    machine: str = option("gc200", "Kind of IPU that is modelled.", "IPUJAX_MACHINE", machine_names)
    device_count: int = option(
        4, "Number of JAX devices.", "JAX_IPU_DEVICE_COUNT", bounds=(1, MAX_DEVICES)
    )
    visible_devices: str = option(
        "",
        "IPUs to use as JAX devices, comma-separated, instead of a count.",
        "JAX_IPU_VISIBLE_DEVICES",
        check=_check_visible_devices,
    )
    ipus_per_device: int = option(
        1, "Number of IPUs in one JAX device.", "JAX_IPU_IPUS_PER_DEVICE", bounds=(1, 64)
    )
    num_tiles: int = option(
        0,
        "Number of tiles of each modelled IPU; 0: all tiles of the machine.",
        "JAX_IPU_MODEL_NUM_TILES",
        bounds=(0, 2**16),
    )
    streaming_gigabytes: int = option(
        0,
        "Streaming memory (DRAM) of each machine of IPUs, in GB; 0: as the modelled machine has.",
        "IPUJAX_STREAMING_GIGABYTES",
        bounds=(0, 2**20),
    )

    @property
    def num_devices(self) -> int:
        """The number of JAX devices: of visible ones, or `device_count`."""
        return len(self.visible_devices.split(",")) if self.visible_devices else self.device_count


@dataclass(frozen=True)
class CompileConfig:
    """How programs are compiled. Each option can also be set for one function."""

    out_of_memory: str = option(
        "log",
        "What to do with a program that does not fit: log and run it, run it, or raise an error.",
        "IPUJAX_OUT_OF_MEMORY",
        ("log", "run", "error"),
    )
    fit: str = option(
        "advise",
        "For a program that does not fit: try nothing; with out_of_memory=error, list in the error "
        "what other options would give; or take of these options the fastest that fit.",
        "IPUJAX_FIT",
        ("off", "advise", "auto"),
    )
    fit_seconds: float = option(
        60.0,
        "Time to try other options in; no further trial begins after it, one does in any case.",
        "IPUJAX_FIT_SECONDS",
        bounds=(0.0, 86_400.0),
    )
    dump_dir: str = option(
        "",
        "Folder into which each compiler stage writes its result; empty: none.",
        "IPUJAX_DUMP_DIR",
        check=_check_dump_dir,
    )
    partials_type: str = option(
        "float",
        "Type of the partial sums in float16 matmuls and convolutions.",
        "IPUJAX_PARTIALS_TYPE",
        ("float", "half"),
    )
    x64: str = option(
        "emulate",
        "64-bit types, which IPUs lack: emulate exactly, compute in 32 bits, or raise an error.",
        "IPUJAX_X64",
        ("emulate", "demote", "error"),
    )
    available_memory_proportion: float = option(
        0.6,
        "Share of tile memory that a matmul or convolution may use for temporaries.",
        "IPUJAX_AVAILABLE_MEMORY_PROPORTION",
        bounds=(0.0, 1.0),
    )
    matmul_options: str = option(
        "",
        "More options of PopLibs for matrix products, as a JSON object; for all, or by layer or "
        "source line.",
        "IPUJAX_MATMUL_OPTIONS",
        check=check_product_options,
    )
    convolution_options: str = option(
        "",
        "More options of PopLibs for convolutions, as matmul_options.",
        "IPUJAX_CONVOLUTION_OPTIONS",
        check=check_product_options,
    )
    stochastic_rounding: bool = option(
        False,
        "Round float16 results up or down at random, so that the mean is exact.",
        "IPUJAX_STOCHASTIC_ROUNDING",
    )
    half_overflow: str = option(
        "infinity",
        "What float16 results beyond 65504 become; hardware has only saturate and nan.",
        "IPUJAX_HALF_OVERFLOW",
        ("infinity", "saturate", "nan"),
    )
    floating_point_exceptions: str = option(
        "",
        "Exceptions that end the program with an error: inv is NaN.",
        "IPUJAX_FLOATING_POINT_EXCEPTIONS",
        allowed=EXCEPTIONS,
        several=True,
    )
    maximum_cross_replica_sum_buffer_size: int = option(
        0,
        "Largest size in bytes of small all-reduces combined into one; 0: combine none.",
        "IPUJAX_MAXIMUM_CROSS_REPLICA_SUM_BUFFER_SIZE",
        bounds=(0, 2**40),
    )
    maximum_reduce_scatter_buffer_size: int = option(
        0,
        "Largest size in bytes of small reduce-scatters combined into one; 0: combine none.",
        "IPUJAX_MAXIMUM_REDUCE_SCATTER_BUFFER_SIZE",
        bounds=(0, 2**40),
    )
    combine_matmuls: bool = option(
        False,
        "Make products that share an operand one product of all others.",
        "IPUJAX_COMBINE_MATMULS",
    )
    combine_embedding_lookups: bool = option(
        False,
        "Make lookups of one table one lookup, which may need more memory.",
        "IPUJAX_COMBINE_EMBEDDING_LOOKUPS",
    )
    cholesky_block_size: int = option(
        0,
        "Columns that a Cholesky factorization computes on one tile before it updates the others; "
        "0: PopLibs' choice.",
        "IPUJAX_CHOLESKY_BLOCK_SIZE",
        bounds=(0, 2**20),
    )
    triangular_solve_expander_block_size: int = option(
        0,
        "Rows that a triangular solve computes on one tile before it updates the others; 0: "
        "PopLibs' choice.",
        "IPUJAX_TRIANGULAR_SOLVE_EXPANDER_BLOCK_SIZE",
        bounds=(0, 2**20),
    )
    allow_recompute: bool = option(
        False,
        "Compute elementwise values again where that lowers the most that is live at one time.",
        "IPUJAX_ALLOW_RECOMPUTE",
    )
    schedule: str = option(
        "auto",
        "Order in which ops run: as the program has them, for few bytes that are live at one time, "
        "or that of the two with fewer in all tiles together.",
        "IPUJAX_SCHEDULE",
        ("auto", "program", "liveness"),
    )
    recompute_layers: str = option(
        "",
        "Layers (named scopes) that are computed again for their backward pass, comma-separated; "
        "* and ? match as in file names.",
        "IPUJAX_RECOMPUTE_LAYERS",
    )
    outline: str = option(
        "marked",
        "Which equal parts of a program become functions with one code: none, calls of "
        "ipu.outlined, or all that repeat.",
        "IPUJAX_OUTLINE",
        ("off", "marked", "auto"),
    )
    outline_threshold: int = option(
        1024,
        "With outline=auto: bytes of a tile that a function must save, by estimate.",
        "IPUJAX_OUTLINE_THRESHOLD",
        bounds=(0, 2**20),
    )
    maximum_inter_ipu_copies_buffer_size: int = option(
        2**26,
        "Largest size in bytes of copies between IPUs combined into one exchange; 0: combine none.",
        "IPUJAX_MAXIMUM_INTER_IPU_COPIES_BUFFER_SIZE",
        bounds=(0, 2**40),
    )
    assumed_trip_count: int = option(
        1,
        "Iterations in the cost analysis of each loop whose number only a run knows.",
        "IPUJAX_ASSUMED_TRIP_COUNT",
        bounds=(0, 2**31),
    )
    streamed_arguments: str = option(
        "",
        "Arguments that the cost analysis streams from the host in every run, comma-separated "
        "names of the function's parameters; * is all; empty: all are on the device.",
        "IPUJAX_STREAMED_ARGUMENTS",
    )
    streamed_results: str = option(
        "none",
        "Results that the cost analysis streams to the host in every run; new are those that take "
        "over no donated argument.",
        "IPUJAX_STREAMED_RESULTS",
        ("none", "new", "all"),
    )
    host_bandwidth: float = option(
        0.0,
        "Bandwidth in GB/s, each way, of a link to the host; 0: as the modelled machine has.",
        "IPUJAX_HOST_BANDWIDTH",
        bounds=(0.0, 10_000.0),
    )
    host_latency: float = option(
        -1.0,
        "Microseconds until the host's data arrive; negative: as the modelled machine has.",
        "IPUJAX_HOST_LATENCY",
        bounds=(-1.0, 1_000_000.0),
    )
    prefetch_depth: int = option(
        1,
        "Batches that the host sends ahead; 0: the IPU waits the host's latency for arguments.",
        "IPUJAX_PREFETCH_DEPTH",
        bounds=(0, 1024),
    )
    rearrange_copies_on_host: bool = option(
        False,
        "Give streams the order of elements that the tiles have on the host, not on the tiles.",
        "IPUJAX_REARRANGE_COPIES_ON_HOST",
    )
    num_io_tiles: int = option(
        0,
        "Tiles of each IPU that compute nothing and hold what is streamed.",
        "IPUJAX_NUM_IO_TILES",
        bounds=(0, 2**16),
    )
    place_ops_on_io_tiles: bool = option(
        False,
        "Stream through the I/O tiles, so that it overlaps with what the other tiles do.",
        "IPUJAX_PLACE_OPS_ON_IO_TILES",
    )
    io_tile_available_memory_proportion: float = option(
        0.9,
        "Share of the memory of I/O tiles that streamed arguments and results may take.",
        "IPUJAX_IO_TILE_AVAILABLE_MEMORY_PROPORTION",
        bounds=(0.0, 1.0),
    )
    profile: bool = option(
        False,
        "Keep in the executable where its time and memory go, as ipu.report asks for.",
        "IPUJAX_PROFILE",
    )
    fast_math: bool = option(
        False,
        "Allow rewrites that are valid for real numbers but not for every float.",
        "IPUJAX_FAST_MATH",
    )
    engine_without: str = option(
        "",
        "For tests: optimizations of the model to switch off; results stay the same.",
        "IPUJAX_ENGINE_WITHOUT",
        allowed=mechanisms,
        several=True,
    )


@dataclass(frozen=True)
class IPUConfig:
    """The whole tree."""

    machine: MachineConfig = MachineConfig()
    compile: CompileConfig = CompileConfig()


def from_environment(environment: Mapping[str, str] | None = None) -> IPUConfig:
    """The defaults, overridden by environment variables.

    Raises:
        ConfigError: a variable has a value that its option does not allow.
    """
    environment = os.environ if environment is None else environment
    check_process_variables(environment)
    _warn_of_unknown(environment)
    tree = IPUConfig()
    for section in fields(tree):
        options = getattr(tree, section.name)
        changes = {
            spec.name: parse(spec, environment[spec.metadata["env"]], spec.metadata["env"])
            for spec in fields(options)
            if environment.get(spec.metadata["env"], "") != ""
        }
        tree = replace(tree, **{section.name: replace(options, **changes)})
    _check_together(tree.machine)
    return tree


def _warn_of_unknown(environment: Mapping[str, str]) -> None:
    """Warns once of each variable with one of our prefixes that has no meaning."""
    known = {spec.metadata["env"] for section in fields(IPUConfig) for spec in _specs(section.name)}
    known |= {*PROCESS_VARIABLES, *BUILD_VARIABLES}
    for name in environment:
        if not name.startswith(PREFIXES) or name in known or name in _said:
            continue
        _said.add(name)
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {close[0]}?" if close else "Run python -m ipujax options to see all."
        logger.warning("[config] the environment variable %s is not known. %s", name, hint)


def _specs(section: str) -> tuple[dataclasses.Field[Any], ...]:
    return fields(getattr(IPUConfig(), section))


def _check_together(machine: MachineConfig) -> None:
    if machine.use_model and not machine.num_tiles:
        return
    from ipujax._poplar import _poplar

    if not machine.use_model and _poplar.backend == "IPU Model":
        raise ConfigError(
            "[config] JAX_IPU_USE_MODEL=false needs a build against the Poplar SDK; got a build "
            "of the IPU Model. Unset it, or set IPUJAX_EXTENSION to the folder of such a build."
        )
    if machine.num_tiles:
        tiles = _poplar.poplar.createTarget(machine.machine, 1).getTilesPerIPU()
        if machine.num_tiles > tiles:
            raise ConfigError(
                f"[config] JAX_IPU_MODEL_NUM_TILES needs a whole number from 1 to {tiles} for "
                f"IPUJAX_MACHINE={machine.machine}; got {machine.num_tiles}. Use such a value, or "
                "omit it for all tiles."
            )


def with_compiler_options(config: CompileConfig, options: Mapping[str, object]) -> CompileConfig:
    """One function's options on top of `config`.

    Args:
        options: the argument of `jax.jit(..., compiler_options=...)`; names start with `ipu_`;
            those that start with `xla_` are ignored, with a line in the log.
    Raises:
        ConfigError: an unknown name, or a value that the option does not allow.
    """
    known = {PER_CALL_PREFIX + spec.name: spec for spec in fields(config)}
    _log_ignored([name for name in options if name.startswith(XLA_PREFIX)])
    changes: dict[str, Any] = {}
    for name, value in options.items():
        if name.startswith(XLA_PREFIX):
            continue
        if name not in known:
            raise ConfigError(
                f"[config] compiler_options needs names from {', '.join(sorted(known))}; "
                f"got {name!r}. Use one of these."
            )
        changes[known[name].name] = parse(known[name], value, f"compiler_options[{name!r}]")
    return replace(config, **changes)


#: What this process has logged or warned of.
_said: set[str] = set()


def _log_ignored(names: list[str]) -> None:
    """Logs each set of names once: programs are often compiled many at a time."""
    text = ", ".join(sorted(names))
    if text and text not in _said:
        _said.add(text)
        logger.info(
            "[config] ignored compiler_options for other backends: %s",
            text,
        )


def platform_options(config: IPUConfig) -> dict[str, str | int | bool]:
    """The options with which the PJRT client is created: those of the machine, by name."""
    return {**dataclasses.asdict(config.machine), "device_count": config.machine.num_devices}


def machine_of(platform: Mapping[str, Any]) -> MachineConfig:
    """The machine's options, from those with which the PJRT client was created."""
    named = {spec.name: platform[spec.name] for spec in _specs("machine") if spec.name in platform}
    return MachineConfig(**named)


def table() -> str:
    """The options as a Markdown page."""
    lines = [
        "# Options",
        "",
        "Generated by `python -m ipujax options`. Environment variables override the",
        "defaults; options of the second table can also be set for one function:",
        '`jax.jit(f, compiler_options={"ipu_out_of_memory": "error"})`.',
    ]
    titles = {"machine": "Machine (read when JAX creates the backend)", "compile": "Compiler"}
    for section in fields(IPUConfig):
        lines += ["", f"## {titles[section.name]}", ""]
        lines += [
            "| option | environment variable | default | value | what |",
            "|---|---|---|---|---|",
        ]
        for spec in _specs(section.name):
            name = (PER_CALL_PREFIX if section.name == "compile" else "") + spec.name
            default = f"`{spec.default}`" if spec.default != "" else "(empty)"
            lines.append(
                f"| `{name}` | `{spec.metadata['env']}` | {default} | {shown(spec)} "
                f"| {spec.metadata['help']} |"
            )
    lines += ["", "## Process", "", "| environment variable | what |", "|---|---|"]
    lines += [f"| `{name}` | {what} |" for name, (what, _) in PROCESS_VARIABLES.items()]
    return "\n".join(lines) + "\n"
