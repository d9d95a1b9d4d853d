"""Lowering rules for primitives that JAX lowers for other platforms only."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import mlir

from ipujax.errors import UnsupportedOpError
from ipujax.jax_compat.platform import PLATFORM

_LINALG = """
eig eigh geqp3 geqrf hessenberg householder_product lu ormqr schur svd tridiagonal tridiagonal_solve
"""


def lower_linalg_as_on_cpu() -> None:
    """Lowers linear algebra to custom calls named after LAPACK routines, as for the CPU.

    Most of these primitives have no other lowering; the rest would become loops, slower than one
    step. Checks and conventions (symmetry, NaN where a factorisation fails) are then JAX's own.
    """
    from jax._src.export import _export
    from jax._src.interpreters import mlir as private_mlir
    from jax._src.lax import linalg

    on_cpu = private_mlir._platform_specific_lowerings["cpu"]
    for name in _LINALG.split():
        primitive = getattr(linalg, f"{name}_p")
        mlir.register_lowering(primitive, on_cpu[primitive].rule, platform=PLATFORM)
    mlir.register_lowering(
        linalg.lu_pivots_to_permutation_p,
        partial(linalg._lu_pivots_to_permutation_gpu_lowering, target_name_prefix=PLATFORM),
        platform=PLATFORM,
    )
    mlir.register_lowering(linalg.triangular_solve_p, _triangular_solve, platform=PLATFORM)
    # Exported programs may hold this target, as they may LAPACK's, which are in the list.
    _export._CUSTOM_CALL_TARGETS_GUARANTEED_STABLE.add("ipu_lu_pivots_to_permutation")


def _triangular_solve(ctx: Any, a: Any, b: Any, **flags: Any) -> Any:
    """Makes flags bools: unlike JAX's rule for the CPU, the one for all platforms needs them."""
    from jax._src.lax import linalg

    given = {name: bool(flag) for name, flag in flags.items()}
    return linalg._triangular_solve_lowering(ctx, a, b, **given)


def lower_named_platforms_only() -> None:
    """Lowers, or refuses with a reason, primitives that JAX lowers for GPUs or TPUs only."""
    from jax._src.cudnn import scaled_matmul_stablehlo as scaled
    from jax._src.lax import parallel

    mlir.register_lowering(parallel.pbroadcast_p, parallel._pbroadcast_lowering, platform=PLATFORM)
    mlir.register_lowering(
        parallel.pbroadcast_start_p,
        parallel._start_lowering(parallel._pbroadcast_lowering),
        platform=PLATFORM,
    )
    # The product of the operands, each multiplied by its scales first.
    mlir.register_lowering(
        scaled._scaled_matmul_p, scaled._scaled_matmul_rocm_lowering, platform=PLATFORM
    )
    mlir.register_lowering(
        parallel.ragged_all_to_all_p,
        mlir.lower_fun(_ragged_all_to_all, multiple_results=False),
        platform=PLATFORM,
    )
    for name, primitive in _cudnn_primitives().items():
        mlir.register_lowering(primitive, partial(_refuse_primitive, name), platform=PLATFORM)


