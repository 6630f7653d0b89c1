"""The best few of each row, in an order that leaves nothing to chance."""

from __future__ import annotations

import torch
from torch import Tensor

CHUNK = 64  # columns whose maximum is taken first; 32 to 128 are equally fast on AVX-512


def best(values: Tensor, count: int, keys: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the highest values of each row with their keys; equal values go by lowest key.

    ``torch.topk`` promises nothing about equal values, so one value more than asked for is taken:
    only rows in which two neighbours are equal, which are rare, are looked at again.

    Args:
        values: [R, C]; -inf is an empty place, NaN counts as the highest.
        count: How many; fewer are returned where a row has fewer columns.
        keys: [R, C] integers that differ within a row, except in empty places; None stands for
            the column numbers.

    Returns:
        Values [R, K], highest first, and their keys [R, K]; keys of empty places mean nothing.
    """
    count = min(count, values.shape[1])
    top, columns = _top(values, min(count + 1, values.shape[1]))
    found = columns[:, :count] if keys is None else keys.gather(1, columns[:, :count])
    equal = (top[:, 1:] == top[:, :-1]) & (top[:, 1:] > -torch.inf)
    if equal.any():
        rows = equal.any(1).nonzero().squeeze(1)
        if keys is None:
            row_keys = torch.arange(values.shape[1], device=values.device).expand(len(rows), -1)
        else:
            row_keys = keys[rows]
        found[rows] = _settle(values[rows], row_keys, top[rows, :count], found[rows])
    return top[:, :count], found


def _top(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return what ``values.topk(count)`` does, three to five times faster on wide rows.

    The chunks with the highest maxima hold the highest values; a maximum over a chunk is one pass
    of vector instructions, where topk partly sorts every row.
    """
    size = values.shape[1]
    if size < 10 * CHUNK * count:
        return values.topk(count)
    whole = size - size % CHUNK
    chunks = values[:, :whole].view(len(values), whole // CHUNK, CHUNK)
    chosen = chunks.amax(2).topk(count, sorted=False).indices[:, :, None]
    within = torch.arange(CHUNK, device=values.device)
    columns = (chosen * CHUNK + within).flatten(1)
    rest = torch.arange(whole, size, device=values.device).expand(len(values), -1)
    columns = torch.cat([columns, rest], dim=1)
    top, index = values.gather(1, columns).topk(count)
    return top, columns.gather(1, index)


def _settle(values: Tensor, keys: Tensor, top: Tensor, found: Tensor) -> Tensor:
    """Return the keys [R, K] of the highest values ``top`` [R, K] with ties by lowest key.

    ``found`` [R, K] holds keys in which only those of equal values may be wrong.
    """
    count = top.shape[1]
    edge = top[:, -1:]
    above = top > edge
    # Of the values equal to the last one taken, those with the lowest keys.
    never = torch.iinfo(keys.dtype).max
    tied = torch.where(values == edge, keys, never).topk(count, dim=1, largest=False).values
    rank = torch.arange(count, device=values.device) - above.sum(1, keepdim=True)
    found = torch.where(above, found, tied.gather(1, rank.clamp(min=0)))
    # And the order among equal values everywhere: by key, then stably by value.
    found, order = found.sort(dim=1)
    order = top.gather(1, order).argsort(dim=1, descending=True, stable=True)
    return found.gather(1, order)
