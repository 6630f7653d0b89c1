"""What attention looked at, step by step, for given translations."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmtflex.attention import Trace
from nmtflex.decoding.batching import batches
from nmtflex.decoding.ensemble import Ensemble, Ids, StepModel
from nmtflex.decoding.forced import forced_steps
from nmtflex.decoding.turns import in_turn

Numbers = npt.NDArray[Any]


class SentenceTrace(NamedTuple):
    """The T steps of a translation, end of sentence last; None for what a mechanism lacks.

    Of a decoder with several heads or attending layers it is one of them, or their mean, which has
    no windows and no slots.
    """

    computed: Numbers  # [T] score computations; of several heads the mean
    weights: Numbers | None  # [T, S]
    gate: Numbers | None  # [T]
    focus: Numbers | None  # [T], source positions from 0
    window_start: Numbers | None  # [T]
    window_stop: Numbers | None  # [T]
    beta: Numbers | None  # [T, K], weights over slots
    alpha: Numbers | None  # [S, K], what filled them

    def to_dict(self) -> dict[str, Any]:
        """Return lists, numbers to six digits, under the names of the attention file."""
        return {
            name: None if value is None else np.round(value, 6).tolist()
            for name, value in self._asdict().items()
        }


def trace_pairs(
    model: StepModel, pairs: Sequence[tuple[Ids, Ids]], batch_sentences: int = 64
) -> list[SentenceTrace | None]:
    """Force-decode given targets and return what attention looked at.

    Args:
        model: In evaluation mode.
        pairs: Ids of source and target, without BOS and EOS.
        batch_sentences: Pairs computed together.

    Returns:
        A trace for each pair; None if the source is empty.

    Raises:
        ValueError: The model returns no traces.
    """
    found: list[SentenceTrace | None] = [None] * len(pairs)
    lengths = [max(len(source), len(target)) if source else 0 for source, target in pairs]
    for batch in batches(lengths, batch_sentences):
        batch.sort(key=lambda index: -len(pairs[index][1]))
        trace = functools.partial(_trace_batch, model, [pairs[index] for index in batch])
        traces = in_turn(trace, model.device)
        for index, one in zip(batch, traces, strict=True):
            found[index] = one
    return found


@torch.inference_mode()
def _trace_batch(model: StepModel, pairs: Sequence[tuple[Ids, Ids]]) -> list[SentenceTrace]:
    """Trace pairs sorted by target length, the longest first; no source is empty."""
    ensemble = Ensemble([model], [source for source, _ in pairs], counting=True)
    steps: list[Any] = []  # Trace
    for _ in forced_steps(ensemble, [target for _, target in pairs]):
        if not ensemble.traces:
            raise ValueError(f"{type(model).__name__} returns no traces")
        steps.append(ensemble.traces[0])
    return [
        _of_sentence(steps[: len(target) + 1], row, len(source))
        for row, (source, target) in enumerate(pairs)
    ]


def _of_sentence(steps: Sequence[Trace], row: int, source_length: int) -> SentenceTrace:
    """Take a sentence's rows out of the traces of its steps."""
    each = [step.computed if step.each is None else step.each for step in steps]
    computed = np.stack([_numbers(part[row]) for part in each])
    looked = np.arange(len(steps))
    if steps[0].gate is not None:
        # With a gate, a step that computes nothing takes the last context again, and shows what
        # that looked at. Without one it is a scan past the end, which looks at nothing.
        looked = np.maximum.accumulate(np.where(computed > 0, looked, 0))

    def over_steps(name: str) -> Numbers | None:
        parts = [getattr(step, name) for step in steps]
        return None if parts[0] is None else np.stack([_numbers(part[row]) for part in parts])

    def seen(name: str) -> Numbers | None:
        found = over_steps(name)
        return None if found is None else found[looked]

    weights, alpha = seen("weights"), steps[0].alpha
    return SentenceTrace(
        computed=computed,
        weights=None if weights is None else weights[:, :source_length],
        gate=over_steps("gate"),
        focus=seen("focus"),
        window_start=seen("window_start"),
        window_stop=seen("window_stop"),
        beta=seen("beta"),
        alpha=None if alpha is None else _numbers(alpha[row, :source_length]),
    )


def _numbers(tensor: Tensor) -> Numbers:
    """Copy a tensor to numpy; integers stay integers, all else becomes float64."""
    tensor = tensor.double() if tensor.is_floating_point() else tensor
    return tensor.cpu().numpy()


def most_attended(weights: Numbers) -> Numbers:
    """Return the place of the largest weight in each row of weights [T, S].

    It is the last place if all are 0, as where a scan has passed the end of the source.
    """
    return np.where(weights.any(1), weights.argmax(1), weights.shape[1] - 1)


def attention_line(
    source: Sequence[str], target: Sequence[str], score: float, trace: SentenceTrace | None
) -> str:
    """Return a line of the attention file: a JSON object, ended by a line feed.

    ``target`` ends with ``</s>``, so that it has length T like everything by step.
    """
    record: dict[str, Any] = {"source": list(source), "target": [*target, "</s>"], "score": score}
    if trace is None:
        record |= {"target": [], **dict.fromkeys(SentenceTrace._fields)}
    else:
        record |= trace.to_dict()
    return json.dumps(record, ensure_ascii=False) + "\n"
