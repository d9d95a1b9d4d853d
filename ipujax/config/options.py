"""All options of ipujax: a frozen tree of options, each with help, default, and allowed values.

There are five ways to set an option; the last of these wins: its default, the file that
IPUJAX_CONFIG names, its environment variable, `ipu.configure`, and, for options of `CompileConfig`,
`jax.jit(f, compiler_options={"ipu_<name>": value})` for one function. `ipu.options` sets options of
individual operations. `python -m ipujax options` shows all options, with the source of each value.

The names JAX_IPU_* come from Graphcore's experimental JAX for IPU
(graphcore-research/jax-experimental, README, "Useful JAX backend flags").
"""

from __future__ import annotations

import dataclasses
import difflib
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from ipujax.config.arithmetic import EXCEPTIONS as EXCEPTIONS
from ipujax.config.hosts import HostsOptions
from ipujax.config.machine import MAX_DEVICES as MAX_DEVICES
from ipujax.config.machine import groups, numbers
from ipujax.config.option import Value as Value
from ipujax.config.option import parse
from ipujax.config.process_variables import (
    BUILD_VARIABLES,
    CONFIG_FILE,
    OF_POPLAR,
    OF_SDK_BUILDS,
    PROCESS_VARIABLES,
    UNREAD_VARIABLES,
    check_process_variables,
)
from ipujax.config.program import DiagnosticOptions
from ipujax.config.tree import PARTS as PARTS
from ipujax.config.tree import SECTION_OF as SECTION_OF
from ipujax.config.tree import SECTIONS as SECTIONS
from ipujax.config.tree import SPECS as SPECS
from ipujax.config.tree import CompileConfig as CompileConfig
from ipujax.config.tree import IPUConfig as IPUConfig
from ipujax.config.tree import MachineConfig as MachineConfig
from ipujax.config.tree import ProcessConfig as ProcessConfig
from ipujax.config.tree import Spec, rounded_up
from ipujax.config.tree import spec_of as spec_of
from ipujax.errors import ConfigError
from ipujax.host.logs import logger_of

logger = logger_of("config")

PER_CALL_PREFIX = "ipu_"
#: Prefix of the options of XLA's other backends, which users may set for any backend.
XLA_PREFIX = "xla_"
PREFIXES = ("IPUJAX_", "JAX_IPU_")


#: What `ipu.configure` set, by name.
_configured: dict[str, Value] = {}


def configured() -> dict[str, Value]:
    """What `ipu.configure` set, by name."""
    return dict(_configured)


def set_configured(values: Mapping[str, Value]) -> None:
    """Replaces what `ipu.configure` set; the values are parsed."""
    _configured.clear()
    _configured.update(values)


def from_environment(environment: Mapping[str, str] | None = None) -> IPUConfig:
    """The options in force.

    Args:
        environment: None: that of the process, with what `ipu.configure` set; otherwise the
            defaults, overridden by a file and by variables of this environment alone.
    Raises:
        ConfigError: a variable has a value that its option does not allow.
    """
    if environment is not None:
        return _tree_of(environment, {})
    variables = tuple(pair for pair in os.environ.items() if pair[0].startswith(PREFIXES))
    return _in_force(variables, tuple(_configured.items()), _file_stamp())


@lru_cache(maxsize=8)
def _in_force(
    variables: tuple[tuple[str, str], ...], configured: tuple[tuple[str, Value], ...], stamp: object
) -> IPUConfig:
    """The options in force, read again only if their sources have changed."""
    del variables, stamp
    return _tree_of(os.environ, dict(configured))


def _file_stamp() -> object:
    """A value that changes if the file of options is written again."""
    path = os.environ.get(CONFIG_FILE)
    try:
        found = os.stat(path) if path else None
    except OSError:
        return None  # the check of the variable reports the error
    return found and (found.st_mtime_ns, found.st_size, found.st_ino)


def _tree_of(given: Mapping[str, str], set_here: Mapping[str, Value]) -> IPUConfig:
    check_process_variables(given)
    _warn_of_unknown(given)
    _warn_of_unread(given)
    tree = IPUConfig()
    for _, values in _sources(given, set_here):
        changes: dict[str, dict[str, Value]] = {}
        for name, value in values.items():
            changes.setdefault(PARTS[name], {})[name] = value
        for part, changed in changes.items():
            tree = replace(tree, **{part: replace(getattr(tree, part), **changed)})
    _check_together(tree.machine)
    for name in tree.changes():
        _say_what_is_ignored(SPECS[name])
    return tree


