"""The model: source tokens in, log-probabilities of target tokens out.

Legend: B sentences, S source and T target positions after padding, N hypotheses, V target
vocabulary, O output units, E embedding units.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from nmtflex.attention import UNLIMITED, Limits, State
from nmtflex.layers.output import OutputLayer
from nmtflex.model.decoders.base import Decoder, Step, Words
from nmtflex.model.encoders.base import Encoder

if TYPE_CHECKING:  # imports numba
    from nmtflex.model.fused_search import FusedSearch


class Loss(NamedTuple):
    """Sums over the target tokens of a batch, in nats."""

    objective: Tensor  # what is minimised, [] with gradient
    cross_entropy: Tensor  # -log p of the references, [] without gradient
    tokens: int
    sentences: int
    gate: Tensor | None  # sum over sentences of the mean gate of their steps, [] without gradient
    weights: Tensor | None = None  # [B, T, S] of attention, with gradient, if limits ask for them
    alignment: Tensor | None = None  # see ``nmtflex.training.guidance``, [] without gradient
    linked: int = 0  # target tokens that it is a sum over


class Seq2Seq(nn.Module):
    """Encoder, decoder and output layer.

    ``encode`` and ``step`` are all that a search needs; ``loss`` is all that training needs.

    Args:
        encoder: Reads the source.
        decoder: Makes output vectors.
        target_embedding: V to E.
        output: Makes logits.
        autocast: Whether products run in bfloat16.
    """

    def __init__(
        self,
        encoder: Encoder,
        decoder: Decoder,
        target_embedding: nn.Embedding,
        output: OutputLayer,
        autocast: bool = False,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.target_embedding = target_embedding
        self.output = output
        self.autocast = autocast
        self.word_table: Words | None = None  # of a model that only decodes
        self.fused_search: FusedSearch | None = None  # of one that decodes on the CPU

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.target_embedding.weight.device

    @property
    def target_size(self) -> int:
        """Entries of the target vocabulary, V."""
        return self.target_embedding.num_embeddings

    def precision(self) -> contextlib.AbstractContextManager[Any]:
        """Return the block in which products run in the model's format."""
        kind = self.device.type
        if not self.autocast and not torch.is_autocast_enabled(kind):
            return contextlib.nullcontext()  # autocast's block takes as long as a small product
        return torch.autocast(kind, torch.bfloat16, enabled=self.autocast)

    @property
    def gated(self) -> bool:
        """Whether attention has a penalty, which takes a threshold."""
        return self.decoder.mechanisms()[0].gated

    @property
    def reuses(self) -> bool:
        """Whether steps may take the last context again, under a threshold of its own."""
        return self.decoder.reuses

    @property
    def has_gate(self) -> bool:
        """Whether attention has a gate of either kind, which finetuning can raise."""
        return self.gated or self.reuses

    @property
    def aligned(self) -> bool:
        """Whether attention has weights over source positions."""
        return self.decoder.mechanisms()[0].aligned

    def limited(self, limits: Limits) -> Limited:
        """Return a view of the model that encodes under limits and shares its weights."""
        return Limited(self, limits)

    def encode(
        self, source: Tensor, lengths: Tensor, limits: Limits = UNLIMITED, *, traced: bool = True
    ) -> tuple[Any, State]:
        """Read a batch of sources.

        Args:
            source: [B, S] token ids, padded with 0.
            lengths: [B] tokens of each sentence, at least 1; on the CPU.
            limits: What the steps on these sentences may skip.
            traced: Whether their traces show source positions, if limits do not say otherwise.

        Returns:
            The memory, never copied for the beam, and the start of the decoder, a row a sentence.

        Raises:
            ValueError: There is a threshold, and the attention mechanism has no penalty.
        """
        limits = limits._replace(traced=limits.traced and traced)
        with self.precision():
            return self.decoder.start(self.encoder(source, lengths), limits)

    def step(
        self, memory: Any, rows: Tensor, state: State, tokens: Tensor, trace: bool = False
    ) -> Step:
        """Advance every hypothesis by one word.

        Args:
            memory: From ``encode``.
            rows: [N], ascending: the sentence of each hypothesis.
            state: From ``encode`` or the step before, reordered at will.
            tokens: [N] previous output words, the begin-of-sentence id first.
            trace: Whether to return the attention's trace.
        """
        with self.precision():
            return self.decoder.step(memory, rows, state, self.words(tokens), trace)

    def words(self, tokens: Tensor) -> Words:
        """Return what words [N] contribute to a step."""
        if self.word_table is not None:
            return self.word_table.of(tokens)
        return self.decoder.words(self.target_embedding(tokens))

    def log_probs(self, output: Tensor) -> Tensor:
        """Return natural logarithms of the probabilities of all words: [N, O] to [N, V]."""
        with self.precision():
            return self.output.log_probs(output)

    def best_words(
        self,
        output: Tensor,
        count: int,
        never: Sequence[int] = (),
        only: Tensor | None = None,
        also: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return a step's most probable words; see ``nmtflex.ops.vocabulary.best_words``.

        Args:
            output: [N, O] from ``step``.
            count: K.
            never: Words that are not to be found.
            only: [N], the one word that may be found, or -1.
            also: [N, P], words that are returned too, after the K; none is in ``never``.

        Returns:
            Natural logarithms of their probabilities [N, K], the best first, and words [N, K];
            P more of each with ``also``.
        """
        with self.precision():
            return self.output.best_words(output, count, never, only, also)

    def loss(
        self,
        source: Tensor,
        lengths: Tensor,
        target_in: Tensor,
        target_out: Tensor,
        smoothing: float = 0.0,
        beta: float = 0.0,
        places: Tensor | None = None,
        limits: Limits = UNLIMITED,
    ) -> Loss:
        """Score references by teacher forcing.

        With ``beta``, the objective is eq. 9 of Shu and Nakayama, the sum over sentences of
        ``-log p(y) - beta (sum over its T steps of g[t]) / T``, the step of EOS counted.

        Args:
            source: [B, S] token ids, padded with 0.
            lengths: [B] tokens of each source, on the CPU.
            target_in: [B, T] begin-of-sentence, then the reference; padded with 0.
            target_out: [B, T] the reference, then end-of-sentence; padded with 0.
            smoothing: Probability that label smoothing spreads evenly over V.
            beta: Weight of the mean gate.
            places: [M], of the words in flattened ``target_out``; finding them here would make the
                CPU wait for a GPU.
            limits: What the steps may skip.

        Raises:
            ValueError: ``beta`` is given, but the attention mechanism has no gate.
        """
        with self.precision():
            memory, state = self.encode(source, lengths, limits)
            embedded = self.target_embedding(target_in)
            outputs, gates, weights = self.decoder.sequence(memory, state, embedded)
            real = target_out != 0
            if places is None:
                places = real.flatten().nonzero().squeeze(1)
            references = target_out.flatten()[places]
            output = outputs.flatten(0, 1)[places]
            objective, plain = self.output.loss(output, references, smoothing)
        gate = None
        if gates is not None:
            gate = ((gates * real).sum(1) / real.sum(1)).sum()
            if beta:
                objective = objective - beta * gate
            gate = gate.detach()
        elif beta:
            raise ValueError(f"beta {beta} weighs a gate, and the attention has none")
        return Loss(objective, plain, len(references), len(source), gate, weights)

    @property
    def attending_layers(self) -> int:
        """Decoder layers that attend to the source."""
        return len(self.decoder.mechanisms())

    @property
    def heads(self) -> int:
        """Heads of each of these layers."""
        return self.decoder.heads

    @property
    def attending(self) -> int:
        """How often a step attends: heads times attending layers."""
        return self.heads * self.attending_layers

    def encoding_computations(self, lengths: Tensor) -> Tensor:
        """Return the attention scores that ``encode`` computes for sources of ``lengths`` [B]."""
        mechanisms = self.decoder.mechanisms()
        found = torch.stack([part.encoding_computations(lengths) for part in mechanisms])
        return self.decoder.heads * found.sum(0)

    def parts(self) -> dict[str, list[tuple[object, str]]]:
        """Return the methods in which decoding spends its time, by part, for a stopwatch.

        The encoder's has what attention prepares once a sentence, and the embedding's what the
        previous word contributes to a step. A search without Python between its steps is one part.
        """
        if self.fused_search is not None:
            return {"encoder": [(self, "encode")], "decoder": [(self.fused_search, "grow")]}
        return {
            "encoder": [(self, "encode")],
            "embedding": [(self, "words")],
            **self.decoder.parts(),
            "output layer": [(self.output, "log_probs"), (self.output, "best_words")],
        }


class Limited:
    """A view of a model under limits, for the search; any number may be used at a time.

    Args:
        model: In evaluation mode.
        limits: What is skipped.
    """

    def __init__(self, model: Seq2Seq, limits: Limits) -> None:
        self.limits = limits
        self._model = model
        self.step, self.log_probs, self.best_words = model.step, model.log_probs, model.best_words
        self.encoding_computations = model.encoding_computations

    @property
    def attending(self) -> int:
        """How often a step attends; see ``Seq2Seq.attending``."""
        return self._model.attending

    @property
    def aligned(self) -> bool:
        """Whether attention has weights over source positions."""
        return self._model.aligned

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self._model.device

    @property
    def fused_search(self) -> FusedSearch | None:
        """A search without Python between its steps, if there is one."""
        return self._model.fused_search

    def encode(self, source: Tensor, lengths: Tensor, *, traced: bool = True) -> tuple[Any, State]:
        """Read a batch of sources; see ``Seq2Seq.encode`` and ``StepModel.encode``."""
        return self._model.encode(source, lengths, self.limits, traced=traced)
