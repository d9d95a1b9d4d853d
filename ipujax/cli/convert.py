"""Converts a program that jax.export serialised: precision, placement, pipelines, single ops.

All settings can stand in a JSON file, under the names of the options with "_" for "-"; options of
the command come on top. Ops are named by their name scopes, as "layer_0/dense/dot_general", and
matched by regular expressions of Python's re module.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from ipujax.cli.product_arguments import add_product_arguments
from ipujax.errors import ConvertError, printable
from ipujax.host.file_reading import MOST_JSON_BYTES, content_of, json_of

#: Settings given as JSON on the command line, or as a JSON file.
_JSON = {
    "gelu_replacement": "replace GELUs by the IPU's: true, or an object of regular expressions for "
    "nodes, node_as_gelu_input, node_use_gelu_output",
    "manual_sharding": "a list of lists of regular expressions: the ops of each IPU",
    "pipeline_cfg": "the pipeline: an object with converter (auto, manual, load) and its settings",
    "embedded_runtime_save_config": "an executable for ipujax.runtime too: an object with its "
    "folder, embedded_runtime_exec_cachedir, and runtime_api_timeout_us",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", help="the exported program")
    parser.add_argument("-o", "--output", required=True, help="the converted program")
    parser.add_argument("--overwrite", action="store_true", help="replace files that exist")
    parser.add_argument("--config-file", metavar="FILE", help="JSON file of settings")
    parser.add_argument(
        "--precision-mode", choices=("FP16", "FP32"), help="FP16: float32 ops compute in float16"
    )
    parser.add_argument(
        "--precision-conversion-excluded-nodes",
        nargs="+",
        metavar="REGEX",
        help="ops that keep their precision",
    )
    parser.add_argument(
        "--int64-to-int32-conversion",
        action="store_const",
        const=True,
        help="64-bit integers become 32-bit ones, of arguments and results too",
    )
    parser.add_argument(
        "--excluded-nodes", nargs="+", metavar="REGEX", help="ops that run on the host"
    )
    for name, help_text in (
        ("remove-excluded-nodes", "excluded ops give their first operand instead"),
        ("no-ipu-placement", "all ops run on the host"),
        ("merge-subgraphs", "of no meaning: a program is one graph"),
    ):
        parser.add_argument(f"--{name}", action="store_const", const=True, help=help_text)
    for name, help_text in _JSON.items():
        parser.add_argument(f"--{name.replace('_', '-')}", metavar="JSON", help=help_text)
    for name, help_text in (
        ("batch-size", "first dimension of batched arguments; default 1"),
        ("batch-per-step", "micro-batches of one call; default 0: the program as it is"),
        ("num-ipus", "IPUs of the device; default 1"),
    ):
        parser.add_argument(f"--{name}", type=int, metavar="N", help=help_text)
    parser.add_argument(
        "--batched",
        nargs="+",
        metavar="REGEX",
        help="arguments that each micro-batch has of its own; default: all",
    )
    add_product_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    from ipujax.convert.settings import from_file, settings_of

    given = from_file(arguments.config_file) if arguments.config_file else {}
    for name in vars(arguments).keys() - {"word", "program", "output", "overwrite", "json"}:
        value = getattr(arguments, name)
        if value is not None and name != "config_file":
            given[name] = _json(name, value) if name in _JSON else value
    settings = settings_of(given)
    output = Path(arguments.output)
    runtime = settings.embedded_runtime_save_config
    executable = None
    if runtime is not None:
        executable = Path(runtime.embedded_runtime_exec_cachedir, f"{output.stem}.ipu")
    for path in (output, executable):
        if path is not None and path.exists() and not arguments.overwrite:
            raise ConvertError(
                f"[convert] needs a new file; got {str(path)!r}, which exists. Pass --overwrite."
            )
    if _num_ipus(settings) > 1:
        os.environ.setdefault("JAX_IPU_IPUS_PER_DEVICE", str(_num_ipus(settings)))

    from ipujax.convert.conversion import Conversion
    from ipujax.convert.reading import read_program
    from ipujax.host.new_files import replacing

    made = Conversion(read_program(arguments.program), settings, output.stem)
    if executable is not None:
        made.save_executable(executable)
        made.notes.append(f"executable written to {executable}")
    with replacing(output) as file:
        file.write(made.program.serialize())
    shown = {"output": str(output), "notes": made.notes}
    lines = "\n".join([*made.notes, str(output)])
    print(json.dumps(shown, indent=2) if arguments.json else printable(lines))
    return 0


def _num_ipus(settings: Any) -> int:
    """Number of IPUs of the JAX device that compiles it: a power of two, as for all devices."""
    pipeline = settings.pipeline_cfg
    needed = settings.num_ipus
    if pipeline is not None:
        needed = max(needed, *pipeline.device_info, pipeline.min_ipu_quantity)
    return 1 << (needed - 1).bit_length()


def _json(name: str, text: str) -> Any:
    try:
        is_json = text.lstrip()[:1] in "[{tf"
        return json_of(text if is_json else content_of(text, MOST_JSON_BYTES))
    except (OSError, ValueError) as error:
        raise ConvertError(
            f"[convert] needs --{name.replace('_', '-')} as JSON or a file of it; got "
            f"{text[:60]!r}: {error}. See python -m ipujax convert --help."
        ) from None
