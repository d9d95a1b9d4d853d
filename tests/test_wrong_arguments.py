"""Each argument of each public function with values of other kinds: none is a raw error.

A value that an argument never takes is refused by an error of ipujax that has the argument's name
or the value, what is needed and what to do. `ARGUMENTS` has a good call of each function; the
values of another kind follow from the kind of each argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import ipujax as ipu

nn, ops, optim, tile = ipu.nn, ipu.ops, ipu.optim, ipu.tile
FORM = re.compile(r"\[[\w. ]+\] needs .+; got .+\.", re.DOTALL)
X, V = np.ones((4, 6), np.float32), np.ones(6, np.float32)
#: Logits [time, batch, classes]; labels; inputs of layers, and tables of losses.
G, LABELS, STEPS = np.zeros((5, 3, 4), np.float32), np.ones((3, 2), int), np.full(3, 5)
TABLE, CLASSES, INPUTS = np.ones((9, 3), np.float32), np.ones((2, 1), int), X[:2, :3]
OPTIMIZER = optax.sgd(0.1)
#: A float of 8 bits; the state of an optimizer with a variable; rows on tiles.
FLOAT8 = ops.cast_to_float8(np.ones((2, 2), np.float32))
STATE = optim.sgd(optim.variable(0.1)).init(V)
ROWS = tile.put_sharded(X, range(4))

TEXTS = ("other", [], {}, {1, 2}, np.array(["a"]), np.ones(2), lambda x: x)
#: kind of argument -> values that none of the kind takes
WRONG: dict[str, tuple[Any, ...]] = {
    "array": ("x", {1, 2}, b"q", [[1], [1, 2]], np.array(["a"]), np.array([None]), lambda x: x),
    "integer": (1.5, "2", None, 1e30, 10**30, np.ones(2, int), {}, float("nan"), lambda x: x),
    "axes": (1.5, "2", 1e30, 10**30, np.ones(2, int), {}, float("nan"), lambda x: x),
    "number": (float("nan"), "1", 1j, 10**400, 1e300, np.ones(2), [[1], [1, 2]], {}, lambda x: x),
    "rate": (float("nan"), "1", 1j, 10**400, 1e300, np.ones(2), [[1], [1, 2]], {}, None),
    "ids": ("x", {1, 2}, b"q", np.array(["a"]), np.array([None]), lambda x: x),
    "sizes": (1.5, "2", None, 3, {}, (1,), (2.5, 3), np.ones(()), lambda x: x),
    "row": (1.5, "2", np.ones(2, int), {}),
    "operations": (1, "exp", None, [1], lambda x: x),
    "choice": (1, *TEXTS),
    "flag": ("no", 2, 0.5, float("nan"), np.ones(2), [], {}, None, lambda x: x),
    "dtype": ("foo", "int8", 1, {1}, np.ones(2), object),
    "function": (1, "x", (), np.ones(2)),
    "path": (1, 1.5, [], {}, np.ones(2)),
    "text": (1, 1.5, None, b"q", [], {}, lambda x: x),
    "texts": (1, 1.5, None, "x", b"q", [1], ["x", None], lambda x: x),
    "source": (1, 1.5, None, b"q", [], {}, np.ones(2), lambda x: x),
    "codelets": (1, 1.5, None, b"q", [1], [None], {}, "no such file"),
    "places": (1.5, "2", None, 3, {}, [1.5], ["a"], np.ones(2), [[1], [1, 2]], lambda x: x),
    "fields": (1, "x", ["y"], {"y": None}, {"y": 5}, {1: "x"}, np.ones(2)),
    "mapping": (1, "x", ["y"], np.ones(2)),
    "described": (1, "x", {1}, [None, 2.5], np.array(["a"]), np.array([None]), lambda *_: 1),
    "attributes": (1, [1], {"a": {1}}, {"a": float("nan")}, np.ones(2)),
    "numbers": (1.5, "0", 3, [0.5], [0, 0], [7], ["a"], [None], np.ones(1)),
    "gradient": ("no", 2, [], {}, np.ones(2)),
    "axis": ("foo", 1.5, [], {1}, np.array(["a"]), ("foo", "bar")),
}


def layer(kind: Callable[..., Any], units: int) -> dict[str, tuple[str, Any]]:
    """Arguments of a layer of 5 steps of 3 sequences with 4 inputs and 2 outputs."""
    shapes = ((units, 4, 2), (units, 2, 2), (units, 2))
    weights = kind(*(np.ones(shape, np.float32) for shape in shapes))
    flags = dict.fromkeys(("precompute_inputs", "recompute", "inference_only"), ("flag", True))
    choices = {"activation": "tanh", "recurrent_activation": "sigmoid", "partials": "half"}
    return {
        "x": ("array", G),
        "weights": ("", weights),
        "available_memory_proportion": ("number", 0.5),
        "cell_order": ("choice", None),
        **flags,
        **{name: ("choice", value) for name, value in choices.items()},
    }


def of(**given: tuple[str, Any]) -> dict[str, tuple[str, Any]]:
    return given


def affine(**more: tuple[str, Any]) -> dict[str, tuple[str, Any]]:
    flags = of(use_stable_statistics=("flag?", True))
    arrays = of(x=("array", X), gamma=("array", V), beta=("array", V))
    return arrays | flags | of(epsilon=("number", 1e-3)) | more


def sampler(**more: tuple[str, Any]) -> dict[str, tuple[str, Any]]:
    given = of(key=("", 0), true_classes=("array", CLASSES))
    return given | of(num_sampled=("integer", 2), unique=("flag", False)) | more


LOSS = of(
    weights=("array", TABLE), biases=("array", TABLE[:, 0]), labels=("array", CLASSES),
    inputs=("array", INPUTS), num_sampled=("integer", 2), num_classes=("integer", 9),
    num_true=("integer", 1), seed=("", 0), remove_accidental_hits=("flag", True),
)  # fmt: skip
CTC = of(labels=("array", LABELS), data_lengths=("array", STEPS), blank_index=("integer", 0))
BEAMS = of(data_lengths=("array", STEPS), beam_width=("integer", 4), top_paths=("integer", 2))
SEQUENCES = of(
    src=("array", X), num_elems=("array", [1]), src_offsets=("array", [0]),
    dst=("array", X), dst_offsets=("array", [0]), zero_unused=("flag", True),
)  # fmt: skip
DRAWN = of(shape=("", (2,)), dtype=("dtype", "float32"), seed=("", 0))
RATES = of(learning_rate=("rate", 0.1), weight_decay=("rate", 0.1), loss_scaling=("rate", 2))
RATES |= of(num_micro_batches=("integer", 1), accumulator_dtype=("dtype", None))
MOMENTS = of(first_moment_dtype=("dtype", None), second_moment_dtype=("dtype", None))
ADAM = RATES | MOMENTS | of(b1=("rate", 0.9), b2=("rate", 0.9), eps=("rate", 0.1))
ADAM |= of(bias_correction=("flag", True), scaled_optimizer_state=("flag", False))
SGD = RATES | of(momentum=("rate", 0.5), dampening=("rate", 0), nesterov=("flag", False))
SGD |= of(velocity_scaling=("rate", 1), velocity_dtype=("dtype", None))
SCALE = of(tx=("function", OPTIMIZER), automatic=("flag", True), period=("integer", 1))
SCALE |= of(scale=("number", 2.0), minimum=("number", 1.0), maximum=("number", 4.0))
ACCUMULATED = of(tx=("function", OPTIMIZER), num_micro_batches=("integer", 2))
ACCUMULATED |= of(reduction=("choice", "mean"))


def table() -> Any:
    return ipu.HostEmbedding(X.copy(), ipu.HostEmbeddingSGD(0.1))


def method(name: str) -> Callable[..., Any]:
    """A method of a new table, with the table's token where there is none."""

    def call(**given: Any) -> Any:
        host = table()
        if name not in ("lookup_ahead", "restore") and "token" not in given:
            given["token"] = host.token()
        return getattr(host, name)(**given)

    return call


