"""Makes a failing pipeline small: fewer stages, layers and options, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.pipelines.spec import Spec, Stage


def shrunk(spec: Spec, fails: Callable[[Spec], bool]) -> Spec:
    """The smallest pipeline that still fails and has nothing more to leave out."""
    progress = True
    while progress:
        progress = False
        for smaller in candidates(spec):
            if fails(smaller):
                spec, progress = smaller, True
                break
    return spec


def candidates(spec: Spec) -> Iterator[Spec]:
    """Smaller pipelines, those that leave out most first."""
    yield from _with_fewer_stages(spec)
    for transform in ("value", "value_and_grad"):
        if spec.transform not in ("value", transform):
            yield replace(spec, transform=transform)
    for i, stage in enumerate(spec.stages):
        for smaller in _smaller_stages(stage):
            yield replace(spec, stages=(*spec.stages[:i], smaller, *spec.stages[i + 1 :]))
    plain = {"outputs": (), "accumulate": None, "remat": None, "is_carried": False}
    plain |= {"schedule": "grouped", "reduction": "sum", "is_function": False}
    for name, value in plain.items():
        if getattr(spec, name) != value and not (name == "is_function" and spec.is_carried):
            yield replace(spec, **{name: value})
    for name in spec.inputs:
        yield replace(spec, inputs=tuple(kept for kept in spec.inputs if kept != name))
    for count in (1, 2, spec.micro_batches - 1):
        if 0 < count < spec.micro_batches:
            yield replace(spec, micro_batches=count)
    small = {"samples": 1, "length": 1, "width": 2, "dtype": "float32"}
    for name, value in small.items():
        if getattr(spec.shape, name) != value:
            yield replace(spec, shape=replace(spec.shape, **{name: value}))


def _with_fewer_stages(spec: Spec) -> Iterator[Spec]:
    for gone in range(len(spec.stages)):
        kept = []
        for i, stage in enumerate(spec.stages):
            skip = stage.skip_from
            if skip is not None and skip >= gone:
                skip = None if skip == gone else skip - 1
            is_last = i == len(spec.stages) - 1 or gone == len(spec.stages) - 1
            kept.append(replace(stage, skip_from=skip, beside=() if is_last else stage.beside))
        del kept[gone]
        if kept:
            yield replace(spec, stages=tuple(kept))


def _smaller_stages(stage: Stage) -> Iterator[Stage]:
    for name in ("layers", "beside"):
        layers = getattr(stage, name)
        for i in range(len(layers)):
            yield replace(stage, **{name: (*layers[:i], *layers[i + 1 :])})
    plain = {"remat": None, "is_frozen": False, "skip_from": None, "is_tied": False}
    for name, value in plain.items():
        if getattr(stage, name) != value:
            yield replace(stage, **{name: value})