def _sources(
    environment: Mapping[str, str], set_here: Mapping[str, Value]
) -> Iterator[tuple[str, dict[str, Value]]]:
    """The sources of options, of which the last wins: the name of each, and its parsed values."""
    path = environment.get(CONFIG_FILE, "")
    if path:
        from ipujax.config.files import from_file

        yield path, {n: parse(spec_of(n), v, f"{path}: {n}") for n, v in from_file(path).items()}
    for name, spec in SPECS.items():
        variable = spec.metadata["env"]
        if environment.get(variable, "") != "":
            yield variable, {name: parse(spec, environment[variable], variable)}
    yield "ipu.configure", dict(set_here)


def sources() -> dict[str, str]:
    """The source of each option that is set: a file, a variable or `ipu.configure`."""
    return {name: source for source, values in _sources(os.environ, _configured) for name in values}


def _say_what_is_ignored(spec: Spec) -> None:
    """Warns once of each option that is set and has no effect, or is deprecated."""
    for kind, text in (("has no effect", "no_effect"), ("is deprecated", "deprecated")):
        if spec.metadata[text]:
            warn_once("[config] %s %s: %s.", spec.name, kind, spec.metadata[text])


def _warn_of_unknown(environment: Mapping[str, str]) -> None:
    """Warns once of each unknown variable with one of our prefixes."""
    known = {spec.metadata["env"] for spec in SPECS.values()}
    known |= {*PROCESS_VARIABLES, *BUILD_VARIABLES}
    for name in environment:
        if not name.startswith(PREFIXES) or name in known:
            continue
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {close[0]}?" if close else "Run python -m ipujax options to see all."
        warn_once("[config] the environment variable %s is not known. %s", name, hint)


def _warn_of_unread(environment: Mapping[str, str]) -> None:
    """Warns once of each known variable that has no effect here."""
    for name in OF_SDK_BUILDS & environment.keys():
        if environment[name] and not _has_hardware():
            warn_once("[config] %s has no effect on the IPU Model.", name)
    for name in UNREAD_VARIABLES.keys() & environment.keys():
        if not environment[name] or (name.startswith(OF_POPLAR) and _has_hardware()):
            continue
        warn_once("[config] %s has no effect on JAX's programs: %s.", name, UNREAD_VARIABLES[name])


def _has_hardware() -> bool:
    from ipujax._poplar import _poplar

    return bool(_poplar.capabilities.hardware)


def _check_apart(machine: MachineConfig) -> None:
    """Refuses ids of devices that would share an IPU."""
    taken: dict[int, int] = {}
    known = groups(machine.num_ipus_in_host)
    for each in numbers(machine.device_ids):
        first, count = known[each]
        for ipu in range(first, first + count):
            other = taken.setdefault(ipu, each)
            if other != each:
                raise ConfigError(
                    f"[config] device_ids needs ids that share no IPU; got {other} and {each}, "
                    f"which both have IPU {ipu}. Run python -m ipujax devices --ids."
                )


def _check_linked(machine: MachineConfig) -> None:
    """Machines attach a power of two of IPUs; the model runs other numbers, with one warning."""
    count = machine.ipus_per_device
    if count == rounded_up(count) or machine.num_ipus or machine.device_ids:
        return
    if not machine.use_model:
        raise ConfigError(
            f"[config] JAX_IPU_IPUS_PER_DEVICE needs a power of two, which is how IPUs are linked; "
            f"got {count}. Use {rounded_up(count)}: a pipeline may leave IPUs idle."
        )
    warn_once(
        "[config] ipus_per_device=%d runs on the IPU Model only: machines attach powers of two. "
        "Use %d there, of which a pipeline may leave some idle.",
        count,
        rounded_up(count),
    )


def _check_together(machine: MachineConfig) -> None:
    known = len(groups(machine.num_ipus_in_host))
    unknown = [each for each in numbers(machine.device_ids) if each >= known]
    if unknown:
        raise ConfigError(
            f"[config] device_ids needs ids below {known}, as the host has "
            f"{machine.num_ipus_in_host} IPUs; got {unknown[0]}. "
            "Run python -m ipujax devices --ids."
        )
    _check_apart(machine)
    wrong = [count for count in machine.ipus if count & (count - 1)] if machine.num_ipus else []
    if wrong:
        raise ConfigError(
            f"[config] num_ipus needs powers of two, which is how IPUs are linked; got {wrong[0]}. "
            f"Use {rounded_up(wrong[0])}, or set auto_round_num_ipus."
        )
    _check_linked(machine)
    if machine.use_model and not machine.num_tiles:
        return
    from ipujax._poplar import _poplar

    if not machine.use_model and not _poplar.capabilities.hardware:
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
            names that start with `xla_` are ignored, with a line in the log.
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
                f"[config] compiler_options needs names of options for one function; got {name!r}. "
                f"{_instead(name, known)}"
            )
        changes[known[name].name] = parse(known[name], value, f"compiler_options[{name!r}]")
        _say_what_is_ignored(known[name])
    return replace(config, **changes)


