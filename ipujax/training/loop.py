"""`Loop`: trains, evaluates and predicts with many steps in each device call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ipujax.api.feed.infeed import Infeed
from ipujax.api.feed.loops import repeat
from ipujax.api.feed.outfeed import Outfeed
from ipujax.errors import ConfigError
from ipujax.training import metrics
from ipujax.training.hooks import Hook
from ipujax.training.run import Run
from ipujax.training.states import split

_MOST_STEPS = 2**31 - 1


class Loop:
    """Runs a training step over a feed, many steps in each device call.

    The state stays on the device from call to call, and `evaluate` and `predict` use it there. It
    is any pytree: parameters, an optimizer's state, modules of equinox, states of flax or haiku.
    Leaves that are not arrays stay as they are.

    After each call the hooks run, in their order: `Log`, `Checkpoint`, `Evaluate`, `EarlyStop`,
    `Summaries`, `Profile`, `ProgressBar`, or your own. With a `Checkpoint`, a training that was
    killed resumes where it was: `train` loads the newest checkpoint, and with the same data and
    step the results are the same to the last bit.

    Args:
        step: `step(state, batch)`, or `step(state, batch, key)` if there is a key. Returns the next
            state and metrics: a number (called "loss") or a dict of numbers.
        evaluate: `evaluate(state, batch)` returns metrics.
        predict: `predict(state, batch)` returns a pytree of arrays.
        steps_per_call: steps in one device call; hooks run between calls.
        metrics: how metrics are reduced over steps, on the device in float32: "mean", "sum",
            "last", "max", "min", or a dict of these for some names.
        key: a key of `jax.random`; each step gets its own, made from this and its number.
        hooks: see above.
        donate: let a call reuse the memory of the state it is given. If the call fails, the state
            is lost and only the last checkpoint remains; with False, `last_run.state` is the state
            before the call.
    Raises:
        ConfigError: steps_per_call below 1, unknown reductions, or metrics that are not numbers.

    Source: `IPUEstimator` of Graphcore's TensorFlow.

    Example:
        >>> def step(w, batch):
        ...     loss, gradient = jax.value_and_grad(lambda w: jnp.mean((w * batch - batch) ** 2))(w)
        ...     return w - 0.1 * gradient, loss
        >>> data = [np.float32([1, 2])] * 50
        >>> loop = ipu.training.Loop(step, evaluate=lambda w, batch: {"error": abs(w - 1)})
        >>> w = loop.train(0.0, data, steps=100)
        >>> print(f"{loop.evaluate(w, data)['error']:.6f}")
        0.000000
    """

    def __init__(
        self,
        step: Callable[..., Any],
        *,
        evaluate: Callable[[Any, Any], Any] | None = None,
        predict: Callable[[Any, Any], Any] | None = None,
        steps_per_call: int = 100,
        metrics: metrics.Choice = "mean",
        key: jax.Array | None = None,
        hooks: Sequence[Hook] = (),
        donate: bool = True,
    ):
        if steps_per_call < 1:
            raise ConfigError(
                f"[training] needs steps_per_call of 1 or more; got {steps_per_call}. Pass more."
            )
        self._step, self._evaluate, self._predict = step, evaluate, predict
        self.steps_per_call = steps_per_call
        self._metrics, self._key = metrics, key
        self.hooks = tuple(sorted(hooks, key=lambda hook: hook.runs_last))
        self._donate = donate
        self._feeds: dict[int, tuple[Any, Infeed]] = {}
        self._programs: dict[Any, Any] = {}
        self.last_run: Run | None = None  #: the last or current training
        _check_metrics(self._metrics)

    # The public interface.

    def train(
        self, state: Any, data: Any, *, steps: int | None = None, epochs: int | None = None
    ) -> Any:
        """Trains for a number of steps or epochs, from a checkpoint if there is one.

        Args:
            state: the first state. Its arrays are copied, not donated.
            data: an `ipujax.Infeed`, or what it is made from. At its end, the data begins again;
                before that, its method `set_epoch`, if any, is called with the number of epochs
                done.
            steps: total steps, including those before the checkpoint.
            epochs: passes over the data; 1 if neither is given.
        Returns:
            the last state. `last_run.history` has the metrics of each call.
        """
        arrays, structure = split(state)
        run = Run(self, arrays, structure, self._key, steps)
        self.last_run = run
        most = 1 if steps is None and epochs is None else epochs
        try:
            for hook in self.hooks:
                hook.begin(run)
            for hook in self.hooks:
                hook.restore(run)
            if self._goes_on(run, steps, most):
                infeed = self._feed(data)
                _move_to(infeed, data, run)
            while self._goes_on(run, steps, most):
                self._call(run, infeed, data, most)
        except BaseException as error:
            run.error = error
            raise
        finally:
            for hook in self.hooks:
                hook.end(run)
        return run.state

    def evaluate(self, state: Any, data: Any, *, steps: int | None = None) -> dict[str, float]:
        """The metrics of `evaluate` over the data from the beginning, all or a number of steps.

        Args:
            state: as `train` returns it, or `run.state` in a hook. It does not change.
            data: as for `train`.
        Returns:
            the reduced metrics by name.
        """
        arrays, program = self._evaluation(state, data)
        total = metrics.Total(self._metrics)
        while steps is None or total.steps < steps:
            left = self.steps_per_call if steps is None else steps - total.steps
            wanted = min(left, self.steps_per_call)
            held, done = jax.device_get(program(arrays, np.int32(wanted)))
            total.add(held, int(done))
            if done < wanted:
                break
        return total.values()

    def predict(self, state: Any, data: Any, *, steps: int | None = None) -> Any:
        """The results of `predict` over the data from the beginning, all or a number of steps.

        Returns:
            a pytree of NumPy arrays with a first dimension of steps.
        """
        if self._predict is None:
            raise _missing("predict")
        infeed = self._begin(data)
        arrays, structure = split(state)
        outfeed, predict = Outfeed(), self._predict

        def program(arrays: Any, n: Any) -> Any:
            fixed = structure.join(arrays)

            def body(count: Any, batch: Any) -> Any:
                return count, predict(fixed, batch)

            return repeat(n, body, 0, infeed=infeed, outfeed=outfeed, stop_at_end=True)

        most = _MOST_STEPS if steps is None else steps
        jax.block_until_ready(jax.jit(program)(arrays, np.int32(most)))
        return outfeed.dequeue()

    # One device call.

    @staticmethod
    def _goes_on(run: Run, steps: int | None, epochs: int | None) -> bool:
        if run.stop_reason:
            return False
        return (steps is None or run.step < steps) and (epochs is None or run.epoch < epochs)

    def _call(self, run: Run, infeed: Infeed, data: Any, epochs: int | None) -> None:
        wanted = self.steps_per_call
        if run.steps is not None:
            wanted = min(wanted, run.steps - run.step)
        program = self._program("train", infeed, run.structure, self._training)
        start = time.perf_counter()
        arrays, held, done = program(run.arrays, run.key, np.int32(run.step), np.int32(wanted))
        held, done = jax.device_get((held, done))
        run.call_seconds = time.perf_counter() - start
        run.arrays, run.call_steps = arrays, int(done)
        run.step += run.call_steps
        run.position += run.call_steps
        if run.call_steps:
            total = metrics.Total(self._metrics)
            total.add(held, run.call_steps)
            run.metrics = total.values()
            run.history.append((run.step, run.metrics))
        if run.call_steps < wanted:
            self._end_epoch(run, infeed, data, epochs)
        for hook in self.hooks:
            hook.after_call(run)

    @staticmethod
    def _end_epoch(run: Run, infeed: Infeed, data: Any, epochs: int | None) -> None:
        if run.position == 0:
            run.stop("the data cannot be read again")
            return
        run.epoch, run.position = run.epoch + 1, 0
        if epochs is None or run.epoch < epochs:
            _begin_epoch(infeed, data, run)

    def _program(self, kind: str, infeed: Infeed, structure: Any, make: Any) -> Any:
        place = (kind, id(infeed), structure.tree, tuple(map(id, structure.others)))
        if place not in self._programs:
            self._programs[place] = make(infeed, structure)
        return self._programs[place]

    def _training(self, infeed: Infeed, structure: Any) -> Any:
        def one(arrays: Any, batch: Any, key: Any, number: Any) -> Any:
            own = () if key is None else (jax.random.fold_in(key, number),)
            state, found = self._step(structure.join(arrays), batch, *own)
            return _like(arrays, state, structure), metrics.named(found)

        def program(arrays: Any, key: Any, first: Any, n: Any) -> Any:
            def body(carry: Any, batch: Any) -> Any:
                arrays, number, held = carry
                arrays, found = one(arrays, batch, key, number)
                return arrays, number + 1, metrics.add(self._metrics, held, found)

            _, like = jax.eval_shape(one, arrays, infeed.spec, key, first)
            carry = (arrays, first, metrics.first(self._metrics, like))
            (arrays, _, held), done = repeat(n, body, carry, infeed=infeed, stop_at_end=True)
            return arrays, held, done

        return jax.jit(program, donate_argnums=(0,) if self._donate else ())

    def _evaluation(self, state: Any, data: Any) -> tuple[Any, Any]:
        if self._evaluate is None:
            raise _missing("evaluate")
        evaluate, infeed = self._evaluate, self._begin(data)
        arrays, structure = split(state)

        def make(infeed: Infeed, structure: Any) -> Any:
            def one(arrays: Any, batch: Any) -> Any:
                return metrics.named(evaluate(structure.join(arrays), batch))

            def program(arrays: Any, n: Any) -> Any:
                like = jax.eval_shape(one, arrays, infeed.spec)

                def body(held: Any, batch: Any) -> Any:
                    return metrics.add(self._metrics, held, one(arrays, batch))

                first = metrics.first(self._metrics, like)
                return repeat(n, body, first, infeed=infeed, stop_at_end=True)

            return jax.jit(program)

        return arrays, self._program("evaluate", infeed, structure, make)

    # Feeds: one for each object that users pass, so that programs are compiled once.

    def _feed(self, data: Any) -> Infeed:
        if isinstance(data, Infeed):
            return data
        if id(data) not in self._feeds:
            self._feeds[id(data)] = (data, Infeed(data))
        return self._feeds[id(data)][1]

    def _begin(self, data: Any) -> Infeed:
        infeed = self._feed(data)
        if infeed.is_used:
            infeed.restart()
        return infeed


def _move_to(infeed: Infeed, data: Any, run: Run) -> None:
    """Moves the feed to the run's batch, unless it is there already."""
    if run.epoch or run.position != infeed.position or infeed.is_used:
        _begin_epoch(infeed, data, run)


