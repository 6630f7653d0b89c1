"""Prepared folders with SentencePiece, or of text that is segmented already."""

from __future__ import annotations

import pytest
from sentencepiece import SentencePieceProcessor

from nmtflex.corpus.store import open_prepared
from nmtflex.errors import DataError, OptionError
from nmtflex.text.pipeline import TextPipeline
from nmtflex.text.vocabulary import SPECIALS

ENGLISH = "the cat sat on a mat\nthen the hen ate meat\nten cats eat the theatre\n" * 4
JAPANESE = "猫 が 座った 座った猫\n鶏 が 肉 を 食べた 食べた鶏\n猫 が 劇場 を 食べた 劇場猫\n" * 4


@pytest.fixture
def train(write):
    return [write("train", ENGLISH, JAPANESE)]


def test_each_side_learns_its_pieces_which_are_its_vocabulary(run, train, write):
    valid = write("valid", "a ☃▁\n", "𐎠 猫\n")
    corpus = run(train=train, valid=valid, sentencepiece="275")
    for side, text in (("source", ENGLISH), ("target", JAPANESE)):
        own = getattr(corpus.pipeline, side)
        theirs = SentencePieceProcessor(
            model_file=str(corpus.folder / "pipeline" / f"{side}.model")
        )
        pieces = {theirs.id_to_piece(number) for number in range(3, 275)}
        assert set(own.vocabulary.tokens) == pieces | set(SPECIALS)
        counts = dict(zip(own.vocabulary.tokens[4:], own.vocabulary.counts, strict=True))
        encoded = [theirs.encode(line, out_type=str) for line in text.splitlines()]
        flat = [piece for line in encoded for piece in line]
        assert counts == {piece: flat.count(piece) for piece in pieces}
        store = corpus.store("train", side)
        for number, line in enumerate(encoded):
            assert [own.vocabulary.token(n) for n in store[number]] == line
        assert corpus.manifest["splits"]["valid"][side]["unknown"] == 0
        assert own.decode(corpus.store("valid", side)[0]) == corpus.raw("valid", side)[0]
        assert f"pipeline/{side}.model" in corpus.manifest["files"]
    assert corpus.manifest["bpe_sample"] == {"pairs": 12, "of": 12}


def test_a_joint_model_is_learned_from_both_sides(run, train):
    corpus = run(train=train, sentencepiece="300", sentencepiece_type="bpe", joint=True)
    source, target = corpus.pipeline.source, corpus.pipeline.target
    assert source.subwords == target.subwords
    assert source.subwords.kind == "bpe"
    assert source.vocabulary.tokens == target.vocabulary.tokens
    assert {"猫", "c"} <= set("".join(source.vocabulary.tokens))


def test_the_result_is_the_same_each_time_and_with_any_workers(run, train, contents):
    folders = [
        run(out, train=train, sentencepiece="275", workers=workers).folder
        for out, workers in (("one", 1), ("two", 1), ("three", 2))
    ]
    first, *others = map(contents, folders)
    assert [other == first for other in others] == [True, True]


def test_a_sample_is_spread_over_the_pairs(run, write):
    """Of four pairs, the first and the third."""
    train = [write("train", "aa ab\nzz zy\nba aa\nyz zz\n", "x\nx\nx\nx\n")]
    corpus = run(
        train=train, source_sentencepiece="7", byte_fallback=False, bpe_sample=2, max_ratio=0
    )
    letters = set("".join(corpus.pipeline.source.subwords.pieces)) - {"▁"}
    assert letters == {"a", "b"}
    assert corpus.manifest["bpe_sample"] == {"pairs": 2, "of": 4}
    assert corpus.pipeline.target.subwords is None
    assert corpus.manifest["splits"]["train"]["source"]["unknown"] > 0


def test_given_models_are_taken_as_they_are(run, train, tmp_path):
    models = run("first", train=train, sentencepiece="275").folder / "pipeline"
    given = {
        f"{side}_sentencepiece": str(models / f"{side}.model") for side in ("source", "target")
    }
    corpus = run("second", train=train, **given)
    for side in ("source", "target"):
        name = f"{side}.model"
        assert (corpus.folder / "pipeline" / name).read_bytes() == (models / name).read_bytes()
    assert corpus.manifest["bpe_sample"] is None
    both = run("both", train=train, sentencepiece=given["source_sentencepiece"], joint=True)
    assert both.pipeline.source.vocabulary.tokens == both.pipeline.target.vocabulary.tokens


