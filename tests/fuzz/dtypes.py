"""Calls of every function with every dtype and with empty dimensions, on IPUs and on the CPU.

The functions are those of JAX's namespaces, of `ipu.nn`, `ipu.ops` and `ipu.tile`. A call has the
CPU's result, or it is refused by an error that names a dtype and a line of the caller.
"""

from __future__ import annotations

import functools
import random
import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

import ipujax as ipu
from ipujax.compiler import bugs
from ipujax.errors import IpuError
from ipujax.types import BY_NAME, BY_STABLEHLO, ELEMENT_TYPES
from tests.fuzz.functions import calls
from tests.fuzz.library.case import Draw
from tests.fuzz.library.generators import GENERATORS

#: What no error may say: it is a bug, whatever the program is.
BUG = re.compile(rf"{bugs.TEXT}|\bINTERNAL\b|Traceback")
#: Results differ by so many units in the last place of the narrowest dtype, of the largest element.
ULPS = 8.0
#: An error of so many times that of the CPU, against float64, is rounding as well.
LENIENT = 4.0
TILES = (0, 1, 2)

Function = Callable[..., Any]


class Call(NamedTuple):
    """A function of arrays, and how it is run."""

    text: str
    function: Function
    arrays: tuple[np.ndarray, ...]
    x64: bool


class DtypeDraw(Draw):
    """Draws operands of one dtype for the generators of the library; perhaps empty ones."""

    def __init__(self, seed: str, dtype: np.dtype, empty: bool):
        super().__init__(seed)
        self._dtype, self._empty = dtype, empty

    def dtype(self, *names: str) -> Any:
        return self._dtype

    def shape(self, least: int, most: int, limit: int = 600, empty: float = 0.0) -> tuple:
        return super().shape(least, most, min(limit, 60), float(self._empty))


# Calls -------------------------------------------------------------------------------------------


def _placed(x: Any) -> Any:
    return ipu.tile.put_sharded(x, TILES).array


def _gathered(x: Any) -> Any:
    return ipu.tile.gather(ipu.tile.put_sharded(x, TILES), [2, 0, 0], [4, 5, 6]).array


def _replicated(x: Any) -> Any:
    return ipu.tile.put_replicated(x, TILES).array


def _convolved(x: Any, w: Any) -> Any:
    return ipu.ops.multi_conv([ipu.ops.Conv(x, w, padding="SAME"), ipu.ops.Conv(x * 1, w)])


def _copied(x: Any) -> Any:
    vertex = ipu.tile.create_vertex(
        "Copied<{x}>",
        source=_COPIED,
        inputs=["x"],
        outputs={"y": "x"},
        reference=lambda x: x * 1,
    )
    return ipu.tile.map(vertex, ipu.tile.put_sharded(x, TILES)).array


_COPIED = """
#include <poplar/Vertex.hpp>
template <class T> class Copied : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<T>> x;
  poplar::Output<poplar::Vector<T>> y;
  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i) y[i] = x[i];
    return true;
  }
};
template class Copied<float>;
template class Copied<half>;
template class Copied<int>;
template class Copied<unsigned>;
template class Copied<short>;
template class Copied<unsigned short>;
template class Copied<signed char>;
template class Copied<unsigned char>;
template class Copied<bool>;
"""


def _adjoint(x: Any) -> Any:
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def _eigh(x: Any) -> Any:
    v, w = lax.linalg.eigh(x + _adjoint(x))
    return w, (v * w.astype(v.dtype)) @ _adjoint(v)


def _svd(x: Any) -> Any:
    u, s, v = lax.linalg.svd(x, full_matrices=False, algorithm=lax.linalg.SvdAlgorithm.QR)
    return s, (u * s.astype(u.dtype)) @ v


def _qr_with_pivots(x: Any) -> Any:
    q, r, pivots = lax.linalg.qr(x, full_matrices=False, pivoting=True)
    return (q @ r)[:, jnp.argsort(pivots)]


