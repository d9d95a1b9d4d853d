"""Replicates a pure function over IPUs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeVar, overload

import jax
import jax.numpy as jnp

from ipujax.api.replicate.axes import (
    WHERE,
    broadcast_axes,
    from_front,
    is_none,
    num_replicas,
    to_front,
)
from ipujax.api.replicate.grouping import ReplicaGrouping, default_devices
from ipujax.api.replicate.mesh import ReplicaMesh, mesh_of, mesh_of_groupings
from ipujax.api.replicate.replicas import default_axis
from ipujax.errors import ReplicationError

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Replicated(Protocol[P, R_co]):
    """A function over replicas, as `jax.jit` returns one: types are those of the function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> jax.stages.Lowered: ...

    def trace(self, *args: P.args, **kwargs: P.kwargs) -> jax.stages.Traced: ...

    def eval_shape(self, *args: P.args, **kwargs: P.kwargs) -> Any: ...

    def clear_cache(self) -> None: ...


@overload
def pmap(
    fun: Callable[P, R],
    axis_name: Hashable = ...,
    *,
    in_axes: Any = ...,
    out_axes: Any = ...,
    donate_argnums: int | Iterable[int] = ...,
    static_broadcasted_argnums: int | Iterable[int] = ...,
    devices: Sequence[jax.Device] | None = ...,
    compiler_options: dict[str, Any] | None = ...,
) -> Replicated[P, R]: ...
@overload
def pmap(
    fun: None = ...,
    axis_name: Hashable = ...,
    *,
    in_axes: Any = ...,
    out_axes: Any = ...,
    donate_argnums: int | Iterable[int] = ...,
    static_broadcasted_argnums: int | Iterable[int] = ...,
    devices: Sequence[jax.Device] | None = ...,
    compiler_options: dict[str, Any] | None = ...,
) -> Callable[[Callable[P, R]], Replicated[P, R]]: ...


