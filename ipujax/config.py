"""All options of ipujax: one frozen tree, each option with its help, default, and allowed values.

Three ways set an option, the later winning: the default here, its environment variable, and (for
options of `CompileConfig`) `jax.jit(f, compiler_options={"ipu_<name>": value})` for one function.
`docs/options.md` is generated from this file by `python -m ipujax options`.

Names JAX_IPU_* are those that users of Graphcore's experimental JAX for IPU know
(graphcore-research/jax-experimental, README, "Useful JAX backend flags").
"""

from __future__ import annotations

import dataclasses
import difflib
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ipujax.errors import ConfigError

logger = logging.getLogger("ipujax")

Value = str | int | float | bool
PER_CALL_PREFIX = "ipu_"
#: Options of XLA's other backends, which JAX lets users set for every one.
XLA_PREFIX = "xla_"


def option(
    default: Value,
    help: str,
    env: str,
    allowed: tuple[Value, ...] | Callable[[], tuple[Value, ...]] = (),
    bounds: tuple[float, float] | None = None,
    check: Callable[[Any], str | None] | None = None,
) -> Any:
    """A dataclass field that carries all that is known of the option.

    Args:
        allowed: the values that it may have; a function where only the built extension knows them.
        bounds: the least and the largest number.
        check: returns what is needed where a value is wrong.
    """
    metadata = {"help": help, "env": env, "allowed": allowed, "bounds": bounds, "check": check}
    return field(default=default, metadata=metadata)


def machine_names() -> tuple[str, ...]:
    """The machines of the model; cpp/engine/Machine.cpp has the table."""
    from ipujax._poplar import _poplar

    return tuple(_poplar.poplar.machineNames())


def mechanisms() -> tuple[str, ...]:
    """What the engine does to run faster than step by step; cpp/engine/Mechanisms.hpp has them."""
    from ipujax._poplar import _poplar

    return tuple(_poplar.engine.mechanismNames())


#: JAX devices, and numbers of IPUs, at most.
MAX_DEVICES = 1024


def _check_visible_devices(text: str) -> str | None:
    if not text:
        return None
    ids = [part.strip() for part in text.split(",")]
    # Length first: Python refuses to convert thousands of digits.
    known = all(i.isdecimal() and len(i) <= 4 and int(i) < MAX_DEVICES for i in ids)
    if not known or len({int(i) for i in ids}) != len(ids):
        return f"comma-separated, different device numbers below {MAX_DEVICES}, such as 0,1"
    return None


def _check_dump_dir(text: str) -> str | None:
    if not text:
        return None
    path = Path(text)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"a folder that can be made ({error.strerror or error})"
    return None if os.access(path, os.W_OK | os.X_OK) else "a folder that can be written to"


#: Kinds of floating-point exceptions, in the words of Poplar's FloatingPointBehaviour.
EXCEPTIONS = ("inv", "div0", "oflo")


def _check_exceptions(text: str) -> str | None:
    kinds = [part.strip() for part in text.split(",")] if text else []
    if all(kind in EXCEPTIONS for kind in kinds):
        return None
    return f"a comma-separated choice of {', '.join(EXCEPTIONS)}"


def _check_mechanisms(text: str) -> str | None:
    if not text or all(name in mechanisms() for name in text.split(",")):
        return None
    return f"a comma-separated choice of {', '.join(mechanisms())}"


def _check_num_threads(text: str) -> str | None:
    known = text.isdecimal() and len(text) <= 4 and 1 <= int(text) <= 1024
    return None if known else "a whole number from 1 to 1024"


def _check_isa(text: str) -> str | None:
    return None if text in ("baseline", "avx2", "avx512") else "baseline, avx2 or avx512"


def _check_folder(text: str) -> str | None:
    return None if Path(text).is_dir() else "a folder that exists"


def _check_switch(text: str) -> str | None:
    return None if text in ("0", "1") else "0 or 1"


Check = Callable[[str], "str | None"]