def _schur(x: Any) -> Any:
    form, vectors = lax.linalg.schur(x)
    return vectors @ form @ _adjoint(vectors)


def _hessenberg(x: Any) -> Any:
    form, vectors = jax.scipy.linalg.hessenberg(x, calc_q=True)
    return vectors @ form @ _adjoint(vectors)


def _tridiagonal(x: Any) -> Any:
    return lax.linalg.tridiagonal(x + _adjoint(x))[1].sum()


def _tridiagonal_solve(x: Any, perturb: bool = False) -> Any:
    diagonals = jnp.ones_like(x[0]), x[1] + 6, jnp.ones_like(x[2])
    return lax.linalg.tridiagonal_solve(*diagonals, x, perturb_singular=perturb)


def _lu(x: Any) -> Any:
    factors, _, order = lax.linalg.lu(x)
    lower, upper = jnp.tril(factors, -1) + jnp.eye(len(x), dtype=x.dtype), jnp.triu(factors)
    return (lower @ upper)[jnp.argsort(order)]


#: Of linear algebra: results that do not depend on the signs of vectors.
FACTORISATIONS = {
    "eigvals": lambda x: jnp.linalg.eigvals(x).sum(),
    "lu": _lu,
    "qr_multiply": lambda x: jnp.abs(jax.scipy.linalg.qr_multiply(x, x + 1)[0]),
    "svdvals": jnp.linalg.svdvals,
    "eigh": _eigh,
    "svd": _svd,
    "qr": _qr_with_pivots,
    "schur": _schur,
    "hessenberg": _hessenberg,
    "tridiagonal": _tridiagonal,
    "tridiagonal_solve": _tridiagonal_solve,
    "tridiagonal_solve_perturbed": lambda x: _tridiagonal_solve(x, True),
}

#: Of ipujax, beside the generators: the function, and the shapes of its operands.
OURS: dict[str, tuple[Function, tuple[tuple[int, ...], ...]]] = {
    "tile.put_sharded": (_placed, ((3, 4),)),
    "tile.put_replicated": (_replicated, ((3, 4),)),
    "tile.gather": (_gathered, ((3, 4),)),
    "tile.map": (_copied, ((3, 4),)),
    "cycle_count": (lambda x: ipu.cycle_count(x)[0], ((3, 4),)),
    "ops.multi_conv": (_convolved, ((2, 4, 3, 5), (6, 4, 2, 3))),
    "ops.sequence_slice": (
        lambda x, y: ipu.ops.sequence_slice(x, y, [2, 1], [1, 3], [0, 3], False),
        ((5, 3), (4, 3)),
    ),
    "ops.sequence_slice_pack": (
        lambda x, y: ipu.ops.sequence_slice_pack(x, y, [2, 1], [0, 3], True),
        ((5, 3), (4, 3)),
    ),
    "ops.sequence_slice_unpack": (
        lambda x: ipu.ops.sequence_slice_unpack(x, [2, 1], [1, 3], 4),
        ((4, 3),),
    ),
    "ops.sort": (lambda x: ipu.ops.sort(x), ((3, 5),)),
    "ops.sort_key_value": (lambda x, y: ipu.ops.sort_key_value(x, y), ((3, 5), (3, 5))),
    "ops.top_k": (lambda x: ipu.ops.top_k(x, min(2, x.shape[1])), ((3, 5),)),
    "ops.print_tensor": (lambda x: ipu.ops.print_tensor(x), ((2, 3),)),
    "ops.nop": (lambda x: ipu.ops.nop(x), ((2, 3),)),
    "ops.normalise_image": (
        lambda x: ipu.ops.normalise_image(x, [1.0, 0, 2], [1, 2.0, 3]),
        ((2, 4, 3),),
    ),
    **{f"linalg.{name}": (f, ((4, 4),)) for name, f in FACTORISATIONS.items()},
}


