"""Reads what `main` declares for its arguments and results: names, donation, memories, layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jaxlib.mlir import ir

from ipujax.annotations import placement
from ipujax.compiler.dtypes import TOKEN, numpy_type
from ipujax.compiler.ir import Block, Parameter, Value
from ipujax.compiler.modules import dictionaries_of
from ipujax.compiler.sources import name_of, text_of
from ipujax.errors import InvalidProgramError


def read_parameters(main: Any, block: Block, result_memories: dict[int, str]) -> list[Parameter]:
    """The arguments of `main`, which was read as `block`.

    A donated argument's memory can only become that of a result in the same memory.
    """
    arguments = main.regions[0].blocks[0].arguments
    parameters = [
        Parameter(name_of(argument.location) or f"argument {index}")
        for index, argument in enumerate(arguments)
    ]
    for index, kind in _memories("argument", main, "arg_attrs", block.args).items():
        parameters[index].memory_kind = kind
    for index, layout in _layouts("argument", main, "arg_attrs", block.args).items():
        parameters[index].layout = layout
    given = dictionaries_of(main, "arg_attrs")
    for parameter, value, dictionary in zip(parameters, block.args, given, strict=False):
        if "tf.aliasing_output" in dictionary:
            parameter.donated = True
            alias = dictionary["tf.aliasing_output"].value
            _check_alias(alias, value, block.results)
            if result_memories.get(alias, placement.DEVICE) == parameter.memory_kind:
                parameter.alias = alias
        if "jax.buffer_donor" in dictionary:
            parameter.donated = True
    _match_donors(parameters, block, result_memories)
    return parameters


def read_result_memories(main: Any, block: Block) -> dict[int, str]:
    """Where callers want the results, by index; those in the device's memory are left out."""
    return _memories("result", main, "res_attrs", block.results)


def read_result_layouts(main: Any, block: Block) -> dict[int, placement.MinorToMajor]:
    """How callers see the results, by index; row-major ones are left out."""
    return _layouts("result", main, "res_attrs", block.results)


def read_result_names(main: Any, count: int) -> list[str]:
    """The results' names in JAX: "result['loss']"."""
    names = [f"result {index}" for index in range(count)]
    for index, dictionary in enumerate(dictionaries_of(main, "res_attrs")):
        if "jax.result_info" in dictionary:
            names[index] = text_of(dictionary["jax.result_info"]) or names[index]
    return names


def _memories(what: str, main: Any, name: str, values: Sequence[Value]) -> dict[int, str]:
    kinds = {}
    for index, given in enumerate(dictionaries_of(main, name)):
        # By name, not by iteration: the bindings abort the process on a name that is not UTF-8.
        if "mhlo.memory_kind" in given:
            kind = placement.memory_of(f"{what} {index}", text_of(given["mhlo.memory_kind"]))
            if kind != placement.DEVICE and values[index].dtype != TOKEN:
                kinds[index] = kind
    return kinds


def _layouts(
    what: str, main: Any, name: str, values: Sequence[Value]
) -> dict[int, placement.MinorToMajor]:
    returned = main.regions[0].blocks[0].operations[-1].operands
    layouts = {}
    for index, given in enumerate(dictionaries_of(main, name)):
        if "mhlo.layout_mode" not in given:
            continue
        text, value = text_of(given["mhlo.layout_mode"]), values[index]
        dtype = numpy_type(value.dtype)
        layout = placement.layout_of(f"{what} {index}", text, len(value.shape), dtype)
        if what == "result" and text == placement.AUTO_LAYOUT:
            layout = _constrained(returned[index])
        if layout is not None:
            layouts[index] = layout
    return layouts


def _constrained(value: Any) -> placement.MinorToMajor | None:
    """The layout that the program gives a returned value."""
    maker = value.owner
    if isinstance(value, ir.BlockArgument) or maker.name != "stablehlo.custom_call":
        return None
    if maker.attributes["call_target_name"].value != placement.LAYOUT_CALL:
        return None
    order = ",".join(map(str, maker.attributes["result_layouts"][0]))
    return placement.layout_of("with_layout_constraint", "{" + order + "}", len(value.type.shape))


def _match_donors(
    parameters: list[Parameter], block: Block, result_memories: dict[int, str]
) -> None:
    """Gives the memory of donated arguments without a result to results that fit into it.

    JAX names none in programs over several devices, where the compiler chooses results' shardings.
    Results of the same shape come first; then, as in XLA, results of the same size.
    """

    def memory_of(index: int) -> str:
        return result_memories.get(index, placement.DEVICE)

    def match(key: Callable[[Value], object]) -> None:
        free: dict[object, list[int]] = {}
        taken = {parameter.alias for parameter in parameters}
        for index, result in enumerate(block.results):
            if index not in taken and result.dtype != TOKEN:
                kind = (key(result), result.dtype, memory_of(index))
                free.setdefault(kind, []).append(index)
        for parameter, value in zip(parameters, block.args, strict=True):
            fitting = free.get((key(value), value.dtype, parameter.memory_kind))
            if parameter.donated and parameter.alias is None and fitting:
                parameter.alias = fitting.pop(0)

    match(lambda value: value.shape)
    if all(parameter.memory_kind == placement.DEVICE for parameter in parameters):
        match(lambda value: value.num_elements)


def _check_alias(index: int, value: Value, results: Sequence[Value]) -> None:
    """A result can take over an argument's memory only if both have the same type."""
    fits = 0 <= index < len(results)
    if fits and (results[index].shape, results[index].dtype) == (value.shape, value.dtype):
        return
    got = repr(results[index]) if fits else f"result {index} of {len(results)}"
    raise InvalidProgramError(
        f"[read] needs a donated argument and the result that takes over its memory to have one "
        f"type; got {value!r} and {got}. Pass the output of jax.jit."
    )
