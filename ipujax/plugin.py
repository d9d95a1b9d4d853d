"""The module that JAX loads through the entry point `jax_plugins` to register the platform "ipu".

`initialize` never raises. If the platform is not available (an untested jax series, no built
extension), it logs one line that says why and what to do, and JAX works without it. JAX raises the
error for a wrong environment variable when it would create the platform's devices.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import jax

from ipujax import jax_compat
from ipujax.api.configure import devices, settings
from ipujax.config import options as config
from ipujax.config.process_variables import check_process_variables
from ipujax.errors import (
    CompileCancelledError,
    ConfigError,
    IpuError,
    missing_extension,
    remember,
)
from ipujax.host import attached, interrupts
from ipujax.host import callbacks as host_callbacks
from ipujax.host.addresses import address_towards
from ipujax.host.compile_progress import compile_progress
from ipujax.host.logs import logger_of
from ipujax.types import PlatformConfig

logger = logger_of("plugin")

#: Set when the interpreter exits: a compilation that Ctrl-C abandoned stops at its next stage.
_ending = threading.Event()
#: Time in which JAX returns from its search for plugins.
_SECONDS_TO_GO_ON = 0.1


def initialize() -> None:
    """Registers the platform once; JAX calls it before it creates its backends."""
    if jax_compat.is_registered():
        return
    try:
        jax_compat.check_versions()
        # The extension reads some of these variables when it is loaded.
        check_process_variables(os.environ)
        with _interrupts_later():
            _register()
        interrupts.watch()
    except ConfigError as error:
        jax_compat.register_refusal(error)
    except IpuError as error:
        logger.warning("ipujax is not available: %s", error)
    except ImportError as error:
        logger.warning("ipujax is not available: %s", missing_extension(error))


@contextlib.contextmanager
def _interrupts_later() -> Iterator[None]:
    """Delays Ctrl-C until JAX has moved on: JAX only logs what a plugin raises."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if came:
            given = threading.get_ident(), signal.SIGINT
            again = threading.Timer(_SECONDS_TO_GO_ON, signal.pthread_kill, given)
            again.daemon = True
            again.start()


def _register() -> None:
    from ipujax._poplar import _poplar

    # Registered after the extension's own handler, so it runs before that one; and before JAX's,
    # in which all processes wait for each other.
    atexit.register(_poplar.say_goodbye)
    atexit.register(_ending.set)
    _poplar.set_compile_callback(_compile)
    _poplar.set_host_callback(host_callbacks.call)
    _poplar.set_stablehlo_version(jax_compat.stablehlo_version())
    jax_compat.register_platform(
        str(_poplar.__file__), _client_options, config.options_of_described
    )
    jax_compat.outlive_views(_poplar.keep_client, _poplar.retire_clients)
    jax_compat.allow_donation()
    jax_compat.allow_callbacks()
    jax_compat.forget_failed_effects()
    jax_compat.lower_device_put()
    jax_compat.allow_inspect_sharding()
    jax_compat.allow_dlpack()
    jax_compat.estimate_costs_by_compiling()
    jax_compat.follow_transfer_guard(_poplar.guard_transfers)
    jax_compat.lower_linalg_as_on_cpu()
    jax_compat.keep_erfc()
    jax_compat.lower_narrow_special_functions()
    jax_compat.lower_complex_functions()
    jax_compat.lower_named_platforms_only()
    jax_compat.lower_pallas_interpreted()
    jax_compat.lower_checks()
    jax_compat.lower_spsolve()
    jax_compat.allow_persistent_cache(_options_key)
    jax_compat.replace_cache_entries()
    jax_compat.outlive_interrupted_compiles()
    jax_compat.compile_for_topologies()
    jax_compat.show_text_on_demand(_poplar.show_program_text)
    jax.monitoring.register_event_duration_secs_listener(_say_if_elsewhere)
    with contextlib.suppress(ConfigError):  # raised when JAX makes its devices
        settings.apply_process_options(config.from_environment().process)


_said_elsewhere: set[str] = set()


def _say_if_elsewhere(event: str, seconds: float, **_: object) -> None:
    """Warns once, at a compilation, that a library has chosen another platform for all work.

    It says nothing if the user made that choice through the environment.
    """
    del seconds
    if event != "/jax/core/compile/backend_compile_duration" or "JAX_PLATFORM_NAME" in os.environ:
        return
    chosen = jax_compat.other_platform()
    if chosen and chosen not in _said_elsewhere:
        _said_elsewhere.add(chosen)
        logger.warning(
            "[plugin] programs compile for %s, not IPUs: the program or a library that it imports "
            "set jax_platform_name. Call jax.config.update('jax_platform_name', 'ipu') after the "
            "imports.",
            chosen,
        )


def _client_options() -> dict[str, Any]:
    """Read for each new client, so that `clear_backends()` picks up a changed environment."""
    tree = config.from_environment()
    options = dict(config.platform_options(tree))
    attached.detach()
    if tree.machine.connection == "always":
        options["first_ipus"] = ",".join(map(str, devices.attach(tree.machine)))
    if jax_compat.num_processes() > 1:
        options["program_options"] = config.common_options(tree)
        options["host_address"] = tree.machine.host_address or _own_address()
        options["host_timeout"] = tree.machine.host_timeout
    return options


def _own_address() -> str:
    """The address at which the other processes of the job reach this one."""
    coordinator = jax_compat.coordinator_address()
    try:
        return address_towards(coordinator)
    except OSError as error:
        raise ConfigError(
            f"[hosts] needs this host's address towards the coordinator, {coordinator}; got "
            f"{error}. Set IPUJAX_HOST_ADDRESS to the address."
        ) from None


def _options_key() -> str:
    """Everything that compiled programs depend on besides the program, for JAX's cache key."""
    from ipujax import __version__

    tree = config.from_environment()
    devices.attach_on_demand(tree.machine)
    return repr((__version__, config.program_key(tree)))


def _compile(code: bytes, options: bytes, platform: PlatformConfig) -> bytes:
    """The compile callback; it imports the compiler at the first compilation."""
    from ipujax.compiler.compile import compile_module
    from ipujax.compiler.stages import STAGES

    tree = config.from_environment()
    if platform.get("connection") == tree.machine.connection:  # not for a described machine
        devices.attach_on_demand(tree.machine)
    with compile_progress(STAGES, tree.process.progress_bar) as progress:

        def on_stage(name: str) -> None:
            progress.stage(name)
            if _ending.is_set():
                raise CompileCancelledError(
                    "[compile] needs a running interpreter; got one that is exiting. "
                    "Wait for compilations before you exit."
                )

        try:
            return compile_module(code, options, dict(platform), on_stage)
        except IpuError as error:
            remember(error)
            raise
