"""Stage 3, first half: what MLIR says is what the program holds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from jax.sharding import SingleDeviceSharding

from ipujax import jax_compat
from ipujax.compiler.ingest import ingest
from ipujax.compiler.reader import read_program
from ipujax.errors import InvalidProgramError
from tests.compiler.programs import find, names, normal, read

X = np.arange(6, dtype=np.float32).reshape(2, 3)
ANY = lambda name: True  # noqa: E731


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", ml_dtypes.bfloat16, "int8", "uint8", "int16", "uint32", "bool"]
)
@pytest.mark.parametrize("shape", [(), (5,), (3, 70), (0, 2)])
def test_constants_of_every_dtype_keep_their_elements(dtype, shape):
    values = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 9).astype(dtype)
    program = read(lambda x: (x, jnp.asarray(values)), X)
    result = program.main.results[1]
    assert result.const is not None
    assert result.const.dtype == values.dtype
    np.testing.assert_array_equal(result.const, values)


def test_bfloat16_special_numbers():
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-40, 3e38], ml_dtypes.bfloat16)
    const = read(lambda x: (x, jnp.asarray(values)), X).main.results[1].const
    np.testing.assert_array_equal(const.view(np.uint16), values.view(np.uint16))


def test_a_splat_is_one_element_in_memory():
    const = read(lambda x: x + jnp.full((2, 3), 7.0), X).main.ops[0]
    assert const.name == "broadcast_in_dim"
    value = normal(lambda x: x + jnp.full((2, 3), 7.0), X).main.ops[0].operands[1]
    assert value.is_splat
    assert value.const.strides == (0, 0)


def test_calls_are_read_in_place():
    program = read(lambda x: jax.jit(jnp.sin)(x) + jax.jit(jnp.sin)(x), X)
    assert names(program.main) == ["sine", "sine", "add"]


def test_composites_with_a_rule_stay_and_others_are_their_decomposition():
    module = lambda: jax_compat.deserialize_artifact(_artifact(lax.erf, X))  # noqa: E731
    assert names(read_program(module(), "t", ANY).main) == ["chlo.erf"]
    opened = names(read_program(module(), "t", lambda name: False).main)
    assert "chlo.erf" not in opened
    assert "clamp" in opened


def _artifact(f, *args):
    from tests.compiler.programs import artifact

    return artifact(f, *args)


def test_attributes_of_composites_are_the_ops():
    assert find(read(lambda x: lax.top_k(x, 2), X), "chlo.top_k").attrs["k"] == 2


def test_donation_is_read():
    program = read(lambda x, y: (x + y, y), X, X, donate_argnums=0)
    assert program.output_alias == [0, -1]
    assert [p.donated for p in program.parameters] == [True, False]


def test_memories_are_read_and_donation_stays_inside_one(device):
    """The types fit crosswise too, but a buffer stays in its memory."""
    both = tuple(SingleDeviceSharding(device, memory_kind=k) for k in ("pinned_host", "device"))
    options = {"in_shardings": both, "out_shardings": both[::-1], "donate_argnums": (0, 1)}
    program = read(lambda x, y: (x + 1, y + 1), X, X, **options)
    assert program.argument_memories == {0: "pinned_host"}
    assert program.result_memories == {1: "pinned_host"}
    assert program.output_alias == [1, 0]


def test_sources_name_the_users_line_also_inside_library_functions():
    def f(x):
        return jnp.take(x, np.array([0, 1]), axis=0).sum()

    program = read(f, X)
    lines = {op.source.line for op in program.main.ops}
    assert lines == {f"test_reader.py:{f.__code__.co_firstlineno + 1}"}
    assert find(program, "gather").source.name.endswith("gather")


def test_named_scopes_stand_in_names():
    def f(x):
        with jax.named_scope("encoder"):
            return jnp.tanh(x)

    assert "encoder" in find(read(f, X), "tanh").source.name


def test_collectives_over_one_device_leave_no_op():
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:1]), "d")
    spec = jax.sharding.PartitionSpec("d")
    f = jax.shard_map(lambda x: lax.psum(x, "d") * 2, mesh=mesh, in_specs=spec, out_specs=spec)
    assert [n for n in names(read(f, X).main) if n != "multiply"] == ["broadcast_in_dim"]


def test_bytes_that_are_no_artifact_are_refused():
    with pytest.raises(
        InvalidProgramError, match=r"\[ingest\] needs a StableHLO portable artifact"
    ):
        ingest(b"not an artifact", b"", {})
