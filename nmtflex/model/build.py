"""From options to a model with fresh weights."""

from __future__ import annotations

from nmtflex.attention import Sizes, build_attention
from nmtflex.config import ModelConfig
from nmtflex.layers.cells import Stack
from nmtflex.layers.embedding import Embedding
from nmtflex.layers.output import OutputLayer
from nmtflex.model.decoders.bahdanau import BahdanauDecoder, DeepOutput
from nmtflex.model.decoders.base import Decoder
from nmtflex.model.decoders.luong import LuongDecoder
from nmtflex.model.encoders.recurrent import RecurrentEncoder
from nmtflex.model.seq2seq import Seq2Seq


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
    encoder = RecurrentEncoder(
        source_embedding, config.cell, config.encoder_size, config.encoder_layers, config.dropout
    )
    tied = None if tie == "none" else target_embedding
    decoder = _build_decoder(config, encoder.size, source_length)
    output = OutputLayer(
        decoder.output_size, config.bottleneck, target_size, tied, config.output_dropout
    )
    return Seq2Seq(encoder, decoder, target_embedding, output, autocast)


def _build_decoder(config: ModelConfig, states_size: int, source_length: int) -> Decoder:
    """Build the decoder that the options name, on encoder states of some units."""
    size = config.decoder_size
    sizes = Sizes(size, config.embedding_size, states_size, config.key_size, source_length)
    attention = build_attention(config.attention, sizes)
    context_size = attention.context_size

    def stack(extra_size: int) -> Stack:
        return Stack(
            config.cell,
            config.embedding_size,
            extra_size,
            size,
            config.decoder_layers,
            config.dropout,
        )

    if config.decoder == "bahdanau":
        deep = None
        if config.deep_output:
            deep = DeepOutput(config.embedding_size, context_size, size)
        return BahdanauDecoder(stack(context_size), attention, states_size, size, deep)
    fed_size = (size if config.attentional else context_size) if config.input_feeding else 0
    return LuongDecoder(
        stack(fed_size),
        attention,
        states_size,
        size,
        size if config.attentional else size + context_size,
        config.attentional,
        fed_size,
    )
