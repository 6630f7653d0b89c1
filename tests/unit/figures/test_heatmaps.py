"""Attention and memory as heatmaps: what is drawn, and what is written beside it."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from nmtflex.figures.heatmaps import attention, memory
from nmtflex.figures.sentence import Looked

SOURCE = ["Straße", "ἀλήθεια", "$x$", "<b>"]
TARGET = ["日本語", "猫", "</s>"]
WEIGHTS = np.array([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.0, 0.0, 0.0, 1.0]])
CAPTION = "run · test, sentence 3 · beam 5"


def images(figure) -> list:
    return [axes.images[0] for axes in figure.axes if axes.images]


def test_a_heatmap_has_source_by_target(trace, texts):
    figure = attention(Looked(SOURCE, TARGET, trace(weights=WEIGHTS)), WEIGHTS, CAPTION)
    [image] = images(figure)
    assert np.array_equal(image.get_array(), WEIGHTS)
    assert image.get_cmap().name == "viridis"
    assert image.get_clim() == (0, 1)
    axes = image.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == SOURCE
    assert [text.get_text() for text in axes.get_yticklabels()] == TARGET
    found = texts(figure)
    assert [text for text in found if text in SOURCE + TARGET] == SOURCE + TARGET
    for text in (
        "Attention weights of each target token",
        "source (tokens)",
        "target (tokens)",
        "attention weight (0 to 1)",
    ):
        assert text in found
    assert CAPTION in found


def test_positions_that_were_not_computed_are_masked(trace, texts):
    made = trace(weights=WEIGHTS, window_start=[0, 0, 3], window_stop=[4, 2, 4])
    figure = attention(Looked(SOURCE, TARGET, made), WEIGHTS, CAPTION)
    [image] = images(figure)
    expected = [[False] * 4, [False, False, True, True], [True, True, True, False]]
    assert image.get_array().mask.tolist() == expected
    assert f"{CAPTION} · grey: not computed" in " ".join(texts(figure))


def test_a_window_over_everything_needs_no_grey(trace, texts):
    made = trace(weights=WEIGHTS, window_start=[0, 0, 0], window_stop=[4, 4, 4])
    assert "grey" not in " ".join(texts(attention(Looked(SOURCE, TARGET, made), WEIGHTS, "")))


def test_a_gate_stands_beside_the_rows_it_belongs_to(trace, texts):
    made = trace(weights=WEIGHTS, gate=[0.25, 1.0, 0.0])
    figure = attention(Looked(SOURCE, TARGET, made), WEIGHTS, CAPTION)
    bars = figure.axes[1].patches
    assert [bar.get_width() for bar in bars] == [0.25, 1.0, 0.0]
    assert [bar.get_y() + bar.get_height() / 2 for bar in bars] == pytest.approx([0, 1, 2])
    assert figure.axes[1].get_ylim() == images(figure)[0].axes.get_ylim()
    assert "gate g(0 open, 1 strict)" in "".join(texts(figure))


ALPHA = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [0.0, 1.0]])  # [S, K]
BETA = np.array([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])  # [T, K]


def test_memory_is_alpha_beta_and_their_product(trace, texts):
    looked = Looked(SOURCE, TARGET, trace(beta=BETA))
    figure = memory(looked, ALPHA, BETA, CAPTION)
    above, product, right = (image.get_array() for image in images(figure))
    assert np.array_equal(above, ALPHA.T)
    assert np.allclose(product, BETA @ ALPHA.T)
    assert np.array_equal(right, BETA)
    found = texts(figure)
    for text in (
        "Memory slots, filled and read",
        "α (0 to 1)",
        "β (0 to 1)",
        "Σ α β over the slots",
        "slot k",
    ):
        assert text in found
    assert [text for text in found if text in SOURCE + TARGET] == SOURCE + TARGET
    assert CAPTION in found


def test_of_many_slots_some_are_numbered(trace, texts):
    beta, alpha = np.full((3, 64), 1 / 64), np.full((4, 64), 0.5)
    figure = memory(Looked(SOURCE, TARGET, trace(beta=beta)), alpha, beta, CAPTION)
    found = texts(figure)
    numbers = [int(text) for text in found if text.isdigit()]
    assert numbers[:9] == [1, 8, 16, 24, 32, 40, 48, 56, 64]


def test_the_weights_of_memory_are_named_as_such_even_without_the_slots(trace, texts):
    looked = Looked(SOURCE, TARGET, trace(weights=BETA @ ALPHA.T), slots=True)
    found = texts(attention(looked, BETA @ ALPHA.T, CAPTION))
    assert "attention weight (Σ α β over the slots)" in found


def test_negative_weights_are_drawn_as_0_and_said_to_be(trace, texts):
    weights = WEIGHTS - 0.15
    figure = attention(Looked(SOURCE, TARGET, trace(weights=weights)), weights, CAPTION)
    [image] = images(figure)
    assert image.get_clim() == (0, 0.85)
    assert "attention weight (negative ones as 0)" in texts(figure)


def test_a_long_sentence_grows_the_figure_and_turns_its_labels(trace):
    source, target = [f"word{number}" for number in range(50)], ["語"] * 51
    weights = np.full((51, 50), 0.02)
    figure = attention(Looked(source, target, trace(weights=weights)), weights, CAPTION)
    assert figure.get_figwidth() > 13
    assert figure.get_figheight() > 13
    labels = images(figure)[0].axes.get_xticklabels()
    assert {label.get_rotation() for label in labels} == {90}
    assert {label.get_fontsize() for label in labels} == {9}
