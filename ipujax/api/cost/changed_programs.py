"""A function, changes of it that save memory, and the cost of each."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from ipujax import jax_compat
from ipujax.annotations.placement import HOST
from ipujax.api.cost.cost import AS_IT_IS, Cost, lower, of_compiled
from ipujax.api.cost.gradient_part import accumulated, part_of, update_only
from ipujax.api.cost.programs import cost_of, report_of
from ipujax.api.pipeline.plan import Plan
from ipujax.api.pipeline.plan_stages import plan_stages
from ipujax.config.options import from_environment, with_compiler_options
from ipujax.errors import ConfigError, IpuError
from ipujax.reporting.model import Report

WHERE = "remedies"
#: Number of costs kept for programs that are tried again.
KEPT_COSTS = 256

_costs: OrderedDict[bytes, Cost | None] = OrderedDict()


@dataclass(frozen=True)
class Change:
    """A change: options, arguments in streaming memory, parts of the batch, IPUs of a pipeline."""

    options: Mapping[str, Any] = field(default_factory=dict)
    on_host: frozenset[int] = frozenset()
    divisor: int = 1
    accumulates: bool = False  #: over all parts in one run; otherwise a run has one part
    is_strided: bool = False  #: a micro-batch has every `divisor`-th sample
    plan: Plan | None = None
    keeps_results: bool = True

    @property
    def text(self) -> str:
        texts = [f"{name}={value}" for name, value in self.options.items()]
        texts += [f"argument {position} in streaming memory" for position in sorted(self.on_host)]
        if self.plan is not None:
            ipus = len(set(self.plan.device_mapping))
            micro_batches = self.plan.data.micro_batches
            stages = dict(zip(self.plan.parts.values(), self.plan.parts, strict=True))
            ends = ", ".join(stages[stage] for stage in sorted(stages)[:-1])
            texts.append(
                f"ipu.pipeline over {ipus} IPUs, {micro_batches} micro-batches, cut after {ends} "
                "(value and gradient)"
            )
        elif self.accumulates:
            n = self.divisor
            samples = f", the first of samples 0, {n}, {2 * n}, ..." if self.is_strided else ""
            texts.append(f"ipu.accumulate over {n} micro-batches{samples}")
        elif self.divisor > 1:
            texts.append(f"1/{self.divisor} of the batch, {self.divisor} times")
        return "; ".join(texts)

    @property
    def runs(self) -> int:
        """Number of runs that do the work of one run of the unchanged program."""
        return 1 if self.accumulates else self.divisor

    def with_(self, other: Change) -> Change:
        """Joins both; where they differ in an option or in the batch, the other one wins."""
        batch = other if other.divisor > 1 else self
        return Change(
            {**self.options, **other.options},
            self.on_host | other.on_host,
            batch.divisor,
            batch.accumulates,
            batch.is_strided,
            keeps_results=self.keeps_results and other.keeps_results,
        )


class CompiledProgram:
    """A program of which only the options can change.

    Args:
        code: a StableHLO portable artifact.
    """

    def __init__(self, code: bytes, options: Mapping[str, Any]):
        self.code, self.options = code, options
        self.config = with_compiler_options(from_environment().compile, options)
        self.states: tuple[int, ...] = ()

    @property
    def has_half(self) -> bool:
        return "f16" in str(jax_compat.deserialize_artifact(self.code))

    def divides(self, divisor: int) -> bool:
        return False

    @cached_property
    def is_sharded(self) -> bool:
        """Whether it runs on several devices."""
        return jax_compat.num_devices_of(self.code) > 1

    def accumulates(self, divisor: int) -> bool:
        return False

    def plan(self, ipus: int, micro_batches: int) -> Plan | None:
        return None

    def cost(self, change: Change) -> Cost | None:
        """The cost of the program with other options."""
        options = {**self.options, **change.options}
        return _kept(self.code, options, lambda: cost_of(report_of(self.code, options)))


class ChangedPrograms(CompiledProgram):
    """The user's function, and how it is changed.

    Args:
        batches: arguments whose arrays have samples along their first axis.
        states: arguments that may be kept in streaming memory; None: those that only an update
            reads.
        loss: a function of all arguments but those in `states`, for pipelines.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        batches: tuple[int, ...],
        states: tuple[int, ...] | None,
        loss: Callable[..., Any] | None,
        options: dict[str, Any],
    ):
        self._lowered = lower(WHERE, fun, args)
        super().__init__(jax_compat.serialize_artifact(self._lowered), options)
        self.fun, self.args, self.batches, self.loss = fun, args, batches, loss
        self._accumulated: dict[int, Callable[..., Any] | None] = {}
        for position in batches:
            for leaf in jax.tree.leaves(args[position]):
                if not jax.numpy.shape(leaf):
                    raise ConfigError(
                        f"[{WHERE}] needs batch arguments with a first axis of samples; got "
                        f"a number in argument {position}. Name other arguments."
                    )
        self.states = self._found_states() if states is None else states

    def _found_states(self) -> tuple[int, ...]:
        """Arguments that only an update reads, and that a result replaces."""
        sizes = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(self._lowered.out_info)]
        return tuple(
            position
            for position in update_only(self.fun, self.args, self.batches)
            if _is_within(self.args[position], sizes)
        )

    @property
    def has_half(self) -> bool:
        return "f16" in self._lowered.as_text()

    @cached_property
    def _shardings(self) -> list[Any]:
        """Shardings of the arrays of each argument, as the program takes them."""
        if not self.is_sharded:
            ipu = SingleDeviceSharding(jax.local_devices(backend=jax_compat.PLATFORM)[0])
            return [jax.tree.map(lambda _: ipu, arg) for arg in self.args]
        compiled = self._lowered.compile({**AS_IT_IS, **self.options})
        found = compiled.input_shardings[0]
        devices = next(each.device_set for each in jax.tree.leaves(found))
        everywhere = NamedSharding(Mesh(list(devices), "replicas"), PartitionSpec())
        return [  # None: of an argument that is not used
            jax.tree.map(lambda _, of: everywhere if of is None else of, arg, sharding)
            for arg, sharding in zip(self.args, found, strict=True)
        ]

    def divides(self, divisor: int) -> bool:
        """Whether the samples on each device can be divided."""
        firsts = [
            sharding.shard_shape(leaf.shape)[0]
            for i in self.batches
            for leaf, sharding in zip(
                jax.tree.leaves(self.args[i]), jax.tree.leaves(self._shardings[i]), strict=True
            )
        ]
        return bool(firsts) and all(first % divisor == 0 for first in firsts)

    def accumulates(self, divisor: int) -> bool:
        """Whether the function's equations allow gradients of micro-batches to be accumulated."""
        if divisor not in self._accumulated:
            with _named_options():
                jax.eval_shape(lambda *args: self.fun(*args), *self.args)
            found = accumulated(self.fun, self.args, self.batches, divisor, self.is_sharded)
            self._accumulated[divisor] = found
        return self._accumulated[divisor] is not None

    def plan(self, ipus: int, micro_batches: int) -> Plan | None:
        """The cut of the loss into stages for a number of IPUs; None if it cannot be cut."""
        if self.loss is None or self.is_sharded:
            return None
        args, axes = self._of_loss(micro_batches)
        try:
            return plan_stages(
                self.loss,
                args,
                (ipus, ipus),
                micro_batches=micro_batches,
                in_axes=axes,
                reduction="mean",
                check=False,
            )
        except IpuError:  # too few parts
            return None

    def _of_loss(self, micro_batches: int) -> tuple[list[Any], tuple[Any, ...]]:
        """The arguments of the loss as a pipeline takes them, and their axes."""
        positions = [i for i in range(len(self.args)) if i not in self.states]
        args = [
            jax.tree.map(lambda x: _stacked(x, micro_batches), self.args[i])
            if i in self.batches
            else self.args[i]
            for i in positions
        ]
        return args, tuple(0 if i in self.batches else None for i in positions)

    def before(self) -> Cost:
        """The cost of the unchanged function.

        Raises:
            ConfigError: its own options constrain plans of products in a way that none can meet.
        """
        found = self.cost(Change())
        if found is None:
            raise ConfigError(
                f"[{WHERE}] needs planConstraints that products can meet; got others. Relax them."
            )
        return found

    def profile(self) -> Report:
        """Where the time and memory of the unchanged function go."""
        return report_of(self.code, self.options)

    def cost(self, change: Change) -> Cost | None:
        """The cost of the changed function; None if no plan of a product meets its constraints."""
        if change.plan is not None:
            return self._pipelined(change, change.plan)
        lowered = self._lowered
        if change.on_host or change.divisor > 1:
            lowered = self._changed(change)
        options = {**AS_IT_IS, **self.options, **change.options}
        code = self.code if lowered is self._lowered else jax_compat.serialize_artifact(lowered)
        return _kept(code, options, lambda: of_compiled(lowered.compile(options)))

    def _pipelined(self, change: Change, plan: Plan) -> Cost | None:
        ipus = max(plan.device_mapping) + 1
        args, axes = self._of_loss(plan.data.micro_batches)
        lowered = lower(WHERE, plan.program(axes), tuple(args))
        options = {**self.options, **change.options}
        code = jax_compat.serialize_artifact(lowered)
        return _kept(
            code, {**options, "ipus": ipus}, lambda: cost_of(report_of(code, options, ipus))
        )

    def _changed(self, change: Change) -> Any:
        """The function with a smaller batch, and arguments that come from streaming memory."""
        args, fun = list(self.args), self.fun
        if change.accumulates:
            fun = self._accumulated[change.divisor] or fun
        elif change.divisor > 1:
            for i in self.batches:
                args[i] = jax.tree.map(lambda x: part_of(x, change.divisor), args[i])
                args[i] = jax.tree.map(_placed, args[i], self._shardings[i])
        for i in change.on_host:
            args[i] = jax.tree.map(
                lambda x, sharding: _placed(x, sharding.with_memory_kind(HOST)),
                args[i],
                self._shardings[i],
            )
        structures = [_structure(args[i]) for i in sorted(change.on_host)]

        def run(*given: Any) -> Any:
            near = list(given)
            for i in change.on_host:
                near[i] = jax.device_put(near[i], jax.memory.Space.Device)
            return _put_back(fun(*near), structures)

        info = self._lowered.args_info[0]
        donated = [i for i, of in enumerate(info) if _is_donated(of)]
        with _named_options():
            return lower(WHERE, jax.jit(run, donate_argnums=donated), tuple(args))


