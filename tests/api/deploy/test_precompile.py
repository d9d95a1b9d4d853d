"""Programs compiled without a device, saved, and loaded: against jit, and what is refused."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.types import ELEMENT_TYPES
from tests.compiler import nanogpt
from tests.conftest import RunPython

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_a_loaded_program_is_what_jit_gives(tmp_path: Path):
    def fun(params, x, unused, scale):
        y = jnp.tanh(x @ params["w"]) * scale
        return {"y": y, "rest": [(), (y.sum(), None)]}

    args = ({"w": X.T}, X, X, 2.0)
    ipu.precompile(fun, *args).save(tmp_path / "a", weights={"params": {"w": X.T}})
    loaded = ipu.load(tmp_path / "a", device=jax.devices("ipu")[1])
    found = loaded(X, X, 2.0)
    wanted = jax.jit(fun)(*args)
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    jax.tree.map(np.testing.assert_array_equal, found, wanted)
    assert found["y"].devices() == {jax.devices("ipu")[1]}
    assert "params['w']: float32[3, 2] (stored)" in repr(loaded)
    loaded.set_weights({"params": {"w": 0 * X.T}})
    np.testing.assert_array_equal(loaded(jnp.asarray(X), X, 2)["y"], np.zeros((2, 2)))
    np.testing.assert_array_equal(loaded.weights["params"]["w"], 0 * X.T)


#: A field of jaxlib's description that it does not need to run a program.
_LAYOUTS_OF_ARGUMENTS = 6


def _fields(description: bytes) -> list[tuple[int, int | bytes]]:
    """Numbers and contents of a message's fields, after its length."""
    data = iter(description)

    def number() -> int:
        value = shift = 0
        for byte in data:
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        return value

    def content() -> bytes:
        return bytes(next(data) for _ in range(number()))

    data = iter(content())
    found: list[tuple[int, int | bytes]] = []
    while tag := number():
        found.append((tag >> 3, content() if tag & 7 == 2 else number()))
    return found


@pytest.mark.parametrize("dtype", [each.name for each in ELEMENT_TYPES])
def test_results_of_every_dtype_and_shape_are_described_as_jax_does(
    tmp_path: Path, dtype: str, monkeypatch: pytest.MonkeyPatch
):
    """jaxlib's own description of results, written by jax_compat, against the one it writes."""
    from ipujax.jax_compat.executables import _metadata

    def fun(x):
        return x, x[0, 0], x[:, :0]

    monkeypatch.setenv("IPUJAX_X64", "emulate")
    with jax.enable_x64(True):
        x = np.ones((2, 300), jnp.dtype(dtype))
        compiled = jax.jit(fun).lower(x).compile()
        sealed, wanted = compiled._executable.xla_executable.serialize(), compiled(x)
        ipu.precompile(fun, x).save(tmp_path / "a")
    outputs = [(dtype, y.shape, "device", None) for y in wanted]
    head, program = sealed.split(b"IPUJAXEX", 1)
    assert program
    assert _fields(_metadata("jit_fun", outputs)) == [
        field for field in _fields(head) if field[0] != _LAYOUTS_OF_ARGUMENTS
    ]
    for got, want in zip(ipu.load(tmp_path / "a")(x), wanted, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


def test_no_device_is_needed(tmp_path: Path, run_python: RunPython):
    code = f"""
import jax, jax.numpy as jnp, ipujax as ipu
assert [d.platform for d in jax.devices()] == ["cpu"]
x = jax.ShapeDtypeStruct((4,), jnp.float32)
ipu.precompile(jax.jit(lambda x: 3 * x), x).save({str(tmp_path / "a")!r})
"""
    ran = run_python("-c", code, env={"JAX_PLATFORMS": "cpu"})
    assert ran.returncode == 0, ran.stderr
    np.testing.assert_array_equal(ipu.load(tmp_path / "a")(X[0, :1].repeat(4)), np.zeros(4))
    found = ipu.runtime.Session(tmp_path / "a").run(np.float32([1, 2, 3, 4]))
    np.testing.assert_array_equal(found, [3, 6, 9, 12])


def test_what_was_exported_is_compiled(tmp_path: Path):
    exported = jax.export.export(jax.jit(jnp.sin), platforms=["ipu"])(X)
    ipu.precompile(exported).save(tmp_path / "a")
    np.testing.assert_allclose(ipu.runtime.Session(tmp_path / "a").run(X), np.sin(X), rtol=1e-5)


def test_what_was_exported_keeps_the_names_of_its_parameters(tmp_path: Path):
    """Those of arguments without a use are not in the program."""

    def model(params, unused, x):
        return x @ params["w"]["kernel"]

    made = jax.export.export(jax.jit(model), platforms=["ipu"])({"w": {"kernel": X.T}}, X, X)
    program = ipu.precompile(jax.export.deserialize(bytearray(made.serialize())))
    assert program.parameters == ("params", "args[1]", "x")
    names = [leaf.name for leaf in program.arguments]
    assert names == ["params['w']['kernel']", "args[1]", "x"]
    program.save(tmp_path / "a", weights={"params": {"w": {"kernel": X.T}}})
    found = ipu.runtime.Session(tmp_path / "a").run(X, X)
    np.testing.assert_allclose(found, X @ X.T, rtol=1e-5)


def test_exported_keywords_are_refused():
    made = jax.export.export(jax.jit(lambda x, *, y: x + y), platforms=["ipu"])(X, y=X)
    with pytest.raises(ipu.ConfigError, match="got the keywords y"):
        ipu.precompile(made)


def test_targets_and_options_are_kept(tmp_path: Path):
    program = ipu.precompile(
        jnp.tanh,
        X,
        target={"machine": "bow", "num_tiles": 100},
        options={"ipu_outline": "auto"},
    )
    assert program.target == {"machine": "bow", "ipus_per_device": "1", "num_tiles": "100"}
    program.save(tmp_path / "a")
    about = ipu.runtime.Session(tmp_path / "a").description
    assert about.options == {"ipu_outline": "auto"}
    assert about.versions["jax"] == jax.__version__
    assert set(about.versions) == {"ipujax", "jax", "jaxlib", "backend"}
    with pytest.raises(
        ipu.ExecutableError, match=r"for machine=gc200; got jit_tanh, which is for machine=bow"
    ):
        ipu.load(tmp_path / "a")


class Point(NamedTuple):
    x: np.ndarray


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: ipu.precompile(3, X), ipu.ConfigError, "needs a function; got int"),
        (lambda: ipu.precompile(jnp.sin, X, target="mk1"), ipu.ConfigError, "a machine from gc200"),
        (lambda: ipu.precompile(jnp.sin, X, target={"ipus": 2}), ipu.ConfigError, "got 'ipus'"),
        (
            lambda: ipu.precompile(jnp.sin, X, target={"ipus_per_device": 0}),
            ipu.ConfigError,
            "ipus_per_device of 1 or more",
        ),
        (lambda: ipu.precompile(jnp.sin, X, options={"x": 1}), ipu.ConfigError, "names of options"),
        (
            lambda: ipu.precompile(jax.jit(jnp.sin), X, donate_argnums=0),
            ipu.ConfigError,
            "Pass them to jax.jit",
        ),
        (
            lambda: ipu.precompile(lambda p: p.x, Point(X)),
            ipu.ExecutableError,
            "got a Point in p",
        ),
        (
            lambda: ipu.precompile(lambda x: {"a": OrderedDict(b=x)}, X),
            ipu.ExecutableError,
            r"got a OrderedDict in result\['a'\]",
        ),
        (
            lambda: ipu.precompile(lambda x: x, {(1, 2): X}),
            ipu.ExecutableError,
            "keys are all texts or all integers",
        ),
        (
            lambda: ipu.precompile(lambda k: jax.random.normal(k), jax.random.key(0)),
            ipu.ExecutableError,
            r"Pass jax\.random\.key_data",
        ),
        (
            lambda: ipu.precompile(lambda x: jax.pure_callback(np.sin, x, x), X),
            ipu.ExecutableError,
            "calls functions of this Python process",
        ),
    ],
)
def test_what_is_refused(call, kind: type[Exception], text: str):
    with pytest.raises(kind, match=text):
        call()


