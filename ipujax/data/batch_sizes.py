"""The arithmetic of batch sizes: micro-batches, replicas, steps of one call."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ipujax.errors import FeedError


@dataclass(frozen=True)
class BatchSizes:
    """How many examples each part of a program takes.

    Args:
        micro_batch: examples that one stage, or one replica without a pipeline, takes at a time.
        micro_batches: in one step of a replica, for gradient accumulation or `ipujax.pipeline`.
        replicas: number of replicas that share each batch.
        device_iterations: steps of one call, as in `ipujax.repeat`.
    Raises:
        FeedError: a number below 1.

    Source: section "Batching" of PopTorch.

    Example:
        >>> sizes = ipu.data.BatchSizes(8, micro_batches=4, replicas=2, device_iterations=100)
        >>> print(sizes.replica, sizes.step, sizes.call)
        32 64 6400
        >>> sizes.check(48)
        Traceback (most recent call last):
        ...
        ipujax.errors.FeedError: [batch sizes] needs batches of 64 examples: 8 (micro-batch) x 4 \
(micro-batches) x 2 (replicas); got 48. Change the loader's batch size, or these numbers.
    """

    micro_batch: int
    micro_batches: int = 1
    replicas: int = 1
    device_iterations: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise FeedError(
                    f"[batch sizes] needs {field.name} of 1 or more; got "
                    f"{getattr(self, field.name)}. Pass 1 where there is no such part."
                )

    @property
    def replica(self) -> int:
        """Examples of one step of one replica."""
        return self.micro_batch * self.micro_batches

    @property
    def step(self) -> int:
        """Examples of one step of all replicas: one batch of an `ipujax.Infeed`."""
        return self.replica * self.replicas

    @property
    def call(self) -> int:
        """Examples of one call of the device."""
        return self.step * self.device_iterations

    def check(self, rows: int) -> None:
        """Refuses a batch of an `Infeed` that has a different number of examples."""
        if rows != self.step:
            raise FeedError(
                f"[batch sizes] needs batches of {self.step} examples: {self.micro_batch} "
                f"(micro-batch) x {self.micro_batches} (micro-batches) x {self.replicas} "
                f"(replicas); got {rows}. Change the loader's batch size, or these numbers."
            )

    def num_calls(self, examples: int) -> int:
        """Number of whole calls for this number of examples."""
        return examples // self.call