@functools.cache
def names() -> list[str]:
    """Of all functions; those that draw random numbers differ between platforms."""
    library = [f"library {name}" for name in GENERATORS if not is_random(name)]
    ours = [f"ours {name}" for name in OURS] * 4
    return sorted([*library * 2, *ours, *calls.functions()])


def is_random(name: str) -> bool:
    return any(word in name for word in ("dropout", "random", "sampler", "sampled", "truncated"))


def from_seed(seed: int) -> Call | None:
    """Functions take turns; None where none of the arguments that were drawn fits."""
    name = names()[seed % len(names())]
    rng = random.Random(f"dtypes {name} {seed}")
    each = rng.choice(ELEMENT_TYPES)
    empty, x64 = rng.random() < 0.35, needs_x64(each.numpy)
    with jax.enable_x64(x64), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name.startswith("library "):
            return _of_library(name, each.numpy, empty, x64, rng)
        if name.startswith("ours "):
            return of_ours(name.removeprefix("ours "), each.numpy, empty, rng)
        return _of_jax(name, each.numpy, empty, x64, rng)


def of_ours(name: str, dtype: np.dtype, empty: bool, rng: random.Random) -> Call:
    """A call of the table; one of the sizes of its dimensions may be 0 instead."""
    function, shapes = OURS[name]
    size = rng.choice([n for shape in shapes for n in shape]) if empty else None
    shapes = tuple(tuple(0 if n == size else n for n in shape) for shape in shapes)
    arrays = tuple(_array(rng, shape, dtype) for shape in shapes)
    return Call(_text(name, arrays), function, arrays, needs_x64(dtype))


def needs_x64(dtype: np.dtype) -> bool:
    return dtype.itemsize > 4 and dtype != np.complex64


def _of_library(name: str, dtype: Any, empty: bool, x64: bool, rng: random.Random) -> Call | None:
    draw = DtypeDraw(str(rng.random()), dtype, empty)
    try:
        case = GENERATORS[name.removeprefix("library ")](draw)
        arrays = tuple(np.asarray(x) for x in case.draw(draw.numbers()))
    except (ValueError, TypeError, IndexError, KeyError):  # the generator wants floats
        return None
    return Call(_text(f"{name} {case.text}", arrays), case.function, arrays, x64)


def _of_jax(name: str, dtype: Any, empty: bool, x64: bool, rng: random.Random) -> Call | None:
    size = rng.choice((2, 3, 4, 6)) if empty else None
    for form in rng.sample(calls.FORMS, len(calls.FORMS)):
        made = calls.call(name, form, calls.normal, rng.getrandbits(32))
        arrays = tuple(
            _array(rng, tuple(0 if n == size else n for n in x.shape), _like(x, dtype))
            for x in made.arrays
        )
        try:
            results = jax.tree.leaves(jax.eval_shape(made.function, *arrays))
        except Exception:  # whatever the function raises for arguments that it does not take
            continue
        if results and arrays and all(_is_number(x) for x in results):
            return Call(_text(f"{name} {form}", arrays), made.function, arrays, x64)
    return None


def _like(x: np.ndarray, dtype: np.dtype) -> np.dtype:
    return dtype if x.dtype.kind == "f" else x.dtype


def _is_number(x: Any) -> bool:
    dtype = getattr(x, "dtype", np.dtype(object))
    return str(dtype) in BY_NAME


