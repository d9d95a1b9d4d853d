"""`host_call`: functions on the host, in Python or the user's C++, with gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ipujax import jax_compat
from ipujax.api.arguments import array, flag, text
from ipujax.api.custom.custom_op import Attributes, declared, dense, float_inputs, text_of
from ipujax.errors import CallbackError, ConfigError
from ipujax.host import custom_op_libraries

_ONCE = "A gradient on the host has none itself: take derivatives once"
#: A function of NumPy arrays on the host, and the shapes and dtypes of what it returns.
_Host = Callable[..., Sequence[np.ndarray]]


def host_call(
    function: Callable[..., Any] | str | Path,
    outputs: Any,
    *,
    name: str = "Callback",
    attributes: Attributes = None,
    gradient: Callable[..., Any] | bool = False,
    inputs_with_gradients: Sequence[int] | None = None,
    flags: str = "",
) -> Callable[..., Any]:
    """A pure function that runs on the host: arguments are copied to it, results back.

    Args:
        function: a function of NumPy arrays; or a library, as `ipujax.custom_op` takes it, with

                extern "C" void Callback(
                    const std::vector<const void*>& inputs,
                    const std::vector<std::uint32_t>& elements, const std::vector<void*>& outputs,
                    const std::string& attributes, const std::string& name)

            where `elements` are the numbers of elements of the inputs.
        outputs: a pytree of `jax.ShapeDtypeStruct`s or arrays that has the results' shapes and
            dtypes, or a function of the inputs that returns one.
        name: name of the library's function.
        attributes: as for `ipujax.custom_op`; for libraries.
        gradient: of a Python function: a function of the cotangents of all results, then the
            inputs, then the results, all flat, that returns a gradient for each input of a float
            dtype. Of a library: True if it has `<name>_grad`, which gets these arrays as inputs.
        inputs_with_gradients: numbers of the inputs that have gradients, as for `ipujax.custom_op`.
        flags: flags for the compiler.
    Returns:
        a function of arrays that returns the results. Under `jax.vmap` it is called once for each
        example.
    Raises:
        ConfigError: an argument is invalid.
        CallbackError: when the program runs: results of other shapes than declared; or what the
            function raised.

    Source: `custom_ops.cpu_user_operation` of Graphcore's TensorFlow.

    Example:
        >>> square = ipu.host_call(np.square, lambda x: x, gradient=lambda ct, x, y: 2 * ct * x)
        >>> jax.jit(jax.grad(lambda x: square(x).sum()))(jnp.arange(3.0)).tolist()
        [0.0, 2.0, 4.0]
    """
    given = text_of("host_call", "attributes", attributes)
    name = text("host_call", "name", name)
    on_host, backward_on_host = _on_host(function, gradient, name, given, flags)
    called = getattr(function, "__name__", name)

    def forward(*inputs: jax.Array) -> Any:
        leaves, tree = declared("host_call", outputs, inputs)
        hint = "Pass gradient= to ipujax.host_call" if backward_on_host is None else _ONCE
        call_on_host = _without_derivative(called, hint, functools.partial(_call, on_host, leaves))
        return jax.tree.unflatten(tree, call_on_host(*inputs))

    def save(*inputs: jax.Array) -> Any:
        made = call(*inputs)
        return made, (inputs, jax.tree.leaves(made))

    def backward(saved: Any, cotangents: Any) -> tuple[Any, ...]:
        inputs, results = saved
        numbers = float_inputs("host_call", inputs_with_gradients, inputs)
        arrays = [*dense(cotangents, results), *inputs, *results]
        assert backward_on_host is not None
        gradient_on_host = functools.partial(_call, backward_on_host, [inputs[i] for i in numbers])
        found = _without_derivative(f"the gradient of {called}", _ONCE, gradient_on_host)(*arrays)
        by_input = dict(zip(numbers, found, strict=True))
        return tuple(by_input.get(i) for i in range(len(inputs)))

    call = forward
    if backward_on_host is not None:
        call = jax.custom_vjp(forward)
        call.defvjp(save, backward)

    def checked(*inputs: Any) -> Any:
        return call(*(array("host_call", f"input {i}", x) for i, x in enumerate(inputs)))

    checked.__name__ = checked.__qualname__ = called
    return checked


def _on_host(
    function: Callable[..., Any] | str | Path,
    gradient: Callable[..., Any] | bool,
    name: str,
    attributes: str,
    flags: str,
) -> tuple[_Host, _Host | None]:
    """The function on the host, and its gradient there, if it has one."""
    has_gradient = callable(gradient) or flag("host_call", "gradient", gradient)
    if callable(function):
        if has_gradient and not callable(gradient):
            raise ConfigError(
                "[host_call] needs a function for the gradient of a Python function; got True. "
                "Pass a function of cotangents, inputs and results."
            )
        return _python(function), _python(gradient) if callable(gradient) else None
    if callable(gradient):
        raise ConfigError(
            f"[host_call] needs gradient=True for a library with {name}_grad; got a function. "
            "Pass True or False."
        )
    digest = custom_op_libraries.register("host_call", function, text("host_call", "flags", flags))
    backward = _library(digest, f"{name}_grad", attributes) if has_gradient else None
    return _library(digest, name, attributes), backward


def _without_derivative(
    what: str, hint: str, call: Callable[..., list[jax.Array]]
) -> Callable[..., list[jax.Array]]:
    """The call; an error refuses its derivative and says what to do instead."""
    refusing = jax.custom_jvp(call)

    def refuse(*_: Any) -> Any:
        raise ConfigError(f"[host_call] needs a gradient of {what}; got none. {hint}.")

    refusing.defjvp(refuse)
    return refusing


def _call(on_host: _Host, like: Sequence[Any], *inputs: jax.Array) -> list[jax.Array]:
    specs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in like]
    results = jax.pure_callback(
        lambda *arrays: on_host(specs, *map(np.asarray, arrays)),
        specs,
        *inputs,
        vmap_method="sequential",
    )
    return list(jax_compat.varying_like(results, inputs))


def _python(function: Callable[..., Any]) -> _Host:
    def on_host(specs: Sequence[Any], *arrays: np.ndarray) -> list[np.ndarray]:
        results = [np.asarray(x) for x in jax.tree.leaves(function(*arrays))]
        shapes, wanted = [x.shape for x in results], [spec.shape for spec in specs]
        if shapes != wanted:
            raise CallbackError(
                f"[host_call] needs results of shapes {wanted}; got {shapes}. Declare in `outputs` "
                "what the function returns."
            )
        return [_cast(x, spec.dtype) for x, spec in zip(results, specs, strict=True)]

    return on_host


def _cast(x: np.ndarray, dtype: Any) -> np.ndarray:
    loses_imaginary = x.dtype.kind == "c" and np.dtype(dtype).kind != "c"
    if x.dtype.kind in "OSUMm" or loses_imaginary:
        raise CallbackError(
            f"[host_call] needs results that {dtype} holds; got {x.dtype}. Declare in `outputs` "
            "what the function returns."
        )
    return x.astype(dtype)


def _library(digest: str, name: str, attributes: str) -> _Host:
    def on_host(specs: Sequence[Any], *arrays: np.ndarray) -> list[np.ndarray]:
        library = custom_op_libraries.find(digest)
        assert library is not None  # this closure's
        given: list[Any] = [np.ascontiguousarray(x) for x in arrays]
        results: list[Any] = [np.empty(spec.shape, spec.dtype) for spec in specs]
        try:
            library.functions.callOnHost(name, given, results, attributes)
        except RuntimeError as error:  # the user's
            raise CallbackError(str(error)) from None
        return results

    return on_host
