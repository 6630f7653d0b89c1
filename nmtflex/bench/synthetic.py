"""Decoding time and memory by the length of the source: ``nmtflex bench --synthetic``.

The model has random weights, so that sources can have any length, and otherwise behaves like a
trained one: all hypotheses live for a fixed number of steps, flexible attention's gate is 0.5, and
its focus moves evenly from the first source position to the last. (With random weights scores
hardly differ, and the focus would settle at position 2.5 after some seven steps: every step would
read the same few keys, from the cache.) The longer the source, the further apart the windows of two
steps, so no step finds its keys in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmtflex.attention import Limits
from nmtflex.attention.flexible import Gate
from nmtflex.bench.decoding import Ratio, Times, in_fresh_process, now, peak_memory, ratio
from nmtflex.config import (
    AttentionConfig,
    DeviceConfig,
    FlexibleConfig,
    GlobalConfig,
    MemoryConfig,
    ModelConfig,
    SearchConfig,
)
from nmtflex.decoding.batching import batches
from nmtflex.decoding.ensemble import Ids
from nmtflex.decoding.search import beam_search
from nmtflex.decoding.tally import Tally
from nmtflex.model.build import build_model
from nmtflex.model.decoders.base import Step
from nmtflex.model.inference import make_ready
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.runs.device import open_device, storage_dtype
from nmtflex.text.visible import counted
from nmtflex.text.vocabulary import EOS_ID

MECHANISMS: tuple[AttentionConfig, ...] = (FlexibleConfig(), GlobalConfig(), MemoryConfig(K=64))
SEED = 1
GATE = 0.5
FIRST_WORD = 4  # the ids before it are specials
NEVER = -1e4  # logit of the end of sentence; finite, since the last step has no other choice


class SyntheticTask(NamedTuple):
    """What to measure."""

    lengths: Sequence[int]  # source positions
    steps: int  # target tokens a sentence, the end of sentence counted; 0 for the source's
    words: int  # entries of each vocabulary
    repeats: int
    tau: float  # of flexible attention
    beam: int
    batch_sentences: int  # at most
    int8: bool
    device: DeviceConfig

    def steps_at(self, length: int) -> int:
        """Return the target tokens of a source of ``length`` positions."""
        return self.steps or length

    @property
    def sentences(self) -> int:
        """Sentences decoded together: as many at each length as fit at the longest."""
        count = self.batch_sentences
        return len(next(batches([max(self.lengths)] * count, count, self.beam)))


class DecodedOnce(NamedTuple):
    """The times of one decoding."""

    milliseconds: float  # per target token, once the source was read
    encoder: float  # seconds until then
    whole: float  # seconds


class SyntheticRow(NamedTuple):
    """What was measured of a mechanism at one length."""

    attention: str
    length: int  # source positions
    milliseconds: Times  # a target token, once the source was read
    ratio: Ratio  # of the milliseconds to those at the shortest length
    encoder: Times  # seconds until a batch is read
    whole: Times  # seconds of decoding a batch, reading it included
    cps: float | None  # score computations a step
    peak_memory: int  # bytes

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON, numbers unrounded."""
        return {
            "attention": self.attention,
            "source_positions": self.length,
            "milliseconds_per_target_token": self.milliseconds.to_dict(),
            "ratio_to_shortest": self.ratio._asdict(),
            "encoder_seconds": self.encoder.to_dict(),
            "seconds": self.whole.to_dict(),
            "cps": self.cps,
            "peak_memory_bytes": self.peak_memory,
        }


class Paced:
    """A model for decoding that reports when it has read its source, and whose focus moves.

    Args:
        model: With or without flexible attention.
        steps: Of the decoder; in the last one the focus is at the last source position.
        tau: Threshold, if there is a penalty.
    """

    def __init__(self, model: Seq2Seq, steps: int, tau: float) -> None:
        self.device = model.device
        self.read = 0.0  # when the last source had been read, by ``now``
        self._model = model
        self._travels = model.gated
        self._limits = Limits(tau) if model.gated else Limits()
        self._steps = steps
        self._encoded: Any = None
        self.log_probs, self.best_words = model.log_probs, model.best_words
        self.encoding_computations = model.encoding_computations
        self.attending = model.attending

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Any, tuple[Tensor, ...]]:
        """Read a batch; see ``Seq2Seq.encode``."""
        last = source.shape[1] - 1
        self._places = (last * step / (self._steps - 1) for step in range(self._steps))
        encoded = self._encoded = self._model.encode(source, lengths, self._limits)
        self.read = now(self.device)
        return encoded

    def forget(self) -> None:
        """Drop the source: freeing its memory takes time that belongs to no step."""
        self._encoded = None

    def step(
        self,
        memory: Any,
        rows: Tensor,
        state: tuple[Tensor, ...],
        tokens: Tensor,
        trace: bool = False,
    ) -> Step:
        """Advance every hypothesis by one word; see ``Seq2Seq.step``."""
        if self._travels:
            *cells, focus = state  # the attention mechanism's own part is the last
            state = (*cells, torch.full_like(focus, next(self._places)))
        return self._model.step(memory, rows, state, tokens, trace)