def _array(rng: random.Random, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    numbers = np.random.default_rng(rng.getrandbits(32))
    if dtype.kind == "b":
        return numbers.integers(0, 2, shape).astype(bool)
    if _is_integer(dtype):
        info = ml_dtypes.iinfo(dtype)
        return numbers.integers(max(info.min, -4), min(info.max, 9) + 1, shape).astype(dtype)
    drawn = numbers.uniform(-2, 2, shape)
    if dtype == ml_dtypes.float8_e8m0fnu:
        drawn = np.exp2(np.round(drawn))
    if dtype.kind == "c":
        drawn = drawn + 1j * numbers.uniform(-2, 2, shape)
    return np.asarray(drawn).astype(dtype)


def _text(name: str, arrays: tuple[np.ndarray, ...]) -> str:
    return f"{name}({', '.join(f'{x.dtype}{list(x.shape)}' for x in arrays)})"


# Verdicts ----------------------------------------------------------------------------------------


def compared(seed: int, cpu: bool = True) -> dict[str, Any]:
    """The outcome of a seed, as `chunks` wants it.

    Args:
        cpu: whether JAX's CPU backend is asked, which some of these calls end.
    """
    made = from_seed(seed)
    if made is None:
        return {"differences": [], "refused": {}}
    return outcome(made, random.Random(seed).random() < 0.3, cpu)


def outcome(made: Call, derive: bool, cpu: bool = True) -> dict[str, Any]:
    """Of a call, or of its gradient."""
    with jax.enable_x64(made.x64), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _outcome(made, derive, cpu)


def _outcome(made: Call, derive: bool, cpu: bool) -> dict[str, Any]:
    function = gradient(made) if derive else made.function
    text = f"{made.text}{' by gradient' if derive else ''}"
    theirs = on("cpu", function, made) if cpu else NotImplementedError("it was not asked")
    ours = on("ipu", function, made)
    if isinstance(ours, Exception):
        why = refusal(str(ours))
        by_jax = type(ours) is type(theirs) and made.text.startswith(("jax.", "linalg."))
        if by_jax or isinstance(ours, IpuError):  # raised where the function is called
            why = why if BUG.search(str(ours)) else ""
        if why:
            return {"differences": [f"{text}: {why}: {str(ours)[:500]}"], "refused": {}}
        return {"differences": [], "refused": {"ipu": f"{text}: {ours}"}}
    if isinstance(theirs, Exception):
        return {"differences": [], "refused": {"cpu": f"{text}: {theirs}"}}
    if _is_scale(made) or _lacks_infinity(made, theirs):
        return {"differences": [], "refused": {}}
    found = [t for a, b in zip(ours, theirs, strict=True) if (t := unequal(a, b, made.arrays))]
    if found:
        found = _judged(made, function, ours, theirs)
    return {"differences": [f"{text}: {each}" for each in found], "refused": {}}


def _is_scale(made: Call) -> bool:
    """Whether JAX computes in powers of two: without zero or sign, most of its formulas are NaN."""
    has_scales = any(x.dtype == ml_dtypes.float8_e8m0fnu for x in made.arrays)
    return has_scales and made.text.startswith("jax.")


def _lacks_infinity(made: Call, theirs: list[np.ndarray]) -> bool:
    """Whether NaN is the only infinity: JAX's formulas begin with it, and it spreads as it may."""
    no_infinity = any(_is_inexact(x) and np.isnan(x.dtype.type(np.inf)) for x in made.arrays)
    has_nan = any(_is_inexact(x) and np.isnan(x).any() for x in theirs)
    return no_infinity and has_nan and made.text.startswith("jax.")


def refusal(text: str) -> str:
    """Empty where the error says what the caller can do; else what is wrong with it."""
    if BUG.search(text):
        return "a bug"
    dtypes = [*BY_NAME, *BY_STABLEHLO, "dtype"]
    if not any(re.search(rf"(?<![\w<]){re.escape(name)}(?!\w)", text) for name in dtypes):
        return "a refusal without a dtype"
    return "" if ".py:" in text or text.startswith("[") else "a refusal without a line"


def on(platform: str, function: Function, made: Call) -> list[np.ndarray] | Exception:
    """The results, or what was raised."""
    options = {"ipu_x64": "emulate"} if made.x64 and platform == "ipu" else None
    with jax.default_device(jax.devices(platform)[0]):
        try:
            results = jax.jit(function, compiler_options=options)(*made.arrays)
            return [np.asarray(x) for x in jax.tree.leaves(results)]
        except Exception as error:
            return error


def gradient(made: Call) -> Function:
    """Of a weighted sum of the results, and the results."""
    floats = tuple(k for k, x in enumerate(made.arrays) if jnp.issubdtype(x.dtype, jnp.inexact))

    def total(*xs: Any) -> Any:
        results = [x for x in jax.tree.leaves(made.function(*xs)) if _is_inexact(x)]
        parts = [(jnp.real(x), jnp.imag(x)) if jnp.iscomplexobj(x) else (x,) for x in results]
        flat = [part.astype(jnp.float32).ravel() for each in parts for part in each]
        return sum((x * jnp.cos(jnp.arange(x.size, dtype=x.dtype))).sum() for x in flat) + 0.0

    if not floats:
        return made.function
    return jax.grad(total, floats)


def _is_inexact(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.inexact))


