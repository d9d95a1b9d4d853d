"""Layers: small pure functions (weight, x) -> y on float32 [ROWS, COLUMNS]."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import ipujax as ipu
from tests.fuzz.composed.draw import COLUMNS, ROWS, Draw, Function


@dataclass(frozen=True)
class Layer:
    """One row.

    Attributes:
        make: the layer.
        weight: shapes of its weights.
        often: how often it is drawn.
        is_backward: JAX has no forward derivatives of it.
        is_once: it has first derivatives alone.
    """

    make: Callable[[Draw], Function]
    weight: tuple[int, ...]
    often: float
    is_backward: bool = False
    is_once: bool = False


LAYERS: dict[str, Layer] = {}


def layer(*weight: int, often: float = 1, **facts: Any) -> Callable[[Any], Any]:
    def add(make: Callable[[Draw], Function]) -> Callable[[Draw], Function]:
        LAYERS[make.__name__] = Layer(make, weight, often, **facts)
        return make

    return add


@layer(COLUMNS, COLUMNS, often=4)
def dense(d: Draw) -> Function:
    return lambda w, x: jnp.tanh(x @ w)


@layer(COLUMNS, COLUMNS)
def gelu(d: Draw) -> Function:
    activation = ipu.nn.gelu if d.is_ours else jax.nn.gelu
    return lambda w, x: activation(x @ w) + 0.1 * x


@layer()
def elementwise(d: Draw) -> Function:
    return lambda w, x: jnp.sin(x) * jnp.exp(-x * x) + 0.5 * x


@layer(COLUMNS)
def scaled(d: Draw) -> Function:
    return lambda w, x: w * x / (1 + jnp.abs(x))


@layer(COLUMNS)
def layer_norm(d: Draw) -> Function:
    def plain(w: Any, x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return w * centred * lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 0.1)

    def ours(w: Any, x: Any) -> Any:
        return ipu.nn.layer_norm(x, w, jnp.zeros_like(w), epsilon=0.1)

    return ours if d.is_ours else plain


@layer()
def softmax(d: Draw) -> Function:
    function = ipu.nn.softmax if d.is_ours else jax.nn.softmax
    return lambda w, x: function(x) + 0.25 * x


@layer()
def reduction(d: Draw) -> Function:
    return lambda w, x: x / jnp.sqrt(1 + jnp.sum(x * x)) + 0.1 * jnp.max(x, 0)


@layer(COLUMNS, COLUMNS)
def loop(d: Draw) -> Function:
    return lambda w, x: lax.fori_loop(0, 2, lambda _, c: jnp.tanh(c @ w + x), x)


@layer(COLUMNS, COLUMNS)
def rows(d: Draw) -> Function:
    def recurrent(w: Any, x: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            carry = jnp.tanh(carry @ w + row)
            return carry, carry

        return lax.scan(step, jnp.zeros_like(x[0]), x)[1]

    return recurrent


@layer(COLUMNS, COLUMNS)
def branch(d: Draw) -> Function:
    return lambda w, x: lax.cond(jnp.sum(x) < 1e9, lambda v: jnp.sin(v @ w), lambda v: v, x)


@layer()
def own_derivative(d: Draw) -> Function:
    @jax.custom_jvp
    def smooth(x: Any) -> Any:
        return jnp.tanh(x)

    @smooth.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        y = smooth(primals[0])
        return y, (1 - y * y) * tangents[0]

    return lambda w, x: smooth(x) + 0.1 * x


@layer(COLUMNS, COLUMNS)
def serialized(d: Draw) -> Function:
    if not d.is_ours:
        return lambda w, x: jnp.tanh(x @ w)
    product = functools.partial(ipu.ops.serialized_matmul, serialization_factor=2)
    which = d.choice(("a_rows_b_columns", "b_rows"))
    return lambda w, x: jnp.tanh(product(x, w, serialization_dimension=which))


@layer(6, COLUMNS)
def embedding(d: Draw) -> Function:
    ids = np.array([1, 5, 1])

    def lookup(w: Any, x: Any) -> Any:
        return x + (ipu.ops.embedding_lookup(w, ids) if d.is_ours else w[ids])

    return lookup


@layer()
def expression(d: Draw) -> Function:
    def scalar(x: Any) -> Any:
        return jnp.sin(x) + 0.5 * x

    function = ipu.codelet_expression(scalar) if d.is_ours else scalar
    return lambda w, x: function(x)


@layer(often=0.7, is_backward=True, is_once=True)
def on_host(d: Draw) -> Function:
    """Its gradient on the host has no derivative itself."""
    if not d.is_ours:
        return lambda w, x: x * x / 4
    square = ipu.host_call(lambda x: x * x / 4, lambda x: x, gradient=lambda ct, x, y: ct * x / 2)
    return lambda w, x: square(x)


@layer(often=0.5)
def on_tiles(d: Draw) -> Function:
    def mapped(w: Any, x: Any) -> Any:
        rows = ipu.tile.put_sharded(x, tiles=range(ROWS))
        return ipu.tile.map(lambda row: jnp.tanh(row) + 0.1 * row, rows).array

    return mapped if d.is_ours else lambda w, x: jnp.tanh(x) + 0.1 * x


_SCALE = """
    #include <poplar/Vertex.hpp>
    class Scale : public poplar::Vertex {
     public:
      poplar::Input<poplar::Vector<float>> x;
      poplar::Output<poplar::Vector<float>> y;
      bool compute() {
        for (unsigned i = 0; i < x.size(); ++i) y[i] = 0.5f * x[i];
        return true;
      }
    };