def _ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: Any,
    axis_index_groups: Any,
) -> Any:
    """Gathers all operands; each row of `output` takes the sent row that belongs there, if any."""
    del recv_sizes  # the senders' sizes are the same numbers
    if 0 in (operand.size, output.size):  # StableHLO gathers no empty dimension
        return output
    group = {"axis_name": axis_name, "axis_index_groups": axis_index_groups}
    sent = lax.all_gather(operand, tiled=True, **group)

    def received(numbers: Any) -> Any:
        exchanged = lax.all_to_all(numbers, split_axis=0, concat_axis=0, tiled=True, **group)
        return exchanged.astype(np.int32)

    starts, sizes, places = map(received, (input_offsets, send_sizes, output_offsets))
    senders = len(sent) // len(operand)
    first = np.arange(senders, dtype=np.int32).repeat(len(starts) // senders) * len(operand)
    rows = lax.iota(np.int32, len(output))[:, None]
    hits = (rows >= places) & (rows < places + sizes)
    source = jnp.max(jnp.where(hits, rows - places + starts + first, -1), axis=1)
    found = (source >= 0).reshape(-1, *[1] * (output.ndim - 1))
    return jnp.where(found, sent[jnp.maximum(source, 0)], output)


def lower_checks() -> None:
    """Lowers `checkify.check` outside `checkify.checkify` as for the CPU: JAX's error is clear.

    Checks for debugging are left out there, as they are on all platforms.
    """
    from jax._src import checkify

    mlir.register_lowering(checkify.check_p, checkify.check_lowering_rule, platform=PLATFORM)


def keep_erfc() -> None:
    """Lowers erfc to a composite: JAX's artifacts keep erf, but hold 40 operations for erfc."""
    from jax._src.interpreters import mlir as private_mlir
    from jax._src.lax import lax, special

    rule = private_mlir._lowerings[special.erfc_p].rule
    written_out = Primitive("erfc_written_out")
    written_out.def_abstract_eval(lambda x: x)
    mlir.register_lowering(written_out, rule)
    composite = mlir.lower_fun(lax.composite(written_out.bind, "chlo.erfc"), multiple_results=False)

    def lower(ctx: Any, x: Any) -> Any:
        # For several platforms at once JAX's composites lack the argument for the platform.
        return (composite if len(ctx.module_context.platforms) == 1 else rule)(ctx, x)

    mlir.register_lowering(special.erfc_p, lower, platform=PLATFORM)


def lower_narrow_special_functions() -> None:
    """Lowers erf and similar functions of 8- and 4-bit floats in float32: artifacts lack these."""
    from jax._src.interpreters import mlir as private_mlir
    from jax._src.lax import special

    own, others = private_mlir._platform_specific_lowerings[PLATFORM], private_mlir._lowerings
    for primitive in (special.bessel_i1e_p, special.erf_p, special.erfc_p):
        usual = (own.get(primitive) or others[primitive]).rule
        lower = partial(_widen_narrow, primitive, usual)
        mlir.register_lowering(primitive, lower, platform=PLATFORM)


def _widen_narrow(primitive: Primitive, usual: Any, ctx: Any, x: Any, **parameters: Any) -> Any:
    dtype = ctx.avals_in[0].dtype
    if dtype.itemsize > 1:
        return usual(ctx, x, **parameters)

    def wide(x: Any) -> Any:
        return primitive.bind(x.astype("float32"), **parameters).astype(dtype)

    return mlir.lower_fun(wide, multiple_results=False)(ctx, x)


def _cudnn_primitives() -> dict[str, Any]:
    from jax._src.cudnn import fused_attention_stablehlo as attention

    names = [f"dot_product_attention_{kind}" for kind in ("fwd", "bwd", "fp8_fwd", "fp8_bwd")]
    return {name: getattr(attention, f"_{name}_p") for name in names}


def _refuse_primitive(name: str, ctx: Any, *operands: Any, **parameters: Any) -> Any:
    raise UnsupportedOpError([(name, "it calls NVIDIA's cuDNN; pass implementation='xla'", "")])


def lower_reduce_scatter(
    combine: Callable[[Any, Any], Any],
    ctx: Any,
    x: Any,
    axis_name: tuple[Any, ...],
    axis_index_groups: Any,
    size: int,
    dim: int,
) -> Any:
    """stablehlo.reduce_scatter with `combine` as its body; JAX's primitive only adds."""
    from jax._src.lax import parallel

    return parallel._reduce_scatter_lowering(
        SimpleNamespace(bind=combine),
        ctx,
        x,
        scatter_dimension=dim,
        axis_name=axis_name,
        axis_index_groups=axis_index_groups,
        axis_size=size,
        tiled=True,
    )


def lower_broadcast(ctx: Any, x: Any, *, axis_name: tuple[Any, ...]) -> Any:
    """stablehlo.collective_broadcast of the first replica's array."""
    from jax._src.lax import parallel

    return parallel._pbroadcast_lowering(ctx, x, axis_name=axis_name, source=0)
