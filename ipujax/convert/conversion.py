"""Converts an exported program by settings: changes around its ops, pipelines, repetition."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from ipujax import jax_compat
from ipujax.api.cost.report import report
from ipujax.api.deploy.exported import argument_names, heads
from ipujax.api.deploy.precompile import precompile
from ipujax.api.pipeline.pipeline import pipeline
from ipujax.api.pipeline.plan import Plan
from ipujax.api.pipeline.plan_stages import plan_stages
from ipujax.api.precision.scopes import precision
from ipujax.compiler.rules.registry import CUSTOM_CALLS
from ipujax.config.product_options import poplibs_options
from ipujax.convert import gelu
from ipujax.convert.changes import HALF, NARROW, Dtypes, Names, Removed, Sharded
from ipujax.convert.importer import Change, Importer
from ipujax.convert.settings import PRIORITIES, Settings
from ipujax.convert.stage_names import stages_by_name
from ipujax.errors import ConvertError

WIDE = frozenset({*NARROW, np.dtype(np.float64), np.dtype(np.complex128)})


class Conversion:
    """One conversion.

    Attributes:
        program: the converted program, an `jax.export.Exported` for the platform "ipu".
        notes: the changes made, one line each.
    """

    def __init__(self, exported: jax.export.Exported, settings: Settings, name: str = "program"):
        if exported.nr_devices > 1:
            _refuse_on_several_devices(exported, settings)
        self.settings = settings
        self.notes: list[str] = []
        self._name = name
        self._names: list[tuple[str, Names]] = []
        self._exported = exported
        self.program = self._converted()
        for where, names in self._names:
            if names.unmatched():
                self.notes.append(f"{where}: no op matches {', '.join(names.unmatched())}")

    def _converted(self) -> jax.export.Exported:
        importer = Importer(self._exported)
        importer.changes = tuple(self._changes(importer))
        names = argument_names(self._exported)
        run, avals = self._repeated(self._with_options(importer), names)
        checks = (
            jax.export.DisabledSafetyCheck.platform(),
            *map(jax.export.DisabledSafetyCheck.custom_call, _custom_calls(self._exported)),
            *map(jax.export.DisabledSafetyCheck.custom_call, CUSTOM_CALLS),
            jax.export.DisabledSafetyCheck.custom_call(jax_compat.CALLBACK_TARGET),
        )
        export = jax.export.export(
            jax.jit(_with_names(run, avals, names)),
            platforms=[jax_compat.PLATFORM],
            disabled_checks=checks,
        )
        is_wide = any(np.dtype(aval.dtype) in WIDE for aval in jax.tree.leaves(avals))
        with jax.enable_x64(is_wide or jax.config.jax_enable_x64):
            made = export(*avals)
        if importer.num_host_calls:
            self.notes.append(f"{importer.num_host_calls} calls of the host, on JAX's CPU backend")
        self._profile(made)
        return made

    def save_executable(self, path: Path) -> None:
        """Compiles the program for `ipujax.runtime`, by `ipu.precompile`."""
        settings = self.settings.embedded_runtime_save_config
        made = precompile(self.program)
        if settings is not None and settings.runtime_api_timeout_us:
            made = replace(made, timeout=settings.runtime_api_timeout_us * 1e-6)
        path.parent.mkdir(parents=True, exist_ok=True)
        made.save(path)

    # Single ops ----------------------------------------------------------------------------------

    def _changes(self, importer: Importer) -> list[Change]:
        settings = self.settings
        changes: list[Change] = []
        if settings.gelu_replacement is not None:
            changes.append(self._gelus(importer))
        if settings.excluded_nodes and settings.remove_excluded_nodes:
            names = self._regular("excluded_nodes", settings.excluded_nodes)
            changes.append(Removed(names))
        elif settings.no_ipu_placement:
            importer.on_host = lambda name: True
        elif settings.excluded_nodes:
            importer.on_host = self._regular("excluded_nodes", settings.excluded_nodes).match
        mapping: dict[Any, Any] = dict(HALF) if settings.precision_mode == "FP16" else {}
        if settings.int64_to_int32_conversion:
            mapping |= NARROW
            importer.host_dtypes = NARROW
            importer.result_dtypes = [NARROW.get(d, d) for d in importer.result_dtypes]
        if mapping:
            where = "precision_conversion_excluded_nodes"
            excluded = settings.precision_conversion_excluded_nodes
            changes.append(Dtypes(mapping, self._regular(where, excluded)))
        if settings.manual_sharding:
            lists = enumerate(settings.manual_sharding)
            named = [self._regular(f"manual_sharding of IPU {i}", texts) for i, texts in lists]
            changes.append(Sharded(named))
        return changes

    def _gelus(self, importer: Importer) -> gelu.Replaced:
        names = self.settings.gelu_replacement
        assert names is not None
        kinds = ("nodes", "node_as_gelu_input", "node_use_gelu_output")
        given = [getattr(names, kind) for kind in kinds]
        restricted = [
            self._regular(f"gelu_replacement.{kind}", texts) if texts else None
            for kind, texts in zip(kinds, given, strict=True)
        ]
        found = gelu.Replaced(gelu.find(importer.block), *restricted)
        self.notes.append(f"{len(found.found)} GELUs replaced")
        return found

    def _regular(self, where: str, expressions: tuple[str, ...]) -> Names:
        names = Names(expressions, where)
        self._names.append((where, names))
        return names

    # The whole -----------------------------------------------------------------------------------

    def _with_options(self, importer: Importer) -> Callable[..., Any]:
        settings = self.settings
        both = {
            "matmul_options": poplibs_options(settings.matmul_amp, settings.matmul_partial_type),
            "convolution_options": poplibs_options(settings.conv_amp, settings.conv_partial_type),
        }
        options = {name: own for name, own in both.items() if own}

        def run(*args: Any) -> Any:
            with precision(**options):
                return importer(*args)

        run.__name__ = self._exported.fun_name
        return run

    def _repeated(
        self, run: Callable[..., Any], names: Sequence[str]
    ) -> tuple[Callable[..., Any], Any]:
        """The function over all micro-batches of a call, and its arguments."""
        args, kwargs = jax.tree.unflatten(self._exported.in_tree, self._avals())
        if kwargs:
            raise ConvertError(
                f"[convert] needs a function of positional arguments; got keywords "
                f"{', '.join(kwargs)}. Export it without them."
            )
        count = self.settings.batch_per_step
        if not count:
            return run, args
        in_axes = self._in_axes(args, names)
        axes = jax.tree.leaves(in_axes, is_leaf=lambda x: x is None)
        leaves, tree = jax.tree.flatten(args)
        whole = jax.tree.unflatten(
            tree, [_stacked(x, count, axis) for x, axis in zip(leaves, axes, strict=True)]
        )
        if self.settings.pipeline_cfg is not None:
            plan = self._plan(run, whole, in_axes)
            return pipeline(plan, in_axes=in_axes), whole

        def repeated(*args: Any) -> Any:
            given = jax.tree.leaves(args)

            def one(batched: list[Any]) -> Any:
                own = iter(batched)
                pairs = zip(given, axes, strict=True)
                return run(
                    *jax.tree.unflatten(tree, [next(own) if a == 0 else x for x, a in pairs])
                )

            return lax.map(one, [x for x, a in zip(given, axes, strict=True) if a == 0])

        return repeated, whole

    def _avals(self) -> list[Any]:
        """The arguments' shapes, with 32-bit integers if these are converted."""
        mapping = NARROW if self.settings.int64_to_int32_conversion else {}
        found = self._exported.in_avals
        if not all(isinstance(dim, int) for aval in found for dim in aval.shape):
            raise ConvertError(
                f"[convert] needs fixed shapes; got {', '.join(map(str, found))}. Export the "
                "function for these."
            )
        dtypes = [mapping.get(np.dtype(aval.dtype), np.dtype(aval.dtype)) for aval in found]
        shardings: list[Any] = [None] * len(found)
        if self._exported.nr_devices > 1:
            mesh = jax_compat.mesh_of_exported(self._exported)
            given = jax_compat.in_shardings_of(self._exported, mesh)
            shardings = list(map(jax_compat.with_automatic_axes, given))
        return [
            jax.ShapeDtypeStruct(aval.shape, dtype, sharding=sharding)
            for aval, dtype, sharding in zip(found, dtypes, shardings, strict=True)
        ]

    def _in_axes(self, args: Any, argument_names: Sequence[str]) -> Any:
        """0 for arguments that each micro-batch has of its own, None for shared ones."""
        names = Names(self.settings.batched or ("",), "batched")
        if self.settings.batched:
            self._names.append(("batched", names))
        paths, tree = jax.tree.flatten_with_path(args)
        axes = []
        for (_, aval), name in zip(paths, argument_names, strict=True):
            is_batched = names.match(name)
            size = self.settings.batch_size
            if is_batched and aval.shape[:1] != (size,):
                raise ConvertError(
                    f"[convert] needs a first dimension of batch_size={size} in each batched "
                    f"argument; got {name!r} with shape {aval.shape}. "
                    "Name the batched arguments in batched, or set batch_size."
                )
            axes.append(0 if is_batched else None)
        return jax.tree.unflatten(tree, axes)

    def _plan(self, run: Callable[..., Any], args: Any, in_axes: Any) -> Plan:
        settings = self.settings.pipeline_cfg
        assert settings is not None
        if settings.converter == "load":
            return Plan.load(settings.solution_path, run)
        count = self.settings.batch_per_step
        kind = PRIORITIES[settings.priority]
        if settings.converter == "manual":
            stages = len(settings.manual_pipeline_config)
            ipus = (1, max(settings.device_info) + 1)
            blank = plan_stages(
                run, args, ipus, kind, micro_batches=count, in_axes=in_axes, check=False
            )
            lists = enumerate(settings.manual_pipeline_config)
            names = [self._regular(f"stage {i}", texts) for i, texts in lists]
            parts = stages_by_name(blank, args, in_axes, names)
            data = replace(blank.data, parts=parts, device_mapping=list(settings.device_info))
            plan = Plan(run, data)
            self.notes.append(f"{stages} stages by name")
        else:
            ipus = (settings.min_ipu_quantity, settings.max_ipu_quantity)
            plan = plan_stages(run, args, ipus, kind, micro_batches=count, in_axes=in_axes)
            if settings.fine_tune_iter:
                plan = plan.tune(args, in_axes=in_axes, rounds=settings.fine_tune_iter)
            self.notes += plan.data.notes
        if settings.solution_dir:
            folder = Path(settings.solution_dir)
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{self._name}.plan.json"
            plan.save(path)
            self.notes.append(f"plan written to {path}")
        return plan

    def _profile(self, made: jax.export.Exported) -> None:
        settings = self.settings.pipeline_cfg
        if settings is None or not settings.profiling_enable:
            return
        os.makedirs(settings.profiling_root_dir, exist_ok=True)
        path = Path(settings.profiling_root_dir, f"{self._name}.json")
        report(made).save(path)
        self.notes.append(f"report written to {path}")


