from __future__ import annotations

import pickle

import pytest

from nmtflex.errors import DataError
from nmtflex.text.glossary import Glossary, Occurrence


def found(terms: dict[str, str], line: str, **options: bool) -> list[tuple[str, str]]:
    occurrences = Glossary(terms, **options).find(line)
    assert all(one.start < one.end for one in occurrences)
    ends = [0, *(one.end for one in occurrences)]
    assert all(one.start >= end for one, end in zip(occurrences, ends, strict=False))
    return [(line[one.start : one.end], one.target) for one in occurrences]


def test_terms_are_whole_words() -> None:
    terms = {"Hund": "dog", "E-Mail": "email"}
    assert found(terms, "Hund, Hunde, Jagdhund und Hund.") == [("Hund", "dog")] * 2
    assert found(terms, "(Hund)-E-Mail-Hund2") == [("Hund", "dog"), ("E-Mail", "email")]
    assert found(terms, "Hundé Hund\u0301 _Hund_") == [
        ("Hund", "dog")
    ]  # a mark belongs to a letter
    assert found({"C++": "Cpp"}, "C++ C+++ xC++") == [("C++", "Cpp")] * 2
    assert found(terms, "") == found({}, "Hund") == []


def test_the_longest_term_comes_first_and_none_overlap() -> None:
    terms = {"New York": "NY", "York": "Y", "New York Times": "NYT", "Times Square": "TS"}
    line = "New York Times Square, New York, York"
    assert found(terms, line) == [("New York Times", "NYT"), ("New York", "NY"), ("York", "Y")]


def test_any_white_space_stands_for_a_space() -> None:
    terms = {" New  York ": " NY "}
    line = "  in New \u3000\tYork."
    assert Glossary(terms).find(line) == [Occurrence(5, 15, "NY")]


def test_text_without_spaces_is_searched_anywhere() -> None:
    terms = {"東京": "Tokyo", "東京都": "Tokyo Metropolis", "データ": "data", "API": "API"}
    line = "新東京都のデータとAPIキー、東京。"
    assert found(terms, line) == [
        ("東京都", "Tokyo Metropolis"),
        ("データ", "data"),
        ("API", "API"),
        ("東京", "Tokyo"),
    ]
    assert found({"API": "API"}, "APIs と myAPI") == []


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("Run fast", 1),
        ("„Run fast“", 1),
        ("Stop. Run!", 1),
        ("走る。Run", 1),
        ("run, Run, RUN", 1),
        ("I Run", 0),
        ("RUN", 0),
    ],
)
def test_a_capital_may_begin_a_sentence(line: str, count: int) -> None:
    assert len(found({"run": "laufen"}, line)) == count
    assert len(found({"run": "laufen"}, line, ignore_case=True)) == line.lower().count("run")


def test_a_capital_of_a_term_is_no_small_letter() -> None:
    assert found({"Apple": "Apple"}, "apple Apple") == [("Apple", "Apple")]
    assert found({"Apple": "A", "apple": "b"}, "Apple apple") == [("Apple", "A"), ("apple", "b")]
    assert found({"İx": "y"}, "İX i\u0307x", ignore_case=True) == [("İX", "y")]


def test_a_file_is_read(tmp_path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_bytes("\ufeffHund\tdog\r\n\n#1\tnumber one \nfür \tfor".encode())
    glossary = Glossary.read(path)
    assert len(glossary) == 3
    for one in (glossary, pickle.loads(pickle.dumps(glossary))):
        assert [term.target for term in one.find("Hund #1 für")] == ["dog", "number one", "for"]


@pytest.mark.parametrize(
    ("content", "line", "value"),
    [
        ("a\tb\n\nHund dog\n", 3, "1 column"),
        ("a\tb\tc\n", 1, "3 columns"),
        ("a\tb\n \tc\n", 2, "empty term"),
        ("a\t \n", 1, "empty translation"),
        ("a\tb\nc\td\na\te\n", 3, "'a' is there twice"),
    ],
)
def test_a_bad_line_is_named(tmp_path, content: str, line: int, value: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(content)
    with pytest.raises(DataError) as error:
        Glossary.read(path)
    assert f"{path}:{line}: " in str(error.value)
    assert value in str(error.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path) -> None:
    with pytest.raises(DataError, match=r"none\.tsv: No such file"):
        Glossary.read(tmp_path / "none.tsv")
    (tmp_path / "latin.tsv").write_bytes(b"f\xfcr\tfor\n")
    with pytest.raises(DataError, match=r"latin\.tsv: not valid UTF-8"):
        Glossary.read(tmp_path / "latin.tsv")


@pytest.mark.parametrize(
    ("terms", "value"),
    [
        ({"a": " "}, "empty translation"),
        ({"a": 5}, "translation 5 is not text"),
        ({None: "b"}, "term None is not text"),
        ({"": "b"}, "empty term"),
        ({"a": "b\nc"}, r"translation 'b\\nc' contains a line break"),
        ({"a b": "c", "a  b": "d"}, "'a  b' is there twice"),
    ],
)
def test_terms_are_checked(terms: dict[str, str], value: str) -> None:
    with pytest.raises(DataError, match=value):
        Glossary(terms)


def test_glossaries_of_the_same_terms_are_equal() -> None:
    one = Glossary({"a": "b", "c": "d"}, name="one")
    assert {one: 1}[Glossary({"c ": "d", "a": " b"}, name="two")]
    assert one != Glossary({"a": "b", "c": "d"}, ignore_case=True)
    assert one != Glossary({"a": "b"})


def test_the_same_in_another_case_is_there_twice() -> None:
    with pytest.raises(DataError, match="'b' is there twice"):
        Glossary({"B": "c", "b": "d"}, ignore_case=True)


def test_a_long_line_takes_no_square_of_time() -> None:
    line = "a " * 5000 + ". " * 5000 + "Run"
    assert len(Glossary({"a": "b", "run": "r"}).find(line)) == 5001
