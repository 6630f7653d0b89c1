"""Time and memory of decoding and training by length: ``nmtflex bench --synthetic``.

The models have random weights, so that sources can have any length, and otherwise decode like
trained ones: all hypotheses live for a fixed number of steps, flexible attention's gate is 0.5, and
its focus moves evenly from the first source position to the last. (With random weights scores
hardly differ, and the focus would settle at position 2.5 after some seven steps: every step would
read the same few keys, from the cache.) Scans of monotonic attention stop at such positions at
once, with one energy a step instead of about two. The longer the source, the further apart the
windows of two steps, so no step finds its keys in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor, autograd

from nmtflex.bench.decoding import (
    Ratio,
    Times,
    clock,
    in_fresh_process,
    now,
    peak_memory,
    ratio,
    working_memory,
)
from nmtflex.bench.random_model import SEED, Paced, random_model, ready
from nmtflex.config import DeviceConfig, ModelConfig, SearchConfig
from nmtflex.decoding.batching import batches
from nmtflex.decoding.ensemble import Ids
from nmtflex.decoding.search import beam_search
from nmtflex.decoding.tally import Tally
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.text.visible import counted
from nmtflex.text.vocabulary import BOS_ID, EOS_ID

FIRST_WORD = 4  # the ids before it are specials
MOST_PAIRS = 2**23  # of source and target positions in a batch of training


class SyntheticTask(NamedTuple):
    """What to measure."""

    lengths: Sequence[int]  # source positions
    steps: int  # target tokens a sentence, the end of sentence counted; 0 for the source's
    words: int  # entries of each vocabulary
    repeats: int
    tau: float  # of flexible attention in decoding
    beam: int
    batch_sentences: int  # at most
    int8: bool
    device: DeviceConfig
    training: bool = False  # whether to measure it too

    def steps_at(self, length: int) -> int:
        """Return the target tokens of a source of ``length`` positions."""
        return self.steps or length

    @property
    def sentences(self) -> int:
        """Sentences of a batch: as many at each length as fit at the longest."""
        count, longest = self.batch_sentences, max(self.lengths)
        if self.training:
            count = max(1, min(count, MOST_PAIRS // (longest * self.steps_at(longest))))
        return len(next(batches([longest] * count, count, self.beam)))

    def model(self, config: ModelConfig) -> Seq2Seq:
        """Build a model with random weights, in training mode.

        Raises:
            OptionError: The device does not exist.
        """
        return random_model(config, self.words, max(self.lengths), self.device)

    def draw(self, length: int) -> Tensor:
        """Return random sources, [B, S]."""
        draw = torch.Generator().manual_seed(SEED)
        return torch.randint(FIRST_WORD, self.words, (self.sentences, length), generator=draw)


class DecodedOnce(NamedTuple):
    """The times of one decoding."""

    milliseconds: float  # per target token, once the source was read
    encoder: float  # seconds until then
    whole: float  # seconds


class Bytes(NamedTuple):
    """Memory of a model at one length."""

    peak: int  # of a process that decodes
    state: float  # of the decoder after the last step, per hypothesis
    memory: float  # of the source, per sentence
    training: float | None  # that a batch takes at most, per sentence


class SyntheticRow(NamedTuple):
    """What was measured of a model at one length."""

    model: ModelConfig
    length: int  # source positions
    milliseconds: Times  # of decoding a target token, once the source was read
    ratio: Ratio  # of the milliseconds to those at the shortest length
    encoder: Times  # seconds until a batch is read
    whole: Times  # seconds of decoding a batch, reading it included
    training: Times | None  # milliseconds of a target token, forward and backward
    cps: float | None  # score computations a step
    bytes: Bytes

    @property
    def backbone(self) -> str:
        """Encoder and decoder."""
        return f"{self.model.encoder.kind}+{self.model.decoder.kind}"

    @property
    def attention(self) -> str:
        """The mechanism."""
        return self.model.attention.kind

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON, numbers unrounded."""
        found = {
            "backbone": self.backbone,
            "attention": self.attention,
            "source_positions": self.length,
            "milliseconds_per_target_token": self.milliseconds.to_dict(),
            "ratio_to_shortest": self.ratio._asdict(),
            "encoder_seconds": self.encoder.to_dict(),
            "seconds": self.whole.to_dict(),
            "cps": self.cps,
            "peak_memory_bytes": self.bytes.peak,
            "state_bytes_per_hypothesis": self.bytes.state,
            "memory_bytes_per_sentence": self.bytes.memory,
        }
        if self.training is not None:
            found["training_milliseconds_per_target_token"] = self.training.to_dict()
            found["training_bytes_per_sentence"] = self.bytes.training
        return found


class SyntheticSubject:
    """A model, and random sources of one length to decode.

    Args:
        model: Ready for decoding.
        wanted: Beam, steps and sentences.
        length: Source positions.
    """

    def __init__(self, model: Seq2Seq, wanted: SyntheticTask, length: int) -> None:
        steps = wanted.steps_at(length)
        self.paced = Paced(model, steps, wanted.tau)
        self._sources: list[Ids] = wanted.draw(length).tolist()
        self._search = SearchConfig(beam=wanted.beam, max_length=steps - 1)
        self._tokens = steps * wanted.sentences

    def decode(self, tally: Tally | None = None) -> None:
        """Search the translations of all sources."""
        beam_search([self.paced], self._sources, self._search, tally)

    def clock(self) -> DecodedOnce:
        """Decode once."""
        begin = now(self.paced.device)
        self.decode()
        end = now(self.paced.device)
        self.paced.forget()
        read = self.paced.read
        return DecodedOnce(1000 * (end - read) / self._tokens, read - begin, end - begin)

    def cps(self) -> float | None:
        """Decode and count the score computations a step."""
        tally = Tally()
        self.decode(tally)
        self.paced.forget()
        return tally.cps