def _begin_epoch(infeed: Infeed, data: Any, run: Run) -> None:
    source: Any = infeed.data if isinstance(data, Infeed) else data
    if callable(getattr(source, "set_epoch", None)):
        source.set_epoch(run.epoch)
    infeed.restart(position=run.position)


def _like(arrays: Sequence[jax.Array], state: Any, structure: Any) -> list[jax.Array]:
    """The arrays of the state that a step returned."""
    leaves, tree = jax.tree.flatten(state)
    if tree != structure.tree:
        raise ConfigError(
            f"[training] needs a step that returns (state, metrics) with a state like the first, "
            f"{structure.tree}; got {tree}. Return the same structure."
        )
    new = [x for x, other in zip(leaves, structure.others, strict=True) if other is None]
    made = []
    for name, old, x in zip(structure.array_names, arrays, new, strict=True):
        x = jnp.asarray(x)
        if (x.shape, x.dtype) != (old.shape, old.dtype):
            raise ConfigError(
                f"[training] needs a step that keeps shapes and dtypes; got {x.dtype}"
                f"{list(x.shape)} for {name}, which was {old.dtype}{list(old.shape)}. Cast it."
            )
        made.append(x)
    return made


def _missing(name: str) -> ConfigError:
    return ConfigError(
        f"[training] needs a function for this; got none. Pass {name}=... to ipu.training.Loop."
    )


def _check_metrics(choice: metrics.Choice) -> None:
    metrics.check(choice)
