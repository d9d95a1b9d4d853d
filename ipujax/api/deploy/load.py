"""`load`: a saved program as a function of arrays on an IPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax
from jax.sharding import Sharding, SingleDeviceSharding

from ipujax import jax_compat
from ipujax.api.deploy.block_shardings import block_shardings
from ipujax.config.options import PER_CALL_PREFIX, from_environment, platform_options
from ipujax.errors import ConfigError, ExecutableError, PlacementError
from ipujax.runtime import structure
from ipujax.runtime.description import Description, Leaf, checked
from ipujax.runtime.session import typed

WHERE = "load"


def load(
    file: str | Path,
    *,
    device: jax.Device | Sequence[jax.Device] | None = None,
    weights: Mapping[str, Any] | None = None,
    **options: Any,
) -> Loaded:
    """Loads a program that `precompile` saved. Nothing is traced or compiled.

    Args:
        file: path of the file.
        device: device that it runs on; for a program on several devices, a sequence of them in the
            order of its mesh. None: the first IPUs.
        weights: values of stored parameters, by name, in place of those in the file.
        options: none are allowed; the error for a compiler option says why.
    Returns:
        A function of the arguments that are not stored.
    Raises:
        ExecutableError: the file is not such a program, is damaged, was made by another version, or
            for another machine.
        ConfigError: an option that a loaded program cannot have.
        PlacementError: a device is not an IPU, or there are fewer than the program needs.

    Source: `poptorch.load`.

    Example:
        >>> x = jax.ShapeDtypeStruct((2, 2), jnp.float32)
        >>> ipu.precompile(lambda x: {"double": 2 * x, "none": None}, x).save("double.ipu")
        >>> ipu.load("double.ipu")(jnp.eye(2))["double"].tolist()
        [[2.0, 0.0], [0.0, 2.0]]
    """
    _refuse(options)
    from ipujax._poplar._poplar import embedded

    with typed():
        found, executable, stored = embedded.read_package(str(file))
    about = Description.of(found)
    _check_target(about)
    return Loaded(about, executable, stored, _devices(device, about), dict(weights or {}))


def _devices(given: Any, about: Description) -> list[jax.Device]:
    """The IPUs that a program runs on."""
    if given is None:
        given = jax.local_devices(backend=jax_compat.PLATFORM)[: about.num_devices]
    devices = list(given) if isinstance(given, Sequence) else [given]
    for device in devices:
        if not isinstance(device, jax.Device) or device.platform != jax_compat.PLATFORM:
            raise PlacementError(
                f'[{WHERE}] needs an IPU; got {device!r}. Pass one of jax.devices("ipu").'
            )
    if len(set(devices)) != about.num_devices or len(devices) != about.num_devices:
        raise PlacementError(
            f"[{WHERE}] needs {about.num_devices} devices for {about.name}; got {len(devices)}, "
            f"{len(set(devices))} of them different. Pass as many as it was compiled for, or set "
            "JAX_IPU_DEVICE_COUNT."
        )
    return devices


class Loaded:
    """A saved program on IPUs: a function of the arguments that are not stored.

    Takes arrays of the shapes and dtypes that the program was compiled for, in the same pytrees;
    returns a pytree of `jax.Array`s. It cannot be traced by `jax.jit`. Donated arrays are deleted,
    as by `jax.jit`. A stored argument that was donated is state: the result that reuses its memory
    is its value in the next call, which deletes it; a run that fails loses it, so call
    `set_weights` then.

    Attributes:
        description: what the program takes, returns, and was compiled with.
    """

    def __init__(
        self,
        description: Description,
        executable: bytes,
        stored: Sequence[Any],
        devices: Sequence[jax.Device],
        weights: dict[str, Any],
    ):
        self.description = about = description
        by_slot = {x.slot: x for x in about.arguments}, {x.slot: x for x in about.results}
        inputs, outputs = ([of[i] for i in range(len(of) - (-1 in of))] for of in by_slot)
        memories = about.memories
        self._shardings, self._out_shardings = _shardings(about, (inputs, outputs), devices)
        self._out_shapes = [leaf.shape for leaf in outputs]
        self._run = jax_compat.load_executable(
            executable,
            about.name,
            [
                (leaf.dtype, leaf.shape, memory, _sharding_bytes(leaf, devices))
                for leaf, memory in zip(outputs, memories[1], strict=True)
            ],
            devices,
        )
        aliases = {x: i for i, x in enumerate(about.output_alias) if x >= 0 and inputs[x].stored}
        is_state = {x: outputs[i].shape == inputs[x].shape for x, i in aliases.items()}
        self._states = {x: i for x, i in aliases.items() if is_state[x]}
        self._donated_weights = [x for x in aliases if not is_state[x]]
        leaves = [leaf for leaf in about.arguments if leaf.stored and leaf.slot >= 0]
        arrays = [
            each.view(leaf.numpy_dtype).reshape(leaf.shape)
            for leaf, each in zip(leaves, stored, strict=True)
        ]
        slots = [leaf.slot for leaf in leaves]
        placed = jax_compat.put_arrays(arrays, [self._shardings[slot] for slot in slots])
        self._stored: dict[int, jax.Array] = dict(zip(slots, placed, strict=True))
        self.set_weights(weights)

    def __call__(self, *args: Any) -> Any:
        arrays = dict(self._stored)
        arrays |= {slot: jax.numpy.copy(self._stored[slot]) for slot in self._donated_weights}
        about = self.description
        for leaf, value in zip(about.passed_leaves, about.passed(args), strict=True):
            if leaf.slot >= 0:
                arrays[leaf.slot] = self._on_device(leaf, value)
        made = self._run([arrays[slot] for slot in range(len(arrays))])
        described = zip(made, self._out_shapes, self._out_shardings, strict=True)
        outputs = [_whole(shards, shape, sharding) for shards, shape, sharding in described]
        for alias, slot in self._states.items():
            self._stored[alias] = jax.device_put(outputs[slot], self._shardings[alias])
        leaves = [outputs[leaf.slot] for leaf in self.description.results]
        return structure.unflatten(self.description.result_node, leaves)

    @property
    def weights(self) -> dict[str, Any]:
        """The current stored parameters, by name; unused arrays are zeros."""
        arguments = self.description.arguments
        return {
            name: structure.unflatten(node, {n: self._value(arguments[n]) for n in numbers})
            for name, node, numbers in self.description.stored_parameters()
        }

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Replaces the values of stored parameters, by name.

        Raises:
            SessionError: a name, shape or dtype does not match; then nothing changes.
        """
        found = self.description.stored_leaves(weights)
        arrays = [(leaf.slot, self._on_device(leaf, value)) for leaf, value in found]
        self._stored.update(arrays)

    def _value(self, leaf: Leaf) -> jax.Array:
        if leaf.slot < 0:
            return jax.numpy.zeros(leaf.shape, leaf.numpy_dtype)
        return self._stored[leaf.slot]

    def _on_device(self, leaf: Leaf, value: Any) -> jax.Array:
        if isinstance(value, jax.core.Tracer):
            raise ConfigError(
                f"[{WHERE}] needs arrays; got a traced value for {leaf.name}. Call the loaded "
                "program outside of jax.jit and other transformations."
            )
        is_array = isinstance(value, jax.Array)
        if not is_array or value.shape != leaf.shape or value.dtype != leaf.numpy_dtype:
            value = checked(leaf, value)
        # JAX would narrow 64-bit arrays if it has 32 bits by default; the program does not.
        is_narrowed = jax.dtypes.canonicalize_dtype(value.dtype) != value.dtype
        with jax.enable_x64(True) if is_narrowed else nullcontext():
            return jax.device_put(value, self._shardings[leaf.slot])

    def __repr__(self) -> str:
        return f"<loaded {self.description}>"


