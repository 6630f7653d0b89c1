"""What prepare makes of training text under its limits: in subwords, in pairs, in processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmtflex.corpus import inputs, words
from nmtflex.errors import DataError, OptionError

SHARED = Path(__file__).parents[4] / "shared/data/aspec_format_from_kftt"
JUNK = "".join(map(chr, range(ord("a"), ord("z") + 1)))  # a word that few merges shorten
LINES = [f"the cat number {n % 7} saw dog's {n * n % 11}." for n in range(60)]


def lengths(corpus, side):
    return corpus.store("train", side).lengths.tolist()


def dropped(corpus):
    return corpus.manifest["splits"]["train"]["dropped"]


@pytest.fixture
def write_aspec(tmp_path):
    """Write lines as both sides of an ASPEC file: ``write_aspec("dev.txt", lines)``."""

    def make(name: str, lines: list[str], start: str = "") -> Path:
        path = tmp_path / name
        text = [f"{start}A ||| {n} ||| {line} ||| {line}\n" for n, line in enumerate(lines)]
        path.write_text("".join(text), encoding="utf-8")
        return path

    return make


def test_pairs_of_too_many_subwords_are_dropped_before_vocabularies_are_made(write, run):
    # "ab" is a subword after one merge, whatever else there is.
    source = "ab ab\naq\nab\nab abc\nab ab\n"
    target = "x\nx\ny\nx\nx x x x x x\n"
    corpus = run(train=[write("train", source, target)], bpe=1, max_subwords=2)
    train = corpus.manifest["splits"]["train"]
    assert train["dropped"] == {"empty": 0, "too_long": 0, "ratio": 0, "subwords": 2}
    assert (train["read"], train["kept"]) == (5, 3)
    assert lengths(corpus, "source") == [2, 2, 1]
    assert lengths(corpus, "target") == [1, 1, 1]
    vocabulary = corpus.pipeline.source.vocabulary
    assert vocabulary.tokens[4:] == ["ab", "a@@", "q"]
    assert vocabulary.counts == [3, 1, 1]
    assert corpus.manifest["filter"]["max_subwords"] == [2, 2]


def test_the_default_lets_no_junk_word_through(write, run):
    junk = "".join(chr(0x4E00 + n) for n in range(1001))
    text = f"low lower\n{junk}\nlow low\n{junk[1:]}\n"
    train = write("train", text, "x\n" * 4)
    corpus = run("default", train=[train], bpe=2)
    assert dropped(corpus)["subwords"] == 1
    assert max(lengths(corpus, "source")) == 1000
    assert dropped(run("off", train=[train], bpe=2, max_subwords=0))["subwords"] == 0
    assert dropped(run("words", train=[train]))["subwords"] == 0


def test_subwords_are_limited_only_where_there_is_bpe(write, run):
    train = write("train", "ab\nab\n", "abcdef\nab\n")
    corpus = run(train=[train], bpe=1, target_tokenizer="char", max_subwords=3)
    assert dropped(corpus)["subwords"] == 0
    assert corpus.manifest["filter"]["max_subwords"] == [3, 0]


def test_valid_and_test_keep_long_pairs(write, run):
    long = write("long", f"{JUNK}\n", "x\n")
    corpus = run(train=[write("t", "ab\n", "x\n")], valid=long, test=long, bpe=1, max_subwords=3)
    assert [corpus.manifest["splits"][name]["kept"] for name in ("valid", "test")] == [1, 1]
    assert corpus.store("valid", "source").lengths.tolist() == [26]


def test_like_limits_subwords_as_learning_does(write, run, tmp_path):
    train = write("train", f"ab\n{JUNK}\nab ab\n", "x\nx\nx\n")
    first = run("first", train=[train], bpe=1, max_subwords=3)
    second = run("second", train=[train], like=tmp_path / "first", max_subwords=3)
    assert first.manifest["splits"] == second.manifest["splits"]
    assert lengths(first, "source") == lengths(second, "source") == [1, 2]
    assert lengths(second, "target") == [1, 1]


def test_a_limit_of_subwords_needs_bpe_under_like_too(write, run, tmp_path):
    train = write("train", "a\n", "x\n")
    run("first", train=[train])
    with pytest.raises(OptionError, match=r"--max-subwords has no effect: --like .*first has no s"):
        run("second", train=[train], like=tmp_path / "first", max_subwords=9)


def test_all_pairs_too_long_in_subwords(write, run):
    train = write("train", f"{JUNK}\n\n", "x\nx\n")
    message = r"none of 2 training pairs are left: 1 with an empty side, 1 longer than 3 subwords$"
    with pytest.raises(DataError, match=message):
        run(train=[train], bpe=1, max_subwords=3)


def test_the_first_pairs_are_counted_before_the_filter(write, run):
    corpora = [write("one", "a\n\nb\n", "x\nx\nx\n"), write("two", "c\nd\n", "x\nx\n")]
    corpus = run(train=corpora, max_pairs=4, valid=corpora[0])
    train = corpus.manifest["splits"]["train"]
    assert (train["read"], train["kept"], train["dropped"]["empty"]) == (4, 3, 1)
    assert corpus.pipeline.source.vocabulary.tokens[4:] == ["a", "b", "c"]
    assert corpus.manifest["splits"]["valid"]["read"] == 3
    assert corpus.manifest["options"]["max_pairs"] == 4
    assert [entry["pairs"] for entry in corpus.manifest["inputs"]["train"]] == [3, 3, 1, 1]


def test_max_pairs_holds_under_like(write, run, tmp_path):
    train = write("train", "a\nb\n", "x\nx\n")
    run("first", train=[train])
    corpus = run("second", train=[train], like=tmp_path / "first", max_pairs=1, test=train)
    assert [corpus.manifest["splits"][name]["read"] for name in ("train", "test")] == [1, 2]


def test_aspec_files_are_prepared_and_recorded(run, tmp_path):
    (tmp_path / "train-1.txt").write_text("\ufeff.9 ||| A ||| 1 ||| 犬 ||| dog\n", "utf-8")
    (tmp_path / "train-2.txt").write_text(
        ".8 ||| B ||| 1 |||  ||| cat\r\n.7 ||| B ||| 2 ||| 猫 ||| cat\r\n", "utf-8"
    )
    (tmp_path / "dev.txt").write_text("C ||| 1 ||| 鳥 ||| \r\nC ||| 2 ||| 犬 ||| dog\r\n", "utf-8")
    corpus = run(
        format="aspec",
        train=[tmp_path / "train-1.txt", tmp_path / "train-2.txt"],
        valid=tmp_path / "dev.txt",
    )
    train = corpus.manifest["splits"]["train"]
    assert (train["read"], train["kept"], train["dropped"]["empty"]) == (3, 2, 1)
    assert set(corpus.pipeline.source.vocabulary.tokens[4:]) == {"dog", "cat"}
    assert set(corpus.pipeline.target.vocabulary.tokens[4:]) == {"犬", "猫"}
    assert corpus.manifest["splits"]["valid"]["kept"] == 2
    assert corpus.raw("valid", "source") == ["", "dog"]
    assert corpus.raw("valid", "target") == ["鳥", "犬"]
    assert corpus.manifest["options"]["format"] == "aspec"
    first, second = corpus.manifest["inputs"]["train"]
    assert Path(first["path"]).name == "train-1.txt"
    assert (first["pairs"], first["byte_order_mark"], len(first["sha256"])) == (1, True, 64)
    assert (second["pairs"], second["byte_order_mark"]) == (2, False)


def test_a_malformed_line_stops_a_run_of_several_processes(write_aspec, run, tmp_path):
    train = write_aspec("train-1.txt", [*LINES, "a ||| b"], "0.5 ||| ")
    with pytest.raises(DataError, match=r"train-1\.txt:61: 7 fields, but .* score"):
        run(format="aspec", train=[train], workers=2)
    assert not (tmp_path / "out").exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("like", [False, True], ids=["learned", "like"])
@pytest.mark.parametrize("kind", ["moses", "char", "aspec"])
def test_the_result_is_the_same_for_any_number_of_workers_and_any_chunks(
    write, write_aspec, run, contents, monkeypatch, tmp_path, kind, like
):
    lines = [*LINES[:7], JUNK, "", *LINES[7:]]
    text, other = ("".join(f"{line}\n" for line in some) for some in (lines, lines[::-1]))
    options = {
        "train": [write("train", text, text), write("more", text, other)],
        "valid": write("valid", f"{text}new\n", f"{text}\n"),
        "max_subwords": 20,
        "max_pairs": 70,
    }
    learned = {"source_tokenizer": "moses", "bpe": 20}
    if kind == "char":
        learned = {"target_tokenizer": "char", "bpe": 20}
    elif kind == "aspec":
        learned = {"bpe": 20, "joint": True}
        train = (write_aspec(f"train-{n}.txt", lines, "0.5 ||| ") for n in (1, 2))
        options |= {"train": list(train), "valid": write_aspec("dev.txt", lines)}
        options["format"] = "aspec"
    if like:
        run("model", **options, **learned)
        learned = {"like": tmp_path / "model"}
    one = run("one", **options, **learned)
    assert dropped(one)["empty"] == 1
    assert 0 < dropped(one)["subwords"] < 60
    for workers, chunk in ((2, 7), (3, 5), (3, 1000), (1, 3)):
        monkeypatch.setattr(inputs, "CHUNK", chunk)
        monkeypatch.setattr(words, "BLOCK", chunk)
        again = run(f"{workers}-{chunk}", workers=workers, **options, **learned)
        assert contents(one.folder) == contents(again.folder)
        assert one.fingerprint == again.fingerprint


@pytest.mark.parametrize("languages", [("en", "ja"), ("ja", "en")])
def test_real_layout(run, languages):
    if not SHARED.exists():
        pytest.skip("the data sets are not here")
    source, target = languages
    tokenizers = {"en": "none", "ja": "char"}
    corpus = run(
        format="aspec", source_lang=source, target_lang=target,
        train=[SHARED / "train-1.txt"], valid=SHARED / "dev.txt", test=SHARED / "test.txt.xz",
        source_tokenizer=tokenizers[source], target_tokenizer=tokenizers[target], max_pairs=1500,
    )  # fmt: skip
    train = corpus.manifest["splits"]["train"]
    assert train["read"] == 1500
    assert train["kept"] == 1500 - sum(train["dropped"].values()) > 1400
    assert corpus.manifest["splits"]["test"]["kept"] == 500
    english = corpus.raw("valid", "source" if source == "en" else "target")
    assert english[0] == "It was originally used for making a wind."
