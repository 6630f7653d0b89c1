from __future__ import annotations

import gzip
import lzma
import re
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from nmtflex.corpus.aspec import TEXT_FIELDS, TRAIN_FIELDS, find_aspec, read_aspec
from nmtflex.errors import DataError

TRAIN, TEXT = " ||| ".join(TRAIN_FIELDS), " ||| ".join(TEXT_FIELDS)
SHARED = Path(__file__).parents[4] / "shared/data/aspec_format_from_kftt"
PACK = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.fixture
def read(tmp_path):
    """Read text as a file: ``read(text)`` as English to Japanese training text."""

    def make(text: str | bytes, fields=TRAIN_FIELDS, languages=("en", "ja"), name="train-1.txt"):
        path = tmp_path / name
        data = text.encode() if isinstance(text, str) else text
        path.write_bytes(PACK[path.suffix if path.suffix in PACK else ""](data))
        return list(read_aspec(path, languages, fields))

    return make


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("0.99 ||| A-1 ||| 1 ||| 犬 ||| a dog\n.5 ||| B ||| 12 ||| 猫 ||| a cat\n", TRAIN_FIELDS),
        ("A-1 ||| 1 ||| 犬 ||| a dog\nB ||| 12 ||| 猫 ||| a cat\n", TEXT_FIELDS),
    ],
)
def test_both_layouts_in_both_directions(read, text, fields):
    assert read(text, fields) == [("a dog", "犬"), ("a cat", "猫")]
    assert read(text, fields, ("ja", "en")) == [("犬", "a dog"), ("猫", "a cat")]


@pytest.mark.parametrize("suffix", PACK)
def test_packed_files(read, suffix):
    assert read("1 ||| A ||| 1 ||| 犬 ||| a dog\n", name=f"t.txt{suffix}") == [("a dog", "犬")]


@pytest.mark.parametrize(
    ("line", "pair"),
    [
        ("A ||| 1 |||  ||| a dog", ("a dog", "")),
        ("A ||| 1 ||| ||| a dog", ("a dog", "")),  # one of two neighbouring blanks cut off
        ("A ||| 1 ||| 犬 ||| ", ("", "犬")),
        ("A ||| 1 ||| 犬 |||", ("", "犬")),
        ("A ||| 1 ||| ||| ", ("", "")),
        ("A ||| 1 ||| |||", ("", "")),
    ],
)
def test_an_empty_sentence_is_one(read, line, pair):
    assert read(f"{line}\n", TEXT_FIELDS) == [pair]


@pytest.mark.parametrize(
    "text",
    ["a|||b", "a ||||| b", "|||b", "a |||b", "a||| b", "| || ||", "  a  ", "\u3000|||", "\ta"],
)
def test_bars_that_part_nothing_and_blanks_are_text(read, text):
    assert read(f"A ||| 1 ||| 犬 ||| {text}\n", TEXT_FIELDS) == [(text, "犬")]
    assert read(f"1 ||| A ||| 1 ||| {text} ||| dog\n") == [("dog", text)]


def test_dos_line_ends_and_a_byte_order_mark_are_no_text(read):
    text = "\ufeffA ||| 1 ||| 犬 ||| a dog\r\nB ||| 2 ||| 猫\r ||| a\rcat\r\nC ||| 3 ||| 鳥 |||\r\n"
    assert read(text, TEXT_FIELDS) == [("a dog", "犬"), ("a\rcat", "猫\r"), ("", "鳥")]


