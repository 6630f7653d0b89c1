"""Guided alignment: a loss that draws attention to given links.

Legend: B sentences, S source and T target positions after padding, L links.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from nmtflex.attention import Limits
from nmtflex.config import AttentionConfig, LoopConfig
from nmtflex.corpus.store import PreparedCorpus
from nmtflex.errors import OptionError
from nmtflex.model.seq2seq import Loss, Seq2Seq
from nmtflex.ops.tensors import precise

LEAST = 1e-9  # of a weight under the logarithm; a window may leave out a linked position


class LinkInputs(NamedTuple):
    """The links of a batch where the model reads them."""

    places: Tensor  # [L], of the links in weights [B, T, S] laid flat
    shares: Tensor  # [L], 1 / links of the target token
    linked: int  # target tokens with a link


@dataclass(frozen=True, slots=True)
class Guidance:
    """Adds an alignment loss to the loss of words.

    Chen, Matusov, Khadivi and Peter (2016), https://arxiv.org/abs/1607.01628, in cross-entropy,
    with links A whose rows sum to 1::

        G = - sum over target tokens t and source tokens s of A[t, s] log a[t, s]

    a are the attention weights, divided by their sum: those of local-p and memory attention need
    not sum to 1. Negative ones, which random features have, count as 0: otherwise they would let
    the sum vanish, and G would have no lower bound. The objective is -log p(y) + weight G, summed
    over sentences and divided by the target tokens, as the words' loss is. Tokens without a link,
    EOS among them, add nothing to G.

    Args:
        weight: Of G.
        layer: The attending layer whose weights count, from 0; None: the mean of all.
        head: The head, likewise.
    """

    weight: float
    layer: int | None = None
    head: int | None = None

    def limits(self, tau: float = math.inf) -> Limits:
        """Return limits under which a model returns the weights."""
        return Limits(tau, self.layer, self.head, weights=True)

    def added(self, loss: Loss, links: LinkInputs) -> Loss:
        """Return a batch's loss with the alignment loss.

        Args:
            loss: Under ``limits``.
            links: Of the same batch.
        """
        if loss.weights is None:
            raise ValueError("the model returned no weights to guide")
        found = alignment_loss(loss.weights, links)
        return loss._replace(
            objective=loss.objective + self.weight * found.to(loss.objective.dtype),
            weights=None,
            alignment=found.detach(),
            linked=links.linked,
        )


def alignment_loss(weights: Tensor, links: LinkInputs) -> Tensor:
    """Return G of ``Guidance`` [], in nats and float32 at least.

    Args:
        weights: [B, T, S], 0 at padding; negative ones count as 0.
        links: Of the batch.
    """
    exact = weights.to(precise(weights.dtype)).clamp(min=0)
    shares = exact / exact.sum(2, keepdim=True).clamp(min=LEAST)
    chosen = shares.flatten().index_select(0, links.places)
    return -(links.shares.to(exact.dtype) * torch.log(chosen.clamp(min=LEAST))).sum()


def open_guidance(
    config: LoopConfig, corpus: PreparedCorpus, model: Seq2Seq, attention: AttentionConfig
) -> Guidance | None:
    """Return what the options ask for; None without a weight.

    Args:
        config: The options.
        corpus: With training data.
        model: The one to train.
        attention: Its mechanism, for messages.

    Raises:
        OptionError: The corpus has no links, or the model no such weights.
    """
    weight = config.guided_weight
    if not weight:
        return None
    flag = f"--guided-weight {weight:g}"
    if corpus.links("train") is None:
        raise OptionError(
            f"{flag} needs links between the training words, and {corpus.folder} has none; "
            f"preprocess with --guided-alignment FILE"
        )
    if not model.aligned:
        raise OptionError(
            f"{flag} needs weights over source positions, and the model has {attention.in_words()}"
        )
    asked = {"layer": config.guided_layer, "head": config.guided_head}
    for name, count in (("layer", model.attending_layers), ("head", model.heads)):
        if (asked[name] or 1) > count:
            raise OptionError(f"--guided-{name} {asked[name]}: the largest is {count}")
    layer, head = (None if number is None else number - 1 for number in asked.values())
    return Guidance(weight, layer, head)
