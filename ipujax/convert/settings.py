"""The settings of `ipujax convert`, also from a JSON file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ipujax.errors import ConvertError
from ipujax.host.file_reading import MOST_JSON_BYTES, content_of, json_of
from ipujax.types import Priority

LONGEST_TIMEOUT_US = 10**12
PRECISIONS = ("FP32", "FP16")
CONVERTERS = ("auto", "manual", "load")
PRIORITIES: dict[str, Priority] = {"cycle": "cycles", "memory": "memory"}


@dataclass(frozen=True)
class GeluNames:
    """Regular expressions that restrict which GELUs are replaced; none: all that are found."""

    nodes: tuple[str, ...] = ()  #: names of all ops that make it
    node_as_gelu_input: tuple[str, ...] = ()  #: names of the op whose result it takes
    node_use_gelu_output: tuple[str, ...] = ()  #: names of the ops that take its result


@dataclass(frozen=True)
class RuntimeSettings:
    """An executable for `ipujax.runtime`, beside the converted program."""

    embedded_runtime_exec_cachedir: str = ""  #: its folder; the file is <program>.ipu
    runtime_api_timeout_us: int = 0  #: timeout of each run, unless a session has its own; 0: none


@dataclass(frozen=True)
class PipelineSettings:
    """How the program becomes a pipeline."""

    converter: str = "auto"  #: "auto", "manual" or "load"
    priority: str = "cycle"  #: auto: balance "cycle" or "memory"
    min_ipu_quantity: int = 2  #: auto: the fewest IPUs
    max_ipu_quantity: int = 64  #: auto: the most IPUs
    fine_tune_iter: int = 0  #: auto: maximum number of rounds that compile neighbors
    manual_pipeline_config: tuple[tuple[str, ...], ...] = ()  #: manual: expressions of each stage
    device_info: tuple[int, ...] = ()  #: manual: the IPU of each stage
    solution_path: str = ""  #: load: the plan file
    solution_dir: str = ""  #: auto and manual: folder for the plan, <program>.plan.json
    ipu_model: bool = True  #: stages are always measured by the model
    profiling_enable: bool = False  #: write a report of the converted program
    profiling_root_dir: str = "pipeline-profiling"  #: its folder


@dataclass(frozen=True)
class Settings:
    """All settings; the names are those of the JSON file, and of the command's options."""

    batch_size: int = 1  #: size of the first dimension of each micro-batch's arguments
    batch_per_step: int = 0  #: micro-batches of one call; 0: the program is not repeated
    batched: tuple[str, ...] = ()  #: names of the arguments that each micro-batch has; none: all
    num_ipus: int = 1
    matmul_amp: float | None = None  #: available memory proportion of products
    conv_amp: float | None = None
    matmul_partial_type: str | None = None  #: "float" or "half"
    conv_partial_type: str | None = None
    precision_mode: str = "FP32"
    precision_conversion_excluded_nodes: tuple[str, ...] = ()
    int64_to_int32_conversion: bool = False
    gelu_replacement: GeluNames | None = None
    excluded_nodes: tuple[str, ...] = ()
    remove_excluded_nodes: bool = False  #: otherwise they run on the host
    no_ipu_placement: bool = False  #: run everything on the host
    merge_subgraphs: bool = False  #: no effect: a program is one graph
    manual_sharding: tuple[tuple[str, ...], ...] = ()
    pipeline_cfg: PipelineSettings | None = None
    embedded_runtime_save_config: RuntimeSettings | None = None


_NESTED = {
    "gelu_replacement": GeluNames,
    "pipeline_cfg": PipelineSettings,
    "embedded_runtime_save_config": RuntimeSettings,
}


def from_file(path: str | Path) -> dict[str, Any]:
    """The settings in a JSON file, checked as by `settings_of`."""
    try:
        read = json_of(content_of(path, MOST_JSON_BYTES))
    except (OSError, ValueError) as error:
        raise ConvertError(
            f"[convert] needs a JSON file of settings; got {str(path)!r}: {error}. Write an object "
            'such as {"precision_mode": "FP16"}.'
        ) from None
    settings_of(read)
    return dict(read)


def settings_of(given: Any) -> Settings:
    """Settings from JSON values.

    Raises:
        ConvertError: a name or a value is not allowed; the message lists those that are.
    """
    read = _section(Settings, given, "the settings")
    _check_choice("precision_mode", read.precision_mode, PRECISIONS)
    for name in ("matmul_partial_type", "conv_partial_type"):
        if getattr(read, name) is not None:
            _check_choice(name, getattr(read, name), ("float", "half"))
    for name in ("matmul_amp", "conv_amp"):
        value = getattr(read, name)
        if value is not None and not 0 < value <= 1:
            raise _refused(name, "a number above 0, at most 1", value)
    for name, least in (("batch_size", 1), ("batch_per_step", 0), ("num_ipus", 1)):
        if getattr(read, name) < least:
            raise _refused(name, f"a whole number of at least {least}", getattr(read, name))
    _check_together(read)
    return read


