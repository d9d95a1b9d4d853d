import doctest
import importlib

import jax
import jax.numpy as jnp

import ipujax as ipu
from ipujax.ops.definition import Op

g = {"ipu": ipu, "jax": jax, "jnp": jnp, "Op": Op}
for m in [
    "nn.activations",
    "nn.batch_norm",
    "nn.cross_entropy",
    "nn.dropout",
    "nn.group_norm",
    "nn.softmax",
    "ops.definition",
]:
    print(m, doctest.testmod(importlib.import_module("ipujax." + m), extraglobs=g))
