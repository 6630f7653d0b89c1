"""All layers of a transformer encoder in one call, compiled by numba.

A sentence's numbers are the same to the last bit whatever sentences are beside it.

Legend: M tokens of B sentences, S of one, D units, h heads of E = D / h.
"""

from __future__ import annotations

from numba import prange

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.attend.loops import softmax
from nmtflex.ops.compiled import SUMS, compiled, entry
from nmtflex.ops.linear.product_loops import ROWS
from nmtflex.ops.linear.stage_loops import Fixed, Rows, run_share
from nmtflex.ops.self_attention.loops import (
    clear_around,
    lay_out,
    look,
    make_room,
    own_part,
    score,
    seen_by,
)


@entry(parallel=True)
def run_layers(
    fixed: Fixed,
    parts: Whole,
    heads: int,
    rows: Rows,
    begins: Whole,
    reach: int,
    shares: Whole,
) -> None:
    """Run a program whose parts have self-attention between them.

    Args:
        fixed: With the program.
        parts: Where each part begins, and where the last one ends.
        heads: h.
        rows: What parts keep are queries, keys and values [M, 3 D], and contexts what they take.
        begins: [B + 1], where the tokens of each sentence begin, and where the last one's end.
        reach: Tokens on each side that one attends to.
        shares: Where the tokens of each thread begin and end.
    """
    for part in range(len(parts) - 1):
        stages = range(parts[part], parts[part + 1])
        for share in prange(shares.shape[0] - 1):
            low, high = shares[share], shares[share + 1]
            run_share(fixed, stages, rows, None, None, None, low, high)
        if part + 2 < len(parts):
            for share in prange(shares.shape[0] - 1):
                low, high = shares[share], shares[share + 1]
                _look_around(rows.kept, heads, reach, begins, low, high, rows.taken)


@compiled(**SUMS)
def _look_around(
    kept: Array, heads: int, reach: int, begins: Whole, low: int, high: int, contexts: Array
) -> None:
    """Attend from the tokens of a thread to those of their sentences."""
    longest = 0
    for b in range(len(begins) - 1):
        if begins[b] < high and begins[b + 1] > low:
            longest = max(longest, begins[b + 1] - begins[b])
    room = make_room(longest, contexts.shape[1] // heads, kept)
    for b in range(len(begins) - 1):
        begin, length = begins[b], begins[b + 1] - begins[b]
        first, last = max(begin, low), min(begin + length, high)
        if first < last:
            for head in range(heads):
                lay_out(kept[begin : begin + length], head, room)
                for at in range(first, last, ROWS):
                    stop = min(at + ROWS, last)
                    seen = seen_by(at - begin, stop - begin, length, False, reach)
                    score(kept[at:stop], seen[0], seen[1], head, room)
                    for k in range(stop - at):
                        left, right = own_part(at + k - begin, length, seen[0], False, reach)
                        softmax(room.weights[k, left:right])
                        clear_around(room.weights[k, : seen[1] - seen[0]], left, right)
                    look(seen[0], seen[1], head, room, contexts[at:stop])