class SyntheticSubject:
    """A mechanism, and random sources of one length to decode.

    Args:
        model: The one that decodes.
        wanted: Beam, steps and sentences.
        length: Source positions.
    """

    def __init__(self, model: Seq2Seq, wanted: SyntheticTask, length: int) -> None:
        steps = wanted.steps_at(length)
        draw = torch.Generator().manual_seed(SEED)
        shape = (wanted.sentences, length)
        self.length = length
        self._sources: list[Ids] = torch.randint(
            FIRST_WORD, wanted.words, shape, generator=draw
        ).tolist()
        self._paced = Paced(model, steps, wanted.tau)
        self._search = SearchConfig(beam=wanted.beam, max_length=steps - 1)
        self._tokens = steps * wanted.sentences

    def decode(self, tally: Tally | None = None) -> None:
        """Search the translations of all sources."""
        beam_search([self._paced], self._sources, self._search, tally)

    def clock(self) -> DecodedOnce:
        """Decode once."""
        begin = now(self._paced.device)
        self.decode()
        end = now(self._paced.device)
        self._paced.forget()
        read = self._paced.read
        return DecodedOnce(1000 * (end - read) / self._tokens, read - begin, end - begin)

    def cps(self) -> float | None:
        """Decode and count the score computations a step."""
        tally = Tally()
        self.decode(tally)
        return tally.cps


def random_model(attention: AttentionConfig, wanted: SyntheticTask) -> Seq2Seq:
    """Build a model with random weights that never ends a sentence, with a constant gate.

    Raises:
        OptionError: The device does not exist.
    """
    device = open_device(wanted.device)
    torch.manual_seed(SEED)
    config = ModelConfig.from_flat(
        attention=attention,
        decoder="bahdanau",  # for all, memory attention too: one decoder, to compare mechanisms
        embedding_size=128,
        encoder_size=128,
        decoder_size=256,
    )
    autocast = wanted.device.dtype == "bfloat16"
    model = build_model(config, wanted.words, wanted.words, max(wanted.lengths), autocast)
    with torch.no_grad():
        model.output.projection.bias[EOS_ID] = NEVER
        for module in model.modules():
            if isinstance(module, Gate):
                module.v.weight.zero_()
                module.v.bias.fill_(math.log(GATE / (1 - GATE)))
    model = model.to(device, storage_dtype(wanted.device)).eval()
    make_ready(model, wanted.int8)
    return model


def bench_synthetic(
    wanted: SyntheticTask,
    report: Callable[[str], None] = lambda _: None,
    mechanisms: Sequence[AttentionConfig] = MECHANISMS,
) -> list[SyntheticRow]:
    """Decode random sources of each length with each mechanism, repeatedly.

    Args:
        wanted: What to measure.
        report: Receives progress messages.
        mechanisms: Which ones.

    Raises:
        OptionError: The device does not exist.
        DataError: A process died.
    """
    cases = list(product(mechanisms, wanted.lengths))
    models = {one.kind: random_model(one, wanted) for one in mechanisms}
    subjects = [SyntheticSubject(models[one.kind], wanted, length) for one, length in cases]
    report(f"counting; {counted(wanted.sentences, 'sentence')} a batch")
    counts = [one.cps() for one in subjects]
    for one in subjects[:: len(wanted.lengths)]:
        one.decode()  # warm-up; counting takes another path
    clocked: list[list[DecodedOnce]] = [[] for _ in cases]
    for number in range(wanted.repeats):
        report(f"round {number + 1} of {wanted.repeats}")
        for one, rounds in zip(subjects, clocked, strict=True):
            rounds.append(one.clock())
    report("peak memory, each mechanism and length in its own process")
    peaks = [in_fresh_process(_peak_of, one, wanted, length) for one, length in cases]
    per_token = [Times([one.milliseconds for one in rounds]) for rounds in clocked]
    shortest = [place - place % len(wanted.lengths) for place in range(len(cases))]
    return [
        SyntheticRow(
            attention=attention.kind,
            length=length,
            milliseconds=per_token[place],
            ratio=ratio(per_token[place], per_token[shortest[place]]),
            encoder=Times([one.encoder for one in clocked[place]]),
            whole=Times([one.whole for one in clocked[place]]),
            cps=counts[place],
            peak_memory=peaks[place],
        )
        for place, (attention, length) in enumerate(cases)
    ]


def _peak_of(attention: AttentionConfig, wanted: SyntheticTask, length: int) -> int:
    """Decode once in a fresh process, and return its peak memory in bytes."""
    model = random_model(attention, wanted)
    SyntheticSubject(model, wanted, length).decode()
    return peak_memory(model.device)