def test_one_side_may_have_characters(run, train):
    corpus = run(train=train, sentencepiece="275", target_tokenizer="char", target_vocabulary=3)
    assert corpus.pipeline.target.subwords is None
    assert len(corpus.pipeline.target.vocabulary) == 4 + 3
    assert corpus.pipeline.source.subwords is not None


def test_like_reuses_the_model(run, train, contents):
    first = run("first", train=train, sentencepiece="275")
    again = run("again", train=train, like=first.folder, max_subwords=1000)
    assert again.pipeline.difference(first.pipeline) is None
    before, after = contents(first.folder), contents(again.folder)
    assert all(after[name] == data for name, data in before.items() if name.startswith("train"))
    other = run("other", train=train, sentencepiece="276")
    assert other.pipeline.difference(first.pipeline) == "source vocabulary"
    kinds = run("bpe", train=train, bpe=3)
    assert kinds.pipeline.difference(kinds.pipeline) is None


def test_long_words_of_many_pieces_are_dropped(run, train, write):
    more = write("more", "xyz" * 40 + "\n", "猫\n")
    corpus = run(train=[*train, more], sentencepiece="276", max_subwords=50)
    assert corpus.manifest["splits"]["train"]["dropped"]["subwords"] == 1


@pytest.mark.parametrize("side", ["source", "target"])
def test_an_impossible_number_names_option_side_and_limit(run, train, side):
    with pytest.raises(DataError, match=rf"--{side}-sentencepiece 9999: .* {side} .* [0-9]{{3}} "):
        run(train=train, **{f"{side}_sentencepiece": "9999"})


def test_a_changed_model_is_noticed(run, train):
    folder = run(train=train, sentencepiece="275").folder / "pipeline"
    path = folder / "source.model"
    path.write_bytes((folder / "target.model").read_bytes())
    with pytest.raises(DataError, match=r"source\.model: "):
        TextPipeline.load(folder)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bpe": 3, "sentencepiece": "300"}, ["--bpe", "--sentencepiece"]),
        ({"bpe": 3, "segmented": "bpe"}, ["--bpe", "--segmented"]),
        ({"sentencepiece": "300", "segmented": "bpe"}, ["--sentencepiece", "--segmented"]),
        ({"target_sentencepiece": "x.txt"}, ["--target-sentencepiece", "'x.txt'"]),
        ({"sentencepiece": "-5"}, ["--sentencepiece", "'-5'"]),
        ({"sentencepiece": "3"}, ["--sentencepiece", "'3'"]),
        ({"sentencepiece": ""}, ["--sentencepiece", "''"]),
        ({"byte_fallback": False}, ["--no-byte-fallback"]),
        ({"sentencepiece": "a.model", "sentencepiece_type": "bpe"}, ["--sentencepiece-type bpe"]),
        ({"sentencepiece": "a.model", "bpe_sample": 3}, ["--bpe-sample 3"]),
        ({"sentencepiece": "300", "source_vocabulary": 5}, ["--source-vocabulary 5"]),
        ({"sentencepiece": "300", "min_frequency": 2}, ["--min-frequency 2"]),
        ({"source_sentencepiece": "300", "joint": True}, ["--joint"]),
        ({"segmented": "bpe", "source_tokenizer": "moses"}, ["--segmented", "moses"]),
        (
            {"sentencepiece": "9", "source_sentencepiece": "8", "target_sentencepiece": "7"},
            ["--sentencepiece", "--source-sentencepiece", "--target-sentencepiece"],
        ),
        (
            {"sentencepiece": "9", "source_tokenizer": "char", "target_tokenizer": "char"},
            ["--sentencepiece"],
        ),
    ],
)
def test_options_that_disagree_are_named(run, train, options, words):
    with pytest.raises(OptionError) as error:
        run(train=train, **options)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("marks", "source", "words"),
    [
        ("bpe", "the@@ atre s@@ o@@ on", ["theatre", "soon"]),
        ("sentencepiece", "▁the atre ▁so on", ["theatre", "soon"]),
    ],
)
def test_segmented_text_is_taken_as_it_is(run, write, marks, source, words):
    train = [write("train", source + "\n", "▁猫 x@@ y\n")]
    corpus = run(train=train, valid=train[0], segmented=marks)
    side = corpus.pipeline.source
    ids = corpus.store("train", "source")[0]
    assert [side.vocabulary.token(number) for number in ids] == source.split()
    assert side.decode_words(ids) == words
    assert open_prepared(corpus.folder).pipeline.source.subwords == side.subwords
    assert corpus.manifest["pipeline"]["source"]["segmented"] == marks
