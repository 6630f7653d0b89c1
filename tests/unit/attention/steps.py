"""What tests of mechanisms share: a mechanism with weights that choose, sources, and a step."""

from __future__ import annotations

from typing import Any

import torch

from nmtflex.attention import Attention, Glimpse, Sizes, State, build_attention
from nmtflex.config import AttentionConfig
from nmtflex.config.base import options_of

SIZES = Sizes(query=4, feedback=3, states=4, keys=5, source_length=6)
LENGTHS = [3, 8, 1, 5]


def quiet(options: type[AttentionConfig]) -> AttentionConfig:
    """The usual options of a mechanism, without the noise that some draw in training."""
    noise = {name: 0.0 for name in options_of(options) if name == "energy_noise"}
    return options(**noise)


def build(config: AttentionConfig, seed: int = 1, sizes: Sizes = SIZES) -> Attention:
    """Build a mechanism in float64 whose weights are large enough to make choices."""
    torch.manual_seed(seed)
    attention = build_attention(config, sizes).double()
    for parameter in attention.parameters():
        parameter.data.normal_()
    return attention


def sources(lengths: list[int] = LENGTHS, seed: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    """Random encoder states [B, S, H], at padding too, and their mask."""
    draw = torch.Generator().manual_seed(seed)
    size = (len(lengths), max(lengths), SIZES.states)
    states = torch.randn(size, generator=draw, dtype=torch.float64)
    return states, torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def step(
    attention: Attention,
    query: torch.Tensor,
    embedded: torch.Tensor,
    memory: Any,
    rows: torch.Tensor | None,
    state: State,
    trace: bool = False,
) -> Glimpse:
    """Take a step, with the previous words [N, E] as embeddings."""
    return attention(query, attention.feedback(embedded), memory, rows, state, trace)
