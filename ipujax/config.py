"""All options of ipujax: one frozen tree, each option with its help, default, and allowed values.

An option is set in five ways, of which the last one wins: its default, the file that IPUJAX_CONFIG
names, its environment variable, `ipu.configure`, and, for options of `CompileConfig`,
`jax.jit(f, compiler_options={"ipu_<name>": value})` for one function. `ipu.options` sets those that
single operations may have. `python -m ipujax options` shows all, with what set each.

The names JAX_IPU_* are those of Graphcore's experimental JAX for IPU
(graphcore-research/jax-experimental, README, "Useful JAX backend flags").
"""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ipujax.configuration.arithmetic import EXCEPTIONS as EXCEPTIONS
from ipujax.configuration.arithmetic import (
    FloatingPointOptions,
    LibraryOptions,
    NormOptions,
    ProductOptions,
)
from ipujax.configuration.machine import (
    MAX_DEVICES as MAX_DEVICES,
)
from ipujax.configuration.machine import (
    AttachmentOptions,
    DeviceOptions,
    ModelOptions,
    groups,
    numbers,
)
from ipujax.configuration.process import ProcessOptions, TrainingOptions
from ipujax.configuration.program import (
    CopyOptions,
    DiagnosticOptions,
    FitOptions,
    ScheduleOptions,
    StreamingMemoryOptions,
    StreamOptions,
)
from ipujax.errors import ConfigError
from ipujax.logs import logger_of
from ipujax.option import Value as Value
from ipujax.option import parse
from ipujax.process_variables import (
    BUILD_VARIABLES,
    CONFIG_FILE,
    PROCESS_VARIABLES,
    check_process_variables,
)

logger = logger_of("config")

PER_CALL_PREFIX = "ipu_"
#: Prefix of the options of XLA's other backends, which users may set for any backend.
XLA_PREFIX = "xla_"
PREFIXES = ("IPUJAX_", "JAX_IPU_")

Options = dataclasses.Field[Any]


