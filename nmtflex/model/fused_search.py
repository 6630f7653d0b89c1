"""A search with one model whose steps need no Python; see ``nmtflex.ops.beam.grow_loops``.

Legend: N hypotheses, M the most that a step may have, B sentences, C steps of a call, V words, D
units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmtflex.layers.positions import sinusoids
from nmtflex.model.decoders.fused_layers import FusedLayers
from nmtflex.model.decoders.layered import LayeredMemory
from nmtflex.ops.beam import Beam, Rules, grow_loops
from nmtflex.ops.beam.grow_loops import Machine, Record, State, Words, Work
from nmtflex.ops.linear.packed import array
from nmtflex.ops.threads import GRAIN, most_threads, run
from nmtflex.ops.vocabulary.output_loops import Layer

Array = NDArray[Any]

MOST_STEPS = 32  # of a call
MOST_WORK = (
    1 << 30
)  # multiplications of a call: a few hundredths of a second, for which others wait


class FusedSearch:
    """A search with a model whose weights will not change.

    Args:
        layers: Of the decoder, in one call.
        output: The output layer.
        embedded: [V, D], of the target words.
        scale: Of the embeddings.
        feedback: [V, F], what words contribute to attention.
    """

    def __init__(
        self, layers: FusedLayers, output: Layer, embedded: Tensor, scale: float, feedback: Tensor
    ) -> None:
        self._layers, self._output = layers, output
        self._embedded, self._scale = array(embedded), np.float32(scale)
        self._feedback = array(feedback)

    def grow(
        self, memory: LayeredMemory, first: Beam, rules: Rules
    ) -> tuple[list[Beam], list[Beam], float]:
        """Let hypotheses grow until no sentence is open; see ``nmtflex.decoding.search.grow``.

        Args:
            memory: Of the decoder, for B sentences.
            first: One hypothesis of each sentence.
            rules: Of the search.

        Returns:
            For each step the hypotheses that go on, and those that have ended; and the greatest
            log-probability of the last step, NaN or infinite if the weights are broken.
        """
        most = int(rules.slots.sum())
        work = Work(min(most_threads(), most), GRAIN)
        units = most * (len(self._layers.fixed.weights) + len(self._output.weights))
        steps = max(1, min(MOST_STEPS, MOST_WORK // units))
        source = memory.fast.sources.source._replace(heads=self._layers.heads)
        state = self._layers.start(most)
        live, ended = [first], list[Beam]()
        while len(live[-1].rows):
            past = len(ended)
            words = self._words(memory, past, steps)
            state = _with_room(state, past, steps, rules.no_repeat > 0)
            go_on, end = _record(live[-1], most, steps), _record(None, most, steps)
            machine = Machine(self._layers.fixed, source, words, self._output)
            given = machine, rules, state, go_on, end, past, work
            taken, greatest = run(grow_loops.grow, work.threads, *given)
            live += _steps(go_on, taken)
            ended += _steps(end, taken)
            if not greatest < np.inf:
                return live[1:], ended, greatest
            state = state._replace(free=state.free + int(go_on.ends[max(0, taken - 1)]))
        return live[1:], ended, 0.0

    def _words(self, memory: LayeredMemory, past: int, steps: int) -> Words:
        """Return what the steps after the first ``past`` read of words."""
        numbers = torch.arange(past, past + steps)
        positions = array(sinusoids(numbers, self._embedded.shape[1], torch.float32))
        summaries = positions[:0] if memory.summary is None else array(memory.summary)
        return Words(self._embedded, self._scale, self._feedback, positions, summaries)


def _with_room(state: State, past: int, steps: int, remembering: bool) -> State:
    """Return the state with room for ``steps`` more, and for their words if they are remembered."""
    most = len(state.mixed)
    if remembering:
        state = state._replace(said=_longer(state.said, past, steps))
    if not state.cache.shape[1]:
        return state
    places, cache = _longer(state.places, past, steps), state.cache
    if state.free + steps * most > len(cache):
        cache = np.empty((2 * state.free + steps * most, cache.shape[1]), np.float32)
        cache[: state.free] = state.cache[: state.free]
    return state._replace(cache=cache, places=places)


def _longer(numbers: Array, past: int, steps: int) -> Array:
    """Return the first numbers [M, past] with room for more."""
    longer = np.empty((len(numbers), past + steps), np.int64)
    longer[:, :past] = numbers[:, :past]
    return longer


def _record(first: Beam | None, most: int, steps: int) -> Record:
    """Return room for the hypotheses of some steps, after the first."""
    begin = 0 if first is None else len(first.rows)
    size = begin + steps * most
    rows, parents, tokens = (np.empty(size, np.int64) for _ in range(3))
    ends = np.zeros(steps + 1, np.int64)
    record = Record(rows, parents, tokens, np.empty(size), ends)
    if first is not None:
        ends[0] = begin
        for part, own in zip(record, first, strict=False):
            part[:begin] = own
    return record


def _steps(record: Record, count: int) -> list[Beam]:
    """Return the hypotheses of the first steps of a call."""
    *parts, ends = record
    bounds = ends.tolist()
    return [Beam(*(part[bounds[at] : bounds[at + 1]] for part in parts)) for at in range(count)]