def _shardings(
    about: Description, leaves: tuple[list[Leaf], list[Leaf]], devices: Sequence[jax.Device]
) -> tuple[list[Sharding], list[Sharding]]:
    """Shardings of the inputs and of the outputs."""
    both = [*zip(leaves[0], about.memories[0], strict=True)]
    both += zip(leaves[1], about.memories[1], strict=True)
    if len(devices) == 1:
        made = [SingleDeviceSharding(devices[0], memory_kind=memory) for _, memory in both]
        return made[: len(leaves[0])], made[len(leaves[0]) :]
    named = block_shardings([((x.counts, x.blocks), memory) for x, memory in both], devices)
    if named is None:
        raise ExecutableError(
            f"[{WHERE}] needs shardings over the axes of one mesh of {len(devices)} devices in "
            f"order; got {about}. Run it by ipujax.runtime.Session."
        )
    return named[: len(leaves[0])], named[len(leaves[0]) :]


def _sharding_bytes(leaf: Leaf, devices: Sequence[jax.Device]) -> bytes | None:
    return jax_compat.block_bytes(leaf.counts, leaf.blocks) if len(devices) > 1 else None


def _whole(shards: list[Any], shape: tuple[int, ...], sharding: Sharding) -> Any:
    if len(shards) == 1:
        return shards[0]
    return jax.make_array_from_single_device_arrays(shape, sharding, shards)


def _refuse(options: Mapping[str, Any]) -> None:
    for name in options:
        of_compiler = name.removeprefix(PER_CALL_PREFIX) in vars(from_environment().compile)
        reason = "the compiler option" if of_compiler else "the unknown option"
        advice = (
            f"Pass options={{'{PER_CALL_PREFIX}{name.removeprefix(PER_CALL_PREFIX)}': ...}} to "
            "ipujax.precompile, and save the program again."
            if of_compiler
            else "Use one of these."
        )
        raise ConfigError(
            f"[{WHERE}] needs options of a run (device, weights); got {reason} {name!r}. {advice}"
        )


def _check_target(about: Description) -> None:
    """Checks that the devices are of the kind that the program was compiled for."""
    from ipujax._poplar import _poplar

    here = {name: str(value) for name, value in platform_options(from_environment()).items()}
    here |= {"backend": _poplar.backend}
    wanted = {**about.target, "backend": about.versions.get("backend", "")}
    for name, value in wanted.items():
        if here.get(name) != value:
            raise ExecutableError(
                f"[{WHERE}] needs a program for {name}={here.get(name)}; got {about.name}, which "
                f"is for {name}={value}. Save it with the target of this process, or set the "
                "environment for the program's."
            )
