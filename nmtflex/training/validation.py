"""Validation: perplexity by teacher forcing, BLEU of real beam-search output."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from nmtflex.attention import Limits
from nmtflex.config import BatchConfig, SearchConfig
from nmtflex.corpus.batches import Batches
from nmtflex.corpus.store import PreparedCorpus
from nmtflex.decoding.tally import Tally
from nmtflex.decoding.translator import Translator
from nmtflex.errors import DataError
from nmtflex.evaluation.run_scores import run_bleu
from nmtflex.model.inference import ready_copy
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ranks import Ranks, merge
from nmtflex.training.guidance import Guidance
from nmtflex.training.tensors import inputs_of, loss_of

CHUNK = 512  # sentences translated between two checks of the signals, with several processes
# A translation is cut at 2 x reference + 10 tokens: an untrained model writes up to the limit of
# the search, 3 x source + 20 tokens, and its validation would take longer than its training.
TIMES, MORE = 2, 10
SAMPLES = 3  # sentences shown, the same ones each time


class Sample(NamedTuple):
    """A sentence to show: raw lines."""

    source: str
    reference: str
    translation: str


class Validation(NamedTuple):
    """Scores of the validation split."""

    loss: float  # cross-entropy per target token, nats
    perplexity: float
    bleu: float
    signature: str
    cps: float | None  # score computations a step; see ``Tally``
    gate: float | None  # mean over sentences of the mean gate of their steps
    samples: tuple[Sample, ...]
    alignment: float | None = None  # alignment loss per linked target token, nats

    def in_words(self) -> str:
        """Return the numbers as text for the user."""
        text = f"perplexity {self.perplexity:.2f}  BLEU {self.bleu:.2f}"
        if self.gate is not None and self.cps is not None:
            text += f"  gate {self.gate:.3f}  CPS {self.cps:.2f}"
        if self.alignment is not None:
            text += f"  alignment loss {self.alignment:.3f}"
        return text


class Validator:
    """Scores a model on the validation split.

    Args:
        corpus: Has a split ``valid``.
        beam: Beam size.
        batch_tokens: Most tokens of a batch, padding included.
        tau: Threshold under which a gated mechanism is validated.
        ranks: Processes that share the work.
        guidance: Of attention in training; if the split has links, their loss is reported.
    """

    def __init__(
        self,
        corpus: PreparedCorpus,
        beam: int,
        batch_tokens: int,
        tau: float = math.inf,
        ranks: Ranks | None = None,
        guidance: Guidance | None = None,
    ) -> None:
        self.tau = tau
        self.guidance = guidance
        self.ranks = ranks or Ranks()
        self.pipeline = corpus.pipeline
        self.search = SearchConfig(beam=beam)
        source, target = corpus.store("valid", "source"), corpus.store("valid", "target")
        self.sources = [source[pair].tolist() for pair in range(len(source))]
        self.limits = [TIMES * length + MORE for length in target.lengths.tolist()]
        self.references = list(map(corpus.pipeline.target.plain, corpus.raw("valid", "target")))
        links = corpus.links("valid") if guidance else None
        self.batches = Batches(source, target, batch_tokens, links=links)
        if not len(self.batches.usable):
            raise DataError(f"{corpus.folder}: every source line of the validation split is empty")
        self.raw = _samples(corpus.raw("valid", "source"), self.references)

    @torch.inference_mode()
    def __call__(
        self,
        model: Seq2Seq,
        check: Callable[[], None],
        show: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> Validation:
        """Score the model, which is left in evaluation mode.

        All processes get the same scores; only the first one gets samples.

        Args:
            model: The one to score.
            check: Called between batches; may raise.
            show: Called between batches with the numbers of sentences translated and in all.
        """
        model.eval()
        show(0, len(self.sources))
        mean, gate, alignment = self._teacher_forced(model, check)
        hypotheses, tally = self._translate(ready_copy(model), check, show)
        own = None
        samples: tuple[Sample, ...] = ()
        if self.ranks.first:
            found = run_bleu(self.pipeline.target, hypotheses, self.references)
            own = found.value, found.signature, tally.cps
            text = self.pipeline.target.tokenizer.detokenize
            samples = tuple(Sample(*raw, text(hypotheses[n])) for n, raw in self.raw.items())
        bleu, signature, cps = self.ranks.from_first(own)
        return Validation(
            loss=mean,
            perplexity=math.exp(min(mean, 700.0)),
            bleu=bleu,
            signature=signature,
            cps=cps,
            gate=gate,
            samples=samples,
            alignment=alignment,
        )

    def _teacher_forced(
        self, model: Seq2Seq, check: Callable[[], None]
    ) -> tuple[float, float | None, float | None]:
        """Return the cross-entropy per token; the mean gate and alignment loss, if there are."""
        total = gates = alignment = 0.0
        tokens = sentences = linked = 0
        for batch in self.batches.in_order():
            check()
            pairs = self.ranks.share(batch)
            if not len(pairs):
                continue
            inputs = inputs_of(self.batches.collate(pairs), model.device)
            loss = loss_of(model, inputs, tau=self.tau, guidance=self.guidance)
            total += float(loss.cross_entropy)
            tokens += loss.tokens
            sentences += loss.sentences
            if loss.gate is not None:
                gates += float(loss.gate)
            if loss.alignment is not None:
                alignment += float(loss.alignment)
                linked += loss.linked
        total, gates, all_tokens, count, alignment, all_linked = self.ranks.sum([
            *(total, gates, tokens, sentences, alignment, linked)
        ])
        return (
            total / all_tokens,
            gates / count if model.has_gate else None,
            alignment / all_linked if all_linked else None,
        )

    def _translate(
        self, model: Seq2Seq, check: Callable[[], None], show: Callable[[int, int], None]
    ) -> tuple[list[list[str]], Tally]:
        """Return the translations' words, and the count of score computations.

        Only the first process returns anything in them.
        """
        translator = Translator(
            [model.limited(Limits(self.tau))], self.pipeline, self.search, BatchConfig()
        )
        words = self.pipeline.target.decode_words
        hypotheses: list[list[str]] = []
        tally = Tally()
        ranks, total, done = self.ranks, len(self.sources), 0

        def report(sentences: int) -> None:
            nonlocal done
            done += sentences * ranks.size  # about as many as this process has done
            show(min(done, total), total)
            if ranks.alone:
                check()

        chunk = total if ranks.alone else CHUNK * ranks.size
        for first in range(0, total, chunk):
            check()
            sources, limits = (
                ranks.share(part[first : first + chunk]) for part in (self.sources, self.limits)
            )
            own = Tally()
            found = translator.translate_ids(sources, own, 1, limits, report)
            parts = ranks.gather(([words(best[0].ids) for best in found], own.to_lists()))
            hypotheses += merge([lines for lines, _ in parts])
            for _, lists in parts:
                tally.merge(Tally.from_lists(*lists))
        return hypotheses, tally


def _samples(sources: Sequence[str], references: Sequence[str]) -> dict[int, tuple[str, str]]:
    """Choose sentences to show, spread over the split: their indices, sources and references."""
    usable = [place for place, line in enumerate(sources) if line.strip()]
    count = min(SAMPLES, len(usable))
    places = [usable[len(usable) * number // count] for number in range(count)]
    return {place: (sources[place], references[place]) for place in places}