@contextmanager
def _named_options() -> Iterator[None]:
    """JAX refuses to trace a function that has compiler options of its own."""
    try:
        yield
    except ValueError as error:
        if "compiler_options" not in str(error):
            raise
        raise ConfigError(
            f"[{WHERE}] needs a function without compiler options; got one that jax.jit "
            "returned with some. Pass them as options=."
        ) from error


def _kept(code: bytes, options: Mapping[str, Any], find: Callable[[], Cost]) -> Cost | None:
    """The cost of a program, cached if the same one was compiled with the same options."""
    depends_on = (code, sorted(options.items()), from_environment())
    key = hashlib.sha256(repr(depends_on).encode()).digest()
    if key not in _costs:
        try:
            _costs[key] = find()
        except (jax.errors.JaxRuntimeError, ConfigError) as error:
            if "planConstraints" not in str(error):
                raise
            _costs[key] = None
    _costs.move_to_end(key)
    found = _costs[key]
    while len(_costs) > KEPT_COSTS:
        _costs.popitem(last=False)
    return found


def _stacked(x: Any, count: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((count, x.shape[0] // count, *x.shape[1:]), x.dtype)


def _placed(x: Any, sharding: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)


def _is_donated(info: Any) -> bool:
    leaves = jax.tree.leaves(info)
    return bool(leaves) and all(leaf.donated for leaf in leaves)


def _is_within(tree: Any, sizes: Sequence[Any]) -> bool:
    """Whether there is a result for each of its arrays."""
    left = list(sizes)
    for leaf in jax.tree.leaves(tree):
        size = (jax.numpy.shape(leaf), jax.numpy.result_type(leaf))
        if size not in left:
            return False
        left.remove(size)
    return True


def _structure(tree: Any) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(leaf.shape, leaf.dtype) for leaf in leaves]


def _put_back(results: Any, structures: list[Any]) -> Any:
    """Results with the structure of an argument that came from streaming memory go there."""
    if _structure(results) in structures:
        return jax.device_put(results, jax.memory.Space.Host)
    if not isinstance(results, tuple):
        return results
    put = [_put_back(each, structures) for each in results]
    return type(results)(*put) if hasattr(results, "_fields") else tuple(put)