def _mulhi(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """The upper half of products, which depends on the type."""
    product = x.astype(object) * y.astype(object)
    return [(product >> int(ml_dtypes.iinfo(x.dtype).bits)).astype(x.dtype)]


#: What no wider type tells.
_EXACT = {"jax.lax.mulhi": _mulhi}


def _judged(made: Call, function: Function, ours: Any, theirs: Any) -> list[str]:
    """Against a wider type, and leniently where the CPU is wrong too."""
    wide = tuple(x.astype(_wider(x.dtype)) for x in made.arrays)
    exact = _EXACT.get(re.split(r"[ (]", made.text)[0])
    with jax.enable_x64(True):
        wider = made._replace(arrays=wide, x64=True)
        truth = exact(*made.arrays) if exact else on("cpu", function, wider)
    if isinstance(truth, Exception) or [x.shape for x in truth] != [x.shape for x in ours]:
        truth = theirs
    found = []
    for a, b, t in zip(ours, theirs, truth, strict=True):
        with np.errstate(all="ignore"):
            t = t.astype(_kind(a.dtype))
            off = np.abs(b.astype(t.dtype) - t)
        off = float(np.nan_to_num(off[np.isfinite(off)]).max(initial=0.0))
        near = unequal(a, t.astype(a.dtype), made.arrays, LENIENT * off)
        texts = unequal(a, b, made.arrays), near
        if all(texts):
            found.append(f"{texts[0]}; in a wider type {texts[1]}")
    return found


def _wider(dtype: np.dtype) -> np.dtype:
    if dtype.kind == "b":
        return dtype
    return np.dtype(np.int64) if _is_integer(dtype) else _kind(dtype)


def _is_integer(dtype: np.dtype) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.integer))


def _kind(dtype: np.dtype) -> np.dtype:
    if dtype.kind == "b" or _is_integer(dtype):
        return np.dtype(np.int64)
    return np.dtype(np.complex128 if dtype.kind == "c" else np.float64)


def unequal(ours: Any, theirs: Any, arrays: Any, allowed: float = 0.0) -> str:
    """Empty where shapes and integers agree, and floats are as near as their dtypes allow."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype}{list(ours.shape)} instead of {theirs.dtype}{list(theirs.shape)}"
    kind = _kind(ours.dtype)
    with np.errstate(all="ignore"):
        a, b = ours.astype(kind), theirs.astype(kind)
    if kind == np.int64:
        same = a == b
    else:
        finite = np.abs(b[np.isfinite(b)])
        scale = max(1.0, float(finite.max(initial=0.0)))
        narrow = max(_epsilon(x.dtype) for x in (*arrays, ours) if _is_inexact(x))
        allowed = max(allowed, ULPS * narrow * scale)
        with np.errstate(all="ignore"):
            same = (a == b) | (np.abs(a - b) <= allowed) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"{(~same).sum()} of {same.size} differ, at {list(at)}: {ours[at]} instead of {b[at]}"


def _epsilon(dtype: np.dtype) -> float:
    # Formulas of complex numbers and iterations lose digits, on both sides.
    return max(float(ml_dtypes.finfo(dtype).eps), 2.0**-21 if dtype.itemsize < 8 else 2.0**-40)
