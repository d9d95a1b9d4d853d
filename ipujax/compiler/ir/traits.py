"""Facts about each op: one table that every stage and pass uses (`op.traits.view`).

A row is written where its op is lowered, in a file of `ipujax.compiler.rules`; importing that
package fills the table. Ops that no rule ever sees have their rows in `rules/registry.py`. A test
compares the table with the ops of the dialect, in both directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Traits:
    """Facts about one op; by default false, or empty.

    In a program for several devices, the rule for the op's name in `partition/rules` partitions
    the op; if there is none, the rule for the kind `partition` does; if there is neither,
    `replicated` says why.
    """

    partition: str = ""
    #: Attributes that name the dimensions along which elements interact; the kind is then "along".
    along: tuple[str, ...] = ()
    replicated: str = ""  #: why every device does all of the op's work
    refused: str = ""  #: why the op cannot be compiled, as errors show it
    removed: str = ""  #: what replaces the op before it is lowered

    elementwise: bool = False  #: computes each element from those at the same place
    scalars: bool = False  #: elementwise, but some operands may be scalars
    view: bool = False  #: its result is another view of its first operand
    permutes: bool = False  #: a view that has each element exactly once
    reads_part: bool = False  #: reads a part of its first operand
    in_host: bool = False  #: has a form for an operand in the host's memory
    update: bool = False  #: its result is its first operand, changed in some places
    loads: bool = False  #: brings a value from the host's memory
    moves: bool = False  #: passes elements on unchanged
    chooses: bool = False  #: each element of the result is one of the operands'
    cheap: bool = False  #: not a view, but cheap compared with the ops around it
    product: bool = False  #: sums products in a wider type
    collective: bool = False  #: works on the operands of several devices
    control_flow: bool = False  #: its regions are programs, not functions of single elements
    combines: bool = False  #: its region combines single elements
    effect: bool = False  #: has effects other than its results
    unique: bool = False  #: two equal ops give different values
    no_double: bool = False  #: has no float64
    integers64: bool = False  #: PopLibs has it for 64-bit integers
    sees_bits: bool = False  #: counts or moves the bits of its elements' width

    #: The neutral element; ops that have one commute.
    identity: Literal["", "zero", "one", "ones", "lowest", "highest"] = ""
    #: How it treats complex numbers: one op for each part; one op with a pair of values for each
    #: complex one; or the same, with the pairs marked for its rule.
    complex: Literal["", "parts", "pairs", "marked pairs"] = ""
    #: Which operands are indices.
    indices: Callable[[Any], range] | None = None


TRAITS: dict[str, Traits] = {}
#: Traits of custom calls, by target; other targets use the row of "custom_call".
CALL_TRAITS: dict[str, Traits] = {}

#: For undeclared names; programs with such ops are refused by name.
UNKNOWN = Traits(replicated="it is not known")


def declare(*names: str, **facts: Any) -> None:
    """Adds a row with these traits for each op.

    Raises:
        TypeError: an op has a row already, or a fact is not a trait.
    """
    if "along" in facts:
        facts["partition"] = "along"
    traits = Traits(**facts)
    for name in names:
        if name in TRAITS:
            raise TypeError(
                f"[traits] needs one row per op; got a second one for {name!r}. Remove one of them."
            )
        TRAITS[name] = traits


def declare_call(target: str, **facts: Any) -> None:
    """Adds the row for custom calls of this target."""
    CALL_TRAITS[target] = Traits(effect=True, **facts)


def traits_of(name: str) -> Traits:
    """The row for an op's name, with or without StableHLO's prefix."""
    return TRAITS.get(name.removeprefix("stablehlo."), UNKNOWN)
