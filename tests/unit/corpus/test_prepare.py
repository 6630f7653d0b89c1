from __future__ import annotations

import lzma
from collections import Counter
from pathlib import Path

import pytest

from nmtflex.config import PreprocessConfig
from nmtflex.corpus.prepare import prepare
from nmtflex.corpus.store import open_prepared
from nmtflex.errors import DataError, OptionError
from nmtflex.text.vocabulary import UNK_ID


def sentences(corpus, split, side):
    store = corpus.store(split, side)
    return [store[i].tolist() for i in range(len(store))]


def test_words_get_ids_by_frequency(write, run):
    corpus = run(train=[write("train", "b a\nb\n", "y\ny x y\n")])
    assert corpus.pipeline.source.vocabulary.tokens[4:] == ["b", "a"]
    assert corpus.pipeline.target.vocabulary.counts == [3, 1]
    assert sentences(corpus, "train", "source") == [[4, 5], [4]]
    assert sentences(corpus, "train", "target") == [[4], [4, 5, 4]]
    assert corpus.splits == ["train"]


def test_several_corpora_are_one_training_set(write, run):
    corpora = [write("one", "a\n", "x\n"), write("two", "b\na\n", "y\nx\n")]
    corpus = run(train=corpora)
    assert sentences(corpus, "train", "source") == [[4], [5], [4]]
    assert [Path(entry["path"]).name for entry in corpus.manifest["inputs"]["train"]] == [
        "one.en", "one.ja", "two.en", "two.ja",
    ]  # fmt: skip


def test_training_pairs_are_filtered_and_counted_by_reason(write, run):
    source = "a b\n\na b c d\na\na b c\n \n"
    target = "x y\nx\nx\nx y z\nx y z\nx\n"
    corpus = run(train=[write("train", source, target)], max_length=3, max_ratio=2)
    train = corpus.manifest["splits"]["train"]
    assert train["dropped"] == {"empty": 2, "too_long": 1, "ratio": 1, "subwords": 0}
    assert (train["read"], train["kept"]) == (6, 2)
    assert train["source"] == {"dtype": "<u2", "tokens": 5, "longest": 3, "unknown": 0}
    # Dropped pairs leave no trace in the vocabulary: "d" stood in one alone.
    assert corpus.pipeline.source.vocabulary.tokens[4:] == ["a", "b", "c"]


def test_the_default_limit_is_higher_for_characters(write, run):
    line = "x" * 101
    corpus = run(train=[write("train", "a\n", f"{line}\n")], target_tokenizer="char")
    assert corpus.manifest["filter"]["max_length"] == [100, 500]
    assert corpus.manifest["splits"]["train"]["target"]["longest"] == 101


def test_valid_and_test_keep_every_pair_and_their_raw_text(write, run):
    valid = write("valid", "a  q\r\n\n\u0085\n", "\nx\n" + "x " * 200 + "\n")
    corpus = run(train=[write("train", "a\n", "x\n")], valid=valid, test=valid)
    assert corpus.splits == ["train", "valid", "test"]
    assert sentences(corpus, "valid", "source") == [[4, UNK_ID], [], [UNK_ID]]
    assert corpus.store("valid", "target").lengths.tolist() == [0, 1, 200]
    assert corpus.raw("test", "source") == ["a  q\r", "", "\u0085"]
    split = corpus.manifest["splits"]["valid"]
    assert (split["read"], split["kept"]) == (3, 3)
    assert (split["source"]["tokens"], split["source"]["unknown"]) == (3, 2)


def test_names_of_specials_and_the_marker_are_text(write, run):
    line = "<unk> </s> @@ a@@ <pad>"
    for number, options in enumerate(({}, {"bpe": 5}, {"source_tokenizer": "char"})):
        corpus = run(f"out{number}", train=[write("train", f"{line}\n" * 3, "x\n" * 3)], **options)
        pipeline = corpus.pipeline.source
        (first, *_) = sentences(corpus, "train", "source")
        assert pipeline.decode(first) == line
        assert min(first) > UNK_ID
        assert first == pipeline.encode(line)


def test_vocabulary_limits(write, run):
    train = [write("train", "a a a b b c\n", "x x y\n")]
    corpus = run(train=train, source_vocabulary=2, min_frequency=2)
    assert corpus.pipeline.source.vocabulary.tokens[4:] == ["a", "b"]
    assert corpus.pipeline.target.vocabulary.tokens[4:] == ["x"]
    assert sentences(corpus, "train", "source") == [[4, 4, 4, 5, 5, UNK_ID]]
    assert corpus.manifest["splits"]["train"]["source"]["unknown"] == 1