def expression(x: Any, y: Any) -> Any:
    return ipu.codelet_expression(lambda x, y: x * y)(x, y)


def custom(x: Any, outputs: Any = V) -> Any:
    return ipu.custom_op("#error\n", outputs=outputs)(x)


def on_host(x: Any, outputs: Any = V, inputs_with_gradients: Any = None) -> Any:
    call = ipu.host_call(
        np.square, outputs, gradient=lambda ct, x, y: ct,
        inputs_with_gradients=inputs_with_gradients,
    )  # fmt: skip
    return call(x) if inputs_with_gradients is None else jax.grad(lambda x: call(x).sum())(x)


def mapped(function: Any) -> Any:
    return tile.map(function, ROWS)


def counted(value: Any) -> Any:
    return ipu.cycle_count(value)


def checked(array: Any = X, **given: Any) -> Any:
    return ipu.testing.check_vertex(given.pop("vertex", VERTEX), array, **given)


VERTEX = tile.create_vertex(
    "V", source="#error\n", inputs=["x"], in_place=["x"], reference=lambda x: x
)
HOSTED = of(indices=("ids", [1]), clip_indices=("flag", True), axis_name=("axis", None))

#: function -> its arguments by name, each with its kind ("": not tried) and a good value
ARGUMENTS: dict[Callable[..., Any], dict[str, tuple[str, Any]]] = {
    nn.gelu: of(x=("array", X), approximate=("flag", True)),
    nn.hard_sigmoid: of(x=("array", X)),
    nn.swish: of(x=("array", X)),
    nn.relu: of(x=("array", X)),
    nn.leaky_relu: of(x=("array", X), alpha=("number", 0.1)),
    nn.elu: of(x=("array", X), alpha=("number", 0.1)),
    nn.softmax: of(x=("array", X), axis=("integer", 0), kind=("choice", "plain")),
    nn.log_softmax: of(x=("array", X), axis=("integer", 0)),
    nn.batch_norm_init: of(channels=("integer", 2)),
    nn.batch_norm: affine(
        state=("", nn.batch_norm_init(6)), momentum=("number", 0.5), training=("flag", True),
        channels_axis=("integer", 1), axis_name=("", None),
    ),
    nn.group_norm: affine(
        groups=("integer", 2), channels_axis=("integer", 1), strided_channel_grouping=("flag", True)
    ),
    nn.instance_norm: affine(channels_axis=("integer", 1)),
    nn.layer_norm: affine(axis=("axes", 1)),
    nn.cross_entropy: of(
        logits=("array", X), labels=("array", STEPS), loss_scale=("number", 1.0)
    ),
    nn.ctc_loss: of(logits=("array", G)) | CTC,
    nn.ctc_loss_with_log_probs: of(log_probs=("array", G)) | CTC,
    nn.ctc_beam_search_decoder: of(logits=("array", G)) | BEAMS,
    nn.ctc_beam_search_decoder_with_log_probs: of(log_probs=("array", G)) | BEAMS,
    nn.dropout: of(x=("array", X), seed=("", 0), rate=("number", 0.5)),
    nn.lstm: layer(nn.LSTMWeights, 4) | of(lengths=("array", STEPS)),
    nn.gru: layer(nn.GRUWeights, 3) | of(reset_after=("flag", False)),
    nn.dynamic_gru: layer(nn.GRUWeights, 3) | of(lengths=("array", STEPS)),
    nn.augru: layer(nn.GRUWeights, 3) | of(attention=("array", np.ones((3, 5), np.float32))),
    ops.log_uniform_candidate_sampler: sampler(range_max=("integer", 9)),
    ops.uniform_candidate_sampler: sampler(range_max=("integer", 9)),
    ops.fixed_unigram_candidate_sampler: sampler(
        unigrams=("array", V), distortion=("number", 1.0), num_reserved_ids=("integer", 1)
    ),
    ops.learned_unigram_candidate_sampler: sampler(counts=("array", V)),
    ops.embedding_lookup: of(
        params=("array", X), ids=("ids", [1]), serialization_factor=("integer", 2),
        update=("choice", "add"),
    ),
    ops.cast_from_float8: of(x=("array", FLOAT8), dtype=("dtype", "float32")),
    ops.float8_matmul: of(
        a=("array", FLOAT8), b=("array", FLOAT8), dtype=("dtype", "float16"),
        emulate=("flag", True),
    ),
    ops.cast_to_float8: of(x=("array", X), format=("choice", "F143"), scale=("integer", 0)),
    ops.fixed_width_bins: of(inputs=("array", V), n_bins=("integer", 2)),
    ops.histogram: of(
        inputs=("array", V), levels=("array", V[:1]), absolute_of_input=("flag", True)
    ),
    ops.histogram_update: of(
        hist=("array", V[:2]), inputs=("array", V), levels=("array", V[:1]),
        absolute_of_input=("flag", True),
    ),
    ops.identity_loss: of(x=("array", X), reduction=("choice", "sum")),
    ops.normalise_image: of(
        image=("array", X[:, :3]), channel_offsets=("array", V[:3]),
        channel_scales=("array", V[:3]), scale=("number", 1.0),
    ),
    ops.print_tensor: of(x=("array", X), print_gradient=("flag", True)),
    ops.random_uniform: DRAWN | of(low=("number", 0.0), high=("number", 1.0)),
    ops.random_normal: DRAWN | of(mean=("number", 0.0), stddev=("number", 1.0)),
    ops.random_truncated_normal: DRAWN | of(alpha=("number", 1.0)),
    ops.random_bernoulli: DRAWN | of(probability=("number", 0.5)),
    ops.remote_embedding_lookup: of(
        table=("array", X), ids=("array", [1]), axis_name=("axis", None),
        partition_strategy=("choice", "token"),
    ),
    ops.remote_embedding_update: of(
        table=("array", X), ids=("array", [1]), gradients=("array", X[:1]),
        learning_rate=("number", 0.1), axis_name=("axis", None),
    ),
    ops.nce_loss: LOSS,
    ops.sampled_softmax_loss: LOSS,
    ops.sequence_slice: SEQUENCES,
    ops.sequence_slice_pack: of(
        dst=("array", X), src=("array", X), num_elems=("array", [1]), dst_offsets=("array", [0]),
        zero_unused=("flag", True),
    ),
    ops.sequence_slice_unpack: of(
        src=("array", X), num_elems=("array", [1]), src_offsets=("array", [0]),
        total_elements=("integer", 2),
    ),
    ops.serialized_matmul: of(
        a=("array", X), b=("array", X.T), serialization_factor=("integer", 2),
        serialization_dimension=("choice", "reducing_dim"), transpose_a=("flag", False),
        transpose_b=("flag", False), keep_precision=("flag", False),
    ),
    ops.sort: of(x=("array", X), axis=("integer", 0)),
    ops.sort_key_value: of(keys=("array", X), values=("array", X), axis=("integer", 0)),
    ops.top_k: of(
        x=("array", X), k=("integer", 2), largest=("flag", True), order=("choice", "none")
    ),
    optim.adam: ADAM,
    optim.adamw: ADAM,
    optim.adamax: ADAM,
    optim.lamb: ADAM | of(max_weight_norm=("rate?", 1.0)),
    optim.rmsprop: RATES | MOMENTS | of(
        decay=("rate", 0.9), eps=("rate", 0.1), momentum=("rate", 0.0),
        centered=("flag", True), tf_variant=("flag", False), velocity_dtype=("dtype", None),
    ),
    optim.sgd: SGD,
    optim.loss_scale: SCALE | of(dtype=("dtype", "float16")),
    optim.gradient_accumulation: ACCUMULATED | of(dtype=("dtype", None)),
    optim.map_gradient: of(tx=("function", OPTIMIZER), fn=("function", lambda g, p: g)),
    optim.cross_replica: of(tx=("function", OPTIMIZER), reduction=("choice", "mean")),
    optim.shard_state: of(tx=("function", OPTIMIZER), reduction=("choice", "mean")),
    optim.cross_replica_gradient_accumulation: ACCUMULATED | of(dtype=("dtype", None)),
    optim.set_hyperparameters: of(state=("array", STATE), learning_rate=("rate", 0.1)),
    optim.variable: of(value=("number", 0.1)),
    ipu.HostEmbedding: of(
        table=("array", X), rewind_steps=("integer", 1), partition_strategy=("choice", "token")
    ),
    ipu.HostEmbedding.create: of(
        shape=("sizes", (4, 6)), dtype=("dtype", "float32"), initializer=("function", None),
        file=("path", None),
    ),
    ipu.HostEmbeddingSGD: of(learning_rate=("", 0.1), accumulation_factor=("integer", 1)),
    method("lookup"): HOSTED | of(learning_rate=("number", 0.1), token=("array", 0)),
    method("update"): HOSTED | of(learning_rate=("number", 0.1), gradients=("array", X[:1])),
    method("lookup_ahead"): HOSTED,
    method("read"): of(start=("row", 0), token=("number", 0)),
    method("rewind"): of(token=("number", 0)),
    method("save"): of(token=("number", 0), path=("path", None)),
    method("restore"): of(path=("path", None)),
    expression: of(x=("array", X), y=("array", V)),
    ipu.codelet_expression: of(fun=("function", jnp.sin)),
    counted: of(value=("ids", X)),
    tile.put_sharded: of(x=("array", X), tiles=("places", range(4))),
    tile.put_replicated: of(x=("array", X), tiles=("places", range(4))),
    tile.gather: of(x=("array", ROWS), rows=("places", [0]), tiles=("places", [1])),
    mapped: of(function=("function", jnp.sin)),
    tile.create_vertex: of(
        name=("text", "V"), source=("source", "#error\n"), inputs=("texts", ["x"]),
        outputs=("fields", {"y": "x"}), in_place=("texts", []), constants=("mapping", {}),
        cycles=("function?", None), flags=("text", ""), reference=("function?", None),
        vjp=("function?", None),
    ),
    checked: of(
        vertex=("function", VERTEX), array=("array", X), rtol=("number", 0), atol=("number", 0)
    ),
    custom: of(x=("array", V), outputs=("described", V)),
    ipu.custom_op: of(
        library=("path", "#error\n"), name=("text", "Build"), attributes=("attributes", ""),
        gradients=("choice", "joint"), gradient_attributes=("attributes", ""),
        vmap=("function?", None), codelets=("codelets", ()), flags=("text", ""),
    ),
    on_host: of(
        x=("array", V), outputs=("described", V), inputs_with_gradients=("numbers", None)
    ),
    ipu.host_call: of(
        function=("path", np.square), outputs=("", V), name=("text", "Callback"),
        attributes=("attributes", ""), gradient=("gradient", False),
    ),
    ipu.autocast: of(fun=("function", jnp.sin), enabled=("flag", True), results=("choice", "")),
    ipu.CastPolicy: of(fp16=("operations", ["exp"]), mixed=("choice", "half")),
}  # fmt: skip


