"""`scaling`: what a training step costs on more and more IPUs, none of which need be there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
import optax
from jax.experimental import topologies

from ipujax.api.cost.cost import AS_IT_IS, Cost, of_compiled
from ipujax.api.pipeline.pipeline import pipeline
from ipujax.api.replicate.pmap import pmap
from ipujax.errors import ConfigError
from ipujax.host.html_tables import html_table
from ipujax.jax_compat import PLATFORM
from ipujax.optim.cross_replica import cross_replica
from ipujax.optim.shard_state import shard_state

#: What the IPUs do in the cycles of a step.
_WORK = ("compute", "exchange", "sync", "link")
#: Where the time of a step goes: "link" is communication between IPUs, "idle" a pipeline's bubble.
SHARES = (*_WORK, "host", "idle")


@dataclass(frozen=True)
class ScalingRow:
    """A training step in one form on a number of IPUs.

    Attributes:
        form: "replicated", "sharded state", "pipelined" or "pipelined, sharded state".
        ipus: of all replicas.
        replicas: each trains on a batch of its own.
        seconds: of a step.
        samples_per_second: of all replicas.
        efficiency: samples per second and IPU, compared with the best row of the fewest IPUs.
        fits: whether the program fits its tiles.
        fullest_tile_bytes: peak bytes on the fullest tile.
        shares: proportions of the step's time by `SHARES`, on average over the IPUs.
    """

    form: str
    ipus: int
    replicas: int
    seconds: float
    samples_per_second: float
    efficiency: float
    fits: bool
    fullest_tile_bytes: int
    shares: Mapping[str, float]


@dataclass(frozen=True)
class Scaling:
    """The rows that `ipu.scaling` found; it prints as a table."""

    rows: tuple[ScalingRow, ...]

    def best(self, ipus: int | None = None) -> ScalingRow | None:
        """The row with the most samples per second that fits.

        Args:
            ipus: a number of IPUs; None: the largest.
        Returns:
            None if nothing fits.
        """
        wanted = max(row.ipus for row in self.rows) if ipus is None else ipus
        fitting = [row for row in self.rows if row.ipus == wanted and row.fits]
        return max(fitting, key=lambda row: row.samples_per_second, default=None)

    def to_json(self) -> str:
        """A list of rows."""
        return json.dumps([asdict(row) for row in self.rows], indent=2)

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        heads = ["form", "IPUs", "ms a step", "samples/s", "efficiency", *SHARES, "fits"]
        rows = [
            [
                row.form,
                str(row.ipus),
                f"{row.seconds * 1e3:.3f}",
                f"{row.samples_per_second:,.0f}",
                f"{row.efficiency:.1%}",
                *(f"{row.shares[name]:.1%}" for name in SHARES),
                "yes" if row.fits else "no",
            ]
            for row in self.rows
        ]
        return heads, rows

    def __str__(self) -> str:
        heads, rows = self._cells()
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = []
        for cells in (heads, *rows):
            first = cells[0].ljust(widths[0])
            rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
            lines.append("  ".join([first, *rest]))
        best = self.best()
        said = f"best on {best.ipus} IPUs: {best.form}" if best else "no form fits the most IPUs"
        return "\n".join([*lines, said])

    def __repr__(self) -> str:
        return f"Scaling({len(self.rows)} rows)"

    def _repr_html_(self) -> str:
        return html_table(*self._cells())


@dataclass(frozen=True)
class _Form:
    name: str
    loss: Callable[[Any, Any], Any]
    ipus_per_replica: int
    shards_state: bool


def scaling(
    loss: Callable[[Any, Any], Any] | Sequence[Callable[..., Any]],
    params: Any,
    batch: Any,
    optimizer: optax.GradientTransformation,
    *,
    ipus: Sequence[int] = (1, 4, 16, 64, 256),
    machine: str = "",
    compiler_options: Mapping[str, Any] | None = None,
) -> Scaling:
    """The cost of a training step on more and more IPUs, in each form that the arguments allow.

    Each replica has a batch of its own, so the global batch grows with the IPUs. All programs are
    compiled for machines that need not be there; nothing runs. "replicated" averages gradients over
    replicas, "sharded state" also divides the optimizer's state among them
    (`ipu.optim.shard_state`), and "pipelined" gives each stage an IPU.

    Args:
        loss: `loss(params, batch)`; or a list of stages as `ipu.pipeline` takes them, of which the
            last returns the loss.
        params: its first argument, arrays or `jax.ShapeDtypeStruct`; with stages, a list of the
            parameters of each.
        batch: of one replica: a pytree [samples, ...]; with stages [micro-batches, samples, ...].
        optimizer: an optax transformation.
        ipus: numbers of IPUs. Forms whose replicas do not divide one are left out there.
        machine: kind of IPU; empty: the one of the options.
        compiler_options: of all programs.
    Returns:
        a `Scaling`, with a row for each form and number of IPUs. Prints as a table.
    Raises:
        ConfigError: no numbers of IPUs, or none that a form divides.

    Example:
        >>> loss = lambda w, x: jnp.mean(jnp.tanh(x @ w) ** 2)
        >>> w, x = jax.ShapeDtypeStruct((512, 512), jnp.float32), jnp.ones((32, 512))
        >>> found = ipu.scaling(loss, w, x, optax.adam(0.01), ipus=(1, 16))
        >>> [(row.form, row.ipus, row.fits) for row in found.rows][:2]
        [('replicated', 1, True), ('sharded state', 1, True)]
    """
    options = {**AS_IT_IS, **(compiler_options or {})}
    forms = list(_forms(loss, batch))
    found = []
    for count in ipus:
        for form in forms:
            if count >= form.ipus_per_replica and count % form.ipus_per_replica == 0:
                replicas = count // form.ipus_per_replica
                step_cost = _cost(form, params, batch, optimizer, replicas, machine, options)
                found.append((form, count, replicas, step_cost))
    if not found:
        raise ConfigError(
            f"[scaling] needs numbers of IPUs that a form divides; got {list(ipus)}. Pass others."
        )
    samples = _samples(loss, batch)
    fewest = min(count for _, count, _, _ in found)
    rates = [replicas * samples / cost.seconds for _, _, replicas, cost in found]
    ideal = max(
        rate / count for rate, (_, count, _, _) in zip(rates, found, strict=True) if count == fewest
    )
    return Scaling(
        tuple(
            ScalingRow(
                form=form.name,
                ipus=count,
                replicas=replicas,
                seconds=cost.seconds,
                samples_per_second=rate,
                efficiency=rate / count / ideal,
                fits=cost.fits,
                fullest_tile_bytes=cost.fullest_tile_bytes,
                shares=_shares(cost, form.ipus_per_replica),
            )
            for rate, (form, count, replicas, cost) in zip(rates, found, strict=True)
        )
    )


def _forms(loss: Any, batch: Any) -> Iterator[_Form]:
    if callable(loss):
        yield _Form("replicated", loss, 1, False)
        yield _Form("sharded state", loss, 1, True)
        return
    stages = list(loss)
    micro_batches = jax.tree.leaves(batch)[0].shape[0]

    def whole(params: Any, x: Any) -> Any:
        for stage, own in zip(stages, params, strict=True):
            x = stage(own, x)
        return x

    alone = pipeline([whole], micro_batches=micro_batches, reduction="mean")
    staged = pipeline(stages, micro_batches=micro_batches, reduction="mean")
    yield _Form("replicated", lambda params, x: alone([params], x), 1, False)
    yield _Form("sharded state", lambda params, x: alone([params], x), 1, True)
    yield _Form("pipelined", staged, len(stages), False)
    yield _Form("pipelined, sharded state", staged, len(stages), True)


def _samples(loss: Any, batch: Any) -> int:
    """Samples of one replica in a step."""
    shape = jax.tree.leaves(batch)[0].shape
    return int(shape[0]) if callable(loss) else int(shape[0] * shape[1])


def _cost(
    form: _Form,
    params: Any,
    batch: Any,
    optimizer: optax.GradientTransformation,
    replicas: int,
    machine: str,
    options: Mapping[str, Any],
) -> Cost:
    devices = topologies.get_topology_desc(
        platform=PLATFORM,
        topology_name=machine,
        device_count=replicas,
        ipus_per_device=form.ipus_per_replica,
    ).devices
    wrap = shard_state if form.shards_state else cross_replica
    tx = wrap(optimizer)
    of_state = 0 if form.shards_state else None

    def step(params: Any, state: Any, batch: Any) -> Any:
        value, gradients = jax.value_and_grad(form.loss)(params, batch)
        updates, state = tx.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    init = pmap(tx.init, in_axes=None, out_axes=of_state, devices=devices)
    replicated = pmap(
        step,
        in_axes=(None, of_state, 0),
        out_axes=(None, of_state, 0),
        donate_argnums=(0, 1),
        devices=devices,
        compiler_options=dict(options),
    )
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), params)
    batches = jax.tree.map(lambda x: jax.ShapeDtypeStruct((replicas, *x.shape), x.dtype), batch)
    state = jax.eval_shape(init, shapes)
    return of_compiled(replicated.lower(shapes, state, batches).compile(), devices[0])


def _shares(cost: Cost, ipus: int) -> dict[str, float]:
    """Cycles of work are sums over the IPUs of a replica."""
    whole = cost.cycles * ipus
    shares = {name: cost.analysis[f"{name} cycles"] / whole for name in _WORK}
    shares["host"] = 1 - cost.seconds_without_host / cost.seconds
    return {**shares, "idle": max(0.0, 1 - sum(shares.values()))}
