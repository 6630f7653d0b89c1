from __future__ import annotations

import io
import json

import pytest

from nmtflex.config import OutputConfig, SearchConfig
from nmtflex.decoding.stream import (
    ChunkTranslation,
    check_output,
    format_translations,
    translated,
    write_chunks,
)
from nmtflex.decoding.translation import Translation
from nmtflex.errors import DataError, OptionError


class Shout:
    """Stands in for a translator: upper case, and a second hypothesis in capitals."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def n_best(self, lines, count, *_counted, **_asked) -> list[list[Translation]]:
        self.calls.append(len(lines))
        made = []
        for line in lines:
            texts = [line.upper(), line.capitalize()][:count]
            made.append([
                Translation(text, text.split(), text.split(), -0.5 - rank, -1.0 - 2 * rank, None)
                for rank, text in enumerate(texts)
            ])
        return made


def translate(opener, lines, out, *report, **options) -> None:
    output = OutputConfig(**options)
    setup = ChunkTranslation(opener, output.n_best, trace=False, counting=False)
    write_chunks(translated(setup, lines, output), out, output.format, *report)


def run(lines, **options) -> tuple[str, Shout]:
    shout, out = Shout(), io.BytesIO()
    translate(lambda: shout, lines, out, **options)
    return out.getvalue().decode("utf-8"), shout


def test_order_is_kept_over_buffers() -> None:
    text, shout = run([f"wörd {number}" for number in range(7)], buffer=3)
    assert text == "".join(f"WÖRD {number}\n" for number in range(7))
    assert shout.calls == [3, 3, 1]


def test_no_line_is_read_before_the_buffer_before_is_written() -> None:
    out = io.BytesIO()
    seen = []

    def lines():
        for number in range(4):
            seen.append(out.getvalue().count(b"\n"))
            yield str(number)

    translate(Shout, lines(), out, buffer=2)
    assert seen == [0, 0, 2, 2]


def test_lines_before_a_fault_are_written() -> None:
    def lines():
        yield "one"
        yield "two"
        raise DataError("standard input:3: not valid UTF-8")

    out = io.BytesIO()
    with pytest.raises(DataError, match="standard input:3"):
        translate(Shout, lines(), out)
    assert out.getvalue() == b"ONE\nTWO\n"


def test_every_buffer_is_reported() -> None:
    reports = []

    def report(sentences, tokens):
        reports.append((sentences, tokens))

    translate(Shout, ["a b", "c", "d"], io.BytesIO(), report, buffer=2)
    assert reports == [(2, 3), (1, 1)]


def test_moses_format() -> None:
    text, _ = run(["das ist", "x"], format="moses", n_best=2)
    assert text.splitlines() == [
        "0 ||| DAS IST ||| LogP= -1.000000 ||| -0.500000",
        "0 ||| Das ist ||| LogP= -3.000000 ||| -1.500000",
        "1 ||| X ||| LogP= -1.000000 ||| -0.500000",
        "1 ||| X ||| LogP= -3.000000 ||| -1.500000",
    ]


def test_moses_format_escapes_its_separator_alone() -> None:
    text, _ = run(["a ||| b | c"], format="moses")
    assert text.split(" ||| ")[1] == "A &#124;&#124;&#124; B | C"
    assert len(text.split("|||")) == 4


def test_json_format() -> None:
    text, _ = run(["日本", "||| \u2028"], format="json", n_best=2)
    assert text.count("\n") == 2
    first, second = map(json.loads, text.split("\n")[:2])
    assert first == {
        "index": 0,
        "source": "日本",
        "translations": [
            {"text": "日本", "tokens": ["日本"], **scores}
            for scores in (
                {"score": -0.5, "log_probability": -1.0, "truncated": False},
                {"score": -1.5, "log_probability": -3.0, "truncated": False},
            )
        ],
    }
    assert second["index"] == 1
    assert second["translations"][0]["text"] == "||| \u2028"
    assert "日本" in text


@pytest.mark.parametrize("style", ["text", "moses", "json"])
def test_an_empty_translation(style: str) -> None:
    line = format_translations(5, "", [Translation("", [], [], 0.0, 0.0, None)], style)
    expected = {
        "text": "\n",
        "moses": "5 |||  ||| LogP= 0.000000 ||| 0.000000\n",
        "json": '{"index": 5, "source": "", "translations": [{"text": "", "tokens": [], '
        '"score": 0.0, "log_probability": 0.0, "truncated": false}]}\n',
    }
    assert line == expected[style]


def test_options_that_do_not_fit() -> None:
    check_output(OutputConfig(n_best=5, format="json"), SearchConfig(beam=5))
    with pytest.raises(OptionError, match="--n-best 6 is more than --beam 5"):
        check_output(OutputConfig(n_best=6, format="json"), SearchConfig(beam=5))
    with pytest.raises(OptionError, match="--n-best 2 needs --format moses or json"):
        check_output(OutputConfig(n_best=2), SearchConfig(beam=5))
