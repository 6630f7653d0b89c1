"""Recurrent cells, one vector at a time: the encoder's, with torch's weights, and the decoder's.

LSTM (gates i, f, g, o) and GRU (gates r, z, n) as in the documentation of ``torch.nn``::

    c' = f c + i g        h' = o tanh(c')
    n  = tanh(W x + r (U h + b))        h' = (1 - z) n + z h
"""

from __future__ import annotations

import numpy as np

from oracle.weights import Vector, Weights, sigmoid

State = tuple[Vector, ...]  # (h, c) of an LSTM, (h,) of a GRU


def lstm(gates: Vector, c: Vector) -> State:
    """Advance by the sums that the four gates are made of, [4 D]."""
    i, f, g, o = gates.reshape(4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru(inputs: Vector, hidden: Vector, h: Vector) -> State:
    """Advance by the two sides of the three gates, [3 D] each; biases are in them."""
    (r, z, n), (r_h, z_h, n_h) = inputs.reshape(3, -1), hidden.reshape(3, -1)
    n = np.tanh(n + sigmoid(r + r_h) * n_h)
    z = sigmoid(z + z_h)
    return ((1 - z) * n + z * h,)


def encode_one_way(weights: Weights, suffix: str, cell: str, inputs: list[Vector]) -> list[Vector]:
    """Return h after each input, by the weights that torch gives a layer's direction."""
    w, u = weights[f"weight_ih_l0{suffix}"], weights[f"weight_hh_l0{suffix}"]
    b, d = weights[f"bias_ih_l0{suffix}"], weights[f"bias_hh_l0{suffix}"]
    state: State = (np.zeros(u.shape[1]),) * 2
    states = []
    for x in inputs:
        h = state[0]
        state = (
            lstm(w @ x + b + u @ h + d, state[1])
            if cell == "lstm"
            else gru(w @ x + b, u @ h + d, h)
        )
        states.append(state[0])
    return states


def encode(weights: Weights, cell: str, inputs: list[Vector]) -> tuple[list[Vector], Vector]:
    """Return a bidirectional layer's states, and [last forward; first backward]."""
    onward = encode_one_way(weights, "", cell, inputs)
    back = encode_one_way(weights, "_reverse", cell, inputs[::-1])[::-1]
    states = [np.concatenate(both) for both in zip(onward, back, strict=True)]
    return states, np.concatenate([onward[-1], back[0]])


def advance(
    weights: Weights, cell: str, embedded: Vector, extra: Vector, state: list[State]
) -> list[State]:
    """Advance the decoder's cells, one above the other; the bottom one reads [embedded; extra]."""
    new: list[State] = []
    for layer, old in enumerate(state):
        own = weights.under(f"cells.{layer}")
        if layer == 0:
            gates = weights["embedding_gates.weight"] @ embedded + weights["embedding_gates.bias"]
            below = extra
        else:
            gates, below = weights[f"layer_biases.{layer - 1}"], new[-1][0]
        h = old[0]
        if cell == "lstm":
            joint = own["joint.weight"] @ np.concatenate([below, h])
            new.append(lstm(gates + joint, old[1]))
            continue
        hidden = own["hidden.weight"] @ h
        hidden[2 * len(h) :] += own["candidate_bias"]
        if len(below):
            gates = gates + own["inputs.weight"] @ below
        new.append(gru(gates, hidden, h))
    return new