def test_more_words_than_two_bytes_number(write, run):
    source = " ".join(f"w{number}" for number in range(65533))
    corpus = run(train=[write("train", f"{source}\n", "x\n")], max_length=0)
    assert corpus.manifest["splits"]["train"]["source"]["dtype"] == "<u4"
    (ids,) = sentences(corpus, "train", "source")
    assert sorted(ids) == list(range(4, 65537))
    assert corpus.pipeline.source.encode("w7 w65532") == [ids[7], ids[65532]]


def test_joint_sides_share_merges_and_vocabulary(write, run):
    # Together "ab" is seen 3 times, "cd" 2; each side alone would learn its own merge.
    train = [write("train", "ab ab\n", "cd cd ab\n")]
    corpus = run(train=train, bpe=1, joint=True)
    source, target = corpus.pipeline.source, corpus.pipeline.target
    assert corpus.pipeline.joint
    assert list(source.subwords.ranks) == list(target.subwords.ranks) == [("a", "b</w>")]
    assert source.vocabulary.tokens == target.vocabulary.tokens
    assert dict(zip(source.vocabulary.tokens[4:], source.vocabulary.counts, strict=True)) == {
        "ab": 3, "c@@": 2, "d": 2,
    }  # fmt: skip


def test_separate_sides_learn_apart(write, run):
    corpus = run(train=[write("train", "ab ab\n", "cd cd ab\n")], bpe=1)
    assert list(corpus.pipeline.source.subwords.ranks) == [("a", "b</w>")]
    assert list(corpus.pipeline.target.subwords.ranks) == [("c", "d</w>")]
    assert corpus.pipeline.source.vocabulary.tokens[4:] == ["ab"]
    assert not corpus.pipeline.joint


def test_characters_have_no_bpe(write, run):
    corpus = run(train=[write("train", "ab ab\n", "x y\n")], bpe=9, target_tokenizer="char")
    assert corpus.pipeline.source.subwords is not None
    assert corpus.pipeline.target.subwords is None
    assert set(corpus.pipeline.target.vocabulary.tokens[4:]) == {"x", "▁", "y"}


def test_training_text_is_stored_as_the_pipeline_encodes_it(write, run):
    lines = ["it's low, lower & lowest.", "slow   @@ blow", "low"]
    train = write("train", "\n".join(lines) + "\n", "\n".join(reversed(lines)) + "\n")
    corpus = run(train=[train], source_tokenizer="moses", bpe=8, source_vocabulary=12)
    source, target = corpus.pipeline.source, corpus.pipeline.target
    assert sentences(corpus, "train", "source") == [source.encode(line) for line in lines]
    assert sentences(corpus, "train", "target") == [target.encode(line) for line in lines[::-1]]
    counted = Counter(number for ids in sentences(corpus, "train", "source") for number in ids)
    del counted[UNK_ID]
    assert counted == dict(enumerate(source.vocabulary.counts, 4))


def test_like_reuses_the_pipeline(write, run, tmp_path):
    first = run("first", train=[write("train", "ab ac\n", "x\n")], bpe=2)
    other = write("other", "ac zz\n", "y\n")
    second = run("second", test=other, like=tmp_path / "first")
    assert second.splits == ["test"]
    assert sentences(second, "test", "source") == [first.pipeline.source.encode("ac zz")]
    for name in ("source.codes", "source.vocabulary", "target.vocabulary"):
        assert (second.folder / "pipeline" / name).read_bytes() == (
            first.folder / "pipeline" / name
        ).read_bytes()


def test_like_filters_training_text(write, run, tmp_path):
    run("first", train=[write("train", "a\n", "x\n")])
    corpus = run("second", train=[write("more", "a\n\na a a\n", "x\nx\nx\n")],
                 like=tmp_path / "first", max_length=2)  # fmt: skip
    assert corpus.manifest["splits"]["train"]["dropped"]["too_long"] == 1
    assert corpus.manifest["splits"]["train"]["dropped"]["empty"] == 1
    assert sentences(corpus, "train", "source") == [[4]]
    assert not (corpus.folder / "raw").exists()


def test_like_needs_the_same_languages(write, run, tmp_path):
    train = write("train", "a\n", "x\n")
    run("first", train=[train])
    with pytest.raises(OptionError, match=r"--source-lang ja .*first translates en to ja"):
        run("second", test=train, like=tmp_path / "first", source_lang="ja", target_lang="en")


