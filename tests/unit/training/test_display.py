"""What a person sees while training."""

from __future__ import annotations

import io
import itertools
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from nmtflex.training.display import BLOCKS, Display, sparkline
from nmtflex.training.validation import Sample, Validation, _samples


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def show(terminal: bool, width: int = 120, updates: int = 10) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=width, highlight=False)
    with Display(console, total=10, done=0) as display:
        for update in range(1, updates + 1):
            display.advance(1, update, tokens=100, loss=2.5, norm=0.75, rate=0.0005)
        display.line("BLEU 30.00  [best]")
    return plain(out.getvalue())


@pytest.fixture
def each_look_takes(monkeypatch):
    """Make each of the display's looks at the clock so many seconds later than the one before.

    Only the display's: threads of other tests may look at the clock of the process.
    """

    def make(seconds: float) -> None:
        clock = itertools.count()
        looking = SimpleNamespace(monotonic=lambda: seconds * next(clock))
        monkeypatch.setattr("nmtflex.training.display.time", looking)

    return make


def test_a_terminal_gets_a_bar_with_speed_loss_norm_and_rate():
    last = show(terminal=True).splitlines()[-1]
    assert re.fullmatch(
        r"epoch 1 ━+ 10/10 [\d,]+ tokens/s loss 2\.500 norm 0\.75 lr 0\.0005 0:00:00 left 0:00:00",
        last,
    )


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (
            89,
            "epoch 1 ━━━━━━━━━━ 10/10 100 tokens/s loss 2.500 norm 0.75 lr 0.0005 "
            "0:00:00 left 0:00:00",
        ),
        (79, "epoch 1 ━━━━━━━━━━ 10/10 100 tokens/s loss 2.500 norm 0.75 0:00:00 left 0:00:00"),
        (70, "epoch 1 ━━━━━━━━━━━ 10/10 100 tokens/s loss 2.500 0:00:00 left 0:00:00"),
        (56, "epoch 1 ━━━━━━━━━━ 10/10 loss 2.500 0:00:00 left 0:00:00"),
        (50, "epoch 1 ━━━━━━━━━━━━ 10/10 loss 2.500 left 0:00:00"),
        (40, "epoch 1 10/10 loss 2.500 left 0:00:00"),
        (30, "epoch 1 10/10 left 0:00:00"),
    ],
)
def test_a_narrow_terminal_keeps_what_matters(width, line, each_look_takes):
    each_look_takes(1.0)
    last = show(terminal=True, width=width).splitlines()[-1]
    assert re.sub(r"0:00:\d\d", "0:00:00", last).rstrip() == line


def test_a_terminal_tells_no_speed_of_the_first_update():
    assert "tokens/s" not in show(terminal=True, updates=1)
    assert "tokens/s" in show(terminal=True, updates=2)


@pytest.mark.parametrize("terminal", [True, False])
def test_lines_are_printed_as_they_are(terminal):
    assert "BLEU 30.00  [best]" in show(terminal)


def test_elsewhere_lines_come_now_and_then(each_look_takes):
    assert show(terminal=False) == "BLEU 30.00  [best]\n"
    each_look_takes(20.0)
    lines = show(terminal=False).splitlines()
    assert lines == [
        "epoch 1  update 3 of 10  5 tokens/s  loss 2.500  norm 0.75  lr 0.0005  left 0:02:20",
        "epoch 1  update 5 of 10  5 tokens/s  loss 2.500  norm 0.75  lr 0.0005  left 0:01:40",
        "epoch 1  update 7 of 10  5 tokens/s  loss 2.500  norm 0.75  lr 0.0005  left 0:01:00",
        "epoch 1  update 9 of 10  5 tokens/s  loss 2.500  norm 0.75  lr 0.0005  left 0:00:20",
        "BLEU 30.00  [best]",
    ]


def test_a_slow_first_update_is_told_without_speed_or_estimate(each_look_takes):
    each_look_takes(31.0)
    assert show(terminal=False).splitlines()[:2] == [
        "epoch 1  update 1 of 10  loss 2.500  norm 0.75  lr 0.0005",
        "epoch 1  update 2 of 10  3 tokens/s  loss 2.500  norm 0.75  lr 0.0005  left 0:04:08",
    ]


SAMPLES = [
    Sample(f"source {number} [red]\x1b", f"reference {number} 日本語", f"translation {number}")
    for number in range(3)
]


