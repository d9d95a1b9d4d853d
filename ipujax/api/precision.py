"""Precision options of the operations that are traced within a `with` block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ipujax.config import PER_CALL_PREFIX, CompileConfig, Value, with_compiler_options
from ipujax.errors import ConfigError

#: The compiler options that may differ from operation to operation.
SCOPED = frozenset(
    {
        "available_memory_proportion",
        "fast_math",
        "floating_point_exceptions",
        "half_overflow",
        "partials_type",
        "stochastic_rounding",
    }
)


@contextmanager
def precision(**options: Value) -> Iterator[None]:
    """Sets precision options for operations traced inside, and for their derivatives.

    They travel with each operation as metadata of JAX, through `jit`, `grad` and `vmap`. An inner
    block overrides an outer one; both override `compiler_options` and the environment.

    Args:
        partials_type: "float" or "half": in what float16 products and convolutions sum.
        available_memory_proportion: 0 to 1: part of a tile's memory that they may use meanwhile.
        stochastic_rounding: round elementwise float16 results and products at random, so that the
            mean is exact. Sums (`jnp.sum` and its kin) round to nearest.
        half_overflow: "infinity", "saturate" or "nan": what these become beyond 65504.
        floating_point_exceptions: of "inv", "div0", "oflo", comma-separated: operations that end
            the program with an error that names the source line.
        fast_math: allow rewrites that hold for real numbers but not for every float.
    Raises:
        ConfigError: an unknown name, or a value that the option does not allow.

    Example:
        with ipu.precision(stochastic_rounding=True):
            weights = weights - rate * gradients  # float16
    """
    # Here, since JAX imports this package while it looks for plugins.
    from jax.experimental.xla_metadata import set_xla_metadata

    named = {PER_CALL_PREFIX + name: value for name, value in options.items()}
    unknown = [name for name in options if name not in SCOPED]
    if unknown:
        raise ConfigError(
            f"[ipu.precision] needs options out of {', '.join(sorted(SCOPED))}; got "
            f"{', '.join(unknown)}. Set others with jax.jit(..., compiler_options=...)."
        )
    with_compiler_options(CompileConfig(), named)  # refuses bad values where they are written
    with set_xla_metadata(**{name: str(value) for name, value in named.items()}):
        yield
