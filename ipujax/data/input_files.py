"""The inputs of a program in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np

from ipujax.data import trees
from ipujax.host import array_files


def export_inputs(path: str | Path, inputs: Any) -> None:
    """Writes a pytree of arrays (dicts, lists, tuples) to a file; see `load_inputs`.

    Args:
        path: path of the file; an existing file is replaced.
        inputs: arrays of any shapes and dtypes, and numbers.
    Raises:
        FeedError: an unsupported kind of pytree.
        OSError: the file cannot be written; an existing file stays intact.

    Source: `export_inputs_to_file` of Graphcore's TensorFlow.

    Example:
        >>> ipu.data.export_inputs("x.ipuarrays", {"x": np.arange(3), "y": (np.float16(2),)})
        >>> print(ipu.data.load_inputs("x.ipuarrays"))
        {'x': array([0, 1, 2]), 'y': (array(2., dtype=float16),)}
    """
    structure = trees.to_json(inputs)
    leaves = [np.asarray(x) for x in jax.tree.leaves(inputs)]
    array_files.write(Path(path), {str(i): x for i, x in enumerate(leaves)}, {"tree": structure})


def load_inputs(path: str | Path) -> Any:
    """The pytree of NumPy arrays that `export_inputs` wrote, verified by checksums.

    Args:
        path: path of the file.
    Returns:
        the pytree, with the shapes and dtypes that were written.
    Raises:
        ArrayFileError: the file is damaged or of another kind.

    Example:
        >>> ipu.data.export_inputs("x.ipuarrays", [np.float32(1)])
        >>> print(ipu.data.load_inputs("x.ipuarrays"))
        [array(1., dtype=float32)]
    """
    arrays, meta = array_files.read(Path(path))
    try:
        leaves = [arrays[str(i)] for i in range(len(arrays))]
        return trees.from_json(meta["tree"], leaves)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise array_files.damaged(Path(path), error) from error
