"""The elementwise part of a recurrent cell and of a gate, as one operation each.

Legend: N rows, B sentences, T steps, D units of a cell, A units of a gate.
"""

from __future__ import annotations

from torch import Tensor

from nmtflex.ops.dispatch import implementation


def lstm(product: Tensor, summand: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Advance a long short-term memory by one step.

    With the gates i, f, g, o in this order in ``product + summand``, D of each::

        c' = sigmoid(f) c + sigmoid(i) tanh(g)
        h' = sigmoid(o) tanh(c')

    Args:
        product: [N, 4 D], one side of the gates.
        summand: [N, 4 D], or [4 D] for all rows: the other side.
        c: [N, D].

    Returns:
        h' and c', [N, D] each, in float32 at least: bfloat16 would lose too much of the sum c.
    """
    return implementation("recurrent", product.device).lstm(product, summand, c)


def ssru(gates: Tensor, candidates: Tensor, c: Tensor) -> Tensor:
    """Walk a simpler simple recurrent unit through all steps.

    Kim et al. (2019), https://aclanthology.org/D19-5632, section 3.1::

        f[t] = sigmoid(gates[t])
        c[t] = f[t] c[t-1] + (1 - f[t]) candidates[t]

    Args:
        gates: [B, T, D], before their sigmoid.
        candidates: [B, T, D].
        c: [B, D], the memory before the first step.

    Returns:
        c of every step, [B, T, D], in float32 at least: bfloat16 would lose too much of the sum.
    """
    return implementation("recurrent", gates.device).ssru(gates, candidates, c)


def gate(state: Tensor, word: Tensor | None, v: Tensor, bias: Tensor | None) -> Tensor:
    """Return sigmoid(v . tanh(state + word) + bias), [N] in float32 at least.

    Args:
        state: [N, A].
        word: [N, A], or None.
        v: [A].
        bias: [1], or None.
    """
    return implementation("recurrent", state.device).gate(state, word, v, bias)
