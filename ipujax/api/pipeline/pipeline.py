"""Runs stages on micro-batches, several IPUs at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import lax

from ipujax import jax_compat
from ipujax.api.arguments import whole_number
from ipujax.api.pipeline.arguments import WHERE, Arguments
from ipujax.api.pipeline.loops import (
    ACCUMULATED,
    ALL,
    MEAN,
    SEQUENTIAL,
    Loop,
)
from ipujax.api.pipeline.offload import Offload, check_minimum
from ipujax.api.pipeline.outputs import Accumulated, outputs_of
from ipujax.api.pipeline.primitive import pipeline_p, prepare
from ipujax.api.pipeline.remat import Remat, as_remat
from ipujax.api.pipeline.stages import (
    PipelineTrace,
    StagedFunction,
    check_ipu,
    stage,
    traced_pipeline,
)
from ipujax.errors import IpuError, PipelineError, check_choice
from ipujax.types import Accumulation, Recomputation, ScheduleName

GROUPED: Final = "grouped"
INTERLEAVED: Final = "interleaved"
SCHEDULES = (GROUPED, INTERLEAVED, SEQUENTIAL)
#: Part of JAX's cache keys: the trace of a stage depends on the stage's place in a pipeline.
_trace = jax.make_user_context(None)


def pipeline(
    stages: Callable[..., Any] | Sequence[Any],
    *,
    micro_batches: int | None = None,
    in_axes: Any = None,
    schedule: ScheduleName | None = None,
    reduction: Accumulation | None = None,
    outputs: Any = None,
    accumulate_dtype: Any = None,
    device_mapping: Sequence[int] | None = None,
    remat: bool | Recomputation | Callable[..., Any] | None = None,
    repeat_count: int | None = None,
    batch_serialization_iterations: int = 1,
    offload_activations: bool = False,
    offload_accumulators: bool = False,
    offload_weights: bool = False,
    replicated_weight_sharding: bool | None = None,
    minimum_remote_tensor_size: int = 128,
) -> Callable[..., Any]:
    """Runs a function of one micro-batch on many, its stages on several IPUs at a time.

    The result equals a loop over the micro-batches. With a reduction its gradient is one loop, too,
    in which each micro-batch's backward pass follows its forward pass.

    Args:
        stages: functions in order, each of `(its parameters, the previous stage's result)`; the
            pipeline is then called as `(parameters of all stages in a sequence, *batch)`, and the
            first stage as `(its parameters, *micro_batch)`. A list among them holds stages that run
            at once on the same value and return a tuple. Plain functions become an `ipu.stage`. Or
            one function with calls of `ipu.stage` inside. Or a plan of `ipu.plan_stages`.
        micro_batches: number of micro-batches, at least 1. A plan has a number of its own.
        in_axes: for each argument, 0: it has a leading axis of micro-batches; None: all share it;
            "carried": state that the function returns updated, as `(result, state)`. By default the
            first argument is shared and the others are batched.
        schedule: "grouped", "interleaved" or "sequential": decides which stages run at the same
            time; by default the plan's, else "grouped".
        reduction: None: results are stacked along a new leading axis; "sum", "mean" or
            "running_mean": results are reduced over the micro-batches. By default the plan's.
        outputs: what becomes of individual results instead: a pytree prefix of the results with
            "all" (stacked), "last", "sum", "mean", "running_mean", "none" (not returned: None), or
            a pair of one of these and the accumulator's dtype, or a function of the result's
            `jax.ShapeDtypeStruct` that returns it.
        accumulate_dtype: dtype of the accumulated gradients: None (that of the parameter), a dtype,
            or a function of a parameter's `jax.ShapeDtypeStruct`.
        device_mapping: the IPU of each stage; by default the stage's own, else its place. A JAX
            device has JAX_IPU_IPUS_PER_DEVICE of them, by default one.
        remat: as in `ipu.stage`, for stages without their own.
        repeat_count: number of whole batches that one call runs, one after the other: batched
            arguments and all results have a leading axis of that size before that of micro-batches;
            state is carried from batch to batch. None: one batch, without that axis.
        batch_serialization_iterations: n, with the schedule "sequential": each stage runs n
            micro-batches before the next stage begins; n divides `micro_batches`. Values between
            stages are stacked n times, and values that a stage fetches are fetched once for n.
        offload_activations: values for the backward pass wait in the host's memory.
        offload_accumulators: sums over the micro-batches are there between two micro-batches.
        offload_weights: values that all micro-batches share are there, and are fetched for each
            use.
        replicated_weight_sharding: parameters that `ipu.shard_weights` made are gathered for each
            use (True), or once before the loop (False). None: for each use if
            `batch_serialization_iterations` is above 1.
        minimum_remote_tensor_size: bytes; smaller arrays stay on the IPU.
    Returns:
        A function of the arguments that `in_axes` describes.
    Raises:
        PipelineError: arguments without the leading axis, a reduction of results that are not
            floating-point, a pipeline inside a pipeline, or an option with an unknown value.

    Example:
        >>> layers = [lambda w, x: jnp.tanh(x @ w), lambda w, x: (x @ w).sum()]
        >>> loss = ipu.pipeline(layers, micro_batches=4, reduction="mean", device_mapping=[0, 0])
        >>> weights = [jnp.eye(3), jnp.ones((3, 1))]
        >>> value, gradients = jax.value_and_grad(loss)(weights, jnp.zeros((4, 2, 3)))
        >>> print(value, [g.shape for g in gradients])
        0.0 [(3, 3), (3, 1)]
    """
    planned = getattr(stages, "planned", {})  # only `ipu.Plan` has it
    count = planned.get("micro_batches") if micro_batches is None else micro_batches
    schedule = schedule or planned.get("schedule", GROUPED)
    reduction = reduction or planned.get("reduction")
    check_choice(WHERE, "schedule", schedule, SCHEDULES, PipelineError)
    if reduction is not None:
        check_choice(WHERE, "reduction", reduction, ACCUMULATED, PipelineError)
    count = _checked_count("micro_batches", count)
    if repeat_count is not None:
        repeat_count = _checked_count("repeat_count", repeat_count)
    serial = _checked_serial(batch_serialization_iterations, count, schedule)
    mapping = None if device_mapping is None else tuple(device_mapping)
    for ipu in mapping or ():
        check_ipu(WHERE, ipu)
    fun = stages if callable(stages) else _composed(stages)
    if not callable(stages) and mapping is not None and len(mapping) != len(stages):
        raise PipelineError(
            f"[{WHERE}] needs a device_mapping with one IPU for each of the {len(stages)} stages; "
            f"got {mapping}. Pass one number for each stage."
        )
    kinds = (ALL if reduction is None else reduction) if outputs is None else outputs

    least = check_minimum(WHERE, minimum_remote_tensor_size)
    offload = Offload(offload_activations, offload_accumulators, offload_weights, least)
    again = as_remat(WHERE, remat)
    request = _Request(
        fun,
        count,
        in_axes,
        kinds,
        schedule,
        accumulate_dtype,
        mapping,
        again,
        offload,
        serial,
        replicated_weight_sharding,
    )
    run = request if repeat_count is None else functools.partial(request.repeated, repeat_count)
    return functools.wraps(fun)(lambda *args: run(*args))


def _checked_count(name: str, count: object) -> int:
    number = whole_number(count)
    if number is None or number < 1:
        raise PipelineError(
            f"[{WHERE}] needs {name} of at least 1; got {count!r}. Pass how many one call runs."
        )
    return number


def _checked_serial(iterations: int, micro_batches: int, schedule: str) -> int:
    name = "batch_serialization_iterations"
    iterations = _checked_count(name, iterations)
    if iterations > 1 and schedule != SEQUENTIAL:
        raise PipelineError(
            f"[{WHERE}] needs schedule={SEQUENTIAL!r} for {name}; got {schedule!r}. Choose that "
            f"schedule, or remove {name}."
        )
    if micro_batches % iterations:
        raise PipelineError(
            f"[{WHERE}] needs {name} to divide the {micro_batches} micro-batches; got "
            f"{iterations}. Choose a divisor."
        )
    return iterations


def accumulate(
    grad_fn: Callable[..., Any],
    *,
    micro_batches: int,
    in_axes: Any = None,
    schedule: ScheduleName = GROUPED,
    reduction: Accumulation = MEAN,
    outputs: Any = None,
    accumulate_dtype: Any = None,
    device_mapping: Sequence[int] | None = None,
    batch_serialization_iterations: int = 1,
    offload_activations: bool = False,
    offload_accumulators: bool = False,
    offload_weights: bool = False,
    replicated_weight_sharding: bool | None = None,
    minimum_remote_tensor_size: int = 128,
) -> Callable[..., Any]:
    """Accumulates the results of a function of a micro-batch, such as gradients, in one loop.

    The explicit form of the gradient of `ipu.pipeline`: any pytree of floating-point arrays can be
    accumulated, and results keep the accumulators' dtype. If the function has stages, they are
    pipelined.

    Args:
        grad_fn: pure function of one micro-batch, for example `jax.value_and_grad(loss)`.
        reduction: "sum", "mean" or "running_mean", for all results that `outputs` does not name.
        accumulate_dtype: dtype of the accumulators: None (that of the result), a dtype, or a
            function of a result's `jax.ShapeDtypeStruct`.
        micro_batches, in_axes, schedule, outputs, device_mapping, batch_serialization_iterations,
            offload_activations, offload_accumulators, offload_weights,
            replicated_weight_sharding, minimum_remote_tensor_size: as in `ipu.pipeline`.
    Returns:
        A function of the arguments that `in_axes` describes.
    Raises:
        PipelineError: as `ipu.pipeline`.

    Example:
        >>> gradient = jax.grad(lambda w, x: (w * x) ** 2)
        >>> total = ipu.accumulate(gradient, micro_batches=2, reduction="sum")
        >>> print(total(1.0, jnp.array([1.0, 2.0])))
        10.0
    """
    check_choice(WHERE, "reduction", reduction, ACCUMULATED, PipelineError)
    return pipeline(
        grad_fn,
        micro_batches=micro_batches,
        in_axes=in_axes,
        schedule=schedule,
        outputs=Accumulated(reduction, outputs, accumulate_dtype),
        device_mapping=device_mapping,
        batch_serialization_iterations=batch_serialization_iterations,
        offload_activations=offload_activations,
        offload_accumulators=offload_accumulators,
        offload_weights=offload_weights,
        replicated_weight_sharding=replicated_weight_sharding,
        minimum_remote_tensor_size=minimum_remote_tensor_size,
    )


def _shape_of(result: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(result.shape, result.dtype)


# The function of one micro-batch -----------------------------------------------------------------


def _composed(stages: Sequence[Any]) -> Callable[..., Any]:
    """The function that calls each stage on the result of the previous one."""
    if not stages:
        raise PipelineError(f"[{WHERE}] needs at least one stage; got none. Pass a list of stages.")
    made = [_as_stages(given) for given in stages]

    def composed(parameters: Any, *micro_batch: Any) -> Any:
        if len(parameters) != len(made):
            raise PipelineError(
                f"[{WHERE}] needs parameters for each of the {len(made)} stages; got "
                f"{len(parameters)}. Pass a sequence with one entry for each stage, () for none."
            )
        own = parameters.values() if isinstance(parameters, dict) else parameters
        values = micro_batch
        for index, (step, given) in enumerate(zip(made, own, strict=True)):
            try:
                values = (_called(step, given, values),)
            except (TypeError, ValueError) as error:
                raise _refused(index, values, error) from error
        return values[0]

    return composed


def _refused(index: int, values: tuple[Any, ...], error: Exception) -> Exception:
    """The error of a stage that does not take the result of the previous one."""
    if isinstance(error, IpuError):
        return error
    given = jax.tree.map(lambda x: jax.typeof(x).str_short(), values)
    before = f"stage {index - 1} returns" if index else "a micro-batch holds"
    line = jax_compat.line_of_error(error)
    reason = str(error).partition("\n")[0].rstrip(".")
    return PipelineError(
        f"[{WHERE}] needs stage {index} to take its parameters and what {before}: "
        f"{', '.join(map(str, given))}; got {type(error).__name__}: {reason} "
        f"(at {line}). Make the shapes, dtypes and pytrees of the stages agree."
    )


def _as_stages(given: Any) -> StagedFunction[..., Any] | list[StagedFunction[..., Any]]:
    if isinstance(given, (list, tuple)):
        return [_as_stage(one) for one in given]
    return _as_stage(given)


def _as_stage(given: Any) -> StagedFunction[..., Any]:
    return given if isinstance(given, StagedFunction) else stage(given)


def _called(
    step: StagedFunction[..., Any] | list[StagedFunction[..., Any]],
    parameters: Any,
    values: tuple[Any, ...],
) -> Any:
    if isinstance(step, StagedFunction):
        return step(parameters, *values)
    pipeline_trace = traced_pipeline.get()
    assert pipeline_trace is not None, "stages are composed inside of a pipeline only"
    with pipeline_trace.at_once():
        return tuple(one(own, *values) for one, own in zip(step, parameters, strict=True))


# A call ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Request:
    """The arguments of `pipeline`, checked."""

    fun: Callable[..., Any]
    micro_batches: int
    in_axes: Any
    outputs: Any  #: a pytree prefix, or `Accumulated`
    schedule: str
    accumulate_dtype: Any
    device_mapping: tuple[int, ...] | None
    remat: Remat | None
    offload: Offload
    serial: int  #: batch_serialization_iterations
    keeps_shards: bool | None  #: replicated_weight_sharding

    def __call__(self, *args: Any) -> Any:
        if traced_pipeline.get() is not None:
            raise PipelineError(
                f"[{WHERE}] needs a place outside of other pipelines; got a call inside one. "
                "Make its stages stages of the outer pipeline."
            )
        prepare()
        jax_compat.hide_frames(__file__)
        arguments, traced = self._traced(args)
        outputs = outputs_of(self.outputs, traced.result_tree, traced.results)
        is_kept = [output is not None for output in outputs]
        num_carried = arguments.num_carried
        jaxpr = jax_compat.with_outputs(traced.jaxpr, [True] * num_carried + is_kept)
        partitions = arguments.partitions
        if partitions:
            partitions = [*[None] * len(traced.captured), *partitions]
        loop = Loop(
            micro_batches=self.micro_batches,
            num_shared=len(traced.captured) + arguments.num_shared,
            num_carried=num_carried,
            outputs=tuple(output for output in outputs if output is not None),
            schedule=self.schedule,
            accumulate_dtype=self.accumulate_dtype,
            offload=self.offload,
            serial=self.serial,
            partitions=tuple(partitions),
        )
        made = pipeline_p.bind(*traced.captured, *arguments.operands, jaxpr=jaxpr, loop=loop)
        state, rest = made[:num_carried], iter(made[num_carried:])
        results = jax.tree.unflatten(
            traced.result_tree, [next(rest) if kept else None for kept in is_kept]
        )
        return (results, jax.tree.unflatten(traced.state_tree, state)) if num_carried else results

    def _traced(self, args: tuple[Any, ...]) -> tuple[Arguments, _MicroBatch]:
        """Traces with operands as given if the function sums derivatives over replicas itself."""
        given, alike = (self._arguments(args, once=once) for once in (False, True))
        found = given, self._micro_batch(given)
        if isinstance(self.outputs, Accumulated) or given.micro_avals == alike.micro_avals:
            return found
        others = alike, self._micro_batch(alike)
        return max(others, found, key=lambda pair: jax_compat.num_sums(pair[1].jaxpr))

    def _micro_batch(self, arguments: Arguments) -> _MicroBatch:
        stages = PipelineTrace(self.device_mapping, self.schedule == INTERLEAVED, self.remat)
        token = traced_pipeline.set(stages)
        try:
            with _trace(object()):
                return _MicroBatch(self.fun, arguments)
        finally:
            traced_pipeline.reset(token)

    def _arguments(self, args: tuple[Any, ...], *repeats: int, once: bool = False) -> Arguments:
        keeps = self.serial > 1 if self.keeps_shards is None else self.keeps_shards
        arguments = Arguments(args, self.in_axes, keeps_shards=keeps, reduces_once=once)
        arguments.check((*repeats, self.micro_batches))
        if self.keeps_shards and not arguments.partitions:
            raise PipelineError(
                f"[{WHERE}] needs parameters that are partitioned over the replicas for "
                "replicated_weight_sharding; got whole arrays. Pass what ipu.shard_weights made "
                "of them, or remove the option."
            )
        return arguments

    def repeated(self, count: int, *args: Any) -> Any:
        """Runs `count` batches and carries state from one to the next."""
        arguments = self._arguments(args, count)
        shared = arguments.shared
        state_trees: list[Any] = []

        def step(carried: Any, batch: Any) -> Any:
            made = self(*arguments.unflatten([*shared, *carried, *batch]))
            results, state = made if carried else (made, ())
            leaves, tree = jax.tree.flatten(state)
            state_trees.append(tree)
            return leaves, results

        carried, results = lax.scan(step, arguments.carried, arguments.batched, length=count)
        return (results, jax.tree.unflatten(state_trees[-1], carried)) if carried else results


class _MicroBatch:
    """The traced function of one micro-batch: the state it returns, then its results."""

    def __init__(self, fun: Callable[..., Any], arguments: Arguments):
        def flat(*given: Any) -> list[Any]:
            returned = fun(*arguments.unflatten(given))
            state: Any = ()
            if arguments.num_carried:
                returned, state = _result_and_state(returned)
            states, self.state_tree = jax.tree.flatten(state)
            results, self.result_tree = jax.tree.flatten(returned)
            return [jnp.asarray(leaf) for leaf in (*states, *results)]

        self.jaxpr, self.captured = jax_compat.trace_avals(flat, arguments.micro_avals)
        self.results = self.jaxpr.out_avals[arguments.num_carried :]
        self._check_state(arguments)

    def _check_state(self, arguments: Arguments) -> None:
        given = [_shape_of(x) for x in arguments.carried]
        got = [_shape_of(x) for x in self.jaxpr.out_avals[: len(given)]]
        if given != got or self.state_tree.num_leaves != len(given):
            raise PipelineError(
                f"[{WHERE}] needs state that each micro-batch returns as it got it: {given}; got "
                f"{got}. Return (result, state) with the shapes and dtypes of the argument."
            )


def _result_and_state(returned: Any) -> tuple[Any, Any]:
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        raise PipelineError(
            f"[{WHERE}] needs a function with carried arguments to return (result, state); got "
            f"{type(returned).__name__}. Return the new state as the second value."
        )
    return returned[0], returned[1]
