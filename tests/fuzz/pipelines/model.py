"""The functions of a random pipeline: its stages, and the plain function that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import ipujax as ipu
from tests.fuzz.pipelines.layers import LAYERS, VOCABULARY, Draw, Flow, Layer
from tests.fuzz.pipelines.spec import Spec, Stage


class Model:
    """Parameters, a batch, and the functions of one micro-batch."""

    def __init__(self, spec: Spec):
        self.spec = spec
        self.numbers = np.random.default_rng(spec.seed)
        made = [self._layers(stage.layers) for stage in spec.stages]
        beside = [self._layers(stage.beside) for stage in spec.stages]
        self.applied = [applied for _, applied in made]
        self.applied_beside = [applied for _, applied in beside]
        own = [
            (main, other) if stage.beside else main
            for stage, (main, _), (other, _) in zip(spec.stages, made, beside, strict=True)
        ]
        tied = Draw(spec.seed, spec.shape).weights(spec.shape.width, spec.shape.width)
        self.parameters = {"stages": own, "tied": tied} if spec.is_function else own
        micro_batches = [self._micro_batch() for _ in range(spec.micro_batches)]
        self.batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *micro_batches)
        width = jnp.zeros(spec.shape.width, jnp.float32)
        self.state = [width + i for i in range(len(own))] if spec.is_carried else ()

    def _layers(self, layers: tuple[Layer, ...]) -> tuple[Any, list[Any]]:
        drawn = [LAYERS[layer.name][0](Draw(layer.seed, self.spec.shape)) for layer in layers]
        return [own for own, _ in drawn], [apply for _, apply in drawn]

    def _micro_batch(self) -> dict[str, Any]:
        shape = self.spec.shape
        of_x = (shape.samples, shape.length, shape.width)
        made: dict[str, Any] = {
            "x": jnp.asarray(self.numbers.normal(size=of_x), shape.dtype),
            "tokens": jnp.asarray(self.numbers.integers(0, VOCABULARY, of_x[:2]), jnp.int32),
            "labels": jnp.asarray(self.numbers.integers(0, shape.width, of_x[:2]), jnp.int32),
            "key": jax.random.PRNGKey(int(self.numbers.integers(1000))),
        }
        return {name: made[name] for name in ("x", *self.spec.inputs)}

    # Stages --------------------------------------------------------------------------------------

    def stage_function(self, index: int, is_beside: bool = False) -> Callable[..., Any]:
        """Of its parameters and what the stage before made, or a micro-batch.

        In the function form also of the tied weights and its state, which it returns anew.
        """
        stage, spec = self.spec.stages[index], self.spec
        applied = (self.applied_beside if is_beside else self.applied)[index]

        def stage_of(own: Any, given: Any, tied: Any = None, state: Any = None) -> Any:
            given = _joined(given) if index else {**given, "aux": jnp.float32(0), "skips": {}}
            x, skips = given["x"], given["skips"]
            flow = Flow(given["aux"], given.get("key"), given.get("tokens"), state)
            if stage.is_frozen:
                own = lax.stop_gradient(own)
            for parameters, apply in zip(own, applied, strict=True):
                x = apply(parameters, x, flow)
            if stage.skip_from in skips:
                x = x + skips[stage.skip_from]
            if tied is not None:
                x = x @ (tied if index % 2 else tied.T)
            if stage.is_frozen and not index:
                x = lax.stop_gradient(x)
            if any(later.skip_from == index for later in spec.stages):
                skips = {**skips, index: x}
            made = {**given, "x": x, "aux": flow.aux, "skips": skips}
            if flow.key is not None:
                made["key"] = flow.key
            if index == len(spec.stages) - 1:
                made = self._results(made)
            return made if state is None else (made, flow.state)

        stage_of.__name__ = f"stage_{index}{'b' if is_beside else ''}"
        return stage_of

    def _results(self, given: dict[str, Any]) -> Any:
        """The loss; x and the auxiliary loss, too, where the spec has outputs."""
        x, aux = given["x"], given["aux"]
        if "labels" in given:
            scores = jax.nn.log_softmax(x.astype(jnp.float32))
            loss = -jnp.mean(jnp.take_along_axis(scores, given["labels"][..., None], -1))
        else:
            loss = jnp.mean(x * x)
        loss = loss + (aux / 64).astype(loss.dtype)
        return (loss, x, aux) if self.spec.outputs else loss

    def composed(self, stages: list[Any]) -> Callable[..., Any]:
        """The function of a micro-batch that calls these, which has the form of the spec."""
        if not self.spec.is_function:
            return lambda parameters, micro_batch: _one_by_one(stages, parameters, micro_batch)

        def whole(parameters: Any, *given: Any) -> Any:
            states, made = given[0] if self.spec.is_carried else None, given[-1]
            new = []
            for i, (stage, call) in enumerate(zip(self.spec.stages, stages, strict=True)):
                tied = parameters["tied"] if stage.is_tied else None
                made = call(parameters["stages"][i], made, tied, states and states[i])
                if states:
                    made, state = made
                    new.append(state)
            return (made, new) if states else made

        return whole

    @property
    def plain(self) -> Callable[..., Any]:
        """The function of a micro-batch, without stages.

        Inside `jit` what a stage adds to a gradient is summed first, as it is with stages.
        """
        stages: list[Any] = []
        for i, stage in enumerate(self.spec.stages):
            both = [jax.jit(self.stage_function(i, is_beside)) for is_beside in (False, True)]
            stages.append(both if stage.beside else both[0])
        return self.composed(stages)

    def placed_stages(self) -> list[Any]:
        """The stages on their IPUs; a list of two where two run at one time."""
        stages: list[Any] = []
        for i, stage in enumerate(self.spec.stages):
            made = self._ipu_stage(stage, self.stage_function(i), stage.ipu)
            if stage.beside:
                beside = self.stage_function(i, is_beside=True)
                made = [made, self._ipu_stage(stage, beside, stage.beside_ipu)]
            stages.append(made)
        return stages

    def pipeline(self) -> Callable[..., Any]:
        """The pipeline, of (parameters[, state], batch)."""
        spec, stages = self.spec, self.placed_stages()
        options: dict[str, Any] = {} if spec.is_function else {"remat": _remat(spec.remat)}
        if set(spec.outputs) == {"all"}:
            options["reduction"] = None
        else:
            options["reduction"] = spec.reduction
            options["outputs"] = tuple(map(_output, spec.outputs)) if spec.outputs else None
        return ipu.pipeline(
            self.composed(stages) if spec.is_function else stages,
            micro_batches=spec.micro_batches,
            in_axes=(None, "carried", 0) if spec.is_carried else None,
            schedule=spec.schedule,
            batch_serialization_iterations=spec.serial,
            accumulate_dtype=accumulate_dtype(spec),
            **options,
        )

    @staticmethod
    def _ipu_stage(stage: Stage, function: Callable[..., Any], number: int) -> Any:
        return ipu.stage(function, ipu=number, remat=_remat(stage.remat))


def _remat(given: bool | str | None) -> Any:
    return getattr(jax.checkpoint_policies, given) if isinstance(given, str) else given


def _output(text: str) -> Any:
    kind, _, dtype = text.partition(" ")
    return (kind, jnp.dtype(dtype)) if dtype else kind


def accumulate_dtype(spec: Spec) -> Any:
    """The option of that name."""
    if spec.accumulate == "by parameter":
        return lambda parameter: jnp.float32 if len(parameter.shape) > 1 else None
    return jnp.float32 if spec.accumulate else None


def _joined(given: Any) -> dict[str, Any]:
    """What stages that ran at once made, as one."""
    if isinstance(given, dict):
        return given
    first, second = given
    both = {name: first[name] + second[name] for name in ("x", "aux")}
    return {**first, "x": both["x"] / 2, "aux": both["aux"]}


def _one_by_one(stages: list[Any], parameters: Any, micro_batch: Any) -> Any:
    made = micro_batch
    for call, own in zip(stages, parameters, strict=True):
        if isinstance(call, list):
            made = tuple(one(mine, made) for one, mine in zip(call, own, strict=True))
        else:
            made = call(own, made)
    return made


class Pipelined:
    """The loss of a batch by `ipu.pipeline`; a batch is (micro-batches, the state before)."""

    def __init__(self, model: Model):
        self.model = model
        self.run = model.pipeline()

    def loss(self, parameters: Any, batch: Any) -> tuple[Any, Any]:
        """The loss, and whatever else the pipeline returns."""
        micro_batches, state = batch
        if not self.model.spec.is_carried:
            return _split(self.run(parameters, micro_batches), ())
        return _split(*self.run(parameters, state, micro_batches))

    def value_and_grad(self, parameters: Any, batch: Any) -> tuple[Any, Any]:
        return jax.value_and_grad(self.loss, has_aux=True)(parameters, batch)

    def accumulated(self, parameters: Any, batch: Any) -> Any:
        """Gradients by the explicit form, in the accumulators' dtype."""
        spec = self.model.spec
        whole = self.model.composed(self.model.placed_stages())
        return ipu.accumulate(
            jax.grad(whole),
            micro_batches=spec.micro_batches,
            schedule=spec.schedule,
            batch_serialization_iterations=spec.serial,
            reduction=spec.reduction,
            accumulate_dtype=accumulate_dtype(spec),
        )(parameters, batch[0])


