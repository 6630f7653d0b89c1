"""Dropout where it must act: each cell's input and the vector that predicts, by its statistics.

Hooks see what leaves one part of the model and what enters the next. What lies between is compared:
the share of zeros, what the others were multiplied by, and whether any two masks are alike.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from nmtflex.config import GlobalConfig, ModelConfig
from nmtflex.model.build import build_model
from nmtflex.model.seq2seq import Seq2Seq

SENTENCES, LENGTH, UNITS = 40, 5, 32
SHARE, OUTPUT_SHARE = 0.3, 0.15
PLACES = {
    "encoder layer 0": SHARE,
    "encoder layer 1": SHARE,
    "words": SHARE,
    "step": SHARE,
    "decoder layer 1": SHARE,
    "output": OUTPUT_SHARE,
}


class Watch:
    """What is to enter each place, and what enters it, in the order of the calls."""

    def __init__(self, model: Seq2Seq) -> None:
        self.before: dict[str, list[Tensor]] = defaultdict(list)
        self.after: dict[str, list[Tensor]] = defaultdict(list)
        self.queries: list[Tensor] = []
        self.words_for_attention: list[Tensor] = []
        decoder, layers = model.decoder, model.encoder.layers
        cells = decoder.stack.cells
        self._leaving(model.encoder.embedding, "encoder layer 0", lambda embedded: embedded)
        self._entering(layers[0], "encoder layer 0", lambda inputs: unpacked(inputs[0]))
        self._leaving(layers[0], "encoder layer 1", lambda result: unpacked(result[0]))
        self._entering(layers[1], "encoder layer 1", lambda inputs: unpacked(inputs[0]))
        self._leaving(model.target_embedding, "words", lambda embedded: embedded)
        self._entering(decoder.stack.embedding_gates, "words", lambda inputs: inputs[0])
        decoder.stack.register_forward_pre_hook(
            lambda _, inputs: self.before["step"].append(inputs[1].detach())
        )
        self._entering(cells[0], "step", lambda inputs: inputs[1])
        self._leaving(cells[0], "decoder layer 1", lambda state: state[0])
        self._entering(cells[1], "decoder layer 1", lambda inputs: inputs[1])
        self._returning(decoder, "sequence", lambda _, result: self._leave("output", result[0]))
        self._entering(model.output.bottleneck, "output", lambda inputs: inputs[0])
        decoder.attention.register_forward_pre_hook(
            lambda _, inputs: self.queries.append(inputs[0].detach())
        )
        self._returning(
            decoder.attention,
            "feedback",
            lambda given, _: self.words_for_attention.append(given[0].detach()),
        )

    def _leave(self, place: str, tensor: Tensor) -> None:
        self.before[place].append(tensor.detach())

    def _returning(self, module: nn.Module, name: str, note) -> None:
        """Watch a method that is not ``forward``: what it takes and what it returns."""
        method = getattr(module, name)

        def call(*given):
            result = method(*given)
            note(given, result)
            return result

        setattr(module, name, call)

    def _leaving(self, module: nn.Module, place: str, tensor) -> None:
        module.register_forward_hook(lambda _, inputs, result: self._leave(place, tensor(result)))

    def _entering(self, module: nn.Module, place: str, tensor) -> None:
        module.register_forward_pre_hook(
            lambda _, inputs: self.after[place].append(tensor(inputs).detach())
        )

    def pairs(self, place: str) -> list[tuple[Tensor, Tensor]]:
        """What was to enter and what entered, a pair a call of the part that it enters."""
        before, after = self.before[place], self.after[place]
        if place == "output":  # without padding
            before = [part.flatten(0, 1) for part in before]
        return list(zip(before, after, strict=True))


def unpacked(sequences: PackedSequence) -> Tensor:
    """The vectors [B, S, ...] that an encoder's layer takes or gives."""
    return pad_packed_sequence(sequences, batch_first=True)[0]


