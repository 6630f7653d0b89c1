"""Making a model ready for decoding: whatever depends only on its weights is computed once.

Such a model gives the same translations faster, and cannot be trained or saved.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

from nmtflex.attention.flexible import Gate
from nmtflex.attention.heads import Heads
from nmtflex.errors import OptionError
from nmtflex.layers.cells import Cell
from nmtflex.layers.feed_forward import FeedForward
from nmtflex.layers.linear import Product
from nmtflex.layers.self_attention import SelfAttention
from nmtflex.layers.ssru import Ssru
from nmtflex.model.decoders.layered import LayeredDecoder
from nmtflex.model.encoders.transformer import TransformerEncoder
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ops.dispatch import form

if TYPE_CHECKING:  # imports numba
    from nmtflex.model.decoders.fused_layers import FusedLayers
    from nmtflex.model.fused_search import FusedSearch
    from nmtflex.ops.linear.packed import Packed

RESIDUAL = (FeedForward, Heads, SelfAttention, Ssru)  # layers that only call their own products
QUANTIZED = (Cell, *RESIDUAL)  # layers whose own products may be
LARGEST_TABLE = 1 << 26  # numbers: 256 MB in float32
LARGEST_COPY = 1 << 22  # of a table that only repeats the embeddings, which are read more slowly


@torch.no_grad()
def make_ready(model: Seq2Seq, int8: bool = False) -> None:
    """Tabulate what each target word contributes to a step, and lay weights out for fast products.

    Args:
        model: In evaluation mode, on its device.
        int8: Whether cells, residual layers and the output layer multiply in 8-bit integers.

    Raises:
        OptionError: ``int8`` is given, and the model is not on the CPU in float32, or numba does
            not compile.
    """
    if int8:
        check_int8(model)
    kind = _kind(model)
    fast = kind == torch.float32 and form(model.device) == "cpu" and _tiles_pay()
    _tabulate(model)
    quantized = _products(model, QUANTIZED) if int8 else set()
    for module in model.modules():
        if isinstance(module, Product):
            _lay_out(module, module in quantized, fast)
    for product in _products(model, RESIDUAL):
        _release(product)
    if int8 or fast:
        _fuse_layers(model)
    if model.autocast:
        _round(model)


def ready_copy(model: Seq2Seq) -> Seq2Seq:
    """Return a copy that is ready for decoding and shares the weights, so the model can train on.

    The copy is of use until the weights change.
    """
    shared = {id(weight): weight for weight in (*model.parameters(), *model.buffers())}
    copied = copy.deepcopy(model, shared).eval()
    make_ready(copied)
    return copied


def check_int8(model: Seq2Seq) -> None:
    """Check that a model's products may be made in 8-bit integers.

    Raises:
        OptionError: It is not on the CPU in float32, or numba does not compile.
    """
    import numba  # takes half a second

    config: Any = numba.config
    kind = _kind(model)
    if model.device.type != "cpu" or kind != torch.float32:
        where = model.device if model.device.type != "cpu" else str(kind).removeprefix("torch.")
        raise OptionError(f"--int8 is for the CPU in float32, not for {where}; leave one out")
    if config.DISABLE_JIT:
        raise OptionError("--int8 needs compiled loops; unset NUMBA_DISABLE_JIT")


def _kind(model: Seq2Seq) -> torch.dtype:
    """Return the number format of a model's products."""
    return torch.bfloat16 if model.autocast else model.target_embedding.weight.dtype


def _tabulate(model: Seq2Seq) -> None:
    """Make the table of words, unless it is too large."""
    words = torch.arange(model.target_size, device=model.device)
    with model.precision():
        first = model.words(words[:1])
        embedded = model.target_embedding(words[:1])
        copied = not first.feedback.numel() and torch.equal(first.gates, embedded)
        width = sum(part.shape[1] for part in first)
        if len(words) * width <= (LARGEST_COPY if copied else LARGEST_TABLE):
            model.word_table = model.words(words)


def _products(model: Seq2Seq, kinds: tuple[type[nn.Module], ...]) -> set[Product]:
    """Return the output layer's product and those that layers of these kinds own themselves."""
    owners = [part for part in model.modules() if isinstance(part, kinds)]
    parts = [part for owner in owners for part in owner.children() if isinstance(part, Product)]
    return {model.output.projection, *parts}


def _tiles_pay() -> bool:
    """Whether products in float32 are faster tile by tile."""
    # Imported only here: numba takes half a second.
    from nmtflex.ops.linear.packed import PAYS

    return PAYS


def _lay_out(product: Product, int8: bool, fast: bool) -> None:
    """Choose how a product is computed from now on."""
    if product.weight.numel() and (int8 or fast):
        from nmtflex.ops.linear.packed import Int8, Packed

        product.fast = (Int8 if int8 else Packed)(product.weight)


def _release(product: Product) -> None:
    """Keep only the shape of a weight that has been laid out: nothing reads its numbers again."""
    if product.fast is not None:
        nothing = torch.empty_like(product.weight, device="meta")
        product.weight = nn.Parameter(nothing, requires_grad=False)


def _fuse_layers(model: Seq2Seq) -> None:
    """Compute the layers of encoder and decoder, and the output layer, in few calls."""
    from nmtflex.model.decoders import fused_layers as of_decoders
    from nmtflex.model.encoders import fused_layers as of_encoders
    from nmtflex.ops.linear.packed import Packed

    output = model.output
    if isinstance(projection := output.projection.fast, Packed):
        output.fast_best = projection.best_words
    if isinstance(encoder := model.encoder, TransformerEncoder):
        encoder.fast_layers = of_encoders.FusedLayers(
            encoder.all_layers(), encoder.size, encoder.norm
        )
    if isinstance(decoder := model.decoder, LayeredDecoder):
        layers = decoder.all_layers()
        fused = of_decoders.FusedLayers(layers, decoder.size, decoder.norm)
        decoder.fast_layers = fused
        if fused.whole and output.fast_best is not None and output.bottleneck is None:
            model.fused_search = _fused_search(model, fused)


def _fused_search(model: Seq2Seq, layers: FusedLayers) -> FusedSearch | None:
    """Return a search whose steps need no Python, unless words would need too large a table."""
    from nmtflex.model.fused_search import FusedSearch
    from nmtflex.ops.linear.packed import array
    from nmtflex.ops.vocabulary.output_loops import Layer

    projection, embedding = model.output.projection, model.target_embedding
    packed = cast("Packed", projection.fast)
    output = Layer(packed.weight, packed.scales, array(projection.bias))
    if model.word_table is not None:
        return FusedSearch(layers, output, model.word_table.gates, 1.0, model.word_table.feedback)
    feedback, scale = embedding.weight[:, :0], float(getattr(embedding, "scale", 1.0))
    if model.decoder.words(embedding.weight[:1]).feedback.numel():
        return None
    return FusedSearch(layers, output, embedding.weight, scale, feedback)


def _round(model: Seq2Seq) -> None:
    """Round weights to bfloat16, which autocast would otherwise do at every step.

    The output layer's bias and the gate's v stay in float32.
    """
    precise = {module.v for module in model.modules() if isinstance(module, Gate)}
    for module in model.modules():
        if isinstance(module, nn.Linear) and module not in precise:
            for name, part in list(module.named_parameters()):
                if name == "weight" or module is not model.output.projection:
                    setattr(module, name, nn.Parameter(part.bfloat16(), requires_grad=False))