#: Read by the engine and the tests for the whole process; none changes what a program computes.
#: What each does, and what is wrong with a value.
PROCESS_VARIABLES: dict[str, tuple[str, Check]] = {
    "IPUJAX_NUM_THREADS": (
        "Threads of the IPU Model; as many as CPUs where it is not set.",
        _check_num_threads,
    ),
    "IPUJAX_MAX_ISA": (
        "Most that its kernels may use of the CPU: baseline, avx2 or avx512.",
        _check_isa,
    ),
    "IPUJAX_CODELET_INCLUDE": (
        "One more folder of headers for codelets compiled at run time.",
        _check_folder,
    ),
    "IPUJAX_TRUST_NATIVE_CODE": (
        "Folder of your compiled codelets that loaded programs may run.",
        _check_folder,
    ),
    "IPUJAX_VERIFY": (
        "1 lets the compiler check shapes between its stages, as the tests do.",
        _check_switch,
    ),
}
#: Read by the build and its tests alone.
BUILD_VARIABLES = frozenset({"IPUJAX_CPP_TESTS", "IPUJAX_POPLAR_SDK", "IPUJAX_SHOW_ULP"})
PREFIXES = ("IPUJAX_", "JAX_IPU_")


@dataclass(frozen=True)
class MachineConfig:
    """Which IPUs the platform has. Read when JAX creates the backend."""

    use_model: bool = option(
        True,
        "Run on the IPU Model. The only target of a build without the Poplar SDK.",
        "JAX_IPU_USE_MODEL",
    )
    machine: str = option(
        "gc200", "Kind of IPU that the model counts for.", "IPUJAX_MACHINE", machine_names
    )
    device_count: int = option(
        4, "Number of JAX devices.", "JAX_IPU_DEVICE_COUNT", bounds=(1, MAX_DEVICES)
    )
    visible_devices: str = option(
        "",
        "Comma-separated IPU numbers to make JAX devices of, instead of a count.",
        "JAX_IPU_VISIBLE_DEVICES",
        check=_check_visible_devices,
    )
    ipus_per_device: int = option(
        1, "IPUs that one JAX device is made of.", "JAX_IPU_IPUS_PER_DEVICE", bounds=(1, 64)
    )
    num_tiles: int = option(
        0,
        "Tiles of each IPU of the model; 0 for as many as the machine has.",
        "JAX_IPU_MODEL_NUM_TILES",
        bounds=(0, 2**16),
    )

    @property
    def num_devices(self) -> int:
        """JAX devices: as many as are visible, or `device_count`."""
        return len(self.visible_devices.split(",")) if self.visible_devices else self.device_count


@dataclass(frozen=True)
class CompileConfig:
    """How programs are compiled. Each option can be set for one function too."""

    out_of_memory: str = option(
        "log",
        "What to do with a program that does not fit a tile: log it and run, or refuse it.",
        "IPUJAX_OUT_OF_MEMORY",
        ("log", "error"),
    )
    dump_dir: str = option(
        "",
        "Folder into which each compiler stage writes what it made; empty writes nothing.",
        "IPUJAX_DUMP_DIR",
        check=_check_dump_dir,
    )
    partials_type: str = option(
        "float",
        "Type in which float16 matmuls and convolutions sum their partials.",
        "IPUJAX_PARTIALS_TYPE",
        ("float", "half"),
    )
    x64: str = option(
        "emulate",
        "64-bit types, which an IPU lacks: emulate exactly, compute in 32 bits, or refuse them.",
        "IPUJAX_X64",
        ("emulate", "demote", "error"),
    )
    available_memory_proportion: float = option(
        0.6,
        "Part of tile memory that one matmul or convolution may use for temporaries.",
        "IPUJAX_AVAILABLE_MEMORY_PROPORTION",
        bounds=(0.0, 1.0),
    )
    stochastic_rounding: bool = option(
        False,
        "Round float16 results up or down at random, so that the mean is exact.",
        "IPUJAX_STOCHASTIC_ROUNDING",
    )
    half_overflow: str = option(
        "infinity",
        "What float16 results beyond 65504 become; hardware knows saturate and nan only.",
        "IPUJAX_HALF_OVERFLOW",
        ("infinity", "saturate", "nan"),
    )
    floating_point_exceptions: str = option(
        "",
        "Operations that end the program with an error: inv (NaN), div0, oflo, comma-separated.",
        "IPUJAX_FLOATING_POINT_EXCEPTIONS",
        check=_check_exceptions,
    )
    maximum_cross_replica_sum_buffer_size: int = option(
        0,
        "Bytes of small all-reduces that may wait to be done as one; 0 does each at its place.",
        "IPUJAX_MAXIMUM_CROSS_REPLICA_SUM_BUFFER_SIZE",
        bounds=(0, 2**40),
    )
    maximum_reduce_scatter_buffer_size: int = option(
        0,
        "Bytes of small reduce-scatters that may wait to be done as one; 0 does each at its place.",
        "IPUJAX_MAXIMUM_REDUCE_SCATTER_BUFFER_SIZE",
        bounds=(0, 2**40),
    )
    fast_math: bool = option(
        False,
        "Rewrite arithmetic by rules that hold for real numbers but not for every float.",
        "IPUJAX_FAST_MATH",
    )
    engine_without: str = option(
        "",
        "For tests: engine optimisations to switch off, comma-separated; results do not change.",
        "IPUJAX_ENGINE_WITHOUT",
        check=_check_mechanisms,
    )


