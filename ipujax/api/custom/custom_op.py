"""`custom_op`: an operation whose graph the user's C++ builds, as TensorFlow's custom ops do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jax.extend.core import Primitive
from jax.interpreters import ad, batching

from ipujax import jax_compat
from ipujax.api.arguments import array, function, shape_and_dtype, text, whole_numbers
from ipujax.api.custom.custom_calls import custom_call, register
from ipujax.errors import ConfigError, check_choice
from ipujax.host import custom_op_libraries
from ipujax.host.custom_op_libraries import Codelets
from ipujax.types import CustomGradients

#: Shapes and dtypes of results: given, or computed from the inputs.
Outputs: TypeAlias = Any | Callable[..., Any]
Attributes: TypeAlias = str | Mapping[str, Any] | None

#: JAX dtypes that a Poplar tensor can have.
DTYPES = frozenset(
    {
        *("float32", "float16", "int32", "uint32", "int16", "uint16", "int8", "uint8", "bool"),
    }
)
GRADIENTS = ("separate", "joint")


@dataclass(frozen=True)
class _Function:
    """A function of a library, and its arguments."""

    library: str
    name: str
    attributes: str
    results: tuple[tuple[tuple[int, ...], str], ...]
    gradients: int | None = None  #: of a gradient: number of operands that are gradients of outputs
    inputs: int = 0  #: of a gradient: number of forward inputs, which come next
    input: int = 0  #: of a gradient: number of its input
    #: of gradients of all inputs: the numbers of those that are wanted
    of_all: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return self.name if self.gradients is None else f"{self.name}_grad"

    def config(self) -> dict[str, Any]:
        return {
            "library": self.library,
            "name": self.name,
            "attributes": self.attributes,
            "gradients": self.gradients,
            "inputs": self.inputs,
            "input": self.input,
            "of_all": self.of_all,
        }


custom_op_p = Primitive("ipu_custom_op")
custom_op_p.multiple_results = True


def _avals(*avals: Any, function: _Function) -> list[Any]:
    like = avals[0] if avals else jax.core.ShapedArray((), jnp.float32)
    return [like.update(shape=shape, dtype=np.dtype(name)) for shape, name in function.results]


def _elsewhere(*_: Any, function: _Function) -> Any:
    raise ConfigError(
        f"[custom_op] needs an IPU for {function}; got another platform. Call it in programs for "
        "the platform 'ipu'."
    )


def _jvp(primals: Any, tangents: Any, *, function: _Function) -> Any:
    hint = (
        "Pass gradients='separate' or 'joint' to ipujax.custom_op, with a function "
        f"{function}_grad in the library"
        if function.gradients is None
        else "A gradient of a custom op has none itself: take derivatives once"
    )
    raise ConfigError(f"[custom_op] needs a gradient of {function}; got none. {hint}.")


def _batch(values: Any, dims: Any, *, function: _Function) -> tuple[Any, Any]:
    """One example after the other."""
    examples = [jnp.moveaxis(x, d, 0) for x, d in zip(values, dims, strict=True) if d is not None]

    def one(rows: list[jax.Array]) -> Any:
        left = iter(rows)
        operands = [x if d is None else next(left) for x, d in zip(values, dims, strict=True)]
        return custom_op_p.bind(*operands, function=function)

    results = jax.lax.map(one, examples)
    return results, [0] * len(results)


custom_op_p.def_abstract_eval(_avals)
ad.primitive_jvps[custom_op_p] = _jvp
batching.primitive_batchers[custom_op_p] = _batch
register(custom_op_p, _elsewhere, lambda function: custom_call("ipu_custom_op", function.config()))


def custom_op(
    library: str | Path,
    name: str = "Build",
    outputs: Outputs = (),
    *,
    attributes: Attributes = None,
    gradients: CustomGradients | None = None,
    inputs_with_gradients: Sequence[int] | None = None,
    gradient_attributes: Attributes = None,
    vmap: Callable[..., Any] | None = None,
    codelets: Codelets | Sequence[Codelets] = (),
    flags: str = "",
) -> Callable[..., Any]:
    """An operation that a C++ function adds to the Poplar graph.

    The function has the interface of custom ops of Graphcore's TensorFlow (`precompiled_user_op`):

        extern "C" poplar::program::Program Build(
            poplar::Graph& graph, const std::vector<poplar::Tensor>& inputs,
            std::vector<poplar::Tensor>& outputs, const std::string& attributes,
            const std::string& debug_prefix)

    with `Build_metadata`, `Build_allocator` and `Build_grad` if the library has them, and the level
    of the interface in `custom_op_api_level`. It runs while JAX compiles. The host's C++ compiler
    ($CXX, or c++) compiles sources when a program first uses them. Functions must be pure, like all
    functions that JAX transforms; `is_stateless` of the metadata has no effect.

    Args:
        library: C++ as text (with line breaks), or the path of a C++ file or of a shared library
            that was compiled against ipujax's headers.
        name: name of the function.
        outputs: a pytree of `jax.ShapeDtypeStruct`s or arrays that has the results' shapes and
            dtypes, or a function of the inputs that returns one.
        attributes: text for the function; or a mapping of names to numbers, text and lists, which
            it gets as JSON. `popx/JsonAttributes.hpp` reads that as typed values.
        gradients: "separate": `<name>_grad` computes the gradient of one input at a time; "joint":
            the gradients of all at once, in the order of inputs_with_gradients; None: there is no
            gradient.
        inputs_with_gradients: numbers of the inputs that have gradients; None: all of float dtypes
            (with "joint", the function may also make an output for every input, empty for those
            without a gradient). Other gradients are zero.
        gradient_attributes: attributes for `<name>_grad`; None: `attributes`.
        vmap: what `jax.vmap` does, as a rule of `jax.custom_batching.custom_vmap`: a function
            (axis_size, in_batched, *inputs) that returns (results, whether each is batched). None:
            one example after the other.
        codelets: vertices that the function uses (`gp_path` of TensorFlow): C++ as text, or paths
            of C++ or .gp files.
        flags: flags for the compiler.
    Returns:
        a function of arrays that returns the results.
    Raises:
        ConfigError: an argument is invalid, or, when a program is compiled, the library's functions
            make other outputs than declared, or throw.

    Source: `custom_ops.precompiled_user_op` of Graphcore's TensorFlow.

    Example:
        >>> source = '''
        ... #include <poplar/Graph.hpp>
        ... #include <popops/ElementWise.hpp>
        ... extern "C" {
        ... std::int32_t custom_op_api_level = 5;
        ... poplar::program::Program Build(poplar::Graph& graph,
        ...                                const std::vector<poplar::Tensor>& inputs,
        ...                                std::vector<poplar::Tensor>& outputs,
        ...                                const std::string&, const std::string& prefix) {
        ...   poplar::program::Sequence sequence;
        ...   outputs.push_back(popops::add(graph, inputs[0], inputs[1], sequence, prefix));
        ...   return sequence;
        ... }
        ... }
        ... '''
        >>> add = ipu.custom_op(source, outputs=lambda x, y: x)
        >>> jax.jit(add)(jnp.arange(3.0), jnp.ones(3)).tolist()
        [1.0, 2.0, 3.0]
    """
    if gradients is not None:
        check_choice("custom_op", "gradients", gradients, GRADIENTS, ConfigError)
    given = text_of("custom_op", "attributes", attributes)
    of_gradient = text_of("custom_op", "gradient_attributes", gradient_attributes)
    op = _CustomOp(
        library=custom_op_libraries.register(
            "custom_op", library, text("custom_op", "flags", flags), codelets
        ),
        name=text("custom_op", "name", name),
        outputs=outputs,
        attributes=given,
        gradient_attributes=of_gradient or given,
        is_joint=gradients == "joint",
        inputs_with_gradients=inputs_with_gradients,
    )
    forward: Any = op.forward
    if vmap is not None:
        forward = custom_vmap(op.forward)
        forward.def_vmap(function("custom_op", "vmap", vmap))
    if gradients is not None:
        differentiable = jax.custom_vjp(forward)

        def save(*inputs: jax.Array) -> Any:
            made = differentiable(*inputs)
            return made, (inputs, jax.tree.leaves(made))

        differentiable.defvjp(save, op.backward)
        forward = differentiable

    def call(*inputs: Any) -> Any:
        jax_compat.hide_frames(__file__)
        return forward(*(_checked(i, x) for i, x in enumerate(inputs)))

    call.__name__ = call.__qualname__ = name
    return call


@dataclass(frozen=True)
class _CustomOp:
    """The arguments of `custom_op`."""

    library: str
    name: str
    outputs: Outputs
    attributes: str
    gradient_attributes: str
    is_joint: bool
    inputs_with_gradients: Sequence[int] | None

    def forward(self, *inputs: jax.Array) -> Any:
        leaves, tree = declared("custom_op", self.outputs, inputs)
        function = _Function(self.library, self.name, self.attributes, tuple(map(_spec, leaves)))
        return jax.tree.unflatten(tree, custom_op_p.bind(*inputs, function=function))

    def backward(self, saved: Any, cotangents: Any) -> tuple[Any, ...]:
        """The gradients by input; None stands for zeros."""
        inputs, results = saved
        flat = [*dense(cotangents, results), *inputs, *results]
        numbers = float_inputs("custom_op", self.inputs_with_gradients, inputs)
        found: list[jax.Array] = []
        for wanted in [numbers] if self.is_joint else [[i] for i in numbers]:
            function = _Function(
                self.library,
                self.name,
                self.gradient_attributes,
                tuple(_spec(inputs[i]) for i in wanted),
                gradients=len(results),
                inputs=len(inputs),
                input=0 if self.is_joint else wanted[0],
                of_all=tuple(numbers) if self._is_of_all else None,
            )
            found += custom_op_p.bind(*flat, function=function)
        by_input = dict(zip(numbers, found, strict=True))
        return tuple(by_input.get(i) for i in range(len(inputs)))

    @property
    def _is_of_all(self) -> bool:
        return self.is_joint and self.inputs_with_gradients is None


def _of_numpy(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is none of these")


def declared(where: str, outputs: Outputs, inputs: Sequence[jax.Array]) -> tuple[Any, Any]:
    """Shapes and dtypes of the results, and the structure of their pytree."""
    leaves, tree = jax.tree.flatten(outputs(*inputs) if callable(outputs) else outputs)
    return [shape_and_dtype(where, "outputs", x) for x in leaves], tree


def text_of(where: str, what: str, given: Attributes) -> str:
    """Attributes as the library's functions get them."""
    if given is None or isinstance(given, str):
        return given or ""
    try:
        return json.dumps(dict(given), default=_of_numpy, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"[{where}] needs {what} of finite numbers, text and lists of them; got {given!r}: "
            f"{error}. Pass what JSON can hold, or text."
        ) from None


