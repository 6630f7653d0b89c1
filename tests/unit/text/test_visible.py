"""What is no character is not shown; counts in words."""

from __future__ import annotations

import pytest

from nmtflex.text.visible import counted, visible


@pytest.mark.parametrize(
    "text", ["", "a b", "日本　語", "naïve ἀλήθεια", "😀", "a\u200db", "\ufffd"]
)
def test_what_can_be_shown_stays(text):
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a?[31mb"),
        ("\x00\t\n\r\x7f", "?????"),
        ("\x85\x9b", "??"),
        ("\ufffe日\uffff", "?日?"),
        ("\ud800", "?"),
    ],
)
def test_what_a_terminal_obeys_or_xml_forbids_is_replaced(text, shown):
    assert visible(text) == shown.replace("?", "\ufffd")


@pytest.mark.parametrize(
    ("count", "nouns", "words"),
    [
        (0, ["pair"], "0 pairs"),
        (1, ["pair"], "1 pair"),
        (2000, ["pair"], "2,000 pairs"),
        (1, ["batch", "batches"], "1 batch"),
        (2, ["batch", "batches"], "2 batches"),
    ],
)
def test_one_of_a_thing_is_no_plural(count, nouns, words):
    assert counted(count, *nouns) == words