@dataclass(frozen=True)
class IPUConfig:
    """The whole tree."""

    machine: MachineConfig = MachineConfig()
    compile: CompileConfig = CompileConfig()


def _allowed(spec: dataclasses.Field[Any]) -> tuple[Value, ...]:
    allowed = spec.metadata["allowed"]
    return allowed() if callable(allowed) else allowed


def _shown(spec: dataclasses.Field[Any]) -> str:
    allowed, bounds = _allowed(spec), spec.metadata["bounds"]
    if allowed:
        return "one of " + ", ".join(str(value) for value in allowed)
    if isinstance(spec.default, bool):
        return "true or false"
    if bounds:
        kind = "a whole number" if isinstance(spec.default, int) else "a number"
        return f"{kind} from {bounds[0]} to {bounds[1]}"
    return "text"


def _convert(spec: dataclasses.Field[Any], value: object) -> Value:
    """The value in the option's type; ValueError when it cannot be."""
    if isinstance(spec.default, bool):
        known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
        return known[str(value).strip().lower()]
    if isinstance(spec.default, int):
        if isinstance(value, (bool, float)):
            raise ValueError
        return int(str(value))
    if isinstance(spec.default, float):
        if isinstance(value, bool):
            raise ValueError
        return float(str(value))
    if not isinstance(value, (str, os.PathLike)):
        raise ValueError
    return os.fspath(value)


def _parse(spec: dataclasses.Field[Any], value: object, where: str) -> Value:
    """Converts and checks one value; `where` is how the user wrote the option."""

    def refused(needs: str) -> ConfigError:
        return ConfigError(
            f"[config] {where} needs {needs}; got {value!r}. Use such a value, or leave it out"
            + (f" for the default {spec.default!r}." if spec.default != "" else ".")
        )

    try:
        parsed = _convert(spec, value)
    except (KeyError, ValueError):
        raise refused(_shown(spec)) from None
    allowed, bounds = _allowed(spec), spec.metadata["bounds"]
    if (allowed and parsed not in allowed) or (bounds and not bounds[0] <= parsed <= bounds[1]):
        raise refused(_shown(spec))
    complaint = spec.metadata["check"] and spec.metadata["check"](parsed)
    if complaint:
        raise refused(complaint)
    return parsed


def from_environment(environment: Mapping[str, str] | None = None) -> IPUConfig:
    """The defaults, overridden by environment variables.

    Raises:
        ConfigError: a variable has a value that its option does not allow.
    """
    environment = os.environ if environment is None else environment
    check_process_variables(environment)
    _warn_of_unknown(environment)
    tree = IPUConfig()
    for room in fields(tree):
        section = getattr(tree, room.name)
        changes = {
            spec.name: _parse(spec, environment[spec.metadata["env"]], spec.metadata["env"])
            for spec in fields(section)
            if environment.get(spec.metadata["env"], "") != ""
        }
        tree = replace(tree, **{room.name: replace(section, **changes)})
    _check_together(tree.machine)
    return tree


