"""Validation: perplexity by teacher forcing, BLEU of real beam-search output."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch

from nmtflex.config import BatchConfig, SearchConfig
from nmtflex.corpus.batches import Batches
from nmtflex.corpus.store import PreparedCorpus
from nmtflex.decoding.translator import Translator
from nmtflex.errors import DataError
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.scoring.run_bleu import run_bleu
from nmtflex.training.tensors import loss_of

CHUNK = 512  # sentences translated between two looks at the signals


class Validation(NamedTuple):
    """Scores of the validation split."""

    loss: float  # cross-entropy a target token, nats
    perplexity: float
    bleu: float
    signature: str


class Validator:
    """Scores a model on the validation split.

    Args:
        corpus: Has a split ``valid``.
        beam: Beam size.
        batch_tokens: Most tokens of a batch, padding counted.
    """

    def __init__(self, corpus: PreparedCorpus, beam: int, batch_tokens: int) -> None:
        self.pipeline = corpus.pipeline
        self.search = SearchConfig(beam=beam)
        source, target = corpus.store("valid", "source"), corpus.store("valid", "target")
        self.sources = [source[pair].tolist() for pair in range(len(source))]
        self.references = corpus.raw("valid", "target")
        self.batches = Batches(source, target, batch_tokens)
        if not len(self.batches.usable):
            raise DataError(f"{corpus.folder}: every source line of the validation split is empty")

    @torch.inference_mode()
    def __call__(self, model: Seq2Seq, check: Callable[[], None]) -> Validation:
        """Score the model, left in evaluation mode; ``check`` may raise between batches."""
        model.eval()
        total, tokens = 0.0, 0
        for pairs in self.batches.in_order():
            check()
            loss = loss_of(model, self.batches.collate(pairs))
            total += float(loss.cross_entropy)
            tokens += loss.tokens
        translator = Translator([model], self.pipeline, self.search, BatchConfig())
        hypotheses = []
        for first in range(0, len(self.sources), CHUNK):
            check()
            found = translator.translate_ids(self.sources[first : first + CHUNK])
            hypotheses += [best[0].ids for best in found]
        bleu = run_bleu(self.pipeline.target, hypotheses, self.references)
        mean = total / tokens
        return Validation(mean, math.exp(min(mean, 700.0)), bleu.value, bleu.signature)
