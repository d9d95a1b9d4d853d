"""Sets options: `configure`, `get_config`, `reset_config`, and `options` for a scope."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax
import jax.extend

from ipujax import jax_compat
from ipujax.api.precision.scopes import scope_of
from ipujax.config import options as tree
from ipujax.config.option import parse
from ipujax.config.options import IPUConfig, ProcessConfig, Value
from ipujax.errors import ConfigError
from ipujax.host import attached
from ipujax.host.logs import logger_of, set_log_level

logger = logger_of("config")


def configure(config: IPUConfig | None = None, *, reset: bool = False, **values: Any) -> IPUConfig:
    """Sets options for this process, overriding files and environment variables.

    Programs that were compiled with other options are compiled again when they are next called.
    Options of the machine are read when JAX makes its devices, so set them before that, or with
    `reset`.

    Args:
        config: a tree; its options that differ from the defaults are set.
        reset: forget what earlier calls set, wait for all programs and release the devices, as
            `reset_config` does.
        values: options by name, such as `x64="demote"`; with sections,
            `**{"floating_point.x64": "demote"}`. These override `config`.
    Returns:
        the options in force.
    Raises:
        ConfigError: an unknown name, a value that is not allowed, or an option of the machine when
            devices exist already; nothing is changed.

    Source: `config.configure_ipu_system` of Graphcore's TensorFlow.

    Example:
        >>> ipu.configure(partials_type="half").products.partials_type
        'half'
        >>> ipu.reset_config(keep_devices=True).products.partials_type
        'float'
    """
    before, was_set = tree.from_environment(), tree.configured()
    wanted: dict[str, Value] = {} if reset else dict(was_set)
    wanted |= config.changes() if config is not None else {}
    for name, value in values.items():
        spec = tree.spec_of(name)
        wanted[spec.name] = parse(spec, value, f"configure({name}=)")
    try:
        tree.set_configured(wanted)
        after = tree.from_environment()
        if not reset and after.machine != before.machine and jax_compat.backends_exist():
            changed = _differing(before, after)
            raise ConfigError(
                f"[configure] needs options of the machine before JAX makes its devices; got "
                f"{changed} after. Call ipu.configure first, or pass reset=True."
            )
        _say_what_is_overridden(values)
    except ConfigError:
        tree.set_configured(was_set)
        raise
    _take_effect(before, after, reset)
    return after


def get_config() -> IPUConfig:
    """The options in force: defaults, file, environment variables, and what `configure` set.

    Raises:
        ConfigError: a file or a variable has a value that is not allowed.

    Source: `config.get_ipu_config` of Graphcore's TensorFlow.

    Example:
        >>> ipu.get_config().get("available_memory_proportion")
        0.6
    """
    return tree.from_environment()


def reset_config(keep_devices: bool = False) -> IPUConfig:
    """Forgets what `configure` set, waits for all programs, and releases the devices.

    Arrays that are on IPUs keep their values; JAX makes new devices when it next needs them.

    Args:
        keep_devices: keep JAX's devices and their IPUs.
    Returns:
        the options in force.
    Raises:
        ConfigError: `keep_devices`, although options of the machine were set.

    Source: `config.reset_ipu_configuration` of Graphcore's TensorFlow.

    Example:
        >>> ipu.reset_config(keep_devices=True) == ipu.get_config()
        True
    """
    if not keep_devices:
        return configure(reset=True)
    before, was_set = tree.from_environment(), tree.configured()
    tree.set_configured({})
    after = tree.from_environment()
    if after.machine != before.machine and jax_compat.backends_exist():
        tree.set_configured(was_set)
        raise ConfigError(
            f"[reset_config] needs the same machine to keep devices; got a change of "
            f"{_differing(before, after)}. Call it without keep_devices."
        )
    _take_effect(before, after, False)
    return after


@contextmanager
def options(**values: Any) -> Iterator[None]:
    """Sets options for the operations traced inside, and for their derivatives.

    Only options that may differ between operations of one program can be set, which `python -m
    ipujax options --json` calls scoped. They are JAX metadata of each operation and pass through
    `jit`, `grad` and `vmap`. An inner block overrides an outer one; all override
    `compiler_options`, `configure` and the environment.

    Args:
        values: options by name, also with their section; see `ipu.precision` and docs/options.md.
    Raises:
        ConfigError: an option of whole programs or of the machine, an unknown name, or a value that
            is not allowed.

    Source: `scopes.partials_type`, `scopes.stochastic_rounding` and `scopes.frontend_attribute` of
    Graphcore's TensorFlow; `poptorch.set_available_memory`.

    Example:
        >>> @jax.jit
        ... def layer(w, x):
        ...     with ipu.options(partials_type="half", available_memory_proportion=0.2):
        ...         return x @ w
        >>> layer(jnp.ones((4, 4), jnp.float16), jnp.ones((4, 4), jnp.float16)).dtype
        dtype('float16')
    """
    with scope_of("ipu.options", {tree.spec_of(name).name: v for name, v in values.items()}):
        yield


def running_on_ipu_model() -> bool:
    """Whether JAX's IPUs are modelled on the CPU; False if they are hardware.

    Source: `utils.running_on_ipu_model` of Graphcore's TensorFlow.

    Example:
        >>> ipu.running_on_ipu_model()
        True
    """
    return tree.from_environment().machine.use_model


def is_running_on_ipu() -> bool:
    """Whether code that is computed or traced here goes to an IPU, unless it names another device.

    A function that is jitted for several platforms asks `jax.lax.platform_dependent` instead, which
    decides for each of them.

    Source: `poptorch.isRunningOnIpu`.

    Example:
        >>> ipu.is_running_on_ipu()
        True
        >>> with jax.default_device(jax.devices("cpu")[0]):
        ...     ipu.is_running_on_ipu()
        False
    """
    chosen = jax.config.jax_default_device
    if isinstance(chosen, str):
        return chosen == jax_compat.PLATFORM
    platform = chosen.platform if chosen is not None else jax.default_backend()
    return str(platform) == jax_compat.PLATFORM


def apply_process_options(process: ProcessConfig) -> None:
    """Applies the options of the seed, the cache folder and logs, which have to be set once."""
    from ipujax.api.configure.seeds import reset_seed  # imports jax.numpy

    if process.log_level or process.log_destination:
        set_log_level(process.log_level or "WARN", process.log_destination)
    check_transfers(process.verified_transfers)
    if process.seed >= 0:
        reset_seed(process.seed)
    if process.executable_cache_dir and not jax.config.jax_compilation_cache_dir:
        jax.config.update("jax_compilation_cache_dir", process.executable_cache_dir)


def check_transfers(on: bool) -> None:
    """Sets whether `jax.device_put` and results are verified; feeds read the option themselves."""
    try:
        from ipujax._poplar import _poplar
    except ImportError:
        return  # `ipujax.plugin` says what is missing
    _poplar.check_transfers(on)


def _take_effect(before: IPUConfig, after: IPUConfig, reset: bool) -> None:
    if before.process != after.process:
        apply_process_options(after.process)
        if before.process.log_level and not after.process.log_level:
            set_log_level("")
    if reset and jax_compat.backends_exist():
        _wait_for_programs()
        jax.extend.backend.clear_backends()
        attached.detach()
    elif _of_programs(before) != _of_programs(after) and jax_compat.backends_exist():
        jax.clear_caches()


def _of_programs(config: IPUConfig) -> tuple[Any, ...]:
    """The options that programs are traced and compiled with."""
    return config.compile, config.norms


def _wait_for_programs() -> None:
    """Waits until nothing runs; a queued program may fail, which its results report."""
    jax.effects_barrier()
    for array in jax.live_arrays():
        try:
            array.block_until_ready()
        except Exception as error:  # programs fail with many types
            logger.debug("[reset_config] a program had failed: %s", error)


def _differing(before: IPUConfig, after: IPUConfig) -> str:
    pairs = ((n, before.get(n), after.get(n)) for n in tree.SPECS if tree.PARTS[n] == "machine")
    return ", ".join(f"{name}={new!r}" for name, old, new in pairs if old != new)


def _say_what_is_overridden(values: Mapping[str, object]) -> None:
    """Logs the environment variables that the call overrides."""
    for name in values:
        variable = tree.spec_of(name).metadata["env"]
        if os.environ.get(variable, "") != "":
            logger.info("[configure] %s overrides the environment variable %s", name, variable)