def check_process_variables(environment: Mapping[str, str]) -> None:
    """The values of what the engine reads itself, so that a wrong one is known at the start.

    Raises:
        ConfigError: a variable has a value that is not allowed.
    """
    for name, (_, check) in PROCESS_VARIABLES.items():
        value = environment.get(name, "")
        needs = check(value) if value else None
        if needs:
            raise ConfigError(f"[config] {name} needs {needs}; got {value!r}. Correct or unset it.")


def _warn_of_unknown(environment: Mapping[str, str]) -> None:
    """One warning for each variable that looks like ours and is none."""
    known = {spec.metadata["env"] for room in fields(IPUConfig) for spec in _specs(room.name)}
    known |= {*PROCESS_VARIABLES, *BUILD_VARIABLES}
    for name in environment:
        if not name.startswith(PREFIXES) or name in known or name in _said:
            continue
        _said.add(name)
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {close[0]}?" if close else "python -m ipujax options lists all."
        logger.warning("[config] the environment variable %s is not known. %s", name, hint)


def _specs(room: str) -> tuple[dataclasses.Field[Any], ...]:
    return fields(getattr(IPUConfig(), room))


def _check_together(machine: MachineConfig) -> None:
    if not machine.use_model:
        raise ConfigError(
            "[config] JAX_IPU_USE_MODEL=false needs a build against the Poplar SDK; got a build "
            "of the IPU Model. Unset it, or build with -DIPUJAX_POPLAR_SDK=<dir>."
        )


def with_compiler_options(config: CompileConfig, options: Mapping[str, object]) -> CompileConfig:
    """One function's options on top of `config`.

    Args:
        options: what `jax.jit(..., compiler_options=...)` was given; names start with `ipu_`, and
            those that start with `xla_` are ignored with a line in the log.
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
                f"[config] compiler_options needs names out of {', '.join(sorted(known))}; "
                f"got {name!r}. Use one of these."
            )
        changes[known[name].name] = _parse(known[name], value, f"compiler_options[{name!r}]")
    return replace(config, **changes)


#: What was logged or warned of once in this process.
_said: set[str] = set()


def _log_ignored(names: list[str]) -> None:
    """One line for each new set of names: programs are often compiled many at a time."""
    text = ", ".join(sorted(names))
    if text and text not in _said:
        _said.add(text)
        logger.info(
            "[config] compiler_options that start with xla_ concern other backends; ignored: %s",
            text,
        )


def platform_options(config: IPUConfig) -> dict[str, str | int | bool]:
    """What the PJRT client is created with: every option of the machine, by name."""
    return {**dataclasses.asdict(config.machine), "device_count": config.machine.num_devices}


def machine_of(platform: Mapping[str, Any]) -> MachineConfig:
    """The machine's options out of what the PJRT client was created with."""
    named = {spec.name: platform[spec.name] for spec in _specs("machine") if spec.name in platform}
    return MachineConfig(**named)


def table() -> str:
    """The options as a Markdown page."""
    lines = [
        "# Options",
        "",
        "Generated by `python -m ipujax options`. Environment variables override the",
        "default; options of the second table can be set for one function too:",
        '`jax.jit(f, compiler_options={"ipu_out_of_memory": "error"})`.',
    ]
    titles = {"machine": "Machine (read when JAX creates the backend)", "compile": "Compiler"}
    for room in fields(IPUConfig):
        lines += ["", f"## {titles[room.name]}", ""]
        lines += [
            "| option | environment variable | default | value | what |",
            "|---|---|---|---|---|",
        ]
        for spec in fields(getattr(IPUConfig(), room.name)):
            name = (PER_CALL_PREFIX if room.name == "compile" else "") + spec.name
            default = f"`{spec.default}`" if spec.default != "" else "(empty)"
            lines.append(
                f"| `{name}` | `{spec.metadata['env']}` | {default} | {_shown(spec)} "
                f"| {spec.metadata['help']} |"
            )
    lines += ["", "## Process", "", "| environment variable | what |", "|---|---|"]
    lines += [f"| `{name}` | {what} |" for name, (what, _) in PROCESS_VARIABLES.items()]
    return "\n".join(lines) + "\n"
