"""Runs a program once, on inputs from files, expressions or examples.

The program is one that jax.export serialised, or an executable that ipu.precompile saved.

Without --outdir it prints the results; with it, it writes them to <outdir>/results.npz.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from ipujax.cli.product_arguments import add_product_arguments
from ipujax.cli.program_inputs import gather
from ipujax.config.options import PER_CALL_PREFIX, from_environment
from ipujax.config.product_options import poplibs_options
from ipujax.config.tree import rounded_up
from ipujax.errors import ConfigError, printable

RESULTS = "results.npz"
#: The first bytes of an executable.
MAGIC = b"IPUJAXPK"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", help="the exported program, or the executable")
    parser.add_argument(
        "--inputs",
        nargs="+",
        default=[],
        metavar="NAME=FILE",
        help="name=file.npy, name=file.npz[key], or file.npz with all names",
    )
    parser.add_argument(
        "--input-exprs",
        nargs="+",
        default=[],
        metavar="NAME=EXPR",
        help="name=expression, such as 'x=ones((2, 3))' or 'x=random.normal(0, 1, (2, 3))'",
    )
    parser.add_argument(
        "--input-examples",
        metavar="JSON",
        help="lists by name, a list of examples to stack, or a file of either",
    )
    parser.add_argument("--outdir", metavar="FOLDER", help=f"write {RESULTS} there")
    parser.add_argument("--overwrite", action="store_true", help=f"replace {RESULTS} if it exists")
    parser.add_argument(
        "--num-ipus",
        type=int,
        metavar="N",
        help="IPUs of the device, a power of two; default 1, or those of the executable",
    )
    add_product_arguments(parser)
    parser.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a compiler option, such as outline=auto; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    written = Path(arguments.outdir, RESULTS) if arguments.outdir else None
    if written is not None and written.exists() and not arguments.overwrite:
        raise ConfigError(
            f"[run] needs a new file; got {str(written)!r}, which exists. Pass --overwrite."
        )
    if arguments.num_ipus is not None:
        os.environ["JAX_IPU_IPUS_PER_DEVICE"] = str(_num_ipus(arguments.num_ipus))
    results = _results(arguments, _options(arguments))
    if written is not None:
        _write(written, results)
    _show(results, written, arguments.json)
    return 0


def _num_ipus(count: int) -> int:
    """A power of two, as for all devices."""
    if count < 1:
        raise ConfigError(f"[run] needs --num-ipus of 1 or more; got {count}. Omit it for 1.")
    rounded = rounded_up(count)
    if rounded != count and not from_environment().machine.auto_round_num_ipus:
        raise ConfigError(
            f"[run] needs --num-ipus to be a power of two, which is how IPUs are linked; got "
            f"{count}. Use {rounded}, or set IPUJAX_AUTO_ROUND_NUM_IPUS=1."
        )
    return rounded


def _results(arguments: argparse.Namespace, options: dict[str, Any]) -> dict[str, Any]:
    """The results by name."""
    with Path(arguments.program).open("rb") as file:
        is_executable = file.read(len(MAGIC)) == MAGIC
    return (_of_executable if is_executable else _of_exported)(arguments, options)


def _of_executable(arguments: argparse.Namespace, options: dict[str, Any]) -> dict[str, Any]:
    if options:
        raise ConfigError(
            f"[run] needs an exported program for the options {', '.join(options)}; got the "
            f"executable {arguments.program!r}, which is compiled. Omit them."
        )
    from ipujax.runtime import Session, structure

    with Session(arguments.program) as session:
        about = session.description
        compiled_for = about.target["ipus_per_device"]
        if arguments.num_ipus is not None and str(_num_ipus(arguments.num_ipus)) != compiled_for:
            raise ConfigError(
                f"[run] needs --num-ipus {compiled_for}, for which {arguments.program!r} is "
                f"compiled; got {arguments.num_ipus}. Omit it."
            )
        leaves = [leaf for leaf in about.arguments if not leaf.stored]
        inputs = _gathered(arguments, {x.name: (x.shape, x.numpy_dtype) for x in leaves})
        arrays = {i: inputs.get(leaf.name) for i, leaf in enumerate(about.arguments)}
        passed = [node for i, node in enumerate(about.argument_nodes) if not about.is_stored(i)]
        made = session.run(*(structure.unflatten(node, arrays) for node in passed))
    results: list[Any] = []
    structure.flatten(about.result_node, made, "result", results)
    return {leaf.name: x for leaf, x in zip(about.results, results, strict=True)}


def _gathered(arguments: argparse.Namespace, shapes: dict[str, Any]) -> dict[str, Any]:
    return gather(shapes, arguments.inputs, arguments.input_exprs, arguments.input_examples)


def _of_exported(arguments: argparse.Namespace, options: dict[str, Any]) -> dict[str, Any]:
    import jax
    import numpy as np

    from ipujax import jax_compat
    from ipujax.api.cost.devices import first_ipus
    from ipujax.api.deploy.exported import argument_names, result_names
    from ipujax.api.deploy.recovery import typed_errors
    from ipujax.convert.reading import read_program

    exported = read_program(arguments.program, "run")
    names = argument_names(exported)
    shapes = [(tuple(aval.shape), np.dtype(aval.dtype)) for aval in exported.in_avals]
    inputs = _gathered(arguments, dict(zip(names, shapes, strict=True)))
    call = jax.jit(exported.call, compiler_options=options)
    is_wide = any(dtype.itemsize == 8 and dtype.kind in "iuf" for _, dtype in shapes)
    devices = first_ipus("run", exported.nr_devices, exported.fun_name)
    with typed_errors(), jax.default_device(devices[0]), jax.enable_x64(is_wide):
        leaves: list[Any] = [inputs[name] for name in names]
        if len(devices) > 1:
            mesh = jax_compat.mesh_of_exported(exported, devices)
            leaves = jax.device_put(leaves, jax_compat.in_shardings_of(exported, mesh))
        args, kwargs = jax.tree.unflatten(exported.in_tree, leaves)
        made = jax.tree.leaves(jax.block_until_ready(call(*args, **kwargs)))
    return dict(zip(result_names(exported), map(np.asarray, made), strict=True))


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for text in arguments.option:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ConfigError(
                f"[run] needs --option name=value; got {text!r}. Use for example "
                "--option outline=auto."
            )
        options[name if name.startswith(PER_CALL_PREFIX) else PER_CALL_PREFIX + name] = value
    for kind, option in (("matmul", "matmul_options"), ("conv", "convolution_options")):
        amp, partials = (getattr(arguments, f"{kind}_{name}") for name in ("amp", "partial_type"))
        own = poplibs_options(amp, partials)
        if own:
            options[PER_CALL_PREFIX + option] = json.dumps(own)
    return options


def _write(path: Path, results: dict[str, Any]) -> None:
    """Writes the whole file, or leaves an existing one unchanged."""
    import numpy as np

    from ipujax.host.new_files import replacing

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        np.savez(file, **{name.replace("/", "_"): value for name, value in results.items()})


def _show(results: dict[str, Any], written: Path | None, as_json: bool) -> None:
    if as_json:
        found: dict[str, Any] = {
            name: {"shape": list(x.shape), "dtype": str(x.dtype)} for name, x in results.items()
        }
        if written is None:
            for name, x in results.items():
                found[name]["values"] = x.tolist()
        print(json.dumps({"results": found, "file": str(written) if written else None}))
        return
    for name, x in results.items():
        shown = "" if written is not None else f"\n{x}"
        print(printable(f"{name}: {x.dtype}{list(x.shape)}{shown}"))
    if written is not None:
        print(written)
