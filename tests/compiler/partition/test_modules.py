"""What the partition stage leaves in a module, and what it refuses."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib import _jax

from ipujax import jax_compat
from ipujax.compiler.ingest import ingest
from ipujax.compiler.partition import partition
from ipujax.errors import UnsupportedOpError
from tests.compiler.partition.sharded_oracle import LocalProgram, compare

X = np.arange(64, dtype=np.float32).reshape(8, 8)


def mesh(*shape: int, order: Any = None) -> Mesh:
    size = int(np.prod(shape))
    devices = np.array(jax.devices("cpu"))[list(order or range(size))]
    return Mesh(devices.reshape(shape), ("a", "b")[: len(shape)])


def local(f: Any, *args: Any, on: Mesh, specs: Any, **options: Any) -> LocalProgram:
    shardings = [None if spec is None else NamedSharding(on, spec) for spec in specs]
    jitted = jax.jit(f, in_shardings=tuple(shardings), keep_unused=True, **options)
    return LocalProgram(jitted, args)


def collectives(program: LocalProgram) -> list[str]:
    names = "all_reduce|all_gather|reduce_scatter|all_to_all|collective_permute"
    return re.findall(rf'"stablehlo\.({names})"', program.text)


def test_data_parallel_needs_no_collective_before_the_mean():
    program = local(lambda x: jnp.tanh(x @ x.T).sum(), X, on=mesh(4), specs=[P(None, "a")])
    assert collectives(program) == ["all_reduce"]


def test_a_sum_of_which_blocks_are_kept_is_scattered():
    on = mesh(4)
    program = local(
        jnp.dot,
        X,
        X,
        on=on,
        specs=[P(None, "a"), P("a")],
        out_shardings=NamedSharding(on, P("a")),
    )
    assert collectives(program) == ["reduce_scatter"]


def test_rows_become_columns_by_one_exchange():
    on = mesh(4)
    program = local(
        lambda x: x * 2,
        X,
        on=on,
        specs=[P("a")],
        out_shardings=NamedSharding(on, P(None, "a")),
    )
    assert collectives(program) == ["all_to_all"]


def test_a_scan_over_a_sharded_axis_sends_one_slice_a_turn():
    on = mesh(4)
    weights = np.ones((4, 8, 8), np.float32)
    program = local(
        lambda x, ws: lax.scan(lambda c, w: (jnp.sin(c) @ w, c), x, ws),
        X,
        weights,
        on=on,
        specs=[P(), P("a")],
        out_shardings=(NamedSharding(on, P()), NamedSharding(on, P("a"))),
    )
    assert collectives(program) == ["all_reduce"]


def test_an_embedding_s_gradient_is_summed_once():
    ids = np.arange(8, dtype=np.int32)

    def loss(table: Any, ids: Any) -> Any:
        x = table[ids]
        return (jnp.tanh(x) @ table.T).sum()

    program = local(jax.grad(loss), X, ids, on=mesh(4), specs=[P(), P("a")])
    assert collectives(program) == ["all_reduce"]


def test_composites_with_a_rule_stay_one_op():
    program = local(lambda x: (lax.erf(x), lax.top_k(x, 2)), X, on=mesh(4), specs=[P("a")])
    assert "chlo.erf" in program.text
    assert "chlo.top_k" in program.text
    assert not collectives(program)


def test_an_argmax_sends_one_pair_a_device():
    program = local(lambda x: jnp.argmax(x, 0), X, on=mesh(4), specs=[P("a")])
    assert collectives(program) == ["all_gather", "all_gather"]
    assert "tensor<4x8xf32>" in program.text


@pytest.mark.parametrize(
    "name",
    ["cholesky", "eig", "eigh", "hessenberg", "lu", "qr", "schur", "svd", "tridiagonal"],
)
def test_a_batch_of_matrices_is_factorised_where_it_is(name: str):
    matrices = np.stack([np.eye(4, dtype=np.float32)] * 8)
    f = getattr(lax.linalg, name)
    program = local(f, matrices, on=mesh(4), specs=[P("a")])
    assert collectives(program) == []
    assert "tensor<2x4x4xf32>" in program.text
    assert "tensor<8x4x4xf32>" not in program.text


def test_systems_and_the_nearly_largest_of_a_batch_stay_where_they_are():
    def f(x: Any) -> Any:
        rows = x[..., 0]
        return (
            lax.linalg.tridiagonal_solve(rows, rows, rows, x),
            lax.linalg.householder_product(x, rows),
            lax.approx_max_k(x, 2),
            lax.approx_min_k(x, 2, reduction_dimension=1),
        )

    program = local(f, np.ones((8, 4, 4), np.float32), on=mesh(4), specs=[P("a")])
    assert collectives(program) == []


def test_matrices_sharded_along_rows_are_joined_first():
    matrices = np.random.default_rng(0).standard_normal((4, 8, 8)).astype(np.float32)
    program = local(jnp.linalg.qr, matrices, on=mesh(2, 2), specs=[P("a", "b")])
    assert set(collectives(program)) == {"all_gather"}
    assert "tensor<4x8x8xf32>" not in program.text


def test_groups_follow_the_axes_of_the_mesh():
    program = local(lambda x: x.sum(0), X, on=mesh(2, 4), specs=[P("a", "b")])
    assert "dense<[[0, 4], [1, 5], [2, 6], [3, 7]]>" in program.text


def test_donation_is_kept_with_local_types():
    on = mesh(4)
    program = local(
        lambda x: x + 1,
        X,
        on=on,
        specs=[P("a")],
        out_shardings=NamedSharding(on, P("a")),
        donate_argnums=0,
    )
    assert "tensor<2x8xf32> {tf.aliasing_output = 0 : i32}" in program.text


def test_donation_of_what_the_compiler_deals_is_kept():
    program = local(lambda x: x + 1, X, on=mesh(4), specs=[P("a")], donate_argnums=0)
    assert "jax.buffer_donor = true" in program.text or "tf.aliasing_output" in program.text


def test_shardings_are_those_that_jax_reads():
    from jax._src.lib import xla_client
    from jax._src.sharding_impls import parse_flatten_op_sharding

    on = mesh(2, 4)
    program = local(lambda x: (x + 1, x.sum(0), x.T), X, on=on, specs=[P("a", "b")])
    specs = []
    for serialised in (*program.parameters, *program.results):
        proto = xla_client.OpSharding()
        proto.ParseFromString(serialised)
        specs += parse_flatten_op_sharding(proto, on)
    assert specs == [P("a", "b"), P("a", "b"), P("b"), P("b", "a")]


def test_a_program_for_one_device_is_not_touched():
    code = jax_compat.serialize_artifact(jax.jit(lambda x: x + 1).lower(X))
    request = ingest(code, b"", {})
    before = str(request.module)
    assert partition(request) is request
    assert str(request.module) == before
    assert not request.parameter_shardings


def test_explicit_axes_are_programs_like_others():
    explicit = jax.make_mesh(
        (2, 2), ("a", "b"), (AxisType.Explicit,) * 2, devices=jax.devices("cpu")[:4]
    )
    with jax.set_mesh(explicit):
        args = jax.device_put(X, P("a", "b")), jax.device_put(X, P("b", None))

        def f(x: Any, w: Any) -> Any:
            y = jnp.einsum("ij,jk->ik", x, w, out_sharding=P("a", None))
            return jax.sharding.reshard(jnp.sin(x), P("b", "a")), y, jax.grad(jnp.sum)(y)

        jitted = jax.jit(f)
        compare(jitted, args, jitted, 1e-4, 1e-4)


def test_complex_constants_have_no_mesh_of_their_own():
    explicit = jax.make_mesh((4,), ("a",), devices=jax.devices("cpu")[:4])

    def f(x: Any) -> Any:
        mapped = jax.shard_map(lambda x: x * 1j + lax.psum(x * (1 + 2j), "a"), out_specs=P("a"))
        turns = lax.scan(lambda c, _: (c * (1 + 1j), c), x * 1j, None, length=2)
        return 1j * jnp.sum(x), jnp.mean(x + 1j * x), mapped(x), turns

    with jax.set_mesh(explicit):
        jitted = jax.jit(f)
        compare(jitted, (jax.device_put(X, P("a")),), jitted, 1e-4, 1e-4)


@pytest.mark.parametrize("inside", [False, True])
def test_old_annotations_are_refused_by_name(inside: bool):
    sharding = NamedSharding(mesh(4), P("a"))
    jitted = jax.jit(lambda x: x + 1, in_shardings=sharding)
    if inside:
        constrain = jax.jit(lambda x: lax.with_sharding_constraint(x, sharding))
        jitted = jax.jit(lambda x: constrain(x) + constrain(x * 2))
    jax.config.update("jax_use_shardy_partitioner", False)
    try:
        code = jax_compat.serialize_artifact(jitted.lower(X))
    finally:
        jax.config.update("jax_use_shardy_partitioner", True)
    options = _jax.CompileOptions()
    options.num_partitions = 4
    with pytest.raises(UnsupportedOpError, match="jax_use_shardy_partitioner"):
        partition(ingest(code, options.SerializeAsString(), {}))


def test_several_replicas_are_refused_by_name():
    code = jax_compat.serialize_artifact(jax.jit(lambda x: x + 1).lower(X))
    options = _jax.CompileOptions()
    options.num_replicas = 2
    with pytest.raises(UnsupportedOpError, match="do not set num_replicas"):
        partition(ingest(code, options.SerializeAsString(), {}))