def test_like_needs_a_run_or_a_prepared_folder(write, run, tmp_path):
    train = write("train", "a\n", "x\n")
    with pytest.raises(DataError, match=r"--like .*none: no such folder"):
        run(test=train, like=tmp_path / "none")
    with pytest.raises(DataError, match=r"--like .*: neither a run nor a prepared folder"):
        run(test=train, like=tmp_path)


def test_the_manifest_knows_every_file(write, run, contents):
    train = write("train", "\ufeffa\n", "x\n")
    corpus = run(train=[train], valid=train)
    on_disk = set(contents(corpus.folder)) - {"manifest.json"}
    assert set(corpus.manifest["files"]) == on_disk
    assert all(len(entry["sha256"]) == 64 for entry in corpus.manifest["files"].values())
    source, target = corpus.manifest["inputs"]["train"]
    assert (source["bytes"], source["byte_order_mark"]) == (5, True)
    assert (target["bytes"], target["byte_order_mark"]) == (2, False)
    assert corpus.raw("valid", "source") == ["a"]
    assert open_prepared(corpus.folder).fingerprint == corpus.fingerprint


def test_an_existing_output_is_left_alone(write, run, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    with pytest.raises(OptionError, match=r"--out .*out already exists; remove it or choose"):
        run(train=[write("train", "a\n", "x\n")])
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


def test_an_empty_output_folder_is_taken(write, run, tmp_path):
    (tmp_path / "out").mkdir()
    run(train=[write("train", "a\n", "x\n")])
    assert (tmp_path / "out" / "manifest.json").is_file()


def test_a_failure_leaves_nothing_behind(write, run, tmp_path):
    train = write("train", "a\n", "x\n")
    with pytest.raises(DataError):
        run(train=[train], valid=write("valid", "a\nb\n", "x\n"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "train.en", "train.ja", "valid.en", "valid.ja",
    ]  # fmt: skip


@pytest.mark.parametrize("longer", [2, 2500])
def test_files_of_different_line_counts(write, run, longer):
    train = write("train", "a\n" * longer, "x\n")
    message = rf"train\.en has {longer:,} lines but .*train\.ja has 1;"
    with pytest.raises(DataError, match=message):
        run(train=[train])


def test_an_empty_corpus(write, run):
    with pytest.raises(DataError, match=r"train\.en and .*train\.ja: empty"):
        run(train=[write("train", "", "")])


def test_an_empty_split_beside_a_full_one(write, run):
    train = write("train", "a\n", "x\n")
    with pytest.raises(DataError, match=r"valid\.en and .*valid\.ja: empty"):
        run(train=[train], valid=write("valid", "", ""))


def test_all_pairs_filtered_away(write, run):
    train = write("train", "a a a\n\na\n", "x\nx\nx x x x\n")
    message = (
        r"train\.en, .*train\.ja: none of 3 training pairs are left: "
        r"1 with an empty side, 2 longer than 2 tokens$"
    )
    with pytest.raises(DataError, match=message):
        run(train=[train], max_length=2)


def test_a_missing_file_is_found_before_work_begins(write, run, tmp_path):
    train = write("train", "a\nb\n", "x\n")  # not parallel either, but that takes reading
    with pytest.raises(DataError, match=r"none: no file for language 'en'; tried none\.en"):
        run(train=[train], test=tmp_path / "none")


def test_bad_text_in_a_worker_run_names_file_and_line(write, run, tmp_path):
    train = write("train", "a\nb\n", "x\ny\n")
    (tmp_path / "train.ja").write_bytes(b"x\n\xff\n")
    with pytest.raises(DataError, match=r"train\.ja:2: not valid UTF-8"):
        run(train=[train], workers=2)


def test_real_text_with_next_line_characters(tmp_path):
    shared = Path(__file__).parents[4] / "shared/data/newstest_deen"
    if not shared.exists():
        pytest.skip("the data sets are not here")
    with lzma.open(shared / "newstest2009.de.xz") as file:
        assert b"\xc2\x85" in file.read()
    prefix = shared / "newstest2009"
    config = PreprocessConfig(
        out=tmp_path / "out", source_lang="de", target_lang="en", train=[prefix], test=prefix
    )
    corpus = prepare(config)
    assert corpus.manifest["splits"]["train"]["read"] == 2525
    assert len(corpus.raw("test", "source")) == 2525
