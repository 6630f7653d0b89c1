"""The model: source tokens in, log-probabilities of target tokens out.

Legend: B sentences, S source and T target positions after padding, N hypotheses, V target
vocabulary, O output units, E embedding units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmtflex.attention import Sizes, State, Trace, build_attention
from nmtflex.config import (
    BahdanauConfig,
    LuongConfig,
    ModelConfig,
    RecurrentDecoderConfig,
    RecurrentEncoderConfig,
)
from nmtflex.kernels import precise
from nmtflex.kernels.dropout import Dropout
from nmtflex.kernels.products import Linear, Product, one_gradient
from nmtflex.kernels.words import best_words
from nmtflex.model.cells import Stack
from nmtflex.model.cross_entropy import cross_entropy
from nmtflex.model.decoder import BahdanauDecoder, Decoder, DeepOutput, LuongDecoder
from nmtflex.model.embedding import Embedding
from nmtflex.model.encoder import Encoder

CHUNK = 1 << 20  # logits of a step that are made at once: 4 MB in float32
LEAST_ROWS = 64  # hypotheses at once, fewer of which make slow products


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


class OutputLayer(nn.Module):
    """Optional linear bottleneck, then a product with a row a target word.

    Args:
        input_size: Units of the decoder's output vector.
        bottleneck: Units between, 0 for none.
        vocabulary_size: V.
        tied: Target embedding whose weights serve here too, or None.
        dropout: Share of input units dropped in training.
    """

    def __init__(
        self,
        input_size: int,
        bottleneck: int,
        vocabulary_size: int,
        tied: nn.Embedding | None,
        dropout: float,
    ) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.bottleneck = Linear(input_size, bottleneck) if bottleneck else None
        self.projection = Product(bottleneck or input_size, vocabulary_size)
        if tied is not None:
            self.projection.weight = tied.weight
        nn.init.zeros_(self.projection.bias)

    def forward(self, output: Tensor) -> Tensor:
        """Return logits: [.., O] to [.., V]."""
        return self.projection(self._hidden(output))

    def log_probs(self, output: Tensor) -> Tensor:
        """Return natural logarithms of probabilities, in float32 at least: [N, O] to [N, V]."""
        logits = self.projection.bare(self._hidden(output))
        # The bias in the format of the sum, as ``best_words`` adds it: bfloat16 would round twice.
        logits = logits.to(precise(logits.dtype)) + self.projection.bias
        return torch.log_softmax(logits, dim=1)

    def best_words(
        self, output: Tensor, count: int, never: Sequence[int], only: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the most probable words [N, K] of output vectors [N, O]; see ``kernels.words``.

        The logits are made some rows at a time and used while they are in the cache.
        """
        hidden, bias = self._hidden(output), self.projection.bias
        rows = max(LEAST_ROWS, CHUNK // len(bias))
        found = []
        for first in range(0, len(hidden), rows):
            chunk = slice(first, first + rows)
            of_chunk = None if only is None else only[chunk]
            logits = self.projection.bare(hidden[chunk])
            found.append(best_words(logits, bias, count, never, of_chunk))
        values, words = zip(*found, strict=True)
        return torch.cat(values), torch.cat(words)

    def loss(
        self, output: Tensor, references: Tensor, smoothing: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """Return the sums of smoothed and of plain cross-entropy; see ``cross_entropy``.

        Args:
            output: [M, O].
            references: [M] word ids.
            smoothing: Probability that label smoothing spreads evenly over V.
        """
        weight, bias = self.projection.weight, self.projection.bias
        return cross_entropy(self._hidden(output), weight, bias, references, smoothing)

    def _hidden(self, output: Tensor) -> Tensor:
        output = self.dropout(output)
        return output if self.bottleneck is None else self.bottleneck(output)


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
        """Return the most probable words of a step's output; see ``nmtflex.kernels.words``.

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


def build_model(
    config: ModelConfig,
    source_size: int,
    target_size: int,
    source_length: int,
    autocast: bool = False,
) -> Seq2Seq:
    """Build a model with fresh weights, drawn from torch's global generator.

    Args:
        config: The model's shape.
        source_size: Entries of the source vocabulary, specials included.
        target_size: Entries of the target vocabulary, V.
        source_length: Longest source of the training data, in tokens.
        autocast: Whether products run in bfloat16.

    Raises:
        ValueError: All embeddings are tied, but the vocabularies differ in size.
    """
    width, tie = config.embedding_size, config.tie_embeddings
    if tie == "all" and source_size != target_size:
        raise ValueError(f"one embedding for vocabularies of {source_size} and {target_size}")
    target_embedding = Embedding(target_size, width, tied=tie != "none")
    source_embedding = target_embedding
    if tie != "all":
        source_embedding = Embedding(source_size, width, tied=False)
    encoder = _build_encoder(config, source_embedding)
    tied = None if tie == "none" else target_embedding
    decoder = _build_decoder(config, encoder.size, source_length)
    output = OutputLayer(
        decoder.output_size, config.bottleneck, target_size, tied, config.output_dropout
    )
    return Seq2Seq(encoder, decoder, target_embedding, output, autocast)


def _build_encoder(config: ModelConfig, embedding: Embedding) -> Encoder:
    """Build the encoder that the options name."""
    own = config.encoder
    if isinstance(own, RecurrentEncoderConfig):
        return Encoder(embedding, own.cell, own.encoder_size, own.encoder_layers, config.dropout)
    raise ValueError(f"no encoder for {own}")


def _build_decoder(config: ModelConfig, states_size: int, source_length: int) -> Decoder:
    """Build the decoder that the options name, for encoder states of ``states_size`` units."""
    own, width, size = config.decoder, config.embedding_size, config.decoder.decoder_size
    sizes = Sizes(size, width, states_size, config.key_size, source_length)
    attention = build_attention(config.attention, sizes)
    context_size = attention.context_size

    def stack(own: RecurrentDecoderConfig, extra_size: int) -> Stack:
        return Stack(own.cell, width, extra_size, size, own.decoder_layers, config.dropout)

    if isinstance(own, BahdanauConfig):
        deep = DeepOutput(width, context_size, size) if own.deep_output else None
        return BahdanauDecoder(stack(own, context_size), attention, states_size, size, deep)
    if isinstance(own, LuongConfig):
        fed_size = (size if own.attentional else context_size) if own.input_feeding else 0
        return LuongDecoder(
            stack(own, fed_size),
            attention,
            states_size,
            size,
            own.output_size(context_size),
            own.attentional,
            fed_size,
        )
    raise ValueError(f"no decoder for {own}")