def test_what_load_refuses(tmp_path: Path):
    program = ipu.precompile(jnp.sin, X)
    program.save(tmp_path / "a")
    with pytest.raises(ipu.ConfigError, match=r"compiler option 'ipu_outline'\. Pass options="):
        ipu.load(tmp_path / "a", ipu_outline="auto")
    with pytest.raises(ipu.ConfigError, match="unknown option 'speed'"):
        ipu.load(tmp_path / "a", speed=2)
    with pytest.raises(ipu.PlacementError, match="needs an IPU"):
        ipu.load(tmp_path / "a", device=jax.devices("cpu")[0])
    with pytest.raises(ipu.ConfigError, match="outside of jax"):
        jax.jit(ipu.load(tmp_path / "a"))(X)
    with pytest.raises(ipu.ConfigError, match="weights of the parameters x; got 'y'"):
        program.save(tmp_path / "a", weights={"y": X})
    with pytest.raises(ipu.IpuError, match=r"\[save\] needs a file that can be written"):
        program.save(tmp_path / "none" / "a")
    np.testing.assert_allclose(ipu.load(tmp_path / "a")(X), np.sin(X), rtol=1e-5)


def test_a_full_disk_leaves_the_older_file(tmp_path: Path, run_python: RunPython):
    """The size that files may have ends a write as a full disk does."""
    program = ipu.precompile(lambda w, x: w + x, X, X)
    program.save(tmp_path / "a", weights={"w": X})
    code = f"""
import resource, signal, numpy as np, jax, ipujax as ipu
x = jax.ShapeDtypeStruct((100000,), np.float32)
program = ipu.precompile(lambda w, x: w + x, x, x)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
try:
    program.save({str(tmp_path / "a")!r}, weights={{"w": np.zeros(100000, np.float32)}})
except ipu.IpuError as error:
    print(error)
"""
    ran = run_python("-c", code)
    assert "[save] needs a file that can be written; got File too large" in ran.stdout, ran.stderr
    assert os.listdir(tmp_path) == ["a"]
    np.testing.assert_array_equal(ipu.load(tmp_path / "a")(X), 2 * X)


def test_a_transformer_is_loaded_at_once(tmp_path: Path):
    sizes = nanogpt.Sizes(layers=2, width=96, context=64)
    params = nanogpt.parameters(sizes, jax.random.key(0))
    tokens = np.arange(65, dtype=np.int32)[None]
    loss = nanogpt.loss_of(sizes)
    ipu.precompile(loss, params, tokens).save(tmp_path / "a", weights={"p": params})

    def seconds(load) -> float:
        begin = time.process_time()
        load(tmp_path / "a")
        return time.process_time() - begin

    for load in (ipu.runtime.Session, ipu.load):
        assert min(seconds(load) for _ in range(5)) < 0.02
    found = ipu.runtime.Session(tmp_path / "a").run(tokens)
    np.testing.assert_allclose(found, jax.jit(loss)(params, tokens), rtol=1e-5)
