"""Which tokens are a word, as alignments count words."""

from __future__ import annotations

import pytest

from nmtflex.text.tokenizers import build_tokenizer

CHAR = {"name": "char"}


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("ab c", [0, 0, -1, 1]),
        ("  a\tb ", [-1, -1, 0, -1, 1, -1]),
        ("a\u3000\u00a0b", [0, -1, -1, 1]),  # white space of any kind
        ("a▁b", [0, 0, 0]),  # no space, though the tokenizer writes a space so
        ("猫だ", [0, 1]),
        ("3匹 ab猫。", [0, 1, -1, 2, 2, 3, 4]),
        ("แมว", [0, 1, 2]),
        ("고양이 둘", [0, 0, 0, -1, 1]),  # Korean has spaces
        ("", []),
    ],
)
def test_words_of_characters(line, numbers):
    tokenizer = build_tokenizer(CHAR)
    assert tokenizer.word_numbers(tokenizer.tokenize(line)) == numbers
    wide = build_tokenizer({**CHAR, "normalize": "nfkc"})
    assert wide.word_numbers(tokenizer.tokenize(line)) == numbers


def test_a_token_of_any_other_tokenizer_is_a_word():
    tokenizer = build_tokenizer({"name": "none"})
    assert tokenizer.word_numbers(["ab", "猫だ", "▁"]) == [0, 1, 2]
    assert tokenizer.word_numbers(["ab", "", "c"]) == [0, -1, 1]  # what a line does not show
