"""What is known of each op: one table, which every stage and pass asks (`op.traits.view`).

A row is written where its op is lowered, in a room of `ipujax.compiler.rules`; importing that
package fills the table. Ops that no rule ever sees have their rows in `rules/registry.py`. A test
holds the table to the ops of the dialect, in both directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Traits:
    """Facts about one op; those that are not given are false, or empty.

    In a program for several devices the rule of the op's name in `partition/rules` decides what
    becomes of the op; where there is none, that of the kind `partition`; where there is none of
    either, `replicated` says why.
    """

    partition: str = ""
    #: Attributes that name the dimensions along which elements meet; the kind is then "along".
    along: tuple[str, ...] = ()
    replicated: str = ""  #: why every device does all of the op's work
    refused: str = ""  #: why the op cannot be compiled, as users are told
    away: str = ""  #: who takes the op away before it is lowered, and what it becomes

    elementwise: bool = False  #: computes each element from those at the same place
    scalars: bool = False  #: elementwise, next to arrays also with scalars
    view: bool = False  #: its result is another view of its first operand
    update: bool = False  #: its result is its first operand, changed in some places
    moves: bool = False  #: hands elements on as they are
    chooses: bool = False  #: each element of the result is one of the operands'
    cheap: bool = False  #: small next to the ops around it, though it is no view
    product: bool = False  #: sums products in a wider type
    collective: bool = False  #: works on the operands of several devices
    control_flow: bool = False  #: its regions are programs, not functions of single elements
    combines: bool = False  #: its region combines single elements
    effect: bool = False  #: does something beside giving values
    unique: bool = False  #: two equal ones are two values all the same
    no_double: bool = False  #: has no float64
    sees_bits: bool = False  #: counts or moves the bits of its elements' width

    #: What leaves elements as they are where the op combines them with it; such ops commute.
    identity: Literal["", "zero", "one", "ones", "lowest", "highest"] = ""
    #: On complex numbers: one op for each part; one op with two values for each complex one; the
    #: same with a rule that is told which values those are.
    complex: Literal["", "parts", "pairs", "pairs told"] = ""
    #: Which operands are indices.
    indices: Callable[[Any], range] | None = None


TRAITS: dict[str, Traits] = {}

#: Of names that nobody declared; programs with such ops are refused by name.
UNKNOWN = Traits(replicated="it is not known")


def declare(*names: str, **facts: Any) -> None:
    """Writes the rows of ops that have these traits.

    Raises:
        TypeError: an op has a row already, or the facts are no traits.
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


def traits_of(name: str) -> Traits:
    """The row of the op of that name, with or without StableHLO's prefix."""
    return TRAITS.get(name.removeprefix("stablehlo."), UNKNOWN)
