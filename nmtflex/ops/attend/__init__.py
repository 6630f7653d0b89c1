"""Windowed attention as one operation; see ``attend``.

Legend: B sentences, S source positions after padding, N hypotheses, A units of a key, H units of a
value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nmtflex.ops.attend.operation import Attended, Damping, Penalty, Source, Window, whole_sentences
from nmtflex.ops.dispatch import implementation

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "Attended",
    "Damping",
    "Penalty",
    "Source",
    "Window",
    "attend",
    "make_source",
    "whole_sentences",
    "window_below",
]


def make_source(keys: Tensor, values: Tensor, lengths: Tensor) -> Source:
    """Lay out a batch's source for ``attend``, once before the first step.

    Steps that read the same ``Source`` share one gradient of keys and values, computed after all of
    them (see ``gather``): ask for the gradients of this function's arguments, not for those of the
    Source's own tensors.

    Args:
        keys: [B, S, A], compared with the queries.
        values: [B, S, H], summed.
        lengths: [B] real positions of each sentence, at least 1; padding is never read.

    Returns:
        The source, in the format of the computation: on the CPU float32, or
        float64 for float64 keys.
    """
    return implementation("attend", keys.device).make_source(keys, values, lengths)


def attend(
    query: Tensor,
    source: Source,
    rows: Tensor | None = None,
    v: Tensor | None = None,
    window: Window | None = None,
    penalty: Penalty | None = None,
    damping: Damping | None = None,
    trace: bool = False,
) -> Attended:
    """Attend once for each of N hypotheses, reading only the positions of its window.

    For the positions start <= s < stop only::

        score(s)   = v . tanh(query + keys[s])           additive score, if v is given
                   = query . keys[s]                     dot and general score
        penalty(s) = gate (s - focus)^2 / (2 sigma^2)    0 where none is given
        damping(s) = exp(-(s - centre)^2 / (2 sigma^2))  1 where none is given
        weights(s) = damping(s) softmax of score(s) - penalty(s)
        context    = sum over s of weights(s) values[s]
        focus      = sum over s of weights(s) s
        log_sum    = log of the sum over s of exp(score(s) - penalty(s))

    Hypothesis n reads sentence ``rows[n]`` of the source in place: nothing is copied for the beam.
    Values outside the window, NaN and infinity included, have no effect. The softmax runs over the
    window only, and damped weights are not normalised again.

    Global attention gives neither window nor penalty, flexible attention a penalty around the last
    focus, local-m a window, local-p a window and a damping around its centre. Gradients flow to
    query, v, keys, values, gates and centres, from context, focus and log_sum.

    Args:
        query: [N, A], projected for the score (additive: W h + b).
        source: From ``make_source``.
        rows: [N] sentence of each hypothesis; faster if ascending. None: hypothesis n is of
            sentence n.
        v: [A] of the additive score, or None for the dot product.
        window: [N] first positions and [N] ends, or None for whole sentences.
        penalty: Taken off the scores, or None.
        damping: Of the weights after the softmax, or None.
        trace: Whether to return the weights.

    Returns:
        Context [N, H] in the format of the source's values; focus [N], in float32 at least; the
        weights [N, S] or None; and log_sum [N], by which a result is merged with others.

    Raises:
        ValueError: A window is empty or leaves the source (reported on the CPU only).
    """
    chosen = implementation("attend", source.keys.device)
    return chosen.attend(query, source, rows, v, window, penalty, damping, trace)


def window_below(tau: float, penalty: Penalty, lengths: Tensor) -> Window:
    """Return the positions with a penalty below a threshold, which are contiguous.

    If there are none, it is the position nearest to the focus (the first of two).

    Args:
        tau: Threshold.
        penalty: Of N hypotheses, in float32 or float64.
        lengths: [N], source tokens of each.
    """
    return implementation("attend", penalty.gate.device).window_below(tau, penalty, lengths)
