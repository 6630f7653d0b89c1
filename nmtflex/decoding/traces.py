"""What attention looked at, step by step, for given translations."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmtflex.decoding.batching import batches
from nmtflex.decoding.ensemble import Encoded, Ensemble, Ids, StepModel, encode
from nmtflex.decoding.forced import forced_steps
from nmtflex.decoding.turns import in_turn
from nmtflex.ops.dispatch import steady_threads

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


OVER_STEPS = [name for name in SentenceTrace._fields if name != "alpha"]
OF_EACH_STEP = ("computed", "gate")  # whatever it looked at


class Origin(NamedTuple):
    """Where the sources of pairs have been encoded."""

    encoded: Encoded
    rows: Sequence[int]  # the sentence of each pair


def trace_pairs(
    model: StepModel,
    pairs: Sequence[tuple[Ids, Ids]],
    batch_sentences: int = 64,
    origin: Origin | None = None,
) -> list[SentenceTrace | None]:
    """Force-decode given targets and return what attention looked at.

    Args:
        model: In evaluation mode.
        pairs: Ids of source and target, without BOS and EOS.
        batch_sentences: Pairs computed together.
        origin: Where this model has encoded the sources, if it has. They are encoded once more
            where that was not for traces.

    Returns:
        A trace for each pair; None if the source is empty.

    Raises:
        ValueError: The model returns no traces.
    """
    found: list[SentenceTrace | None] = [None] * len(pairs)
    lengths = [max(len(source), len(target)) if source else 0 for source, target in pairs]
    if origin is not None and not origin.encoded.traced:
        origin = None
    rows = range(len(pairs)) if origin is None else origin.rows
    for batch in batches(lengths, batch_sentences):
        batch.sort(key=rows.__getitem__)
        own = None if origin is None else Origin(origin.encoded, [rows[index] for index in batch])
        trace = functools.partial(_trace_batch, model, [pairs[index] for index in batch], own)
        traces = in_turn(trace, model.device)
        for index, one in zip(batch, traces, strict=True):
            found[index] = one
    return found


@torch.inference_mode()
@steady_threads()
def _trace_batch(
    model: StepModel, pairs: Sequence[tuple[Ids, Ids]], origin: Origin | None
) -> list[SentenceTrace]:
    """Trace pairs; no source is empty, and those that have been encoded are in that order."""
    if origin is None:
        encoded = encode([model], [source for source, _ in pairs], traced=True)
        origin = Origin(encoded, range(len(pairs)))
    ensemble = Ensemble([model], origin.encoded, counting=True)
    targets = [target for _, target in pairs]
    longest = 1 + max(map(len, targets))
    looks: dict[str, Numbers] = {}
    alpha: Tensor | None = None
    for step, (running, _) in enumerate(forced_steps(ensemble, targets, origin.rows)):
        if not ensemble.traces:
            raise ValueError(f"{type(model).__name__} returns no traces")
        trace = ensemble.traces[0]
        alpha = trace.alpha
        computed = trace.computed if trace.each is None else trace.each
        for name, shown in {**trace._asdict(), "computed": computed}.items():
            if name in OVER_STEPS and shown is not None:
                part = _numbers(shown)
                if name not in looks:
                    looks[name] = np.zeros((len(pairs), longest, *part.shape[1:]), part.dtype)
                looks[name][_numbers(running), step] = part
    filled = None if alpha is None else _numbers(alpha)
    return [
        _of_sentence(
            {name: _precise(part[place, : len(target) + 1]) for name, part in looks.items()},
            None if filled is None else _precise(filled[row]),
            len(source),
        )
        for place, (row, (source, target)) in enumerate(zip(origin.rows, pairs, strict=True))
    ]


def _of_sentence(
    looks: Mapping[str, Numbers], alpha: Numbers | None, source_length: int
) -> SentenceTrace:
    """Return the trace of a sentence, given what its T steps show and what filled its slots."""
    computed = looks["computed"]
    shown = dict(looks)
    if "gate" in looks:
        # With a gate, a step that computes nothing takes the last context again, and shows what
        # that looked at. Without one it is a scan past the end, which looks at nothing.
        last = np.maximum.accumulate(np.where(computed > 0, np.arange(len(computed)), 0))
        shown |= {name: part[last] for name, part in looks.items() if name not in OF_EACH_STEP}
    if "weights" in shown:
        shown["weights"] = shown["weights"][:, :source_length]
    shown |= {} if alpha is None else {"alpha": alpha[:source_length]}
    return SentenceTrace(computed, *(shown.get(name) for name in SentenceTrace._fields[1:]))


def _numbers(tensor: Tensor) -> Numbers:
    """Copy a tensor to numpy, which knows no bfloat16."""
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).cpu().numpy()


def _precise(numbers: Numbers) -> Numbers:
    """Return integers as they are, and all else in float64."""
    return numbers.copy() if numbers.dtype.kind == "i" else numbers.astype(np.float64)


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
