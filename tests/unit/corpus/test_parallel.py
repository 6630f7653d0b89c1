"""Writing the splits of a made corpus."""

from __future__ import annotations

import pytest

from nmtflex.corpus.parallel import describe, refuse_existing, write_splits
from nmtflex.errors import DataError

SPLITS = {"train": [("a b", "か"), ("a", "き く け")], "valid": []}


def test_files_hold_a_sentence_a_line(tmp_path):
    out = tmp_path / "deep" / "corpus"
    write_splits(out, SPLITS, ("en", "ja"))
    assert {path.name: path.read_bytes().decode() for path in out.iterdir()} == {
        "train.en": "a b\na\n",
        "train.ja": "か\nき く け\n",
        "valid.en": "",
        "valid.ja": "",
    }


def test_files_that_are_there_are_kept(tmp_path):
    (tmp_path / "valid.ja").write_text("mine")
    with pytest.raises(DataError, match=r"valid\.ja already exists; remove it"):
        refuse_existing(tmp_path, ["train", "valid"], ("en", "ja"))
    with pytest.raises(DataError, match=r"valid\.ja"):
        write_splits(tmp_path, SPLITS, ("en", "ja"))
    assert [path.name for path in tmp_path.iterdir()] == ["valid.ja"]


def test_a_failure_leaves_no_file(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        write_splits(tmp_path, {"train": [("a", "b"), ("c", "\ud800")]}, ("en", "ja"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("inner", ["", "corpus"])
def test_out_that_is_a_file(tmp_path, inner):
    (tmp_path / "taken").write_text("")
    with pytest.raises(DataError, match=r"taken.*not a folder"):
        write_splits(tmp_path / "taken" / inner, SPLITS, ("en", "ja"))


def test_description_counts_pairs_tokens_and_words(tmp_path):
    train, valid = describe(tmp_path, SPLITS, ("en", "ja"))
    assert train == (
        f"{tmp_path / 'train'}: 2 pairs; .en 1.5 tokens a sentence, 2 distinct; "
        f".ja 2.0 tokens a sentence, 4 distinct"
    )
    assert ": 0 pairs; .en 0.0 tokens" in valid