@dataclass(frozen=True)
class MachineConfig(ModelOptions, AttachmentOptions, DeviceOptions):
    """Which IPUs the platform has. Read when JAX creates the backend."""

    @property
    def ipus(self) -> list[int]:
        """The numbers of IPUs of the JAX devices, one for each."""
        if self.device_ids:
            return [count for _, count in self.chosen]
        if self.num_ipus:
            return [_rounded(n) if self.auto_round_num_ipus else n for n in numbers(self.num_ipus)]
        count = len(numbers(self.visible_devices)) or self.device_count
        return [self.ipus_per_device] * count

    @property
    def chosen(self) -> list[tuple[int, int]]:
        """The first IPU and the number of IPUs of each device that an option names."""
        if self.device_ids:
            known = groups(self.num_ipus_in_host)
            return [known[each] for each in numbers(self.device_ids) if each < len(known)]
        count = self.ipus_per_device
        return [(each * count, count) for each in numbers(self.visible_devices)]

    @property
    def first_ipus(self) -> list[int]:
        """The first IPU of each device, where this process has not attached to others."""
        if self.chosen:
            return [first for first, _ in self.chosen]
        firsts, free = [], 0
        for count in self.ipus:
            aligned = count & (count - 1) == 0
            firsts.append(-(-free // count) * count if aligned else free)
            free = firsts[-1] + count
        return firsts

    @property
    def num_devices(self) -> int:
        """The number of JAX devices."""
        return len(self.ipus)


@dataclass(frozen=True)
class CompileConfig(
    DiagnosticOptions,
    StreamingMemoryOptions,
    StreamOptions,
    CopyOptions,
    ScheduleOptions,
    LibraryOptions,
    NormOptions,
    FloatingPointOptions,
    ProductOptions,
    FitOptions,
):
    """How programs are compiled. Each option can also be set for one function."""


@dataclass(frozen=True)
class ProcessConfig(TrainingOptions, ProcessOptions):
    """What concerns the process, and what functions of ipujax take as arguments."""


#: Each section of the tree: its options, and the part of IPUConfig that has their values.
SECTIONS: dict[str, tuple[type[Any], str]] = {
    "devices": (DeviceOptions, "machine"),
    "attachment": (AttachmentOptions, "machine"),
    "model": (ModelOptions, "machine"),
    "fitting": (FitOptions, "compile"),
    "products": (ProductOptions, "compile"),
    "floating_point": (FloatingPointOptions, "compile"),
    "norms": (NormOptions, "compile"),
    "libraries": (LibraryOptions, "compile"),
    "scheduling": (ScheduleOptions, "compile"),
    "copies": (CopyOptions, "compile"),
    "streams": (StreamOptions, "compile"),
    "streaming_memory": (StreamingMemoryOptions, "compile"),
    "diagnostics": (DiagnosticOptions, "compile"),
    "process": (ProcessOptions, "process"),
    "training": (TrainingOptions, "process"),
}


@dataclass(frozen=True)
class IPUConfig:
    """The whole tree: `machine`, `compile` and `process`, each also as sections by theme.

    `config.floating_point.x64` is `config.compile.x64`; `describe()` prints all, `replace` gives a
    changed copy, `ipu.configure(config)` puts it in force.

    Source: `IPUConfig` of Graphcore's TensorFlow, `Options` of PopTorch, `IPUConfig` of Optimum.

    Example:
        >>> config = ipu.IPUConfig().replace(x64="demote", num_ipus="1,2")
        >>> config.floating_point.x64, config.machine.ipus
        ('demote', [1, 2])
        >>> ipu.IPUConfig.from_json(config.to_json()) == config
        True
    """

    machine: MachineConfig = MachineConfig()
    compile: CompileConfig = CompileConfig()
    process: ProcessConfig = ProcessConfig()

    def _section(self, name: str) -> Any:
        options, part = SECTIONS[name]
        values = getattr(self, part)
        return options(**{spec.name: getattr(values, spec.name) for spec in fields(options)})

    devices = property(lambda self: self._section("devices"))
    attachment = property(lambda self: self._section("attachment"))
    model = property(lambda self: self._section("model"))
    fitting = property(lambda self: self._section("fitting"))
    products = property(lambda self: self._section("products"))
    floating_point = property(lambda self: self._section("floating_point"))
    norms = property(lambda self: self._section("norms"))
    libraries = property(lambda self: self._section("libraries"))
    scheduling = property(lambda self: self._section("scheduling"))
    copies = property(lambda self: self._section("copies"))
    streams = property(lambda self: self._section("streams"))
    streaming_memory = property(lambda self: self._section("streaming_memory"))
    diagnostics = property(lambda self: self._section("diagnostics"))
    training = property(lambda self: self._section("training"))

    def get(self, name: str) -> Value:
        """The value of an option.

        Args:
            name: such as "x64", or with its section, "floating_point.x64".
        Raises:
            ConfigError: no option has this name.
        """
        spec = spec_of(name)
        return getattr(getattr(self, PARTS[spec.name]), spec.name)

    def replace(self, **values: object) -> IPUConfig:
        """A copy with other values.

        Args:
            values: by name, as for `get`.
        Raises:
            ConfigError: no option has this name, or a value is not allowed.
        """
        tree = self
        for name, value in values.items():
            spec = spec_of(name)
            part = PARTS[spec.name]
            changed = replace(getattr(tree, part), **{spec.name: parse(spec, value, name)})
            tree = replace(tree, **{part: changed})
        return tree

    def changes(self) -> dict[str, Value]:
        """The options that differ from their defaults, by name."""
        pairs = ((spec, self.get(spec.name)) for spec in SPECS.values())
        return {spec.name: value for spec, value in pairs if value != spec.default}

    def to_json(self) -> str:
        """The options that differ from their defaults, as JSON with an object for each section."""
        from ipujax.configuration.files import to_json

        return to_json(self)

    @staticmethod
    def from_json(text: str) -> IPUConfig:
        """Reads what `to_json` gives, or another framework's options (`from_file`).

        Raises:
            ConfigError: it is no such JSON.
        """
        from ipujax.configuration.files import from_json

        return IPUConfig().replace(**from_json(text, "from_json"))

    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> IPUConfig:
        """Reads options from a file.

        Args:
            path: `.json` or `.toml`, with options by name or in a table for each section; or any
                other suffix: PopTorch's options, one command in each line. Names of Graphcore's
                TensorFlow, PopTorch and Optimum are known in all of them.
        Raises:
            ConfigError: an unknown name or a wrong value; it names the file.
            OSError: the file cannot be read.
        """
        from ipujax.configuration.files import from_file

        return IPUConfig().replace(**from_file(path))

    def describe(self) -> str:
        """All options as text: value, what they do, and which have no effect here, and why."""
        from ipujax.configuration.page import described

        return described(self)


#: Every option by its name, which is unique in the tree; its section; its part of IPUConfig.
SPECS: dict[str, Options] = {
    spec.name: spec for options, _ in SECTIONS.values() for spec in fields(options)
}
SECTION_OF = {spec.name: name for name, (each, _) in SECTIONS.items() for spec in fields(each)}
PARTS = {name: SECTIONS[section][1] for name, section in SECTION_OF.items()}
assert len(SPECS) == sum(len(fields(options)) for options, _ in SECTIONS.values())
assert not set(SPECS) & set(SECTIONS)  # a table in a file is the one or the other


def spec_of(name: str) -> Options:
    """The option with this name, which may begin with its section or part of the tree.

    Raises:
        ConfigError: there is none.
    """
    section, _, last = name.rpartition(".")
    if last in SPECS and section in ("", SECTION_OF[last], PARTS[last]):
        return SPECS[last]
    close = difflib.get_close_matches(last, SPECS, n=1, cutoff=0.5)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    raise ConfigError(
        f"[config] needs an option; got {name!r}. {hint}Run python -m ipujax options to see all."
    )


def _rounded(count: int) -> int:
    return 1 << (count - 1).bit_length()


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
        environment: of the process if it is None, with what `ipu.configure` set; otherwise the
            defaults, overridden by a file and by variables of this environment alone.
    Raises:
        ConfigError: a variable has a value that its option does not allow.
    """
    given = os.environ if environment is None else environment
    check_process_variables(given)
    _warn_of_unknown(given)
    tree = IPUConfig()
    for _, values in _sources(given, _configured if environment is None else {}):
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
    """What sets options, the last wins: the name of the source and its values, parsed."""
    path = environment.get(CONFIG_FILE, "")
    if path:
        from ipujax.configuration.files import from_file

        yield path, {n: parse(spec_of(n), v, f"{path}: {n}") for n, v in from_file(path).items()}
    for name, spec in SPECS.items():
        variable = spec.metadata["env"]
        if environment.get(variable, "") != "":
            yield variable, {name: parse(spec, environment[variable], variable)}
    yield "ipu.configure", dict(set_here)


def sources() -> dict[str, str]:
    """Of each option that is set: what sets it, a file, a variable or `ipu.configure`."""
    return {name: source for source, values in _sources(os.environ, _configured) for name in values}


def _say_what_is_ignored(spec: Options) -> None:
    """Once for each option that is set and has no effect, or is deprecated."""
    for kind, text in (("has no effect", "no_effect"), ("is deprecated", "deprecated")):
        if spec.metadata[text] and (spec.name, kind) not in _said:
            _said.add((spec.name, kind))
            logger.warning("[config] %s %s: %s.", spec.name, kind, spec.metadata[text])


def _warn_of_unknown(environment: Mapping[str, str]) -> None:
    """Warns once of each variable with one of our prefixes that has no meaning."""
    known = {spec.metadata["env"] for spec in SPECS.values()}
    known |= {*PROCESS_VARIABLES, *BUILD_VARIABLES}
    for name in environment:
        if not name.startswith(PREFIXES) or name in known or name in _said:
            continue
        _said.add(name)
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {close[0]}?" if close else "Run python -m ipujax options to see all."
        logger.warning("[config] the environment variable %s is not known. %s", name, hint)


def _check_together(machine: MachineConfig) -> None:
    known = len(groups(machine.num_ipus_in_host))
    unknown = [each for each in numbers(machine.device_ids) if each >= known]
    if unknown:
        raise ConfigError(
            f"[config] device_ids needs ids below {known}, as the host has "
            f"{machine.num_ipus_in_host} IPUs; got {unknown[0]}. "
            "Run python -m ipujax devices --ids."
        )
    wrong = [count for count in machine.ipus if count & (count - 1)] if machine.num_ipus else []
    if wrong:
        raise ConfigError(
            f"[config] num_ipus needs powers of two, which is how IPUs are linked; got {wrong[0]}. "
            f"Use {_rounded(wrong[0])}, or set auto_round_num_ipus."
        )
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
        _say_what_is_ignored(known[name])
    return replace(config, **changes)


#: What this process has logged or warned of.
_said: set[object] = set()


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
    machine, ipus = config.machine, config.machine.ipus
    named = {**dataclasses.asdict(machine), "device_count": len(ipus), "ipus_per_device": ipus[0]}
    several = ",".join(map(str, ipus)) if len(set(ipus)) > 1 else ""
    return {**named, "num_ipus": several, "first_ipus": ",".join(map(str, machine.first_ipus))}


def machine_of(platform: Mapping[str, Any]) -> MachineConfig:
    """The machine's options, from those with which the PJRT client was created."""
    known = [spec.name for spec in fields(MachineConfig) if spec.name in platform]
    return MachineConfig(**{name: platform[name] for name in known})


def program_key(config: IPUConfig) -> str:
    """Text that differs wherever compiled programs would, for the same program."""
    machine = config.machine
    devices = (machine.machine, machine.ipus, machine.num_tiles, machine.streaming_gigabytes)
    return repr((devices, machine.selection_order, machine.enable_remote_buffers, config.compile))
