"""Options that functions of ipujax take as the defaults of their arguments."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu

RNG = np.random.default_rng(0)
#: A large mean, so that the two ways to compute a variance differ.
X = (1000 + RNG.normal(size=(4, 8))).astype(np.float32)
NORMS = {
    "layer": lambda x, **stable: ipu.nn.layer_norm(x, **stable),
    "group": lambda x, **stable: ipu.nn.group_norm(x, groups=2, **stable),
    "instance": lambda x, **stable: ipu.nn.instance_norm(x[None], **stable),
    "batch": lambda x, **stable: ipu.nn.batch_norm(x, ipu.nn.batch_norm_init(8), **stable)[0],
}


@pytest.fixture(autouse=True)
def _reset():
    yield
    ipu.reset_config(keep_devices=True)


@pytest.mark.parametrize("name", NORMS)
def test_stable_statistics_of_norms(name: str):
    """One jitted function, which is traced again when the option changes."""
    norm = NORMS[name]
    stable, fast = (
        np.asarray(jax.jit(lambda x, s=s: norm(x, use_stable_statistics=s))(X))
        for s in (True, False)
    )
    assert not np.array_equal(stable, fast)
    by_option = jax.jit(norm)
    np.testing.assert_array_equal(by_option(X), fast)
    ipu.configure(use_stable_statistics=True)
    np.testing.assert_array_equal(by_option(X), stable)
    ipu.configure(use_stable_statistics=False)
    np.testing.assert_array_equal(by_option(X), fast)


def test_a_batch_norm_over_groups_of_replicas():
    x = RNG.normal(size=(4, 3, 2)).astype(np.float32) + np.arange(4)[:, None, None]
    state = ipu.nn.batch_norm_init(2)

    def run(**size):
        norm = ipu.pmap(lambda x: ipu.nn.batch_norm(x, state, **size)[1].mean, devices=_four())
        return np.asarray(norm(x))

    alone = np.stack([0.01 * part.mean(0) for part in x])
    pairs = np.repeat([0.01 * x[i : i + 2].mean((0, 1)) for i in (0, 2)], 2, axis=0)
    np.testing.assert_allclose(run(), alone, rtol=1e-4, atol=1e-6)
    ipu.configure(batch_norm_replica_group_size=2)
    np.testing.assert_allclose(run(), pairs, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(run(replica_group_size=1), alone, rtol=1e-4, atol=1e-6)


def _four():
    return jax.devices()[:4]


@pytest.mark.parametrize(("option", "drawn"), [(None, 2), (5, 5), (0, 1)])
def test_prefetch_depth_of_infeeds(option: int | None, drawn: int):
    if option is not None:
        ipu.configure(prefetch_depth=option)
    made = []

    def data():
        for i in range(100):
            made.append(i)
            yield np.float32(i)

    infeed = ipu.Infeed(data)
    assert infeed.spec.shape == ()
    deadline = time.monotonic() + 5
    while len(made) < drawn and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)  # time for more, if it did not stop
    assert len(made) == infeed.num_prefetched == drawn
    assert float(jax.jit(lambda: ipu.repeat(3, jnp.add, 0.0, infeed=infeed))()) == 3


def test_an_option_of_norms_is_none_of_single_functions():
    """It is read where a norm is traced, so jit's options would come too late."""
    with pytest.raises(Exception, match="use_stable_statistics"):
        jax.jit(jnp.sin, compiler_options={"ipu_use_stable_statistics": True})(1.0)


def test_engine_options_stand_above_those_that_they_mean():
    @jax.jit
    def sums(x):
        return jax.lax.fori_loop(0, 2, lambda i, x: x / x, x)

    ipu.configure(engine_options='{"debug.floatPointOpException": true, "opt.level": 3}')
    with pytest.raises(jax.errors.JaxRuntimeError, match="needs operations without inv"):
        jax.block_until_ready(sums(jnp.zeros(2)))
    ipu.configure(floating_point_exceptions="inv")
    ipu.configure(engine_options='{"debug.floatPointOpException": "false"}')
    assert np.isnan(sums(jnp.zeros(2))).all()
    big = jax.ShapeDtypeStruct((1 << 15, 1 << 15), jnp.float32)
    ipu.configure(engine_options='{"debug.outOfMemory": "error"}')
    with pytest.raises(ipu.OutOfMemoryError):
        ipu.precompile(lambda x: x @ x, big, options={"ipu_fit": "off"})
    ipu.configure(engine_options='{"debug.outOfMemory": "log"}', out_of_memory="error")
    ipu.precompile(lambda x: x @ x, big, options={"ipu_fit": "off"})


@pytest.mark.parametrize(
    ("options", "needs"),
    [
        ('{"speed": "high"}', "options of Poplar's families"),
        ('{"debug.outOfMemory": "often"}', r"debug.outOfMemory = error \| log; got often"),
    ],
)
def test_wrong_engine_options_are_errors(options: str, needs: str):
    with pytest.raises(ipu.ConfigError, match=needs):
        ipu.precompile(jnp.sin, jnp.zeros(2), options={"ipu_engine_options": options})


@pytest.mark.parametrize("name", ["pooling_options"])
def test_what_has_no_effect_says_why(name: str):
    metadata = ipu.IPUConfig.metadata(name)
    assert len(metadata.no_effect) > 20
    lines = (
        ipu.IPUConfig().replace(**{name: '{"optimizeForSpeed": "true"}'}).describe().splitlines()
    )
    (place,) = (i for i, line in enumerate(lines) if f" {name} = " in line)
    assert lines[place].startswith("  * ")
    assert lines[place + 1] == f"      no effect: {metadata.no_effect}"


@pytest.mark.parametrize("text", ['{"speed": true}', '{"optimizeForSpeed": 2}', "[]", "{"])
def test_options_of_pooling_are_those_of_poplibs(text: str):
    with pytest.raises(ipu.ConfigError, match="any of poolUseIntrospectiveMapping, optimizeFor"):
        ipu.IPUConfig().replace(pooling_options=text)