def watched(decoder: str, cell: str, training: bool, **shares: float) -> tuple[Seq2Seq, Watch]:
    """Run a batch through a model; all of its vectors are without zeros of their own."""
    torch.manual_seed(3)
    config = ModelConfig.from_flat(
        attention=GlobalConfig(),
        decoder=decoder,
        cell=cell,
        embedding_size=UNITS,
        encoder_size=UNITS,
        decoder_size=UNITS,
        encoder_layers=2,
        decoder_layers=2,
        bottleneck=UNITS,
        **shares,
    )
    model = build_model(config, 20, 20, LENGTH).double().train(training)
    watch = Watch(model)
    words = torch.randint(4, 20, (3, SENTENCES, LENGTH))
    model.loss(words[0], torch.full((SENTENCES,), LENGTH), words[1], words[2])
    return model, watch


@pytest.fixture(
    scope="module", params=[("bahdanau", "lstm"), ("luong", "gru"), ("luong", "lstm")], ids="-".join
)
def training(request: pytest.FixtureRequest) -> Watch:
    return watched(*request.param, training=True, dropout=SHARE, output_dropout=OUTPUT_SHARE)[1]


def masks(watch: Watch, place: str) -> list[Tensor]:
    """Where numbers came through, for each call; zeros of Luong's first step are left out."""
    return [after != 0 for before, after in watch.pairs(place) if before.all()]


@pytest.mark.parametrize("place", PLACES)
def test_the_share_is_dropped_and_the_rest_is_scaled(training, place):
    share = PLACES[place]
    kept = torch.cat([mask.flatten() for mask in masks(training, place)]).double()
    deviation = (share * (1 - share) / len(kept)) ** 0.5
    assert len(kept) >= SENTENCES * (LENGTH - 1) * UNITS
    assert abs((1 - kept.mean()).item() - share) < 4 * deviation
    for before, after in training.pairs(place):
        expected = before * (after != 0) / (1 - share)
        torch.testing.assert_close(after, expected, rtol=1e-12, atol=0)


def test_no_two_masks_are_alike(training):
    """Neither of two places, nor of two steps at one, nor of two rows or units in one."""
    flat = {}
    for place, share in PLACES.items():
        for call, mask in enumerate(masks(training, place)):
            rest = (mask.double() - (1 - share)) / (share * (1 - share)) ** 0.5
            flat[place, call] = rest.flatten()
            flat[place, call, "by rows"] = rest.flatten()[UNITS:]
            flat[place, call, "by columns"] = rest.flatten()[1:]
    for (one, x), (other, y) in itertools.combinations(flat.items(), 2):
        count = min(len(x), len(y))
        agreement = (x[:count] * y[:count]).mean().item()
        assert abs(agreement) < 5 / count**0.5, (one, other)


def test_attention_sees_words_and_states_whole(training):
    """Dropout is on the inputs of cells, not on the query, nor on the word that a gate sees."""
    (embedded,) = training.before["words"]
    (seen,) = training.words_for_attention
    assert torch.equal(seen, embedded)
    assert len(training.queries) == LENGTH
    assert all(query.all() for query in training.queries)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("decoder", ["bahdanau", "luong"])
def test_nothing_is_dropped_in_evaluation_mode(decoder, place):
    _, watch = watched(decoder, "lstm", False, dropout=SHARE, output_dropout=OUTPUT_SHARE)
    assert watch.pairs(place)
    for before, after in watch.pairs(place):
        assert torch.equal(before, after)


@pytest.mark.parametrize("place", PLACES)
def test_each_option_is_of_its_own_places(place):
    for options in ({"dropout": SHARE}, {"dropout": 0.0, "output_dropout": OUTPUT_SHARE}):
        _, watch = watched("bahdanau", "lstm", True, **options)
        acts = ("dropout" in options and options["dropout"] > 0) == (place != "output")
        dropped = [not after.all() for _, after in watch.pairs(place)]
        assert dropped == [acts] * len(dropped)