def _refuse_on_several_devices(exported: jax.export.Exported, settings: Settings) -> None:
    """Refuses settings that work only for one device."""
    given = {
        "pipeline_cfg": settings.pipeline_cfg is not None,
        "manual_sharding": bool(settings.manual_sharding),
        "excluded_nodes": bool(settings.excluded_nodes) and not settings.remove_excluded_nodes,
        "no_ipu_placement": settings.no_ipu_placement,
    }
    if any(given.values()):
        names = ", ".join(name for name, is_given in given.items() if is_given)
        raise ConvertError(
            f"[convert] needs a program for one device for {names}; got one for "
            f"{exported.nr_devices}. Export the function without shardings, or omit these settings."
        )


def _with_names(run: Callable[..., Any], args: Any, names: Sequence[str]) -> Callable[..., Any]:
    """The function with the program's argument names in its signature, which JAX reads."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD

    def named(*args: Any) -> Any:
        return run(*args)

    named.__name__ = getattr(run, "__name__", "program")
    found = heads(jax.tree.unflatten(jax.tree.structure(args), names))
    if any(map(str.isidentifier, found)):
        parameters = [inspect.Parameter(name, kind) for name in _identifiers(found)]
        named.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return named


def _identifiers(names: Sequence[str]) -> list[str]:
    """The names, with replacements for those that cannot name parameters."""
    prefix = "argument_"
    while any(name.startswith(prefix) for name in names):
        prefix = f"_{prefix}"
    return [name if name.isidentifier() else f"{prefix}{i}" for i, name in enumerate(names)]


def _stacked(aval: Any, count: int, axis: int | None) -> Any:
    if axis is None:
        return aval
    sharding = aval.sharding
    if sharding is not None:
        sharding = NamedSharding(sharding.mesh, PartitionSpec(None, *sharding.spec))
    return jax.ShapeDtypeStruct((count, *aval.shape), aval.dtype, sharding=sharding)


def _custom_calls(exported: jax.export.Exported) -> list[str]:
    """The targets that the program itself calls."""
    found = exported.disabled_safety_checks
    return [name for check in found if (name := check.is_custom_call())]
