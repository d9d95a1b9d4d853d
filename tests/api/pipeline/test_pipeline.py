"""Stages, pipelines and accumulation: values, derivatives and errors."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import ipujax as ipu

WEIGHTS = [jnp.eye(3) / 2, jnp.full((3, 3), 0.1), jnp.ones((3, 1))]
BATCH = jnp.arange(24.0).reshape(4, 2, 3) / 10


def layer(weights: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ weights)


def head(weights: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.sum(x @ weights)


STAGES = [layer, layer, head]


def plain(weights: Any, batch: jax.Array) -> jax.Array:
    def one(x: jax.Array) -> jax.Array:
        return head(weights[2], layer(weights[1], layer(weights[0], x)))

    return jnp.mean(jax.vmap(one)(batch))


def pipelined(**options: Any) -> Any:
    return pipelined_of(STAGES, **options)


def pipelined_of(stages: Any, **options: Any) -> Any:
    options = {"micro_batches": 4, "reduction": "mean", "device_mapping": [0, 0, 0]} | options
    return ipu.pipeline(stages, **options)


def check(got: Any, wanted: Any, rtol: float = 1e-5) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol, 1e-6), got, wanted)


def hessian_product(loss: Any) -> Any:
    return lambda w, x: jax.jvp(lambda w: jax.grad(loss)(w, x), (w,), (w,))[1]


def gradient_of_gradient(loss: Any) -> Any:
    def norm(w: Any, x: jax.Array) -> jax.Array:
        return sum(jnp.sum(g**2) for g in jax.tree.leaves(jax.grad(loss)(w, x)))

    return jax.grad(norm)


def regularised(loss: Any) -> Any:
    return jax.grad(lambda w, x: jnp.log(loss(w, x)) + sum(jnp.sum(v**2) for v in w))


def over_models(loss: Any) -> Any:
    def mapped(w: Any, x: jax.Array) -> Any:
        return jax.vmap(jax.grad(loss), in_axes=(0, None))([jnp.stack([v, 2 * v]) for v in w], x)

    return mapped


def forward_mode(loss: Any) -> Any:
    return lambda w, x: jax.jvp(loss, (w, x), (w, x))


def linearized(loss: Any) -> Any:
    def both(w: Any, x: jax.Array) -> Any:
        value, tangent_of = jax.linearize(lambda w: loss(w, x), w)
        return value, tangent_of(w)

    return both


def checkpointed(loss: Any) -> Any:
    return jax.grad(jax.checkpoint(loss))


def by_batch(loss: Any) -> Any:
    return jax.grad(loss, argnums=(0, 1))


@pytest.mark.parametrize("jitted", [True, False])
@pytest.mark.parametrize(
    "derived",
    [
        jax.value_and_grad,
        hessian_product,
        gradient_of_gradient,
        regularised,
        over_models,
        forward_mode,
        linearized,
        jax.jacfwd,
        jax.jacrev,
        jax.hessian,
        checkpointed,
        by_batch,
    ],
)
def test_derivatives_are_those_of_the_plain_function(derived: Any, jitted: bool) -> None:
    got, wanted = derived(pipelined()), derived(plain)
    if jitted:
        got, wanted = jax.jit(got), jax.jit(wanted)
    check(got(WEIGHTS, BATCH), wanted(WEIGHTS, BATCH), 1e-4)


def test_a_gradient_is_one_loop() -> None:
    lowered = jax.jit(jax.value_and_grad(pipelined())).lower(WEIGHTS, BATCH)
    assert lowered.as_text().count("stablehlo.while") == 1


def test_results_are_stacked_without_a_reduction() -> None:
    got = ipu.pipeline([layer, layer], micro_batches=4, device_mapping=[0, 0])(WEIGHTS[:2], BATCH)
    wanted = jax.vmap(lambda x: layer(WEIGHTS[1], layer(WEIGHTS[0], x)))(BATCH)
    check(got, wanted)


def test_each_result_is_reduced_in_its_own_way() -> None:
    def results(weights: Any, x: jax.Array) -> Any:
        made = layer(weights, x)
        return {"loss": made.sum(), "last": made, "all": x.sum(), "dropped": x, "mean": x[0, 0]}

    outputs = {
        "loss": ("sum", jnp.float16),
        "last": "last",
        "all": "all",
        "dropped": "none",
        "mean": ("running_mean", lambda result: result.dtype),
    }
    got = ipu.pipeline(results, micro_batches=4, outputs=outputs)(WEIGHTS[0], BATCH)
    made = jax.vmap(lambda x: layer(WEIGHTS[0], x))(BATCH)
    assert got["dropped"] is None
    assert got["loss"].dtype == jnp.float16
    check(got["loss"], made.sum(), 1e-2)
    check(got["last"], made[-1])
    check(got["all"], BATCH.sum((1, 2)))
    check(got["mean"], BATCH[:, 0, 0].mean())


@pytest.mark.parametrize("dtype", ["float16", jnp.float16, jnp.dtype("float16")])
def test_outputs_are_a_prefix_of_the_results(dtype: Any) -> None:
    outputs = (("sum", dtype), "all")
    loop = ipu.pipeline(lambda w, x: (x.sum(), {"x": x}), micro_batches=4, outputs=outputs)
    total, rest = loop(WEIGHTS, BATCH)
    assert total.dtype == jnp.float16
    check((total, rest), (BATCH.sum(), {"x": BATCH}), 1e-3)
    stacked = ipu.pipeline(
        lambda w, x: (x.sum(), {"x": x}), micro_batches=4, outputs=("sum", "all")
    )
    check(stacked(WEIGHTS, BATCH), (BATCH.sum(), {"x": BATCH}))


def test_state_goes_from_micro_batch_to_micro_batch() -> None:
    def step(weights: jax.Array, mean: jax.Array, x: jax.Array) -> Any:
        return jnp.sum(layer(weights, x - mean)), 0.9 * mean + 0.1 * x.mean()

    loop = ipu.pipeline(step, micro_batches=4, in_axes=(None, "carried", 0), reduction="sum")
    value, state = loop(WEIGHTS[0], jnp.float32(0), BATCH)
    mean, total = jnp.float32(0), 0.0
    for x in BATCH:
        result, mean = step(WEIGHTS[0], mean, x)
        total += result
    check((value, state), (total, mean))


@pytest.mark.parametrize("mapped", range(3))
def test_only_what_depends_on_mapped_values_is_mapped(mapped: int) -> None:
    def micro_batch(w: jax.Array, state: Any, x: jax.Array) -> Any:
        total, count = state
        return (x, w * x), (total + x * w, count + 1)

    loop = ipu.pipeline(
        micro_batch, micro_batches=4, in_axes=(None, "carried", 0), outputs=("sum", "all")
    )

    def looped(w: jax.Array, total: jax.Array, x: jax.Array) -> Any:
        return loop(w, (total, jnp.float32(0)), x)

    def scanned(w: jax.Array, total: jax.Array, x: jax.Array) -> Any:
        def step(state: Any, x: jax.Array) -> Any:
            result, state = micro_batch(w, state, x)
            return state, result

        state, results = jax.lax.scan(step, (total, jnp.float32(0)), x)
        return (jnp.sum(results[0], 0), results[1]), state

    args = [jnp.float32(2), jnp.ones(3), jnp.arange(12.0).reshape(4, 3)]
    args[mapped] = jnp.stack([args[mapped], 3 * args[mapped]])
    axes = [0 if i == mapped else None for i in range(3)]
    results = (0 if mapped == 2 else None, None if mapped == 1 else 0)  # the sum, and w * x
    got, wanted = (jax.vmap(f, axes, (results, (0, None)))(*args) for f in (looped, scanned))
    check(got, wanted)


@pytest.mark.parametrize("reduction", [None, "sum"])
def test_repeats_run_whole_batches_and_carry_state(reduction: str | None) -> None:
    def step(weights: jax.Array, state: Any, x: jax.Array) -> Any:
        return jnp.sum(layer(weights, x - state["mean"])), {"mean": 0.9 * state["mean"] + x.mean()}

    options: Any = {"in_axes": (None, "carried", 0), "reduction": reduction}
    batch, start = BATCH.reshape(2, 2, 2, 3), {"mean": jnp.float32(0)}
    repeated = ipu.pipeline(step, micro_batches=2, repeat_count=2, **options)
    got = repeated(WEIGHTS[0], start, batch)
    once = ipu.pipeline(step, micro_batches=2, **options)
    first, state = once(WEIGHTS[0], start, batch[0])
    second, state = once(WEIGHTS[0], state, batch[1])
    check(got, (jnp.stack([first, second]), state))


def test_gradients_accumulate_in_the_dtype_that_is_asked_for() -> None:
    half = [w.astype(jnp.float16) for w in WEIGHTS]
    gradient = jax.grad(lambda w, x: head(w[2], layer(w[1], layer(w[0], x))))
    total = ipu.accumulate(gradient, micro_batches=4, accumulate_dtype=jnp.float32)
    got = total(half, BATCH.astype(jnp.float16))
    assert {g.dtype for g in got} == {jnp.dtype(jnp.float32)}
    check(got, jax.grad(plain)(WEIGHTS, BATCH), 2e-2)


def test_optax_trains_through_a_pipeline() -> None:
    loss, optimizer = pipelined(), optax.adam(0.05)

    @jax.jit
    def step(weights: Any, state: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(weights, BATCH)
        updates, state = optimizer.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state, value

    weights, state, first = step(WEIGHTS, optimizer.init(WEIGHTS))
    for _ in range(5):
        weights, state, value = step(weights, state)
    assert value < first


@pytest.mark.parametrize("check_vma", [True, False])
def test_replicas_reduce_once_after_the_loop(check_vma: bool) -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("replica",))
    spec = jax.sharding.PartitionSpec

    def step(weights: Any, batch: jax.Array) -> Any:
        gradients = jax.grad(pipelined())(weights, batch)
        return gradients if check_vma else jax.lax.psum(gradients, "replica")

    replicated = jax.jit(
        jax.shard_map(
            step,
            mesh=mesh,
            in_specs=(spec(), spec(None, "replica")),
            out_specs=spec(),
            check_vma=check_vma,
        )
    )
    batch = jnp.concatenate([BATCH, BATCH + 1], axis=1)
    functions = replicated.lower(WEIGHTS, batch).as_text().split("func.func")
    reducing = [text for text in functions if "all_reduce" in text]
    assert sum(text.count('"stablehlo.all_reduce"') for text in reducing) == len(WEIGHTS)
    assert not any("while" in text or "@ipu_" in text.partition("(")[0] for text in reducing)
    got = replicated(WEIGHTS, batch)
    both = [jax.grad(plain)(WEIGHTS, BATCH), jax.grad(plain)(WEIGHTS, BATCH + 1)]
    check(got, jax.tree.map(jnp.add, *both), 1e-4)


def test_remat_of_a_pipeline_is_for_stages_that_do_not_say() -> None:
    stages = [ipu.stage(layer), ipu.stage(layer, remat=False), head]
    loss = pipelined_of(stages, remat=True)
    text = str(jax.make_jaxpr(jax.grad(loss))(WEIGHTS, BATCH))
    assert text.count("prevent_cse=") == 2
    check(jax.grad(loss)(WEIGHTS, BATCH), jax.grad(plain)(WEIGHTS, BATCH))


def test_what_jax_traced_of_a_stage_is_for_one_pipeline() -> None:
    first = jax.checkpoint(ipu.stage(layer))

    def whole(weights: Any, x: jax.Array) -> jax.Array:
        return ipu.stage(head)(weights[2], first(weights[0], x))

    loss = pipelined_of(whole, device_mapping=[0, 1])
    once, again = (str(jax.make_jaxpr(lambda w, x: loss(w, x))(WEIGHTS, BATCH)) for _ in range(2))
    assert once.count("index=1") == 1
    assert again == once


def test_shard_places_operations() -> None:
    @jax.jit
    def f(x: jax.Array) -> jax.Array:
        with ipu.shard(0):
            x = x * 2
        return x + 1

    assert f(3.0) == 7


BAD: list[tuple[Any, type[Exception], str]] = [
    (lambda: ipu.stage(3), ipu.PlacementError, "needs a function"),
    (lambda: ipu.stage(layer, ipu=-1), ipu.PlacementError, "from 0"),
    (lambda: ipu.stage(layer, options={"colour": 1}), ipu.ConfigError, "colour"),
    (lambda: pipelined(schedule="fast"), ipu.PipelineError, "interleaved"),
    (lambda: pipelined(micro_batches=0), ipu.PipelineError, "at least 1"),
    (
        lambda: pipelined(batch_serialization_iterations=2),
        ipu.PipelineError,
        "needs schedule='sequential' .* got 'grouped'. Choose",
    ),
    (
        lambda: pipelined(schedule="sequential", batch_serialization_iterations=3),
        ipu.PipelineError,
        "to divide the 4 micro-batches; got 3. Choose",
    ),
    (lambda: pipelined(repeat_count=0), ipu.PipelineError, "repeat_count of at least 1"),
    (lambda: pipelined(repeat_count=2)(WEIGHTS, BATCH), ipu.PipelineError, r"Reshape .* \(2, 4,"),
    (lambda: pipelined(device_mapping=[0]), ipu.PipelineError, "3 stages"),
    (lambda: ipu.pipeline([], micro_batches=1), ipu.PipelineError, "at least one stage"),
    (lambda: pipelined()(WEIGHTS[:2], BATCH), ipu.PipelineError, "each of the 3 stages"),
    (lambda: pipelined(micro_batches=3)(WEIGHTS, BATCH), ipu.PipelineError, r"Reshape .* \(3,"),
    (
        lambda: ipu.pipeline(lambda w, x: x, micro_batches=4, reduction="mean")(1, jnp.arange(4)),
        ipu.PipelineError,
        "floating-point",
    ),
    (
        lambda: ipu.pipeline(lambda w, x: pipelined()(w, x), micro_batches=1)(WEIGHTS, BATCH[None]),
        ipu.PipelineError,
        "outside of other pipelines",
    ),
    (lambda: jax.jit(ipu.stage(layer, ipu=9))(WEIGHTS[0], BATCH[0]), Exception, "got IPU 9"),
    (
        lambda: ipu.pipeline(layer, micro_batches=4, in_axes=(None, 1))(WEIGHTS[0], BATCH),
        ipu.PipelineError,
        "'carried'",
    ),
    (
        lambda: ipu.pipeline(lambda s, x: x, micro_batches=4, in_axes=("carried", 0))(1.0, BATCH),
        ipu.PipelineError,
        "return \\(result, state\\)",
    ),
]


@pytest.mark.parametrize(("make", "error", "message"), BAD)
def test_bad_input_is_explained(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_a_divided_batch_has_every_sample_once():
    batch = {"x": BATCH.reshape(8, 3), "y": jnp.arange(8)}
    divided = ipu.divide_batch(batch, 4)
    check(divided["y"], np.arange(8).reshape(2, 4).T)
    check(divided["x"].swapaxes(0, 1).reshape(8, 3), batch["x"])
    gradient = jax.grad(lambda w, x: plain(w, x[:, None]))
    accumulated = ipu.accumulate(gradient, micro_batches=4, in_axes=(None, 0))
    check(accumulated(WEIGHTS, divided["x"]), gradient(WEIGHTS, batch["x"]))


@pytest.mark.parametrize("is_summed", [False, True])
@pytest.mark.parametrize("is_closed", [False, True])
def test_gradients_of_what_is_equal_on_all_replicas(is_closed: bool, is_summed: bool):
    """With check_vma JAX sums them over the replicas: once, however the loss came to them."""
    mesh = jax.sharding.Mesh(jax.devices()[:2], ("d",))
    batch = jnp.stack([BATCH, BATCH + 1])

    def one(w: jax.Array, x: jax.Array) -> jax.Array:
        loss = head(WEIGHTS[2], layer(w, x))
        return jax.lax.psum(loss, "d") if is_summed else loss

    def piped(w: jax.Array, x: jax.Array) -> jax.Array:
        options = {"micro_batches": 4, "reduction": "mean"}
        if is_closed:
            return ipu.pipeline(lambda _, x: one(w, x), **options)((), x)
        return ipu.pipeline(one, **options)(w, x)

    def looped(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.mean(jnp.stack([one(w, micro_batch) for micro_batch in x]))

    def gradient(loss: Any) -> Any:
        out = jax.P() if is_summed else jax.P("d")
        each = jax.shard_map(
            lambda w, x: loss(w, x[0])[() if is_summed else None],
            mesh=mesh,
            in_specs=(jax.P(), jax.P("d")),
            out_specs=out,
        )
        return jax.jit(jax.grad(lambda w: jnp.sum(each(w, batch) * jnp.array([1.0, 2.0]))))(
            WEIGHTS[0]
        )

    check(gradient(piped), gradient(looped))


@pytest.mark.parametrize("check_vma", [True, False])
def test_accumulated_gradients_are_those_of_a_loop_on_replicas(check_vma: bool):
    mesh = jax.sharding.Mesh(jax.devices()[:2], ("d",))
    gradient = jax.grad(lambda w, x: head(WEIGHTS[2], layer(w, x)))

    def over_replicas(total: Any) -> Any:
        run = jax.shard_map(
            lambda w, x: total(w, x[0])[None],
            mesh=mesh,
            in_specs=(jax.P(), jax.P("d")),
            out_specs=jax.P("d"),
            check_vma=check_vma,
        )
        return jax.jit(run)(WEIGHTS[0], jnp.stack([BATCH, BATCH + 1]))

    got = over_replicas(ipu.accumulate(gradient, micro_batches=4, reduction="sum"))
    check(got, over_replicas(lambda w, x: sum(gradient(w, micro_batch) for micro_batch in x)))


@pytest.mark.parametrize("outputs", ["mean", "running_mean"])
def test_rules_of_derivatives_that_capture_arrays(outputs: str):
    factors = jnp.array([2.0, 3.0, 5.0])

    @jax.custom_vjp
    def scaled(x: jax.Array) -> jax.Array:
        return x

    scaled.defvjp(lambda x: (x, None), lambda _, ct: (ct * factors,))

    def one(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(scaled(w) * x))

    loss = ipu.pipeline(one, micro_batches=4, outputs=outputs)
    got = jax.jit(jax.grad(loss))(jnp.ones(3), BATCH)
    check(got, factors * jnp.mean(jnp.sum(BATCH * jnp.cos(BATCH), 1), 0))


def test_a_stage_that_a_stage_calls_is_a_part_of_it():
    inner = ipu.stage(layer, ipu=1, name="inner", remat="then")
    stages = [lambda w, x: layer(w, inner(w, x)), lambda w, x: head(w, x)]
    both = ipu.pipeline(stages, micro_batches=4, reduction="mean", device_mapping=[0, 0])
    weights = [WEIGHTS[0], WEIGHTS[2]]
    labels = [
        (eqn.params["label"].index, eqn.params["label"].ipu)
        for eqn in jax.make_jaxpr(both)(weights, BATCH).eqns[0].params["jaxpr"].eqns
        if eqn.primitive.name == "ipu_stage"
    ]
    assert labels == [(0, 0), (1, 0)]
    wanted = jax.grad(lambda w: plain([w[0], w[0], w[1]], BATCH))(weights)
    check(jax.jit(jax.grad(both))(weights, BATCH), wanted)


def test_no_sample_of_a_divided_batch_moves_between_devices():
    auto = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((4,), ("data",), devices=jax.devices("ipu")[:4], axis_types=auto)
    whole, rows = (jax.sharding.NamedSharding(mesh, jax.P(*names)) for names in ((), ("data",)))
    weights = jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=whole)
    batch = jax.ShapeDtypeStruct((512, 8), jnp.float32, sharding=rows)
    gradient = jax.grad(lambda w, x: jnp.tanh(x @ w).sum())

    def moved(divide: Any) -> float:
        """Bytes between devices, of gradients and of samples."""
        accumulated = ipu.accumulate(gradient, micro_batches=2, in_axes=(None, 0))
        return ipu.cost(lambda w, x: accumulated(w, divide(x)), weights, batch).collective_bytes

    gradient_bytes = ipu.cost(gradient, weights, batch).collective_bytes
    assert moved(lambda x: ipu.divide_batch(x, 2)) <= 2 * gradient_bytes
    assert moved(lambda x: x.reshape(2, -1, 8)) > 2 * gradient_bytes + 512 * 8 * 4 / 8


@pytest.mark.parametrize(
    ("batch", "count", "needs"),
    [
        (jnp.ones(6), 4, "a multiple of the 4 micro-batches; got shape"),
        (jnp.ones(()), 1, r"along the first axis, .* got shape \(\)"),
        (jnp.ones(6), 0, "1 micro-batch or more; got 0"),
        (jnp.ones(6), True, "1 micro-batch or more; got True"),
    ],
)
def test_batches_that_cannot_be_divided(batch: jax.Array, count: int, needs: str):
    with pytest.raises(ipu.PipelineError, match=rf"\[divide_batch\] needs .*{needs}"):
        ipu.divide_batch(batch, count)


def test_whole_numbers_are_summed():
    """Counts need no floats; means of them do."""
    x = jnp.arange(12).reshape(4, 3)
    total = ipu.pipeline(lambda x: (x > 3).sum(), micro_batches=4, in_axes=(0,), outputs="sum")
    assert (total(x).dtype, int(total(x))) == (jnp.int32, 8)
