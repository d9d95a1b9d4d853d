"""Hyperparameters of optimizers: constants of the program, variables of the state, or schedules."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ipujax.api.arguments import real_number
from ipujax.errors import ConfigError

WHERE = "ipu.optim.set_hyperparameters"


@dataclass(frozen=True)
class Range:
    """The finite numbers that a hyperparameter may be."""

    text: str
    contains: Callable[[float], bool]


_ANY = Range("a finite number", lambda _: True)
_POSITIVE = Range("a finite number above 0", lambda x: x > 0)
_NOT_NEGATIVE = Range("a finite number of at least 0", lambda x: x >= 0)
_DECAY = Range("a number from 0 to below 1", lambda x: 0 <= x < 1)

RANGES: Mapping[str, Range] = {
    "learning_rate": _NOT_NEGATIVE,
    "momentum": _NOT_NEGATIVE,
    "dampening": _ANY,
    "weight_decay": _NOT_NEGATIVE,
    "b1": _DECAY,
    "b2": _DECAY,
    "decay": _DECAY,
    "eps": _NOT_NEGATIVE,
    "max_grad_norm": _POSITIVE,
    "max_weight_norm": _POSITIVE,
    "loss_scaling": _POSITIVE,
    "velocity_scaling": _POSITIVE,
}


@dataclass(frozen=True)
class Variable:
    """A hyperparameter that is stored in the state; made by `ipu.optim.variable`."""

    value: float


#: A constant, a variable, or a function of the number of updates so far (int32 []).
Hyperparameter: TypeAlias = float | Variable | Callable[[jax.Array], Any]


def variable(value: float) -> Variable:
    """A hyperparameter that changes without compiling the training step again.

    It is stored in the optimizer's state, as float32 []; `set_hyperparameters` sets it.

    Args:
        value: the first value; a finite number.
    Raises:
        ConfigError: it is not.

    Source: PopTorch's variable optimizer attributes.

    Example:
        >>> tx = ipu.optim.sgd(ipu.optim.variable(1.0))
        >>> state = tx.init(jnp.zeros(2))
        >>> state = ipu.optim.set_hyperparameters(state, learning_rate=0.5)
        >>> print(tx.update(jnp.ones(2), state)[0])
        [-0.5 -0.5]
    """
    _check("ipu.optim.variable", "value", value, _ANY)
    return Variable(float(value))


@jax.tree_util.register_pytree_with_keys_class
class Hyperparameters:
    """The part of a state that holds its optimizer's hyperparameters.

    A pytree: variables are its leaves, the rest is static.

    Attributes:
        owner: such as "ipu.optim.adam".
        constants: ((name, value), ...); values are floats, or "a schedule".
        variables: name -> float32 [].
    """

    def __init__(
        self, owner: str, constants: tuple[tuple[str, Any], ...], variables: dict[str, Any]
    ):
        self.owner = owner
        self.constants = constants
        self.variables = variables

    def tree_flatten_with_keys(self) -> tuple[Any, Any]:
        names = tuple(sorted(self.variables))
        leaves = tuple((jax.tree_util.DictKey(n), self.variables[n]) for n in names)
        return leaves, (self.owner, self.constants, names)

    @classmethod
    def tree_unflatten(cls, static: Any, leaves: Any) -> Hyperparameters:
        owner, constants, names = static
        return cls(owner, constants, dict(zip(names, leaves, strict=True)))

    def __repr__(self) -> str:
        return f"Hyperparameters({self.owner}, {dict(self.constants)}, {self.variables})"


class Values(dict[str, Any]):
    """Hyperparameters of one update by name: floats, or float32 [].

    Attributes:
        valid: bool []: all variables are finite; None if there is no variable.
    """

    valid: jax.Array | None = None


class Declared:
    """The hyperparameters that a user passed to an optimizer, checked."""

    def __init__(self, owner: str, **given: Hyperparameter):
        self.owner = owner
        self.given = given
        for name, value in given.items():
            # `scale_loss` must find the scale in the state.
            if not callable(value) or name == "loss_scaling":
                number = value.value if isinstance(value, Variable) else value
                _check(owner, name, number, RANGES[name])

    def is_constant(self, name: str, value: float) -> bool:
        """Whether it always has this value."""
        given = self.given[name]
        return not isinstance(given, Variable) and not callable(given) and given == value

    def initial(self) -> Hyperparameters:
        """The hyperparameters of the first state."""
        variables = {
            name: jnp.float32(value.value)
            for name, value in self.given.items()
            if isinstance(value, Variable)
        }
        return Hyperparameters(self.owner, self._constants(), variables)

    def values(self, state: Hyperparameters, count: jax.Array) -> Values:
        """The hyperparameters of the update that follows `count` others.

        Raises:
            ConfigError: the state belongs to an optimizer with other constants.
        """
        self._check_state(state)
        values = Values()
        for name, given in self.given.items():
            if isinstance(given, Variable):
                values[name] = state.variables[name]
            else:
                values[name] = given(count) if callable(given) else float(given)
        if state.variables:
            values.valid = jnp.all(jnp.isfinite(jnp.stack(list(state.variables.values()))))
        return values

    def _constants(self) -> tuple[tuple[str, Any], ...]:
        items = self.given.items()
        return tuple(
            (name, "a schedule" if callable(value) else float(value))
            for name, value in items
            if not isinstance(value, Variable)
        )

    def _check_state(self, state: Hyperparameters) -> None:
        before, now = dict(state.constants), dict(self._constants())
        for name in [n for n in self.given if before.get(n) != now.get(n)]:
            raise ConfigError(
                f"[{self.owner}] needs the constants that its state was made with; got {name} = "
                f"{now.get(name, 'a variable')} where the state has "
                f"{before.get(name, 'a variable')}. Pass ipu.optim.variable({name}) for a value "
                "that changes, or make a new state with init."
            )


def set_hyperparameters(state: Any, **values: Any) -> Any:
    """Returns the state of an optimizer with new values of its variables.

    Args:
        state: a pytree that holds states of `ipu.optim` optimizers, wrapped or not. Every
            optimizer in it that has a variable of the name gets the value.
        values: name=value; numbers, or traced float32 [], which are not checked.
    Returns:
        The same pytree with these variables changed; no program is compiled again.
    Raises:
        ConfigError: the state has no such variable, the hyperparameter is a constant, or the value
            is not allowed.

    Source: PopTorch's `setOptimizer`.

    Example:
        >>> tx = ipu.optim.adam(ipu.optim.variable(1e-3), eps=1e-6)
        >>> state = tx.init(jnp.zeros(2))
        >>> state = ipu.optim.set_hyperparameters(state, learning_rate=1e-4)
        >>> try:
        ...     ipu.optim.set_hyperparameters(state, eps=1e-5)
        ... except ipu.ConfigError as error:
        ...     print(str(error)[:67])
        [ipu.optim.set_hyperparameters] needs a variable; got eps, which is
    """
    found = list(hyperparameters_in(state))
    for name, value in values.items():
        _check_variable(name, found)
        if not isinstance(value, jax.core.Tracer):
            _check(WHERE, name, value, RANGES[name])

    def changed(node: Any) -> Any:
        if not isinstance(node, Hyperparameters):
            return node
        new = {n: _filled(old, values.get(n)) for n, old in node.variables.items()}
        return Hyperparameters(node.owner, node.constants, new)

    return jax.tree.map(changed, state, is_leaf=lambda x: isinstance(x, Hyperparameters))


def hyperparameters_in(state: Any) -> Iterator[Hyperparameters]:
    """The hyperparameters of all optimizers in a state."""
    for node in jax.tree.leaves(state, is_leaf=lambda x: isinstance(x, Hyperparameters)):
        if isinstance(node, Hyperparameters):
            yield node


def check_number(where: str, name: str, value: Any, what: str, allowed: bool) -> None:
    """Raises the error for a number that is not allowed."""
    if not allowed:
        raise ConfigError(f"[{where}] needs {name} to be {what}; got {value!r}. Pass such a value.")


def _check(where: str, name: str, value: Any, allowed: Range) -> None:
    if isinstance(value, jax.core.Tracer):
        raise ConfigError(
            f"[{where}] needs {name} to be {allowed.text}, known when the optimizer is made; got "
            f"{value!r}. Pass ipu.optim.variable, or a function of the number of updates."
        )
    is_number = isinstance(value, int | float | np.number)
    is_number = is_number or (isinstance(value, jax.Array | np.ndarray) and np.ndim(value) == 0)
    number = real_number(value) if is_number else math.nan
    check_number(
        where, name, value, allowed.text, math.isfinite(number) and allowed.contains(number)
    )


def _check_variable(name: str, found: list[Hyperparameters]) -> None:
    if any(name in node.variables for node in found):
        return
    owners = [node.owner for node in found if name in dict(node.constants)]
    if owners:
        raise ConfigError(
            f"[{WHERE}] needs a variable; got {name}, which is a constant of {owners[0]}. "
            f"Pass {name}=ipu.optim.variable(...) to {owners[0]}."
        )
    known = sorted({n for node in found for n in node.variables})
    close = difflib.get_close_matches(name, known, 1)
    advice = f"Use {close[0]}" if close else "Use the name of a variable"
    raise ConfigError(
        f"[{WHERE}] needs one of the state's variables ({', '.join(known) or 'it has none'}); got "
        f"{name!r}. {advice}."
    )


def _filled(old: Any, value: Any) -> Any:
    """The value with the shape, dtype and place of the old one."""
    if value is None:
        return old
    new = jnp.full_like(old, value)
    if isinstance(old, jax.core.Tracer) or isinstance(value, jax.core.Tracer):
        return new
    is_placed = isinstance(old, jax.Array) and old.committed
    return jax.device_put(new, old.sharding) if is_placed else new