def pmap(
    fun: Callable[..., Any] | None = None,
    axis_name: Hashable = "replica",
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    donate_argnums: int | Iterable[int] = (),
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[jax.Device] | None = None,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Runs a function on many IPUs, each on its slice of the arguments.

    Like `jax.pmap`: mapped arguments and results have an axis of replicas, by default the first
    one, which the function itself does not see. Implemented as `jax.jit` of `jax.shard_map`, so the
    result has `lower`, nests inside `jit`, `grad` and `vmap`, and takes arrays that are already
    sharded without moving them.

    Args:
        fun: pure function of arrays and pytrees; without it, `pmap` returns a decorator.
        axis_name: name of the replicas' axis for collectives.
        in_axes: the axis of replicas of each argument: an int, or a tuple with one entry for each
            positional argument, which may be a prefix of its pytree. None: all replicas get the
            same value; a `ReplicaGrouping`: the first axis has one entry for each group. Groupings
            may differ if their runs nest. Keyword arguments are mapped over their first axis.
        out_axes: the same for the results. None: the result is equal on all replicas (not checked)
            and returned once; a `ReplicaGrouping`: it is returned once for each group.
        donate_argnums: positional arguments whose memory the results may reuse.
        static_broadcasted_argnums: positional arguments that are constants; hashable.
        devices: one for each replica; by default the first devices of the default platform, as many
            as the mapped axis is long, or all if no argument is mapped.
        compiler_options: as for `jax.jit`, such as
            {"ipu_maximum_cross_replica_sum_buffer_size": 1 << 20}.
    Raises:
        ReplicationError: axes that do not match, more replicas than devices, or a call inside
            another mapped axis of devices.

    Example:
        >>> @ipu.pmap(in_axes=(None, 0), out_axes=(None, 0))
        ... def step(w, x):
        ...     loss, grad = jax.value_and_grad(lambda w: (w * x) ** 2)(w)
        ...     return w - 0.1 * ipu.cross_replica_mean(grad), loss
        >>> w, losses = step(1.0, jnp.array([1.0, 2.0]))
        >>> print(w, losses)
        0.5 [1. 4.]
    """
    if fun is None:
        return functools.partial(
            pmap,
            axis_name=axis_name,
            in_axes=in_axes,
            out_axes=out_axes,
            donate_argnums=donate_argnums,
            static_broadcasted_argnums=static_broadcasted_argnums,
            devices=devices,
            compiler_options=compiler_options,
        )
    if not callable(fun):
        raise ReplicationError(
            f"[{WHERE}] needs a function; got {fun!r}. Pass axis_name and other options by keyword."
        )
    static = _indices(static_broadcasted_argnums)
    chosen = None if devices is None else tuple(devices)
    mapped = _MappedFunction(fun, axis_name, in_axes, out_axes, static, chosen)

    @functools.wraps(fun)
    def replicated(*args: Any, **kwargs: Any) -> Any:
        return mapped(args, kwargs)

    return jax.jit(
        replicated,
        static_argnums=static,
        donate_argnums=_indices(donate_argnums),
        compiler_options=compiler_options,
    )


def _indices(argnums: int | Iterable[int]) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


def _without_axis(shard: jax.Array, axis: Any) -> jax.Array:
    return shard if axis is None else jnp.squeeze(shard, 0)


def _with_axis(result: Any, axis: Any) -> jax.Array:
    return jnp.asarray(result) if axis is None else jnp.expand_dims(result, 0)


@dataclass(frozen=True)
class _MappedFunction:
    """The arguments of one `pmap`; calling it traces one call of the function."""

    fun: Callable[..., Any]
    axis_name: Hashable
    in_axes: Any
    out_axes: Any
    static: tuple[int, ...]
    devices: tuple[jax.Device, ...] | None

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if jax.sharding.get_abstract_mesh().manual_axes:
            raise ReplicationError(
                f"[{WHERE}] needs a place outside all other replicas; got a call inside "
                f"{jax.sharding.get_abstract_mesh().manual_axes}. Map once over all devices."
            )
        fixed = {i % len(args) for i in self.static}
        dynamic = tuple(a for i, a in enumerate(args) if i not in fixed)
        leaves, tree = jax.tree.flatten((dynamic, kwargs))
        axes = self._axes_of_arguments(args, fixed, dynamic, kwargs)
        replicas = self._replicas(leaves, axes)
        names = replicas.mesh.axis_names

        def local(*shards: jax.Array) -> Any:
            own = [_without_axis(x, axis) for x, axis in zip(shards, axes, strict=True)]
            given, by_name = jax.tree.unflatten(tree, own)
            rest = iter(given)
            every = [a if i in fixed else next(rest) for i, a in enumerate(args)]
            with default_axis(names if len(names) > 1 else names[0], replicas.names):
                out = self.fun(*every, **by_name)
            return self._each_result(out, _with_axis)

        out = jax.shard_map(
            local,
            mesh=replicas.mesh,
            in_specs=tuple(map(replicas.spec, axes)),
            out_specs=jax.tree.map(replicas.spec, self.out_axes, is_leaf=is_none),
            # As in jax.pmap, each replica has its own derivatives: the optimizer reduces them.
            check_vma=False,
        )(*(to_front(leaf, axis) for leaf, axis in zip(leaves, axes, strict=True)))
        return self._each_result(out, from_front)

    def _each_result(self, out: Any, function: Callable[[Any, Any], jax.Array]) -> Any:
        """function(result, its axis) for all results."""
        axes = broadcast_axes("out_axes", self.out_axes, out)
        results, tree = jax.tree.flatten(out)
        return jax.tree.unflatten(tree, map(function, results, axes))

    def _axes_of_arguments(
        self,
        args: tuple[Any, ...],
        fixed: set[int],
        dynamic: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> list[Any]:
        """One axis for each leaf of the arguments."""
        axes = self.in_axes
        if isinstance(axes, (tuple, list)):
            if len(axes) != len(args):
                raise ReplicationError(
                    f"[{WHERE}] needs one entry of in_axes for each positional argument; got "
                    f"{len(axes)} for {len(args)} arguments. Pass one for each, or one int."
                )
            axes = tuple(axis for i, axis in enumerate(axes) if i not in fixed)
        return [*broadcast_axes("in_axes", axes, dynamic), *broadcast_axes("in_axes", 0, kwargs)]

    def _replicas(self, leaves: Sequence[Any], axes: Sequence[Any]) -> ReplicaMesh:
        """The replicas, divided as the groupings of arguments and results require."""
        out_leaves = jax.tree.leaves(self.out_axes, is_leaf=is_none)
        groupings = [a for a in [*axes, *out_leaves] if isinstance(a, ReplicaGrouping)]
        size = num_replicas(leaves, axes)
        if not groupings:
            return mesh_of(self._devices(size), self.axis_name)
        grouping = groupings[0]
        wanted = self.devices or grouping.devices
        if wanted != grouping.devices or size not in (None, grouping.num_replicas):
            raise ReplicationError(
                f"[{WHERE}] needs as many replicas as the grouping has; got "
                f"{size or len(wanted)} and {grouping.num_replicas}. Build the grouping from the "
                "devices that are mapped over."
            )
        return mesh_of_groupings(list(dict.fromkeys(groupings)), self.axis_name)

    def _devices(self, size: int | None) -> Sequence[jax.Device]:
        if self.devices is not None:
            if size not in (None, len(self.devices)):
                raise ReplicationError(
                    f"[{WHERE}] needs a mapped axis as long as devices; got {size} and "
                    f"{len(self.devices)}. Pass other arrays, or other devices."
                )
            return self.devices
        there = default_devices()
        if size is not None and size > len(there):
            raise ReplicationError(
                f"[{WHERE}] needs a device for each of the {size} replicas; got {len(there)} of "
                f"platform {there[0].platform}. Map over fewer, or get more IPUs with "
                "JAX_IPU_DEVICE_COUNT."
            )
        return there[:size]