def test_a_file_without_a_last_newline(read):
    assert read("A ||| 1 ||| 犬 ||| a dog", TEXT_FIELDS) == [("a dog", "犬")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "A-1 ||| 1 ||| 犬 ||| a dog",
            f"4 fields, but a line must be {TRAIN}; a file without scores, "
            "such as ASPEC's dev.txt, is for --valid or --test",
        ),
        (
            "0.9 ||| A ||| 1 ||| 犬",
            f"4 fields, but a line must be {TRAIN}; correct the line or remove",
        ),
        (
            "0.9 ||| A ||| 1 ||| 犬 ||| a ||| dog",
            f"6 fields, but a line must be {TRAIN}; a sentence must not contain ' ||| '; corr",
        ),
        ("0.9 ||| A ||| 1 ||| 犬 ||| dog |||", "6 fields, but"),
        ("||| 0.9 ||| A ||| 1 ||| 犬 ||| dog", "6 fields, but"),
        ("0.9 ||| A ||| ||| 1 ||| 犬 ||| dog", "6 fields, but"),
        ("", f"an empty line, but a line must be {TRAIN}; correct the line or remove it"),
        ("\r", "an empty line, but"),
        (
            "a dog is here",
            f"1 field, 'a dog is here', but a line must be {TRAIN}; correct it, or use --format p",
        ),
        ("x" * 50, f"1 field, '{'x' * 40}...', but"),
        (
            "A ||| 1 ||| 犬 ||| a ||| dog",
            f"the score is 'A', not a number, but a line must be {TRAIN}; correct the line",
        ),
        (" ||| A ||| 1 ||| 犬 ||| dog", "the score is '', not a number"),
        ("\ufeff0.9 ||| A ||| 1 ||| 犬 ||| dog", r"the score is '\ufeff0.9', not a number"),
        ("0.9 |||  ||| 1 ||| 犬 ||| dog", f"the id is empty, but a line must be {TRAIN}; correct"),
        (
            "0.9 ||| A |||  ||| 犬 ||| dog",
            f"the number is empty, but a line must be {TRAIN}; correct",
        ),
    ],
)
def test_malformed_training_lines_are_named(read, line, message):
    good = "0.9 ||| A ||| 1 ||| 犬 ||| a dog\n"
    with pytest.raises(DataError, match=re.escape(f"train-1.txt:3: {message}")):
        read(good * 2 + f"{line}\n" + good)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "0.9 ||| A ||| 1 ||| 犬 ||| a dog",
            f"5 fields, but a line must be {TEXT}; a file with scores, such as "
            "ASPEC's train-1.txt, is for --train",
        ),
        (
            "A ||| 1 ||| 犬 ||| a ||| dog",
            f"5 fields, but a line must be {TEXT}; a sentence must not contain ' ||| '; corr",
        ),
        ("A ||| 1 ||| 犬", "3 fields, but"),
        ("||| A ||| 1 ||| 犬 ||| dog", "5 fields, but"),
        ("A ||| ||| 1 ||| 犬 ||| dog", "5 fields, but"),
        (" ||| 1 ||| 犬 ||| dog", "the id is empty, but"),
        ("||| 1 ||| 犬 ||| dog", "the id is empty, but"),
        ("\u3000 ||| 1 ||| 犬 ||| dog", "the id is empty, but"),
        ("A ||| ||| 犬 ||| dog", "the number is empty, but"),
    ],
)
def test_malformed_lines_of_dev_and_test_are_named(read, line, message):
    with pytest.raises(DataError, match=re.escape(f"dev.txt:2: {message}")):
        read(f"A ||| 1 ||| 犬 ||| dog\n{line}\n", TEXT_FIELDS, name="dev.txt")


def test_bad_bytes_are_named_by_line(read):
    with pytest.raises(DataError, match=r"train-1\.txt:2: not valid UTF-8 \(byte 0xff at column 5"):
        read(b"1 ||| A ||| 1 ||| x ||| y\n1 ||\xff| A ||| 1 ||| x ||| y\n")


@given(
    st.lists(st.sampled_from(["|||", " ", "a"])).map("".join)
    | st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]))
)
def test_any_line_is_a_pair_or_an_error(tmp_path_factory, line):
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(f"A ||| 1 ||| {line} ||| dog\n".encode())
    pairs = read_aspec(path, ("en", "ja"), TEXT_FIELDS)
    if " ||| " in f" {line} ":
        with pytest.raises(DataError, match="fields, but"):
            next(pairs)
    else:
        assert list(pairs) == [("dog", line)]


def test_packed_files_are_found_by_the_plain_name(tmp_path):
    for suffix in (".zst", ".xz", ".gz", ""):
        path = tmp_path / f"train-1.txt{suffix}"
        path.touch()
        assert find_aspec(tmp_path / "train-1.txt") == path
        assert find_aspec(path) == path


def test_a_missing_file_names_what_was_tried_and_what_there_is(tmp_path):
    (tmp_path / "dev.txt").touch()
    message = r"dev: no such file; tried dev, dev\.gz, dev\.xz, dev\.zst; there is dev\.txt$"
    with pytest.raises(DataError, match=message):
        find_aspec(tmp_path / "dev")
    with pytest.raises(DataError, match=r"devtest\.txt\.zst$"):
        find_aspec(tmp_path / "devtest.txt")
    with pytest.raises(DataError, match=r"there is no folder .*nowhere$"):
        find_aspec(tmp_path / "nowhere" / "dev.txt")


def test_a_folder_given_for_a_file(tmp_path):
    message = r"a folder.* --format aspec .*train-1\.txt$"
    with pytest.raises(DataError, match=message):
        find_aspec(tmp_path)


def test_real_layout():
    if not SHARED.exists():
        pytest.skip("the data sets are not here")
    train = list(read_aspec(find_aspec(SHARED / "train-1.txt"), ("en", "ja"), TRAIN_FIELDS))
    assert len(train) == 2000
    assert train[0][1] == "地震予知研究計画の一環として地殻変動の連続観測が実施されている。"
    assert train[0][0].startswith("Observation of diastrophism as a part of earthquake")
    for name in ("dev.txt", "test.txt"):
        pairs = list(read_aspec(find_aspec(SHARED / name), ("ja", "en"), TEXT_FIELDS))
        assert len(pairs) == 500
        assert not any("|||" in line for pair in pairs for line in pair)
