"""Windowed attention as one operation; see ``attend``.

Three implementations of one contract: ``reference`` in plain PyTorch, ``cpu`` in numba loops and
``cuda`` in Triton. The device of the source chooses. The environment may force one:
``NMTFLEX_KERNELS=reference`` the plain one, and ``NMTFLEX_KERNELS=triton`` all that a GPU would do,
on a CPU by Triton's interpreter (``TRITON_INTERPRET=1``). Legend: B sentences, S source positions
after padding, N hypotheses, A units of a key, H units of a value.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
from typing import TYPE_CHECKING, cast

from nmtflex.errors import OptionError
from nmtflex.kernels.operation import (
    Attended,
    Damping,
    Penalty,
    Source,
    Window,
    precise,
    whole_sentences,
)

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from nmtflex.kernels.operation import Implementation

__all__ = [
    "Attended",
    "Damping",
    "Penalty",
    "Source",
    "Window",
    "as_on_gpu",
    "attend",
    "choice",
    "implementation",
    "make_source",
    "precise",
    "whole_sentences",
]

VARIABLE = "NMTFLEX_KERNELS"
CHOICES = ("auto", "reference", "triton")
INTERPRETER = "TRITON_INTERPRET"


def make_source(keys: Tensor, values: Tensor, lengths: Tensor) -> Source:
    """Lay out a batch's source for ``attend``, once before the first step.

    Steps that read the same ``Source`` share one gradient of keys and values, made after all of
    them (``gather`` says how): ask for the gradients of what came in here, not for those of the
    Source's own tensors.

    Args:
        keys: [B, S, A], what a query is compared with.
        values: [B, S, H], what is summed.
        lengths: [B] real positions of each sentence, at least 1; the rest is never read.

    Returns:
        The source, in the format that the implementation computes in: on the CPU float32, or
        float64 for float64 keys.
    """
    return implementation(keys.device).make_source(keys, values, lengths)


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

    In equations, for the positions start <= s < stop alone::

        score(s)   = v . tanh(query + keys[s])           additive score, where v is given
                   = query . keys[s]                     dot and general score
        penalty(s) = gate (s - focus)^2 / (2 sigma^2)    0 where none is given
        damping(s) = exp(-(s - centre)^2 / (2 sigma^2))  1 where none is given
        weights(s) = damping(s) softmax of score(s) - penalty(s)
        context    = sum over s of weights(s) values[s]
        focus      = sum over s of weights(s) s

    Hypothesis n reads sentence ``rows[n]`` of the source where it lies: nothing is copied for the
    beam, and what is outside of a window changes nothing, NaN and infinity included. The softmax
    runs over the window alone, and damped weights are not normalised again.

    Global attention gives neither window nor penalty, flexible attention a penalty around the last
    focus, local-m a window, local-p a window and a damping around its centre. Gradients flow to
    query, v, keys, values, gates and centres, from context and focus.

    Args:
        query: [N, A], projected as the score wants it (additive: W h + b).
        source: From ``make_source``.
        rows: [N] sentence of each hypothesis; faster if ascending. None: hypothesis n is of
            sentence n.
        v: [A] of the additive score, or None for the dot product.
        window: [N] first positions and [N] ends, or None for whole sentences.
        penalty: Taken off the scores, or None.
        damping: Of the weights after the softmax, or None.
        trace: Whether the weights are to be laid out over the sentence.

    Returns:
        Context [N, H] in the format of the source's values; focus [N], in float32 at least; and the
        weights [N, S] or None.

    Raises:
        ValueError: A window is empty or leaves the source (told on the CPU alone).
    """
    chosen = implementation(source.keys.device)
    return chosen.attend(query, source, rows, v, window, penalty, damping, trace)


def choice(device: torch.device) -> str:
    """Return which implementation computes on a device: "cpu", "cuda" or "reference".

    Raises:
        OptionError: ``NMTFLEX_KERNELS`` has a value that is not known or cannot be had.
    """
    asked = os.environ.get(VARIABLE) or "auto"
    if asked not in CHOICES:
        raise OptionError(f"{VARIABLE}: '{asked}' is not one of {', '.join(CHOICES)}")
    if asked == "triton":
        return _forced_triton(device)
    if asked == "auto" and device.type == "cpu":
        return "cpu"
    if asked == "auto" and device.type == "cuda" and _has_triton():
        return "cuda"
    return "reference"


def _forced_triton(device: torch.device) -> str:
    """Return "cuda" if Triton can compute on a device.

    Raises:
        OptionError: It cannot.
    """
    if not _has_triton():
        raise OptionError(f"{VARIABLE}=triton: Triton is not installed; run pip install triton")
    if device.type != "cuda" and os.environ.get(INTERPRETER) != "1":
        raise OptionError(
            f"{VARIABLE}=triton: on the device {device} Triton runs in its interpreter alone; "
            f"set {INTERPRETER}=1 too, or leave {VARIABLE} out"
        )
    return "cuda"


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def as_on_gpu(device: torch.device) -> bool:
    """Whether a device computes as a GPU does: a GPU itself, or Triton's interpreter on the CPU."""
    return device.type == "cuda" or choice(device) == "cuda"


def implementation(device: torch.device) -> Implementation:
    """Return the module that attends on a device.

    Raises:
        OptionError: ``NMTFLEX_KERNELS`` has a value that is not known or cannot be had.
    """
    # Imported where needed: numba takes half a second.
    return cast("Implementation", importlib.import_module(f"nmtflex.kernels.{choice(device)}"))
