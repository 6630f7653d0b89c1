"""``translate --html``."""

from __future__ import annotations

import re

import pytest

import nmtflex
from nmtflex.decoding.html import translate_html

ONE_THREAD = ("--threads", 1)
HTML = '<p>\r\n  a <b>b c</b> . d <code>e()</code></p>\n<pre>a</pre><img alt="f">\n'


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.html"
    path.write_bytes(HTML.encode())
    return path


def test_a_document_is_that_of_the_library(command_line, tiny_run, page, tmp_path):
    translator = nmtflex.load(tiny_run, threads=1, split="sentences")
    options = ["translate", tiny_run, *ONE_THREAD, "--html", "-i", page]
    found = command_line(*options)
    assert (found.code, found.out) == (0, translate_html(translator, HTML))
    assert re.findall("<.*?>", found.out) == [
        "<p>", "<b>", "</b>", "<code>", "</code>", "</p>", "<pre>", "</pre>", '<img alt="f">'
    ]  # fmt: skip
    more = command_line(*options, "--html-attributes", "-o", tmp_path / "out.html")
    assert (more.code, more.out) == (0, "")
    written = (tmp_path / "out.html").read_bytes().decode()
    assert written == translate_html(translator, HTML, attributes=True)
    assert 'alt="f"' not in written
    assert command_line(*options, "--join", 2, "--split", "sentences").code == 0


def test_a_layer_may_be_chosen_for_the_tags(command_line, make_layered_run, page):
    from nmtflex.config import GlobalConfig

    run = make_layered_run("layers", GlobalConfig())
    result = command_line("translate", run, *ONE_THREAD, "--html", "-i", page, "--layer", 1)
    assert result.code == 0, result.err


def test_an_empty_document(command_line, tiny_run, tmp_path):
    (tmp_path / "empty").write_text("")
    result = command_line("translate", tiny_run, *ONE_THREAD, "--html", "-i", tmp_path / "empty")
    assert (result.code, result.out.strip()) == (0, "")


def test_a_warning_is_a_line(command_line, tiny_run, page):
    options = ["--html", "-i", page, "--max-length", 1, "--quiet"]
    result = command_line("translate", tiny_run, *ONE_THREAD, *options)
    assert result.code == 0
    assert result.err.startswith("nmtflex: warning: ")
    assert "reached the maximum length" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--html-attributes"], "--html-attributes has no effect without --html"),
        (["--html", "--n-best", "2"], "--n-best 2 cannot be combined with --html"),
        (["--html", "--format", "json"], "--format json cannot be combined with --html"),
        (["--html", "--workers", "2"], "--workers 2 cannot be combined with --html"),
        (["--html", "--processes", "2"], "--processes 2 cannot be combined with --html"),
        (["--html", "--buffer", "2"], "--buffer 2 cannot be combined with --html"),
        (["--html", "--alignment", "x"], "--alignment x cannot be combined with --html"),
        (["--html", "--attention-output", "x"], "--attention-output x cannot be combined with"),
        (["--html", "--stats"], "--stats cannot be combined with --html"),
        (["--html", "--verbose"], "--verbose cannot be combined with --html"),
        (["--layer", "1"], "--layer 1 has no effect without --alignment"),
    ],
)
def test_options_without_effect(command_line, tiny_run, page, arguments, message):
    result = command_line("translate", tiny_run, *ONE_THREAD, "-i", page, *arguments)
    assert (result.code, result.out) == (2, "")
    assert f"nmtflex: error: {message}" in result.err


def test_several_processes(command_line, tiny_run, page, monkeypatch):
    from nmtflex.cli import html
    from nmtflex.ranks import Ranks

    monkeypatch.setattr(Ranks, "alone", property(lambda _: False), raising=False)
    assert html.translate_page
    result = command_line("translate", tiny_run, *ONE_THREAD, "--html", "-i", page)
    assert (result.code, result.out) == (2, "")
    assert "--html" in result.err


def test_bytes_that_are_not_text(command_line, tiny_run, tmp_path):
    path = tmp_path / "bad.html"
    path.write_bytes(b"<p>a\xff</p>")
    result = command_line("translate", tiny_run, *ONE_THREAD, "--html", "-i", path)
    assert (result.code, result.out) == (1, "")
    assert f"{path}:1: not valid UTF-8" in result.err