def result(bleu: float, samples=SAMPLES) -> Validation:
    return Validation(1.0, 2.5 + bleu, bleu, "", None, None, tuple(samples))


def validate(terminal: bool, *scores: float, history=(), height: int = 30, width: int = 80) -> str:
    out = io.StringIO()
    console = Console(
        file=out, force_terminal=terminal, width=width, height=height, highlight=False
    )
    with Display(console, total=10, done=0, history=history) as display:
        for score in scores:
            display.validation(f"BLEU {score} [best]", result(score))
    return plain(out.getvalue())


def test_a_terminal_keeps_the_last_validation_above_the_bar():
    text = validate(True, 10.0, 30.0, 20.0, history=(5.0, 15.0))
    last = text[text.rindex("valid BLEU") :]
    assert "▁▄▂█▅" in last
    assert "20.00, best 30.00" in last
    assert re.search(r"^perplexity   22\.50 *$", last, re.MULTILINE)
    for word in (
        "source       source 0 [red]\ufffd",
        "reference 2 日本語",
        "translation 1",
        "0/10",
    ):
        assert word in last
    assert "BLEU 30.0 [best]" in text


def work(terminal: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120, highlight=False)
    with Display(console, total=1000, done=250) as display:
        for done in (0, 64, 128, 192):
            display.working(3, 250, f"validating {done} of 1,160 sentences")
            if terminal:
                display.bar.refresh()
        display.working(3, 250)
    return plain(out.getvalue())


def test_a_terminal_shows_how_far_a_validation_is():
    shown = work(terminal=True)
    for done in (0, 64, 128, 192):
        assert f"epoch 3, validating {done} of 1,160 sentences" in shown
    assert re.match(r"epoch 3 .*250/1000", shown.splitlines()[-1])


def test_elsewhere_a_long_validation_gets_a_line_now_and_then(each_look_takes):
    assert work(terminal=False) == ""
    each_look_takes(20.0)
    assert work(terminal=False).splitlines() == [
        "epoch 3  update 250 of 1,000  validating 64 of 1,160 sentences",
        "epoch 3  update 250 of 1,000  validating 192 of 1,160 sentences",
    ]


def test_long_sentences_are_cut_to_the_width():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=40, height=30)
    with Display(console, total=10, done=0) as display:
        display.validation("", result(1.0, [Sample("s" * 99, "日本語" * 30, "t")]))
    assert "…" in out.getvalue()
    assert "s" * 30 not in out.getvalue()


@pytest.mark.parametrize(("height", "shown"), [(30, 3), (17, 3), (16, 2), (9, 1), (5, 0), (2, 0)])
def test_a_low_terminal_shows_fewer_sentences(height, shown):
    text = validate(True, 1.0, height=height)
    last = text[text.rindex("valid BLEU") :]
    assert [number for number in range(3) if f"source {number}" in last] == list(range(shown))


def test_elsewhere_a_validation_is_plain_lines():
    lines = validate(False, 10.0).splitlines()
    assert lines[:4] == [
        "BLEU 10.0 [best]",
        "  source       source 0 [red]\ufffd",
        "  reference    reference 0 日本語",
        "  translation  translation 0",
    ]
    assert len(lines) == 10


def test_elsewhere_an_endless_translation_is_cut():
    out = io.StringIO()
    with Display(Console(file=out, width=40), total=10, done=0) as display:
        display.validation("", result(0.0, [Sample("s", "r", "t" * 201)]))
    assert out.getvalue().endswith("  translation  " + "t" * 199 + "…\n")


@pytest.mark.parametrize(
    ("values", "curve"),
    [
        ([3.0], "▁"),
        ([3.0, 3.0], "▁▁"),
        ([0.0, 7.0], "▁█"),
        (list(range(8)), BLOCKS),
        ([7.0, 0.0, 3.4], "█▁▄"),
    ],
)
def test_a_curve_a_character_high(values, curve):
    assert sparkline(values) == curve


def test_a_long_curve_keeps_its_end():
    assert sparkline([*range(99), 1000], width=4) == "▁▁▁█"
    assert len(sparkline(range(1000))) == 40


def test_sentences_shown_are_spread_over_the_split():
    sources = ["", "a", " ", "b", "c", "", "d", "e", "f", "g"]
    references = [f"of {line}" for line in sources]
    assert _samples(sources, references) == {1: ("a", "of a"), 4: ("c", "of c"), 7: ("e", "of e")}
    assert _samples(["", "x"], ["", "y"]) == {1: ("x", "y")}
