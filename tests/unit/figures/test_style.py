"""What all figures share."""

from __future__ import annotations

import pytest

matplotlib = pytest.importorskip("matplotlib")

from nmtflex.figures.style import (  # noqa: E402
    COLOURS,
    MARKERS,
    canvas,
    head,
    label,
    legend,
    legend_label,
    line_style,
    logarithmic,
    look,
    put_tokens,
    side,
    tell_apart,
)


def facts(*rows: str) -> list[dict[str, str]]:
    return [dict(zip(("run", "split", "beam"), row.split("/"), strict=True)) for row in rows]


@pytest.mark.parametrize(
    ("rows", "labels", "shared"),
    [
        (["a/test/beam 5"], ["a"], "a · test · beam 5"),
        (["a/test/beam 5", "b/test/beam 5"], ["a", "b"], "test · beam 5"),
        (["a/valid/beam 5", "a/test/beam 5"], ["valid", "test"], "a · beam 5"),
        (["a/valid/1", "b/test/1"], ["a, valid", "b, test"], "1"),
        (["a//", "a//"], ["a", "a"], "a"),
        (["a//1", "b//"], ["a, 1", "b"], ""),
        (["a/x/1", "b/x/2", "a/x/1"], ["a, 1", "b, 2", "a, 1"], "x"),
    ],
)
def test_what_lines_share_goes_to_the_caption(rows, labels, shared):
    assert tell_apart(facts(*rows)) == (labels, shared)


def test_settings_hold_within_and_end():
    before = dict(matplotlib.rcParams)
    with look():
        assert matplotlib.rcParams["svg.fonttype"] == "none"
        assert not matplotlib.rcParams["text.parse_math"]
    assert dict(matplotlib.rcParams) == before


def test_many_lines_differ():
    styles = [line_style(number) for number in range(len(COLOURS) * len(MARKERS))]
    assert len({(style["color"], style["marker"]) for style in styles}) == 56
    hollow = ["markerfacecolor" in style for style in styles]
    assert hollow == [(number // len(COLOURS)) % 2 == 1 for number in range(56)]


def test_a_token_is_shown_short_and_visible():
    assert label("a\x1bb") == "a\ufffdb"
    assert label(" ") == "␣"
    assert label("\u3000") == "␣"
    assert label("x" * 28) == "x" * 28
    assert label("x" * 29) == "x" * 27 + "…"


@pytest.mark.parametrize(
    ("tokens", "inches", "rotation"),
    [
        (["a", "b"], 1.0, 0),
        (["日本", "b"], 0.6, 0),
        (["日本語", "b"], 0.6, 90),
        (["word"], 0.3, 90),
    ],
)
@look()
def test_tokens_that_do_not_fit_stand_upright(tokens, inches, rotation):
    axes = canvas(3, 2).subplots()
    put_tokens(axes, "x", tokens, inches)
    put_tokens(axes, "y", tokens, inches)
    assert [text.get_text() for text in axes.get_xticklabels()] == tokens
    assert {text.get_rotation() for text in axes.get_xticklabels()} == {rotation}
    assert {text.get_rotation() for text in axes.get_yticklabels()} == {0}


@look()
def test_figures_grow_with_the_sentence_up_to_a_limit():
    assert side(3, 2.5) == 2.5
    assert side(50) == pytest.approx(13.5)
    assert side(500) == 40
    axes = canvas(40, 2).subplots()
    put_tokens(axes, "x", ["a"] * 500, side(500))
    size = axes.get_xticklabels()[0].get_fontsize()
    assert 3 < size < 72 * 40 / 500


@look()
def test_a_caption_is_broken_between_its_parts(texts):
    figure = canvas(3, 2)
    head(figure, "Title", "some run · update 1,000 · beam 5 · a longer part of words to be broken")
    found = texts(figure)
    assert found[0] == "Title"
    lines = figure.get_supxlabel().split("\n")
    assert len(lines) > 1
    assert not any(line.startswith("·") for line in lines)
    assert "update 1,000 ·" in figure.get_supxlabel()
    assert " ".join(lines).startswith("some run · update 1,000 · beam 5 · a longer part")


@look()
def test_a_legend_names_each_line_once_whatever_it_is_called(texts):
    figure = canvas(5, 2)
    panels = figure.subplots(1, 2)
    for axes in panels:
        for name in ("_hidden", "$x$ & <b>", "a long name, with, many parts to it"):
            axes.plot([0, 1], label=legend_label(name))
    width = figure.get_figwidth()
    legend(figure, panels)
    assert figure.get_figwidth() > width
    found = texts(figure)
    assert found.count(" _hidden") + found.count("_hidden") == 1
    assert found.count("$x$ & <b>") == 1
    assert "a long name," in "\n".join(found)


@pytest.mark.parametrize("axis", ["x", "y"])
@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (2900, 15_000, ["5,000", "10,000"]),
        (1.5, 220, ["2", "5", "10", "20", "50", "100", "200"]),
    ],
)
def test_a_logarithmic_axis_has_plain_numbers(axis, low, high, expected):
    """Within a decade too, where matplotlib would label the minor ticks as 3 x 10^3."""
    with look():
        figure = canvas(6, 4)
        axes = figure.add_subplot()
        axes.plot([low, high], [low, high])
        logarithmic(axes, axis)
        figure.draw_without_rendering()
    drawn = axes.xaxis if axis == "x" else axes.yaxis
    (least, most) = drawn.get_view_interval()
    ticks = zip(drawn.get_ticklocs(), drawn.get_ticklabels(), strict=True)
    assert [label.get_text() for place, label in ticks if least <= place <= most] == expected
    assert not any(label.get_text() for label in drawn.get_ticklabels(minor=True))
