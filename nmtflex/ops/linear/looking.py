"""What the heads of a row read and leave; see ``attend_stages``, with the legend."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmtflex.ops.arrays import Array, Whole

# What is attended to: all positions; those near the last focus; those around a predicted centre, or
# around the number of the step; where a scan stops, or those that end there; random features, of
# sines and cosines or of exponentials.
WHOLE, FLEXIBLE, LOCAL_P, LOCAL_M, MONOTONIC, MOCHA, FOURIER, POSITIVE = range(8)
WINDOWED = (FLEXIBLE, LOCAL_P, LOCAL_M, MONOTONIC, MOCHA)
SCANNED = (MONOTONIC, MOCHA)
FEATURES = (FOURIER, POSITIVE)

REACH = 2.0  # of a remainder beyond tau: what is further away would weigh less than e^-2 as much
SHORTEST = 1e-3  # length below which a vector scaled to length 1 stays shorter: 0 has no direction


class Source(NamedTuple):
    """What K sublayers attend to; the sentences of head i are from i B on."""

    keys: Array  # [K, h B, S, A], or [K, 1, S, A] if all have the same; of a scan [.., U]
    values: Array  # [K, h B, S, A]
    sums: Array  # [K, h B, S + 2, 2 A], of the remainder; [K, 0, 0, 1] without one
    lengths: Whole  # [h B]
    rows: Whole  # [M], the sentence of each row
    heads: int  # h
    scale: np.float32  # of the scores
    reach: np.float32  # threshold of the penalty, positions on each side of a centre, or of a chunk
    spread: np.float32  # 2 sigma^2 of penalty or damping


class Seen(NamedTuple):
    """What K sublayers read of the step before beside the source, and what they leave."""

    words: Array  # [M, K F], what words contribute to the gates
    before: Array  # [M, K, h], focus or stop of the step before, or the number of the step
    after: Array  # [M, K, h], become the next ones, or the predicted centres
    gates: Array  # [M, K, h], become the gates
    windows: Whole  # [M, K, h, 2], become the first positions read, and the ends
    weights: Array  # [K, h, M, S], become the weights; S = 0 if they are not wanted


class Network(NamedTuple):
    """v . tanh(W q + b) + c, of a gate, a centre or an energy; of features, W alone."""

    weight: Array  # [A, U], W
    inner: Array  # [U], b
    v: Array  # [U]
    outer: Array  # [1], c


class Room(NamedTuple):
    """Room for one row."""

    scores: Array  # [S], of one head
    hidden: Array  # [U], of one head
    past: Array  # [h, T], weights of the steps so far


class Focus(NamedTuple):
    """Where a head looks."""

    start: np.int64
    stop: np.int64
    gate: np.floating  # of a scan 1, 0 where nothing is chosen, or NaN
    centre: np.floating
