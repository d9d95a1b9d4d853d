"""Precision options for the operations traced in a `with` block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ipujax.config.options import (
    PER_CALL_PREFIX,
    SPECS,
    CompileConfig,
    Value,
    with_compiler_options,
)
from ipujax.config.product_options import as_text
from ipujax.errors import ConfigError

#: The compiler options that may differ between operations.
SCOPED = frozenset(name for name, spec in SPECS.items() if spec.metadata["scoped"])


@contextmanager
def precision(**options: Value | Mapping[str, Any]) -> Iterator[None]:
    """Sets precision options for the operations traced inside, and for their derivatives.

    The options are JAX metadata of each operation and pass through `jit`, `grad` and `vmap`. An
    inner block overrides an outer one; both override `compiler_options` and the environment.

    Args:
        partials_type: "float" or "half": type in which float16 products and convolutions are
            accumulated.
        available_memory_proportion: 0 to 1: share of a tile's memory that a product or convolution
            may use for temporaries.
        matmul_options, convolution_options: more options of PopLibs, a dict or JSON, such as
            {"planConstraints": {"method": "AMP"}}; see docs/guides/products.md.
        stochastic_rounding: round elementwise float16 results and products at random, so that the
            mean is exact. Reductions such as `jnp.sum` round to nearest.
        half_overflow: "infinity", "saturate" or "nan": what float16 results beyond 65504 become.
        floating_point_exceptions: "inv", "div0", "oflo", or several, comma-separated: end the
            program with an error that names the source line.
        fast_math: allow rewrites that hold for real numbers but not for every float.
    Raises:
        ConfigError: an unknown name, or a value that the option does not allow.

    Example:
        >>> @jax.jit
        ... def update(weights, gradients):
        ...     with ipu.precision(stochastic_rounding=True):
        ...         return weights - jnp.float16(1e-4) * gradients
        >>> weights = update(jnp.ones(10_000, jnp.float16), jnp.ones(10_000, jnp.float16))
        >>> bool(weights.min() < weights.max() == 1)  # to nearest, all would have stayed 1
        True
    """
    with scope_of("ipu.precision", options):
        yield


@contextmanager
def scope_of(where: str, options: Mapping[str, Any]) -> Iterator[None]:
    """Sets options of individual operations; `where` is the function that users called."""
    # Imported here, because JAX imports this package while it looks for plugins.
    from jax.experimental.xla_metadata import set_xla_metadata

    with set_xla_metadata(**check_scoped(where, options)):
        yield


def check_scoped(where: str, options: Mapping[str, Any]) -> dict[str, str]:
    """The metadata that sets options for individual operations.

    Raises:
        ConfigError: an unknown name, or a value that the option does not allow.
    """
    unknown = [name for name in options if name not in SCOPED]
    if unknown:
        raise ConfigError(
            f"[{where}] needs options from {', '.join(sorted(SCOPED))}; got "
            f"{', '.join(unknown)}. Set others with jax.jit(..., compiler_options=...)."
        )
    named = {
        PER_CALL_PREFIX + name: as_text(value) if isinstance(value, Mapping) else value
        for name, value in options.items()
    }
    with_compiler_options(CompileConfig(), named)  # refuses bad values at the call
    return {name: str(value) for name, value in named.items()}
