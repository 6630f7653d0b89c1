"""From options to a model with fresh weights: the one place that maps kinds to classes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from nmtflex.attention import Attention, Heads, Reuse, Sizes, build_attention
from nmtflex.config import (
    BahdanauConfig,
    LayeredDecoderConfig,
    LuongConfig,
    ModelConfig,
    NoneConfig,
    RecurrentDecoderConfig,
    RecurrentEncoderConfig,
    TransformerDecoderConfig,
    TransformerEncoderConfig,
)
from nmtflex.layers.cells import Stack
from nmtflex.layers.embedding import Embedding
from nmtflex.layers.feed_forward import FeedForward
from nmtflex.layers.output import OutputLayer
from nmtflex.layers.self_attention import CausalSelfAttention, SelfAttention
from nmtflex.layers.ssru import Ssru
from nmtflex.model.decoders.bahdanau import BahdanauDecoder, DeepOutput
from nmtflex.model.decoders.base import Decoder
from nmtflex.model.decoders.layered import DecoderLayer, LayeredDecoder, Mixer
from nmtflex.model.decoders.luong import LuongDecoder
from nmtflex.model.encoders.base import Encoder
from nmtflex.model.encoders.recurrent import RecurrentEncoder
from nmtflex.model.encoders.transformer import EncoderLayer, TransformerEncoder
from nmtflex.model.seq2seq import Seq2Seq

Built = TypeVar("Built", Attention, Heads)
DRAWS = {
    nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_, Tensor.normal_, Tensor.uniform_,
}  # fmt: skip


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
    residual = isinstance(config.decoder, LayeredDecoderConfig)
    target_embedding = Embedding(target_size, width, scaled=residual or tie != "none")
    source_embedding = target_embedding
    if tie != "all":
        residual = isinstance(config.encoder, TransformerEncoderConfig)
        source_embedding = Embedding(source_size, width, scaled=residual)
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
        return RecurrentEncoder(
            embedding, own.cell, own.encoder_size, own.encoder_layers, config.dropout
        )
    if isinstance(own, TransformerEncoderConfig):
        size, around = own.encoder_size, (own.pre_norm, config.dropout)
        layers = []
        for _ in range(own.encoder_layers):
            attention = SelfAttention(
                size, own.encoder_heads, own.attention_dropout, own.encoder_window or None
            )
            feed_forward = FeedForward(size, own.encoder_ffn, own.ffn_dropout)
            layers.append(EncoderLayer(size, attention, feed_forward, *around))
        return TransformerEncoder(embedding, layers, *around, own.position_shift)
    raise ValueError(f"no encoder for {own}")


def _build_decoder(config: ModelConfig, states_size: int, source_length: int) -> Decoder:
    """Build the decoder that the options name, for encoder states of ``states_size`` units."""
    own, width, size = config.decoder, config.embedding_size, config.decoder.decoder_size
    sizes = Sizes(size, width, states_size, config.key_size, source_length)
    if isinstance(own, LayeredDecoderConfig):
        return _build_layered(config, own, sizes)
    attention = _reused(config, build_attention(config.attention, sizes), sizes)
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


def _build_layered(config: ModelConfig, own: LayeredDecoderConfig, sizes: Sizes) -> LayeredDecoder:
    """Build a decoder of residual layers."""
    size, without = own.decoder_size, None
    if isinstance(config.attention, NoneConfig):
        without = build_attention(config.attention, sizes)

    def mixer() -> Mixer:
        if isinstance(own, TransformerDecoderConfig):
            return CausalSelfAttention(size, own.decoder_heads, own.attention_dropout)
        return Ssru(size)

    def layer(number: int) -> DecoderLayer:
        attends = without is None and number in own.attending
        attention = None
        if attends:
            attention = _reused(config, Heads(config.attention, sizes, own.decoder_heads), sizes)
        hidden = own.decoder_ffn
        feed_forward = FeedForward(size, hidden, own.ffn_dropout) if hidden else None
        around = own.pre_norm, config.dropout
        return DecoderLayer(size, mixer(), attention, feed_forward, *around)

    layers = [layer(number) for number in range(own.decoder_layers)]
    return LayeredDecoder(layers, without, sizes.states, size, own.pre_norm, config.dropout)


def _reused(config: ModelConfig, attention: Built, sizes: Sizes) -> Built | Reuse:
    """Return attention as it is, or with the gate of ``--attend-every gate`` around it."""
    return Reuse(attention, sizes) if config.attend_every == "gate" else attention


@contextlib.contextmanager
def outlined() -> Iterator[None]:
    """Build models inside the block on the meta device, as shapes that take no memory."""
    with torch.device("meta"), Undrawn():
        yield


class Undrawn(TorchFunctionMode):
    """Builds models inside the block without drawing their weights, which will be read.

    On the "meta" device, a normal draw would import PyTorch's compiler, which takes 140 MB.
    """

    def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return the tensor of a draw unchanged."""
        if function in DRAWS:
            return args[0] if args else kwargs["tensor"]
        return function(*args, **kwargs or {})
