"""Maps each IPU of a program to an IPU of the device.

IPUs are linked in pairs, and each pair to the next: 0 and 1, above them 2 and 3, and so on.
"""

from __future__ import annotations


def in_order(name: str, num_ipus: int) -> list[int]:
    """The IPUs of a device in the order in which a program's IPUs 0, 1, ... take them.

    Args:
        name: "zigzag" or "auto": the natural order. "snake": each is linked to the next. "hoof":
            the last is linked to the first, too.

    Source: `SelectionOrder` of Graphcore's TensorFlow.

    Example:
        >>> in_order("snake", 8)
        [0, 1, 3, 2, 4, 5, 7, 6]
        >>> in_order("hoof", 8)
        [0, 2, 4, 6, 7, 5, 3, 1]
    """
    natural = list(range(num_ipus))
    if name == "snake":
        return [ipu ^ (ipu // 2 % 2) if (ipu | 1) < num_ipus else ipu for ipu in natural]
    if name == "hoof":
        return natural[::2] + natural[1::2][::-1]
    return natural