class Lesson:
    """A model, and a batch of random pairs of one length to train on.

    Args:
        model: In training mode.
        wanted: Steps and sentences.
        length: Source positions.
    """

    def __init__(self, model: Seq2Seq, wanted: SyntheticTask, length: int) -> None:
        source, target = wanted.draw(length), wanted.draw(wanted.steps_at(length))
        target_in, target_out = target.clone(), target.roll(-1, dims=1)
        target_in[:, 0], target_out[:, -1] = BOS_ID, EOS_ID
        device, self._model, self._tokens = model.device, model, target.numel()
        lengths = torch.full((len(source),), length)
        self._batch = source.to(device), lengths, target_in.to(device), target_out.to(device)

    def learn(self) -> None:
        """Compute the gradient of the batch; an optimiser's step does not depend on lengths."""
        autograd.backward(self._model.loss(*self._batch).objective)
        self._model.zero_grad(set_to_none=True)

    def clock(self) -> float:
        """Return the milliseconds of a target token."""
        return 1000 * clock(self._model.device, self.learn) / self._tokens


def bench_synthetic(
    models: Sequence[ModelConfig],
    wanted: SyntheticTask,
    report: Callable[[str], None] = lambda _: None,
) -> list[SyntheticRow]:
    """Decode random sources of each length with each model, repeatedly, and train if wanted.

    Args:
        models: Their shapes.
        wanted: What to measure.
        report: Receives progress messages.

    Raises:
        OptionError: The device does not exist.
        DataError: A process died.
    """
    cases = list(product(models, wanted.lengths))
    memory: list[tuple[int, float | None]] = []
    for number, shape in enumerate(models):
        report(f"memory of model {number + 1} of {len(models)}, in its own process")
        memory += in_fresh_process(_memory_of, wanted, shape)
    lessons: list[Lesson] = []
    if wanted.training:
        for model in map(wanted.model, models):
            lessons += [Lesson(model, wanted, length) for length in wanted.lengths]
    subjects: list[SyntheticSubject] = []
    for model in map(wanted.model, models):
        ready(model, wanted.int8)
        subjects += [SyntheticSubject(model, wanted, length) for length in wanted.lengths]
    report(f"counting; {counted(wanted.sentences, 'sentence')} a batch")
    counts = [one.cps() for one in subjects]
    held = [(one.paced.state_bytes, one.paced.memory_bytes) for one in subjects]
    decoded, learnt = _rounds(subjects, lessons, wanted, report)
    per_token = [Times([one.milliseconds for one in rounds]) for rounds in decoded]
    shortest = [place - place % len(wanted.lengths) for place in range(len(cases))]
    return [
        SyntheticRow(
            model=shape,
            length=length,
            milliseconds=per_token[place],
            ratio=ratio(per_token[place], per_token[shortest[place]]),
            encoder=Times([one.encoder for one in decoded[place]]),
            whole=Times([one.whole for one in decoded[place]]),
            training=Times(learnt[place]) if learnt else None,
            cps=counts[place],
            bytes=Bytes(memory[place][0], *held[place], memory[place][1]),
        )
        for place, (shape, length) in enumerate(cases)
    ]


def _rounds(
    subjects: Sequence[SyntheticSubject],
    lessons: Sequence[Lesson],
    wanted: SyntheticTask,
    report: Callable[[str], None],
) -> tuple[list[list[DecodedOnce]], list[list[float]]]:
    """Decode and train in turns; return each one's rounds."""
    first: list[SyntheticSubject | Lesson] = [*subjects, *lessons]
    for one in first[:: len(wanted.lengths)]:
        one.clock()  # warm-up; counting takes another path
    decoded: list[list[DecodedOnce]] = [[] for _ in subjects]
    learnt: list[list[float]] = [[] for _ in lessons]
    for number in range(wanted.repeats):
        report(f"round {number + 1} of {wanted.repeats}")
        for subject, rounds in zip(subjects, decoded, strict=True):
            rounds.append(subject.clock())
        for lesson, taken in zip(lessons, learnt, strict=True):
            taken.append(lesson.clock())
    return decoded, learnt


def _memory_of(wanted: SyntheticTask, config: ModelConfig) -> list[tuple[int, float | None]]:
    """Decode once at each length in a fresh process, and train; return peaks and training bytes."""
    model = ready(wanted.model(config), wanted.int8)
    peaks = []
    for length in wanted.lengths:  # increasing, so that each needs more than those before it
        SyntheticSubject(model, wanted, length).decode()
        peaks.append(peak_memory(model.device))
    if not wanted.training:
        return [(peak, None) for peak in peaks]
    model = wanted.model(config)
    Lesson(model, wanted, 2).learn()  # code and buffers that every length needs
    taken = [
        working_memory(model.device, Lesson(model, wanted, length).learn) / wanted.sentences
        for length in wanted.lengths
    ]
    return list(zip(peaks, taken, strict=True))
