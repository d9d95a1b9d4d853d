"""The modelled cost of a data-parallel training step on 1, 4, 16 and 64 IPUs.

Each IPU has its own batch; gradients are averaged over all, combined in collectives of up to 10 MB.
Nothing runs: the cycles are those of the compiled programs. Ends with the efficiency on 64 IPUs:
the cycles of a step on one IPU, divided by those on 64 IPUs.

Run: python examples/replication/scaling.py
"""

import os
import time

import jax
import jax.numpy as jnp
import optax
from jax import lax
from transformer_model import Sizes
from transformer_model import init_params as init_transformer
from transformer_model import loss_of as transformer_loss

import ipujax as ipu

NUM_IPUS = (1, 4, 16, 64)
KINDS = ("compute", "exchange", "sync", "link")
LEAST_EFFICIENCY = 0.6
OPTIONS = {"ipu_maximum_cross_replica_sum_buffer_size": 10_000_000}
BERT_LIKE = Sizes(num_layers=4, num_heads=8, width=512, length=128, vocabulary=2048)
WIDTHS = (64, 128, 256)
IMAGES = (64, 32, 32, 3)
NUM_CLASSES = 1000


def init_residual(key):
    """Two residual blocks for each width, float16."""
    keys = iter(jax.random.split(key, 3 * len(WIDTHS) * 2 + 2))

    def kernel(size, n, m):
        scale = (2 / (size * size * n)) ** 0.5
        return (jax.random.normal(next(keys), (size, size, n, m)) * scale).astype(jnp.float16)

    stages, before = [], WIDTHS[0]
    for width in WIDTHS:
        blocks = [
            (kernel(3, before if i == 0 else width, width), kernel(3, width, width))
            for i in range(2)
        ]
        stages.append((kernel(1, before, width), blocks))
        before = width
    return {
        "stem": kernel(3, IMAGES[-1], WIDTHS[0]),
        "stages": stages,
        "head": kernel(1, before, NUM_CLASSES)[0, 0],
    }


def conv(x, kernel, stride=1):
    return lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def residual_loss(params, batch):
    images, labels = batch
    x = jax.nn.relu(conv(images, params["stem"]))
    for projection, blocks in params["stages"]:
        for i, (first, second) in enumerate(blocks):
            stride = 2 if i == 0 else 1
            hidden = conv(jax.nn.relu(conv(x, first, stride)), second)
            x = jax.nn.relu(hidden + (conv(x, projection, 2) if i == 0 else x))
    logits = (x.mean((1, 2)) @ params["head"]).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def compiled_step(loss_of, params, batch, num_ipus):
    """A step for `num_ipus` replicas; params and batch are shapes, the batch that of one."""
    tx = ipu.optim.cross_replica(optax.sgd(0.1, momentum=0.9))

    def step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_of)(params, batch)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    replicated = ipu.pmap(
        step,
        in_axes=(None, None, 0),
        out_axes=(None, None, 0),
        donate_argnums=(0, 1),
        devices=jax.devices()[:num_ipus],
        compiler_options=OPTIONS,
    )
    batches = jax.tree.map(lambda b: jax.ShapeDtypeStruct((num_ipus, *b.shape), b.dtype), batch)
    return replicated.lower(params, jax.eval_shape(tx.init, params), batches).compile()


def measure(name, loss_of, params, batch):
    """Prints a row for each number of IPUs; returns the efficiency on the largest."""
    cycles = []
    for num_ipus in NUM_IPUS:
        start = time.perf_counter()
        cost = compiled_step(loss_of, params, batch, num_ipus).cost_analysis()
        seconds = time.perf_counter() - start
        total = cost["cycles"]
        shares = "  ".join(f"{kind} {cost[f'{kind} cycles'] / total:6.1%}" for kind in KINDS)
        milliseconds = total / jax.devices()[0].clock_hz * 1e3
        cycles.append(total)
        print(
            f"{name:12s} {num_ipus:3d} IPUs  {milliseconds:8.3f} ms a step  "
            f"efficiency {cycles[0] / total:6.1%}  {shares}  (compiled in {seconds:.1f} s)"
        )
    return cycles[0] / cycles[-1]


def main():
    os.environ["JAX_IPU_DEVICE_COUNT"] = str(max(NUM_IPUS))  # read when JAX makes the devices
    print("devices:", jax.devices()[:4], "... of", len(jax.devices()))
    images = jax.ShapeDtypeStruct(IMAGES, jnp.float16)
    labels = jax.ShapeDtypeStruct(IMAGES[:1], jnp.int32)
    tokens = jax.ShapeDtypeStruct((16, BERT_LIKE.length + 1), jnp.int32)
    residual = jax.eval_shape(init_residual, jax.random.key(0))
    transformer = jax.eval_shape(
        lambda key: init_transformer(key, BERT_LIKE, jnp.float16), jax.random.key(0)
    )
    efficiencies = [
        measure("ResNet-like", residual_loss, residual, (images, labels)),
        measure("BERT-like", transformer_loss, transformer, tokens),
    ]
    print(f"least efficiency on {max(NUM_IPUS)} IPUs: {min(efficiencies):.3f}")
    if not all(LEAST_EFFICIENCY <= e <= 1 for e in efficiencies):
        raise SystemExit(f"needs efficiencies from {LEAST_EFFICIENCY} to 1; got {efficiencies}")


if __name__ == "__main__":
    main()
