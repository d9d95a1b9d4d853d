"""Jraph: graph networks by segment sums."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jraph
import optax

from tests.libraries.program import program

LIBRARIES = ("jraph", "optax")


def _graph():
    """Two graphs of 5 and 4 nodes, padded to 12 nodes and 24 edges."""

    def ring(key, num_nodes):
        nodes = jnp.arange(num_nodes)
        return jraph.GraphsTuple(
            nodes=jax.random.normal(key, (num_nodes, 3)),
            edges=jnp.ones((2 * num_nodes, 1)),
            senders=jnp.concatenate([nodes, nodes]),
            receivers=jnp.concatenate([(nodes + 1) % num_nodes, (nodes + 2) % num_nodes]),
            n_node=jnp.array([num_nodes]),
            n_edge=jnp.array([2 * num_nodes]),
            globals=jnp.zeros((1, 2)),
        )

    keys = jax.random.split(jax.random.key(0))
    both = jraph.batch([ring(keys[0], 5), ring(keys[1], 4)])
    return jraph.pad_with_graphs(both, n_node=12, n_edge=24, n_graph=3)


@program(1e-4, "ten steps of Adam")
def graph_convolution():
    graph = _graph()
    shapes = {"first": (3, 8), "second": (8, 2)}
    keys = jax.random.split(jax.random.key(1))
    params = {
        name: 0.5 * jax.random.normal(key, shape)
        for key, (name, shape) in zip(keys, shapes.items(), strict=True)
    }
    optimizer = optax.adam(1e-2, eps=1e-3)
    labels = (jnp.arange(12) % 2).astype(jnp.int32)
    real = jraph.get_node_padding_mask(graph)

    def forward(params):
        hidden = graph
        for name, activation in (("first", jax.nn.relu), ("second", lambda x: x)):
            layer = jraph.GraphConvolution(
                lambda nodes, w=params[name]: nodes @ w, add_self_edges=True
            )
            hidden = layer(hidden)
            hidden = hidden._replace(nodes=activation(hidden.nodes))
        return hidden.nodes

    @jax.jit
    def train_step(params, opt_state):
        def loss_of(params):
            losses = optax.softmax_cross_entropy_with_integer_labels(forward(params), labels)
            return jnp.sum(losses * real) / real.sum()

        loss, grads = jax.value_and_grad(loss_of)(params)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    opt_state, losses = optimizer.init(params), []
    for _ in range(10):
        params, opt_state, loss = train_step(params, opt_state)
        losses.append(loss)
    return {"losses": jnp.stack(losses), "params": params}


@program(1e-5, "one gradient of sums over at most eight edges")
def attention_and_global_network():
    graph = _graph()
    w = jax.random.normal(jax.random.key(2), (3, 4))

    def attention(w):
        layer = jraph.GAT(
            attention_query_fn=lambda nodes: nodes @ w,
            attention_logit_fn=lambda sent, received, edges: jnp.sum(
                jax.nn.leaky_relu(sent * received), -1, keepdims=True
            ),
            node_update_fn=jnp.tanh,
        )
        return layer(graph._replace(edges=None)).nodes

    def network(w):
        layer = jraph.GraphNetwork(
            update_edge_fn=lambda edges, sent, received, given: jnp.tanh(sent @ w) + edges,
            update_node_fn=lambda nodes, sent, received, given: nodes @ w + received,
            update_global_fn=lambda nodes, edges, given: nodes.sum(-1, keepdims=True) + given,
            aggregate_edges_for_nodes_fn=jraph.segment_max,
        )
        return layer(graph).globals[:2]

    return [
        jax.jit(jax.value_and_grad(lambda w, f=f: jnp.sum(f(w) ** 2)))(w)
        for f in (attention, network)
    ]
