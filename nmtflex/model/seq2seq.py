"""The model: source tokens in, log-probabilities of target tokens out.

Legend: B sentences, S source and T target positions after padding, N hypotheses, V target
vocabulary, O output units, E embedding units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmtflex.attention import State, Trace
from nmtflex.layers.linear import one_gradient
from nmtflex.layers.output import OutputLayer
from nmtflex.model.decoders.base import Decoder
from nmtflex.model.encoders.recurrent import Encoder


class StepOutput(NamedTuple):
    """What a decoding step gives."""

    output: Tensor  # [N, O], from which ``log_probs`` and ``best_words`` predict the next word
    state: State  # [N, ...] each
    trace: Trace | None


class Loss(NamedTuple):
    """Sums over the target tokens of a batch, in nats."""

    objective: Tensor  # what is minimised, [] with gradient
    cross_entropy: Tensor  # -log p of the references, [] without gradient
    tokens: int
    sentences: int
    gate: Tensor | None  # sum over sentences of the mean gate of their steps, [] without gradient


class WordTable(nn.Module):
    """What the previous word brings into a step, for every word of the vocabulary.

    Args:
        gates: [V, G].
        feedback: [V, F].
    """

    def __init__(self, gates: Tensor, feedback: Tensor) -> None:
        super().__init__()
        self.gates, self.feedback = gates, feedback

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Look up words [N]: gates [N, G] and feedback [N, F]."""
        return self.gates.index_select(0, tokens), self.feedback.index_select(0, tokens)


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
        self.word_table: WordTable | None = None  # of a model that is frozen

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.target_embedding.weight.device

    @property
    def source_size(self) -> int:
        """Entries of the source vocabulary."""
        return self.encoder.embedding.num_embeddings

    @property
    def target_size(self) -> int:
        """Entries of the target vocabulary, V."""
        return self.target_embedding.num_embeddings

    def precision(self) -> torch.autocast:
        """Return the block in which products run in the model's format."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast)

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Any, State]:
        """Read a batch of sources.

        Args:
            source: [B, S] token ids, padded with 0.
            lengths: [B] tokens of each sentence, at least 1; on the CPU, wherever the source is.

        Returns:
            The memory, never copied for the beam, and the start of the decoder, a row a sentence.
        """
        with self.precision():
            encoded = self.encoder(source, lengths)
            memory = self.decoder.attention.prepare(encoded.states, encoded.mask)
            return memory, self.decoder.start(encoded)

    def step(
        self, memory: Any, rows: Tensor, state: State, tokens: Tensor, trace: bool = False
    ) -> StepOutput:
        """Advance every hypothesis by one word.

        Args:
            memory: From ``encode``.
            rows: [N], ascending: the sentence of each hypothesis.
            state: From ``encode`` or the step before, reordered at will.
            tokens: [N] previous output words, the begin-of-sentence id first.
            trace: Whether to return the attention's trace.
        """
        with self.precision():
            gates, feedback = self.previous_words(tokens)
            output, state, seen = self.decoder(gates, feedback, memory, rows, state, trace)
            return StepOutput(output, state, seen)

    def previous_words(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return what words [N] bring into a step: their side of the gates [N, G], and feedback."""
        if self.word_table is not None:
            return self.word_table(tokens)
        embedded = self.target_embedding(tokens)
        return self.decoder.input_gates(embedded), embedded

    def log_probs(self, output: Tensor) -> Tensor:
        """Return natural logarithms of the probabilities of all words: [N, O] to [N, V]."""
        with self.precision():
            return self.output.log_probs(output)

    def best_words(
        self, output: Tensor, count: int, never: Sequence[int] = (), only: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the most probable words of a step's output; see ``nmtflex.ops.vocabulary.words``.

        Args:
            output: [N, O] from ``step``.
            count: K.
            never: Words that are not to be found.
            only: [N], the one word that may be found, or -1.

        Returns:
            Natural logarithms of their probabilities [N, K], the best first, and words [N, K].
        """
        with self.precision():
            return self.output.best_words(output, count, never, only)

    def loss(
        self,
        source: Tensor,
        lengths: Tensor,
        target_in: Tensor,
        target_out: Tensor,
        smoothing: float = 0.0,
        beta: float = 0.0,
        places: Tensor | None = None,
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
            places: [M], of the words in ``target_out`` laid flat; to find them here makes the
                processor wait for a GPU.

        Raises:
            ValueError: ``beta`` is given, and the attention mechanism has no gate.
        """
        with self.precision():
            outputs, gates = self._outputs(source, lengths, target_in)  # [B, T, O], [B, T]
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
        return Loss(objective, plain, len(references), len(source), gate)

    def _outputs(
        self, source: Tensor, lengths: Tensor, target_in: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Run the decoder over given targets.

        Returns:
            Its output vectors [B, T, O], and the gates [B, T] where the attention has one.
        """
        memory, state = self.encode(source, lengths)
        embedded = self.target_embedding(target_in)  # [B, T, E]
        gates = self.decoder.input_gates(embedded)  # all steps in one product
        gated = self.decoder.attention.gated
        outputs, attention_gates = [], []
        with one_gradient(self.decoder):
            for step_gates, feedback in zip(gates.unbind(1), embedded.unbind(1), strict=True):
                output, state, seen = self.decoder(step_gates, feedback, memory, None, state, gated)
                outputs.append(output)
                if seen is not None:
                    attention_gates.append(seen.gate)
        stacked = torch.stack(attention_gates, dim=1) if gated else None
        return torch.stack(outputs, dim=1), stacked

    def encoding_computations(self, lengths: Tensor) -> Tensor:
        """Return the attention scores that ``encode`` computes for sources of ``lengths`` [B]."""
        return self.decoder.attention.encoding_computations(lengths)