def _check_together(read: Settings) -> None:
    if read.remove_excluded_nodes and not read.excluded_nodes:
        raise _refused("remove_excluded_nodes", "excluded_nodes to remove", "none")
    runtime = read.embedded_runtime_save_config
    on_host = read.no_ipu_placement or (read.excluded_nodes and not read.remove_excluded_nodes)
    if runtime is not None and on_host:
        raise ConvertError(
            "[convert] needs a program that runs by itself for embedded_runtime_save_config; got "
            "operations for the host, which JAX runs. Pass remove_excluded_nodes, or omit one."
        )
    if runtime is not None and not runtime.embedded_runtime_exec_cachedir:
        raise _refused("embedded_runtime_exec_cachedir", "the executable's folder", "none")
    if runtime is not None and not 0 <= runtime.runtime_api_timeout_us <= LONGEST_TIMEOUT_US:
        raise _refused(
            "runtime_api_timeout_us",
            f"microseconds from 0 to {LONGEST_TIMEOUT_US}",
            runtime.runtime_api_timeout_us,
        )
    if read.manual_sharding and len(read.manual_sharding) != read.num_ipus:
        raise _refused(
            "manual_sharding",
            f"one list for each of num_ipus={read.num_ipus}",
            len(read.manual_sharding),
        )
    if read.manual_sharding and read.pipeline_cfg:
        raise ConvertError(
            "[convert] needs manual_sharding or pipeline_cfg; got both. Omit one of them."
        )
    pipeline = read.pipeline_cfg
    if pipeline is None:
        return
    _check_choice("converter", pipeline.converter, CONVERTERS)
    _check_choice("priority", pipeline.priority, tuple(PRIORITIES))
    if read.batch_per_step < 1:
        raise _refused("batch_per_step", "the micro-batches of one call of the pipeline", 0)
    if pipeline.converter == "load" and not pipeline.solution_path:
        raise _refused("solution_path", "the file of a plan for converter=load", "none")
    stages = len(pipeline.manual_pipeline_config)
    if pipeline.converter == "manual" and (not stages or stages != len(pipeline.device_info)):
        raise _refused(
            "device_info", f"an IPU for each of {stages} stages", list(pipeline.device_info)
        )


def _section(kind: Any, given: Any, where: str) -> Any:
    if not isinstance(given, Mapping):
        raise _refused(where, "a JSON object", given)
    known = {one.name: one for one in fields(kind)}
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise _refused(where, f"names from {', '.join(known)}", ", ".join(unknown))
    return kind(**{name: _value(known[name], given[name]) for name in given})


def _value(spec: Any, given: Any) -> Any:
    """A JSON value as the field's type."""
    if spec.name in _NESTED:
        if given is None or given is False:
            return None
        return _section(_NESTED[spec.name], {} if given is True else given, spec.name)
    kind = spec.type
    if kind == "tuple[str, ...]":
        return tuple(_listed(spec.name, given, str, "a list of texts"))
    if kind == "tuple[int, ...]":
        return tuple(_listed(spec.name, given, int, "a list of whole numbers"))
    if kind == "tuple[tuple[str, ...], ...]":
        rows = _listed(spec.name, given, list, "a list of lists of texts")
        return tuple(tuple(_listed(spec.name, row, str, "lists of texts")) for row in rows)
    if kind.endswith(" | None") and given is None:
        return None
    wanted: dict[str, Any] = {"int": int, "bool": bool, "str": str, "float": (int, float)}
    plain = kind.removesuffix(" | None")
    if not isinstance(given, wanted[plain]) or (isinstance(given, bool) and plain != "bool"):
        raise _refused(spec.name, f"a value of type {plain}", given)
    return given


def _listed(name: str, given: Any, kind: type, needs: str) -> Sequence[Any]:
    is_list = isinstance(given, (list, tuple))
    if not is_list or not all(isinstance(x, kind) and not isinstance(x, bool) for x in given):
        raise _refused(name, needs, given)
    return list(given)


def _check_choice(name: str, given: str, allowed: Sequence[str]) -> None:
    if given not in allowed:
        raise _refused(name, " or ".join(allowed), given)


def _refused(name: str, needs: str, got: Any) -> ConvertError:
    return ConvertError(f"[convert] {name} needs {needs}; got {got!r}. Pass such a value.")
