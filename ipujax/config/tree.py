"""The tree of options: its parts, its sections, and the names of all options."""

from __future__ import annotations

import dataclasses
import difflib
import os
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from ipujax.config.arithmetic import (
    FloatingPointOptions,
    LibraryOptions,
    NormOptions,
    ProductOptions,
)
from ipujax.config.hosts import HostsOptions
from ipujax.config.machine import (
    AttachmentOptions,
    DeviceOptions,
    ModelOptions,
    groups,
    numbers,
)
from ipujax.config.option import Value, allowed_values, parse
from ipujax.config.process import ProcessOptions, TrainingOptions
from ipujax.config.program import (
    CopyOptions,
    DiagnosticOptions,
    FitOptions,
    ScheduleOptions,
    StreamingMemoryOptions,
    StreamOptions,
)
from ipujax.errors import ConfigError

#: One option: its dataclass field.
Spec = dataclasses.Field[Any]


@dataclass(frozen=True)
class MachineConfig(ModelOptions, HostsOptions, AttachmentOptions, DeviceOptions):
    """Which IPUs the platform has. Read when JAX creates the backend."""

    @property
    def ipus(self) -> list[int]:
        """The number of IPUs of each JAX device."""
        if self.device_ids:
            return [count for _, count in self.chosen]
        if self.num_ipus:
            return [
                rounded_up(n) if self.auto_round_num_ipus else n for n in numbers(self.num_ipus)
            ]
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
        """The first IPU of each device, unless this process has attached to other IPUs."""
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
    FloatingPointOptions,
    ProductOptions,
    FitOptions,
):
    """How programs are compiled. Each option can also be set for one function."""


@dataclass(frozen=True)
class ProcessConfig(TrainingOptions, NormOptions, ProcessOptions):
    """Options of the process, and options that functions of ipujax have as arguments."""


class OptionMetadata(NamedTuple):
    """The description of one option."""

    name: str  #: with its section
    type: type
    default: Value
    allowed: tuple[Value, ...]  #: empty: any value of the type, in the bounds
    bounds: tuple[float, float] | None  #: smallest and largest number
    help: str
    environment_variable: str
    scoped: bool  #: operations of one program may have different values
    no_effect: str  #: why it has no effect; empty if it has one
    deprecated: str  #: what to use instead; empty if it is not deprecated


#: Each section of the tree: its options, and the part of IPUConfig that has their values.
SECTIONS: dict[str, tuple[type[Any], str]] = {
    "devices": (DeviceOptions, "machine"),
    "attachment": (AttachmentOptions, "machine"),
    "hosts": (HostsOptions, "machine"),
    "model": (ModelOptions, "machine"),
    "fitting": (FitOptions, "compile"),
    "products": (ProductOptions, "compile"),
    "floating_point": (FloatingPointOptions, "compile"),
    "norms": (NormOptions, "process"),
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

    `config.floating_point.x64` is `config.compile.x64`; `describe()` returns all as text, `replace`
    a changed copy; `ipu.configure(config)` puts it in force.

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
    hosts = property(lambda self: self._section("hosts"))
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
        """A copy with new values.

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

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.changes().items())
        return f"IPUConfig().replace({values})" if values else "IPUConfig()"

    def _repr_html_(self) -> str:
        from ipujax.config.page import changes_page

        return changes_page(self)

    def changes(self) -> dict[str, Value]:
        """The options that differ from their defaults, by name."""
        pairs = ((spec, self.get(spec.name)) for spec in SPECS.values())
        return {spec.name: value for spec, value in pairs if value != spec.default}

    def to_json(self) -> str:
        """The options that differ from their defaults, as JSON with an object for each section."""
        from ipujax.config.files import to_json

        return to_json(self)

    @staticmethod
    def from_json(text: str) -> IPUConfig:
        """Reads what `to_json` gives, or another framework's options (`from_file`).

        Raises:
            ConfigError: it is not such JSON.
        """
        from ipujax.config.files import from_json

        return IPUConfig().replace(**from_json(text, "from_json"))

    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> IPUConfig:
        """Reads options from a file.

        Args:
            path: `.json` or `.toml`, with options by name or in a table for each section; or any
                other suffix: PopTorch's options, one command in each line. All of them may have
                names of Graphcore's TensorFlow, PopTorch and Optimum.
        Raises:
            ConfigError: an unknown name or a wrong value; the message names the file.
            OSError: the file cannot be read.
        """
        from ipujax.config.files import from_file

        return IPUConfig().replace(**from_file(path))

    @staticmethod
    def metadata(name: str) -> OptionMetadata:
        """The description of an option: type, default, bounds, help, and more.

        Args:
            name: as for `get`.
        Raises:
            ConfigError: no option has this name.

        Source: `AttributeMetadata` of Graphcore's TensorFlow.

        Example:
            >>> ipu.IPUConfig.metadata("prefetch_depth").bounds
            (0, 1024)
        """
        spec = spec_of(name)
        known = spec.metadata
        return OptionMetadata(
            f"{SECTION_OF[spec.name]}.{spec.name}",
            type(default_of(spec)),
            default_of(spec),
            allowed_values(spec),
            known["bounds"],
            known["help"],
            known["env"],
            known["scoped"],
            known["no_effect"],
            known["deprecated"],
        )

    def describe(self) -> str:
        """All options as text: values, descriptions, and why some have no effect here."""
        from ipujax.config.page import described

        return described(self)


#: Every option by its name, which is unique in the tree; its section; its part of IPUConfig.
SPECS: dict[str, Spec] = {
    spec.name: spec for options, _ in SECTIONS.values() for spec in fields(options)
}
SECTION_OF = {spec.name: name for name, (each, _) in SECTIONS.items() for spec in fields(each)}
PARTS = {name: SECTIONS[section][1] for name, section in SECTION_OF.items()}
assert len(SPECS) == sum(len(fields(options)) for options, _ in SECTIONS.values())
assert not set(SPECS) & set(SECTIONS)  # a table in a file is one or the other


def spec_of(name: str) -> Spec:
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


def rounded_up(count: int) -> int:
    """The next power of two."""
    return 1 << (count - 1).bit_length()


def default_of(spec: Spec) -> Value:
    """The value of an option that nothing sets."""
    default: Any = spec.default
    return default