def _spec(x: Any) -> tuple[tuple[int, ...], str]:
    name = x.dtype.name
    if name not in DTYPES:
        raise ConfigError(
            f"[custom_op] needs outputs of {', '.join(sorted(DTYPES))}; got {name}. Cast in the op."
        )
    return tuple(x.shape), name


def _checked(i: int, x: Any) -> jax.Array:
    given = array("custom_op", f"input {i}", x)
    if given.dtype.name not in DTYPES:
        raise ConfigError(
            f"[custom_op] needs inputs of {', '.join(sorted(DTYPES))}; got {given.dtype} for input "
            f"{i}. Cast it."
        )
    return given


def dense(cotangents: Any, results: Sequence[jax.Array]) -> list[jax.Array]:
    """The cotangents; zeros of the results' dtypes replace those of integers."""
    leaves = jax.tree.leaves(cotangents)
    return [
        jax_compat.varying_like(jnp.zeros(y.shape, y.dtype), y)
        if ct.dtype == jax.dtypes.float0
        else ct
        for ct, y in zip(leaves, results, strict=True)
    ]


def float_inputs(where: str, given: Sequence[int] | None, inputs: Sequence[jax.Array]) -> list[int]:
    """The inputs that have gradients; by default all of float dtypes."""
    floats = [i for i, x in enumerate(inputs) if jnp.issubdtype(x.dtype, jnp.floating)]
    if given is None:
        return floats
    numbers = whole_numbers(where, "inputs_with_gradients", given)
    if not set(numbers) <= set(floats):
        raise ConfigError(
            f"[{where}] needs inputs_with_gradients that number inputs of float dtypes, of "
            f"{floats}; got {numbers}. Count the arrays of the call from 0."
        )
    return numbers