def _split(results: Any, state: Any) -> tuple[Any, Any]:
    return (results[0], (results[1:], state)) if isinstance(results, tuple) else (results, state)


class Plain:
    """The same by a loop over the plain function, one micro-batch after the other."""

    def __init__(self, model: Model):
        self.model = model
        self.spec = model.spec
        self.kinds = self.spec.outputs or (self.spec.reduction,)

    def _micro(self, parameters: Any, state: Any, micro_batch: Any) -> tuple[list[Any], Any]:
        """All results of one micro-batch, and the new state."""
        given = (state, micro_batch) if self.spec.is_carried else (micro_batch,)
        made = self.model.plain(parameters, *given)
        made, state = made if self.spec.is_carried else (made, ())
        return list(made) if isinstance(made, tuple) else [made], state

    def _loop(self, one: Callable[..., Any], kinds: Any, batch: Any) -> tuple[list[Any], Any]:
        """What `one` returns for each micro-batch, each result reduced as its kind says."""
        micro_batches, state = batch
        count = self.spec.micro_batches
        first = jax.tree.map(lambda leaf: leaf[0], micro_batches)
        like, _ = jax.eval_shape(one, state, first)
        initial = [_initial(kind, result) for kind, result in zip(kinds, like, strict=True)]

        def body(carried: Any, micro_batch: Any) -> Any:
            index, state, held = carried
            made, state = one(state, micro_batch)
            held = [
                _reduced(kind, index, count, old, new)
                for kind, old, new in zip(kinds, held, made, strict=True)
            ]
            stacked = [new for kind, new in zip(kinds, made, strict=True) if kind == "all"]
            return (index + 1, state, held), stacked

        start = (jnp.int32(0), state, initial)
        (_, state, held), stacked = lax.scan(body, start, micro_batches)
        rest = iter(stacked)
        return [next(rest) if k == "all" else h for k, h in zip(kinds, held, strict=True)], state

    def loss(self, parameters: Any, batch: Any) -> tuple[Any, Any]:
        made, state = self._loop(lambda s, x: self._micro(parameters, s, x), self.kinds, batch)
        return self._returned(made, state)

    def _returned(self, made: list[Any], state: Any) -> tuple[Any, Any]:
        return (made[0], (tuple(made[1:]), state)) if self.spec.outputs else (made[0], state)

    def value_and_grad(self, parameters: Any, batch: Any) -> tuple[Any, Any]:
        """Gradients are added from the first micro-batch to the last."""
        seed = 1 / self.spec.micro_batches if self.kinds[0] == "mean" else 1

        def one(state: Any, micro_batch: Any) -> Any:
            def loss(parameters: Any) -> Any:
                made, new = self._micro(parameters, state, micro_batch)
                return made[0], (made, new)

            value, pull_back, (made, new) = jax.vjp(loss, parameters, has_aux=True)
            (gradient,) = pull_back(jnp.full_like(value, seed))
            return [*made, *jax.tree.leaves(gradient)], new

        made, state = self._loop(one, [*self.kinds, *self._gradient_kinds(parameters)], batch)
        own = [
            g.astype(p.dtype)
            for g, p in zip(made[len(self.kinds) :], jax.tree.leaves(parameters), strict=True)
        ]
        gradient = jax.tree.unflatten(jax.tree.structure(parameters), own)
        return self._returned(made[: len(self.kinds)], state), gradient

    def _gradient_kinds(self, parameters: Any, mean: str = "sum") -> list[str]:
        """How gradients are reduced; their share of a mean is in them."""
        kind = mean if self.kinds[0] == "mean" else self.kinds[0]
        choice = accumulate_dtype(self.spec)
        found = []
        for leaf in jax.tree.leaves(parameters):
            dtype = choice(leaf) if callable(choice) and choice is not jnp.float32 else choice
            found.append(f"{kind} {jnp.dtype(dtype)}" if dtype else kind)
        return found

    def accumulated(self, parameters: Any, batch: Any) -> Any:
        def one(state: Any, micro_batch: Any) -> Any:
            gradient = jax.grad(lambda p: self._micro(p, state, micro_batch)[0][0])(parameters)
            return jax.tree.leaves(gradient), state

        made, _ = self._loop(one, self._gradient_kinds(parameters, mean="mean"), batch)
        return jax.tree.unflatten(jax.tree.structure(parameters), made)


def _initial(kind: str, result: Any) -> Any:
    dtype = kind.partition(" ")[2]
    return None if kind in ("all", "none") else jnp.zeros(result.shape, dtype or result.dtype)


def _reduced(kind: str, index: Any, count: int, old: Any, new: Any) -> Any:
    name = kind.partition(" ")[0]
    if name in ("all", "none"):
        return None
    if name == "last":
        return new
    new = new.astype(old.dtype)
    if name == "running_mean":
        number = index.astype(old.dtype)
        return old * (number / (number + 1)) + new / (number + 1)
    return old + (new / count if name == "mean" else new)