def cases(*kinds: str) -> Iterator[Any]:
    """Function, argument and kind of all that are of one of the kinds; of none given, of any."""
    for number, (function, arguments) in enumerate(ARGUMENTS.items()):
        for name, (kind, _) in arguments.items():
            if kind in kinds or (kind and not kinds):
                label = f"{number}-{function.__qualname__.split('.')[0]}-{name}"
                yield pytest.param(function, name, kind, id=label)


@pytest.mark.parametrize(("function", "name", "kind"), [*cases()])
def test_wrong_values_are_refused(function: Any, name: str, kind: str) -> None:
    good = {each: value for each, (_, value) in ARGUMENTS[function].items() if each != name}
    good.pop("cell_order", None)
    none_is_default = kind.endswith("?")
    for value in WRONG[kind.removesuffix("?")]:
        if none_is_default and value is None:
            continue
        with pytest.raises(ipu.IpuError) as caught:
            function(**good, **{name: value})
        assert FORM.fullmatch(str(caught.value)), (value, str(caught.value))


@pytest.mark.parametrize(("function", "name", "kind"), [*cases("flag", "integer")])
def test_traced_flags_and_sizes_are_refused(function: Any, name: str, kind: str) -> None:
    good = {each: value for each, (_, value) in ARGUMENTS[function].items() if each != name}
    good.pop("cell_order", None)

    def call(value: Any) -> None:
        function(**good, **{name: value})

    with pytest.raises(ipu.IpuError, match=r"(?s)^\[[\w. ]+\] needs .+; got .+\.$"):
        jax.eval_shape(call, jnp.int32(1))
