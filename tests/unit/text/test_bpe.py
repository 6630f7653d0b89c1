from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmtflex.errors import DataError
from nmtflex.text.subwords import bpe as bpe_module
from nmtflex.text.subwords.bpe import BPE, escape, learn_bpe, unescape, worth_learning_from

WORDS = st.text(st.characters(exclude_characters="\n ", exclude_categories=["Cs"]), min_size=1)
CLASHING = st.text("@\ue000ab", min_size=1)


def test_merges_apply_in_the_order_learned():
    bpe = BPE([("b", "c"), ("a", "b"), ("c", "d</w>")])
    assert bpe.split("abcd") == ["a@@", "bc@@", "d"]  # b+c first; then neither a+b nor c+d is left
    assert bpe.split("abd") == ["ab@@", "d"]
    assert bpe.split("a") == ["a"]


def test_all_occurrences_merge_from_the_left():
    assert BPE([("a", "a")]).split("aaaab") == ["aa@@", "aa@@", "b"]
    assert BPE([("a", "a")]).split("aaab") == ["aa@@", "a@@", "b"]
    assert BPE([("a", "a")]).split("aaa") == ["aa@@", "a"]  # the last character is another symbol


def test_of_a_pair_listed_twice_the_first_counts():
    assert BPE([("a", "b"), ("b", "c"), ("a", "b")]).split("abcx") == ["ab@@", "c@@", "x"]


def test_join_undoes_split_also_at_a_cut_end():
    bpe = BPE([("a", "b")])
    assert bpe.join(["ab@@", "c", "d", "x@@", "y@@"]) == ["abc", "d", "xy"]
    assert bpe.join([]) == []


@pytest.mark.parametrize("word", ["@@", "a@@", "@", "@@@@b", "@\ue000@", "\ue000", "x@@y", "</w>"])
def test_marker_and_escape_in_the_text_survive(word):
    bpe = BPE([("@", "@"), ("a", "@"), ("@", "\ue000")])
    assert bpe.join([*bpe.split(word), *bpe.split("end")]) == [word, "end"]


@given(CLASHING)
def test_escape_is_undone_and_leaves_no_marker(word):
    assert "@@" not in escape(word)
    assert unescape(escape(word)) == word


@given(st.lists(CLASHING | WORDS))
def test_every_word_survives(words):
    bpe = BPE([("@", "\ue000"), ("a", "b"), ("@", "a"), ("\ue000", "@</w>")])
    assert bpe.join(piece for word in words for piece in bpe.split(word)) == words


def test_learning_is_told_now_and_then():
    counts = {f"{a}{b}{c}": 2 for a in "abcdefgh" for b in "ijklmnop" for c in "qrstuvwx"}
    learned = []
    merges = len(learn_bpe(counts, 100, learned.append).ranks)
    assert merges == 100
    assert learned == [0, 20, 40, 60, 80, 100]


def test_the_most_frequent_pair_is_learned_first():
    # w+er: "er</w>" is seen 5 + 3 times; then "low" alone is left with pairs seen 4 times.
    bpe = learn_bpe({"newer": 5, "wider": 3, "low": 1}, 1)
    assert list(bpe.ranks) == [("e", "r</w>")]


def test_learning_stops_quietly_where_no_pair_is_seen_twice(capsys):
    assert learn_bpe({"ab": 1, "cd": 1}, 10).ranks == {}
    assert learn_bpe({"a": 9}, 10).ranks == {}
    assert learn_bpe({}, 10).ranks == {}
    assert capsys.readouterr() == ("", "")


def test_words_with_white_space_inside_are_not_learned_from():
    assert list(learn_bpe({"a\u3000b": 9, "cd": 2}, 10).ranks) == [("c", "d</w>")]


def test_learning_is_bounded_to_the_most_frequent_words(monkeypatch):
    monkeypatch.setattr(bpe_module, "LEARN_FROM", 3)
    counts = {"rare": 1, "of": 9, "a": 99, "in": 4, "x\u3000y": 9, "at": 4, "an": 4}
    assert worth_learning_from(counts) == {"of": 9, "an": 4, "at": 4}


def test_splits_as_subword_nmt_does():
    from subword_nmt import apply_bpe

    counts = {"banana": 7, "bandana": 5, "cabana": 3, "nab": 2, "anna": 4, "ban": 6}
    bpe = learn_bpe(counts, 12)
    codes = io.StringIO("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in bpe.ranks))
    reference = apply_bpe.BPE(codes)
    for word in [*counts, "bananaban", "xanadu", "b", "aaaa", "nanana"]:
        assert bpe.split(word) == reference.segment_tokens([word])


def test_codes_are_saved_in_the_format_of_subword_nmt(tmp_path):
    path = tmp_path / "source.codes"
    BPE([("a", "b"), ("\u3000", "c</w>")]).save(tmp_path, "source")
    assert path.read_bytes() == "#version: 0.2\na b\n\u3000 c</w>\n".encode()
    assert list(BPE.load(path).ranks) == [("a", "b"), ("\u3000", "c</w>")]
    BPE([]).save(tmp_path, "source")
    assert BPE.load(path).ranks == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a b\n", "codes:1: 'a b' is not"),
        (b"#version: 0.2\na b\nabc\n", "codes:3: 'abc' is not a pair"),
        (b"#version: 0.2\na b c\n", "codes:2: 'a b c' is not a pair"),
        (b"\xff", "codes: not valid UTF-8"),
    ],
)
def test_a_bad_codes_file_names_the_line(tmp_path, content, message):
    (tmp_path / "codes").write_bytes(content)
    with pytest.raises(DataError, match=message):
        BPE.load(tmp_path / "codes")


def test_a_missing_codes_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"source\.codes: No such file"):
        BPE.load(tmp_path / "source.codes")


@given(st.text("abc", min_size=1, max_size=60), st.data())
def test_the_heap_for_long_words_does_what_the_rounds_do(word, data):
    """Merges in any order, as no learning would give them, so that rounds overtake each other."""
    pieces = st.text("abc", min_size=1, max_size=4)
    merges = data.draw(st.lists(st.tuples(pieces, pieces), max_size=12, unique=True))
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    assert bpe_module._apply_to_long(list(word), ranks) == bpe_module._apply(list(word), ranks)


@pytest.mark.parametrize("split", [bpe_module._apply, bpe_module._apply_to_long])
def test_a_merged_pair_merges_with_what_stands_before_and_after_it(split):
    merges = [("b", "c"), ("a", "bc"), ("abc", "d"), ("x", "abcd")]
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    assert split(list("xabcd"), ranks) == ["xabcd"]
    assert split(list("abcxabcdabc" * 20), ranks) == ["abc", "xabcd", "abc"] * 20


def test_a_huge_word_takes_no_square_of_its_length():
    codes = BPE([("a", "b"), ("ab", "ab"), ("b", "a"), ("abab", "abab")])
    assert "".join(codes.join(codes.split("ab" * 50_000))) == "ab" * 50_000