"""


@functools.cache
def _vertex() -> Any:
    return ipu.tile.create_vertex(
        "Scale",
        source=_SCALE,
        inputs=["x"],
        outputs={"y": "x"},
        reference=lambda x: 0.5 * x,
    )


@layer(often=0.5)
def vertex(d: Draw) -> Function:
    def scaled(w: Any, x: Any) -> Any:
        return ipu.tile.map(_vertex(), ipu.tile.put_sharded(x, tiles=range(ROWS))).array

    return scaled if d.is_ours else lambda w, x: 0.5 * x


@functools.cache
def _product() -> Any:
    from tests.api.custom.test_custom_op_interface import HEADERS, function, gradient, level_of

    forward = "outputs.push_back(popops::mul(graph, inputs[0], inputs[1], prog));"
    back = "outputs.push_back(popops::mul(graph, gradients[0], fwd_inputs[1 - input], prog));"
    source = HEADERS + level_of(5) + function("Build", forward) + gradient("Build_grad", back)
    return ipu.custom_op(source, outputs=lambda x, y: x, gradients="separate")


@layer(often=0.4, is_backward=True, is_once=True)
def custom_op(d: Draw) -> Function:
    multiply = _product() if d.is_ours else jnp.multiply
    return lambda w, x: multiply(x, jnp.sin(x))


@functools.cache
def _table() -> Any:
    return ipu.HostEmbedding(np.linspace(-1, 1, 5 * COLUMNS, dtype=np.float32).reshape(5, COLUMNS))


@layer(often=0.5)
def host_table(d: Draw) -> Function:
    ids = np.array([4, 0, 2])

    def looked_up(w: Any, x: Any) -> Any:
        table = _table()
        if d.is_ours:
            return 0.5 * x + table.lookup(table.token(), ids)
        return 0.5 * x + jnp.linspace(-1, 1, 5 * COLUMNS).reshape(5, COLUMNS)[ids]

    return looked_up


@layer()
def noted(d: Draw) -> Function:
    """What leaves values as they are."""
    if not d.is_ours:
        return lambda w, x: 0.5 * x
    note = d.choice(
        (
            ipu.ops.nop,
            ipu.recomputation_checkpoint,
            functools.partial(ipu.summary, "noted"),
            functools.partial(ipu.ops.identity_loss, reduction="none"),
            functools.partial(ipu.ops.print_tensor, title="noted", print_gradient=True),
        )
    )
    return lambda w, x: 0.5 * note(x)


@layer()
def in_streaming_memory(d: Draw) -> Function:
    """JAX has no gradient of a move to another memory inside of `jit`."""

    def moved(x: Any) -> Any:
        far = jax.device_put(x, jax.memory.Space.Host)
        return jax.device_put(far, jax.memory.Space.Device)

    move = moved if d.is_ours else lambda x: x
    return lambda w, x: 0.25 * x + 0.25 * move(lax.stop_gradient(x))