def _instead(name: str, known: Mapping[str, Spec]) -> str:
    plain = name.removeprefix(PER_CALL_PREFIX)
    if PER_CALL_PREFIX + plain in known:
        return f"Write {PER_CALL_PREFIX + plain!r}."
    if plain in SPECS:
        return f"That option is the machine's: use ipu.configure({plain}=...)."
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    return f"{hint}Run python -m ipujax options to see all."


def _log_ignored(names: list[str]) -> None:
    """Logs each set of names once, as many programs are often compiled at a time."""
    if names:
        log_once(
            logging.INFO,
            "[config] ignored compiler_options for other backends: %s",
            ", ".join(sorted(names)),
        )


#: Messages that this process has logged, with their arguments.
_said: set[tuple[object, ...]] = set()


def warn_once(message: str, *about: object) -> None:
    """Warns, unless this process has already given the same warning."""
    log_once(logging.WARNING, message, *about)


def log_once(level: int, message: str, *about: object) -> None:
    """Logs at a level, unless this process has already logged the same."""
    if (message, *about) not in _said:
        _said.add((message, *about))
        logger.log(level, message, *about)


def forget_what_was_said() -> None:
    """Forgets what was logged, so that everything is logged again."""
    _said.clear()


def platform_options(config: IPUConfig) -> dict[str, str | int | bool]:
    """The options with which the PJRT client is created: those of the machine, by name.

    Those of jobs of several processes are not among them.
    """
    machine, ipus = config.machine, config.machine.ipus
    named = {**dataclasses.asdict(machine), "device_count": len(ipus), "ipus_per_device": ipus[0]}
    for spec in dataclasses.fields(HostsOptions):
        del named[spec.name]
    several = ",".join(map(str, ipus)) if len(set(ipus)) > 1 else ""
    return {**named, "num_ipus": several, "first_ipus": ",".join(map(str, machine.first_ipus))}


#: Options that a description of a machine may have; the others are as in force.
DESCRIBED = (
    "machine",
    "device_count",
    "ipus_per_device",
    "num_ipus",
    "num_tiles",
    "streaming_gigabytes",
)


def options_of_described(name: str, values: Mapping[str, object]) -> dict[str, Any]:
    """The options of a described machine, which this process need not have.

    Args:
        name: the machine's kind, such as "bow"; empty: as in force, or in `values`.
        values: options of `DESCRIBED`. If one of them counts devices, the device counts in force
            are ignored.
    Raises:
        ConfigError: an option outside `DESCRIBED`, a value that is not allowed, or two kinds.
    """
    where = "get_topology_desc"
    wrong = [each for each in values if each not in DESCRIBED]
    if wrong or (name and "machine" in values):
        got = repr(wrong[0]) if wrong else f"{name!r} and machine={values['machine']!r}"
        raise ConfigError(
            f"[{where}] needs a machine's name once, and options from {', '.join(DESCRIBED)}; got "
            f"{got}. Use these."
        )
    given = {"machine": name, **values} if name else values
    changes: dict[str, Any] = {n: parse(SPECS[n], v, f"{where}({n}=)") for n, v in given.items()}
    if {"device_count", "ipus_per_device", "num_ipus"} & given.keys():
        changes = {"device_ids": "", "visible_devices": "", "num_ipus": "", **changes}
    tree = from_environment()
    machine = replace(tree.machine, **changes, connection="never")
    _check_together(machine)
    return dict(platform_options(replace(tree, machine=machine)))


def machine_of(platform: Mapping[str, Any]) -> MachineConfig:
    """The machine's options, from those that the PJRT client was created with."""
    known = [spec.name for spec in fields(MachineConfig) if spec.name in platform]
    return MachineConfig(**{name: platform[name] for name in known})


def common_options(config: IPUConfig) -> str:
    """The options of programs that are set, which all processes of a job must have."""
    given = [
        f"{spec.name}={getattr(config.compile, spec.name)}"
        for spec in dataclasses.fields(config.compile)
        if getattr(config.compile, spec.name) != spec.default
        and spec.name not in {each.name for each in dataclasses.fields(DiagnosticOptions)}
    ]
    engine = os.environ.get("POPLAR_ENGINE_OPTIONS", "")
    return " ".join(given + ([f"POPLAR_ENGINE_OPTIONS={engine}"] if engine else [])) or "defaults"


def program_key(config: IPUConfig) -> str:
    """Text that differs if the same program would be compiled differently."""
    machine = config.machine
    devices = (machine.machine, machine.ipus, machine.num_tiles, machine.streaming_gigabytes)
    # Read by Poplar itself, or by the compiler for the IPU Model.
    engine = os.environ.get("POPLAR_ENGINE_OPTIONS", "")
    return repr(
        (devices, machine.selection_order, machine.enable_remote_buffers, config.compile, engine)
    )
