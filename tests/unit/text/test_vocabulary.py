from __future__ import annotations

import pytest

from nmtflex.errors import DataError
from nmtflex.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Vocabulary


def test_special_ids():
    assert (PAD_ID, UNK_ID, BOS_ID, EOS_ID) == (0, 1, 2, 3)


def test_the_most_frequent_come_first_and_ties_in_order_of_text():
    vocabulary = Vocabulary.build({"b": 2, "c": 5, "a": 2, "d": 1})
    assert vocabulary.tokens[4:] == ["c", "a", "b", "d"]
    assert vocabulary.counts == [5, 2, 2, 1]
    assert len(vocabulary) == 8
    assert vocabulary.ids(["c", "d", "x"]) == [4, 7, UNK_ID]


def test_size_and_frequency_limits():
    counts = {"a": 3, "b": 2, "c": 1}
    assert Vocabulary.build(counts, size=1).tokens[4:] == ["a"]
    assert Vocabulary.build(counts, min_frequency=2).tokens[4:] == ["a", "b"]
    assert Vocabulary.build(counts, size=5, min_frequency=4).tokens[4:] == []


def test_names_of_specials_in_the_text_are_ordinary_tokens():
    vocabulary = Vocabulary.build({"<unk>": 2, "</s>": 1})
    assert vocabulary.ids(["<unk>"]) == [4]
    assert vocabulary.ids(["</s>"]) == [5]
    assert vocabulary.ids(["<pad>"]) == [UNK_ID]
    assert vocabulary.token(UNK_ID) == vocabulary.token(4) == "<unk>"


def test_what_is_saved_is_loaded(tmp_path):
    tokens = ["a", "\t", "\u0085", "\u2028", "\r", "\u3000", "<unk>", "日本"]
    path = tmp_path / "vocabulary"
    Vocabulary(tokens, range(8, 0, -1)).save(path)
    assert path.read_bytes().startswith(b"a\t8\n\t\t7\n")
    loaded = Vocabulary.load(path)
    assert loaded.tokens[4:] == tokens
    assert loaded.counts == list(range(8, 0, -1))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\t2\nb\n", "vocabulary:2: 'b' is not"),
        (b"a\t2\nb\tx\n", r"vocabulary:2: 'b\\tx' is not"),
        (b"\t2\n", r"vocabulary:1: '\\t2' is not"),
        (b"a\t2\na\t1\n", r"vocabulary:2: 'a\\t1' is not a new token"),
        (b"\xff\t1\n", "vocabulary: not valid UTF-8"),
        (b"a\t" + 5000 * b"1" + b"\n", "vocabulary:1: .* is not a new token"),
        ("a\t١\n".encode(), "vocabulary:1: .* is not a new token"),
    ],
)
def test_a_bad_file_names_the_line(tmp_path, content, message):
    (tmp_path / "vocabulary").write_bytes(content)
    with pytest.raises(DataError, match=message):
        Vocabulary.load(tmp_path / "vocabulary")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"target\.vocabulary: No such file"):
        Vocabulary.load(tmp_path / "target.vocabulary")
