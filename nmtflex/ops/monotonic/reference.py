"""Scans, their expectation and chunks in plain PyTorch, the specification of the loops."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from nmtflex.ops.sequence.reference import scores
from nmtflex.ops.tensors import precise


def scan(
    query: Tensor,
    v: Tensor,
    bias: Tensor,
    keys: Tensor,
    lengths: Tensor,
    rows: Tensor | None,
    start: Tensor,
) -> tuple[Tensor, Tensor]:
    """Scan step by step, with all energies computed; see ``nmtflex.ops.monotonic.scan``."""
    keys = keys if rows is None else keys[rows]
    positions = torch.arange(keys.shape[1], device=keys.device)
    inside = positions < lengths.unsqueeze(1)  # [N, S]
    found, chosen, first = [], [], start
    for energies in (scores(query, keys, lengths, v) + bias.to(precise(keys.dtype))).unbind(1):
        open_ = inside & (positions >= first.unsqueeze(1))
        stops = open_ & ~(energies < 0)  # at NaN too, which shall be seen
        first = torch.where(stops, positions, lengths.unsqueeze(1)).amin(1)
        at = first.clamp(max=keys.shape[1] - 1).unsqueeze(1)
        energy = energies.gather(1, at).squeeze(1)
        one = torch.where(energy.isnan(), energy, torch.ones_like(energy))
        found.append(first)
        chosen.append(torch.where(first < lengths, one, torch.zeros_like(one)))
    return torch.stack(found, dim=1), torch.stack(chosen, dim=1).detach()


def expected(energies: Tensor, before: Tensor, lengths: Tensor) -> Tensor:
    """Return the probabilities of the stops; see ``nmtflex.ops.monotonic.expected``."""
    exact = precise(energies.dtype)
    energies, alpha = energies.to(exact), before.to(exact)
    inside = torch.arange(energies.shape[2], device=energies.device) < lengths.unsqueeze(1)
    energies = energies.masked_fill(~inside.unsqueeze(1), 0)
    alpha = alpha.masked_fill(~inside, 0)
    found = []
    for energy in energies.unbind(1):
        missed = functional.pad(torch.sigmoid(-energy), (1, -1))  # [B, S], 0 at position 0
        alpha = (torch.sigmoid(energy) * _arriving(missed, alpha)).masked_fill(~inside, 0)
        found.append(alpha)
    return torch.stack(found, dim=1)


def _arriving(missed: Tensor, alpha: Tensor) -> Tensor:
    """Return q(s) = missed(s) q(s-1) + alpha(s), [B, S], in log2 S rounds.

    Round r joins a position's last 2^r factors and summands with the 2^r before them, as in Hillis
    and Steele (1986): products and sums of numbers between 0 and 1, without a division.
    """
    reach = 1
    while reach < alpha.shape[1]:
        alpha = alpha + missed * functional.pad(alpha, (reach, -reach))
        missed = missed * functional.pad(missed, (reach, -reach))
        reach *= 2
    return alpha


def chunked(alpha: Tensor, scores: Tensor, lengths: Tensor, width: int) -> Tensor:
    """Spread the stops over their chunks; see ``nmtflex.ops.monotonic.chunked``."""
    exact = precise(scores.dtype)
    outside = torch.arange(alpha.shape[2], device=alpha.device) >= lengths.view(-1, 1, 1)
    alpha = alpha.to(exact).masked_fill(outside, 0)
    scores = scores.to(exact).masked_fill(outside, 0)
    chunks = functional.pad(scores, (width - 1, 0), value=-torch.inf).unfold(2, width, 1)
    shares = alpha.unsqueeze(3) * torch.softmax(chunks, dim=3)  # [B, T, S, w], by stop
    beta = torch.zeros_like(alpha)
    for place in range(width):  # in the chunk, whose last place is the stop's
        back = width - 1 - place
        beta = beta + functional.pad(shares[..., place], (-back, back))
    return beta.masked_fill(outside, 0)
