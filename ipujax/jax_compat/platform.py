"""JAX's lists of platforms, with "ipu" added."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

PLATFORM = "ipu"


def register_platform(
    library_path: str,
    options: Callable[[], dict[str, Any]],
    described: Callable[[str, Mapping[str, object]], dict[str, Any]],
) -> None:
    """Registers the plugin's library as the platform "ipu", with priority over CPUs and GPUs.

    Args:
        options: returns the options of a client.
        described: returns those of a machine of `jax.experimental.topologies.get_topology_desc`,
            from its name and keyword arguments.
    """
    from jax._src import xla_bridge
    from jaxlib import xla_client

    def make_topology(name: str = "", **values: object) -> Any:
        return xla_client.make_c_api_device_topology(api, "", **described(name, values))

    # JAX warns on first use of any other plugin that it is experimental.
    xla_bridge._nonexperimental_plugins.add(PLATFORM)
    api = xla_bridge.register_plugin(
        PLATFORM,
        priority=500,
        library_path=library_path,
        options=options,
        make_topology=make_topology,
    )


def outlive_views(keep_client: Callable[[Any], None], retire_clients: Callable[[], None]) -> None:
    """Keeps the platform's clients while NumPy views their arrays.

    A jaxlib view reads its client when it is freed, even after JAX has cleared its backends, as it
    does when Python exits. On JAX's own CPU backend it does not.
    """
    from jax._src import xla_bridge

    init_backend, clear_backends = xla_bridge._init_backend, xla_bridge._clear_backends

    def init(platform: str) -> Any:
        client = init_backend(platform)
        if platform == PLATFORM:
            keep_client(client)
        return client

    def clear() -> None:
        clear_backends()
        retire_clients()

    xla_bridge._init_backend = init
    xla_bridge._clear_backends = clear


def register_refusal(error: Exception) -> None:
    """Makes JAX raise `error` instead of creating the platform's client."""
    from jax._src import xla_bridge

    def refuse() -> Any:
        raise error

    xla_bridge.register_backend_factory(PLATFORM, refuse, priority=500, fail_quietly=False)


def is_registered() -> bool:
    """Whether the platform is registered: JAX may load an entry point more than once."""
    from jax._src import xla_bridge

    return PLATFORM in xla_bridge._backend_factories


def backends_exist() -> bool:
    """Whether JAX has made its devices, and so has read the options of the machine."""
    from jax._src import xla_bridge

    return bool(xla_bridge.backends_are_initialized())


def other_platform() -> str:
    """The platform that `jax_platform_name` chose instead of ours; empty if none did."""
    from jax._src import xla_bridge

    chosen = str(xla_bridge._PLATFORM_NAME.value or "").lower()
    return "" if chosen == PLATFORM else chosen


def logs_compiles() -> bool:
    """Whether JAX logs each compilation as a warning (JAX_LOG_COMPILES)."""
    import jax

    return bool(jax.config.jax_log_compiles)


def allow_donation() -> None:
    """Adds the platform to those on which JAX does not ignore donation."""
    from jax._src.interpreters import mlir as private_mlir

    if PLATFORM not in private_mlir._platforms_with_donation:
        private_mlir._platforms_with_donation.append(PLATFORM)
