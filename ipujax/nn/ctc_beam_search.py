"""ctc_beam_search_decoder: the most probable labels of a network with CTC loss, as in popnn."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ipujax import jax_compat
from ipujax.api.arguments import LARGEST_INT32, whole_number
from ipujax.errors import ConfigError
from ipujax.nn.ctc_loss import check_data, length_of
from ipujax.ops.definition import Op

#: Stands for the logarithm of 0.
_LOG_ZERO = -1e30


class CTCPaths(NamedTuple):
    """Label sequences, the most probable first."""

    losses: jax.Array  #: -log p, [batch, paths] of the data's dtype
    lengths: jax.Array  #: [batch, paths] int32
    labels: jax.Array  #: [batch, paths, time] int32; the blank after a path's length


def ctc_beam_search_decoder(
    logits: jax.Array,
    data_lengths: jax.Array | None = None,
    *,
    beam_width: int = 100,
    top_paths: int = 1,
    blank_index: int = -1,
) -> CTCPaths:
    """Finds the most probable label sequences by a prefix beam search.

    Each step keeps the `beam_width` most probable sequences; the probability of a sequence is the
    sum over all its alignments. If there are more beams than sequences, the missing sequences have
    an infinite loss.

    Args:
        logits: [time, batch, classes] of float32, float16 or bfloat16.
        data_lengths: number of steps of each sequence, integers [batch]; all steps by default.
        beam_width: number of sequences kept after each step, 1 or more.
        top_paths: number of sequences returned, at most the beam width.
        blank_index: the blank's class; -1 is the last one.

    Returns:
        `CTCPaths`.

    Raises:
        ConfigError: a wrong shape, dtype, width or number of paths.

    Source: popnn/CTCInference.hpp; Hannun et al., First-Pass Large Vocabulary Continuous Speech
    Recognition using Bi-Directional Recurrent DNNs (2014).

    Example:
        >>> import jax.numpy as jnp
        >>> logits = jnp.log(jnp.array([[[0.7, 0.1, 0.2]], [[0.1, 0.1, 0.8]], [[0.1, 0.8, 0.1]]]))
        >>> paths = ctc_beam_search_decoder(logits, beam_width=4)
        >>> paths.labels[0, 0, : int(paths.lengths[0, 0])].tolist()
        [0, 1]
    """
    where = "ipu.nn.ctc_beam_search_decoder"
    return _decode(where, logits, data_lengths, beam_width, top_paths, blank_index, True)


def ctc_beam_search_decoder_with_log_probs(
    log_probs: jax.Array,
    data_lengths: jax.Array | None = None,
    *,
    beam_width: int = 100,
    top_paths: int = 1,
    blank_index: int = -1,
) -> CTCPaths:
    """`ctc_beam_search_decoder` for log-probabilities.

    Args:
        log_probs: [time, batch, classes] of float32, float16 or bfloat16.
        data_lengths, beam_width, top_paths, blank_index: as `ctc_beam_search_decoder`.

    Returns:
        `CTCPaths`.

    Raises:
        ConfigError: as `ctc_beam_search_decoder`.

    Source: popnn/CTCInference.hpp.

    Example:
        >>> import jax.numpy as jnp
        >>> logs = jnp.log(jnp.array([[[0.6, 0.4]]]))
        >>> ctc_beam_search_decoder_with_log_probs(logs, beam_width=2).labels.tolist()
        [[[0]]]
    """
    where = "ipu.nn.ctc_beam_search_decoder_with_log_probs"
    return _decode(where, log_probs, data_lengths, beam_width, top_paths, blank_index, False)


def _decode(
    where: str, data: Any, lengths: Any, width: Any, paths: Any, blank_index: Any, are_logits: bool
) -> CTCPaths:
    data, blank = check_data(where, "logits" if are_logits else "log_probs", data, blank_index)
    num_beams, num_paths = whole_number(width), whole_number(paths)
    if num_beams is None or num_paths is None or not 1 <= num_paths <= num_beams <= LARGEST_INT32:
        raise ConfigError(
            f"[{where}] needs 1 or more top_paths, and a beam_width not below them, at most "
            f"2**31 - 1; got top_paths={paths} and beam_width={width}. Use another beam."
        )
    steps, batch, _ = data.shape
    limits = length_of(where, "data_lengths", lengths, batch, steps)
    if steps == 0 or batch == 0:
        none = jnp.where(jnp.arange(num_paths) == 0, 0, jnp.inf).astype(data.dtype)
        return CTCPaths(
            jnp.broadcast_to(none, (batch, num_paths)),
            jnp.zeros((batch, num_paths), jnp.int32),
            jnp.full((batch, num_paths, steps), blank, jnp.int32),
        )
    return CTCPaths(
        *_DECODE(data, limits, blank=blank, width=num_beams, paths=num_paths, logits=are_logits)
    )


# The definition ----------------------------------------------------------------------------------


class _Beams(NamedTuple):
    labels: Any  #: [W, T]
    length: Any  #: [W]
    last: Any  #: [W], the blank for an empty sequence
    blank_ends: Any  #: [W], log-probability of alignments that end in a blank
    label_ends: Any  #: [W], and of those that end in the last label


def _step(beams: _Beams, logs: Any, blank: int) -> _Beams:
    width, steps = beams.labels.shape
    classes = logs.shape[0]
    total = jnp.logaddexp(beams.blank_ends, beams.label_ends)
    is_last = beams.last[:, None] == jnp.arange(classes)
    longer = jnp.where(is_last, beams.blank_ends[:, None], total[:, None]) + logs
    longer = longer.at[:, blank].set(_LOG_ZERO)
    blank_ends = total + logs[blank]
    label_ends = jnp.where(beams.length == 0, _LOG_ZERO, beams.label_ends + logs[beams.last])
    # A beam with a label appended may equal another beam: its probability is added there.
    is_end = jnp.arange(steps) == beams.length[:, None] - 1
    shorter = jnp.where(is_end, blank, beams.labels)
    is_prefix = (beams.labels[:, None] == shorter).all(-1) & (beams.length > 0)  # [i, j]
    moved = jnp.where(is_prefix, longer[:, beams.last], _LOG_ZERO).max(0)
    label_ends = jnp.logaddexp(label_ends, moved)
    taken = (is_prefix[:, :, None] & is_last[None]).any(1)
    longer = jnp.where(taken, _LOG_ZERO, longer)
    kept = jnp.logaddexp(blank_ends, label_ends)
    best, at = lax.top_k(jnp.concatenate([kept, longer.reshape(-1)]), width)
    is_longer = at >= width
    parent = jnp.where(is_longer, (at - width) // classes, at)
    label = (at - width) % classes
    length = beams.length[parent]
    is_new = is_longer[:, None] & (jnp.arange(steps) == length[:, None])
    return _Beams(
        jnp.where(is_new, label[:, None], beams.labels[parent]),
        length + is_longer,
        jnp.where(is_longer, label, beams.last[parent]),
        jnp.where(is_longer, _LOG_ZERO, blank_ends[parent]),
        jnp.where(is_longer, best, label_ends[parent]),
    )


def _search(logs: Any, limit: Any, *, blank: int, width: int, paths: int) -> tuple[Any, Any, Any]:
    """Decodes one sequence: logs [T, C] in float32."""
    steps = logs.shape[0]
    first = _Beams(
        jnp.full((width, steps), blank, jnp.int32),
        jnp.zeros(width, jnp.int32),
        jnp.full(width, blank, jnp.int32),
        jnp.full(width, _LOG_ZERO, jnp.float32).at[0].set(0),
        jnp.full(width, _LOG_ZERO, jnp.float32),
    )

    def step(beams: _Beams, given: Any) -> tuple[_Beams, None]:
        time, now = given
        following = _step(beams, now, blank)
        return jax.tree.map(lambda a, b: jnp.where(time < limit, a, b), following, beams), None

    first = jax_compat.varying_like(first, logs, limit)
    found, _ = lax.scan(step, first, (jnp.arange(steps), logs))
    total = jnp.logaddexp(found.blank_ends, found.label_ends)[:paths]
    losses = jnp.where(total > _LOG_ZERO / 2, -total, jnp.inf)
    return losses, found.length[:paths], found.labels[:paths]


def _plain(data: Any, limits: Any, *, logits: bool, **options: Any) -> tuple[Any, Any, Any]:
    logs = jax.nn.log_softmax(data, -1) if logits else data
    logs = jnp.maximum(logs.astype(jnp.float32), _LOG_ZERO)
    losses, lengths, labels = jax.vmap(lambda *x: _search(*x, **options), in_axes=(1, 0))(
        logs, limits
    )
    return losses.astype(data.dtype), lengths, labels


_DECODE = Op("ctc_beam_search_decoder", _plain, multiple=True, dimensions="TbC, b -> bP, bP, bPT")
