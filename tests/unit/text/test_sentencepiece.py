from __future__ import annotations

import copy
import pickle
import random

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st
from pieces import TEXT, model_bytes, proto

from nmtflex.errors import DataError
from nmtflex.text.pipeline import SidePipeline
from nmtflex.text.subwords import SentencePiece
from nmtflex.text.subwords.sentencepiece import escape, learn_sentencepiece, unescape
from nmtflex.text.tokenizers import MosesTokenizer, NoneTokenizer, build_tokenizer
from nmtflex.text.vocabulary import UNK_ID, Vocabulary

MODELS = {kind: SentencePiece(model_bytes(kind)) for kind in ("unigram", "bpe")}
TOKENIZERS = [NoneTokenizer(), MosesTokenizer("en"), build_tokenizer({"name": "mecab"})]
HARD = st.sampled_from([
    "▁", "▁▁ ▁", "@@", "@@ @", "\ue000", "\ue001", "\ue000▁\ue001", "\U0001f469\u200d\U0001f467",
    "e\u0301\u0327", "猫は", "ｶﾞ㍿①", "𐎠𐏃", "ᚠᛇ", "<unk>", "<s>", "</s>", "<0xE2>", "<0x41>",
    "\u2585", "⁇", "the cat", "\u3000", "\u00a0", "\u200b", "\ufeff", "\ufffd", "A", "ß",
])  # fmt: skip
TEXTS = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))
LINES = st.lists(st.one_of(HARD, TEXTS), max_size=6).map("".join)


def side(model, tokenizer=None):
    vocabulary = Vocabulary(model.pieces, [0] * len(model.pieces))
    return SidePipeline("en", tokenizer or NoneTokenizer(), model, vocabulary)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda each: each.name)
@pytest.mark.parametrize("kind", MODELS)
@given(line=LINES)
def test_any_text_survives_and_no_character_is_unknown(tokenizer, kind, line):
    pipeline = side(MODELS[kind], tokenizer)
    ids = pipeline.encode(line)
    assert UNK_ID not in ids
    assert pipeline.decode_words(ids) == tokenizer.words(line)
    assert pipeline.decode(ids) == tokenizer.detokenize(tokenizer.words(line))


@pytest.mark.parametrize("kind", MODELS)
@given(line=LINES)
def test_spans_cover_the_words_in_order(kind, line):
    pipeline = side(MODELS[kind])
    spans, words = pipeline.spans(line), pipeline.word_spans(line)
    assert len(spans) == len(words) == len(pipeline.segment(line))
    assert [start for start, _ in spans] == sorted(start for start, _ in spans)
    covered = {place for start, end in spans for place in range(start, end)}
    assert covered == {n for n, char in enumerate(line) if char not in " \t\n\r\v\f"}
    starts = pipeline.word_starts(pipeline.segment(line))
    assert [line[slice(*words[start])] for start in starts] == pipeline.words(line)


@given(word=st.text("a▁\ue000\ue001"))
def test_an_escaped_word_has_no_space_mark_and_comes_back(word):
    assert "▁" not in escape(word)
    assert unescape(escape(word)) == word


def test_the_text_behind_each_piece():
    model = MODELS["unigram"]
    assert model.split("é") == ["▁", "<0xC3>", "<0xA9>"]
    assert model.bounds("é") == [(0, 0), (0, 1), (0, 1)]
    pieces = model.split("the▁")  # U+E000 U+E001: three bytes each
    assert pieces[-6:] == ["<0xEE>", "<0x80>", "<0x80>", "<0xEE>", "<0x80>", "<0x81>"]
    assert model.bounds("the▁")[-6:] == [(3, 4)] * 6


@pytest.mark.parametrize("kind", MODELS)
def test_pieces_are_those_of_the_package_for_whole_lines(kind):
    """Without normalisation, words segmented one by one are the line segmented at once."""
    data = model_bytes(kind, normalization_rule_name="identity")
    theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
    ours = SentencePiece(data)
    for line in [*TEXT, "A hen ate the 猫 theatres ."]:
        expected = theirs.encode(line, out_type=str)
        assert [piece for word in line.split() for piece in ours.split(word)] == expected


def test_text_is_not_normalised_though_the_file_says_so():
    """NFKC, the package's default, would make ① a 1; the stored file is without it."""
    assert proto(model_bytes()).normalizer_spec.precompiled_charsmap
    model = MODELS["unigram"]
    assert model.join(model.split("①")) == ["①"]
    assert not proto(model.data).normalizer_spec.precompiled_charsmap
    assert SentencePiece(model.data).data == model.data


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (["▁a", "t", "▁c"], ["at", "c"]),
        (["t", "▁c"], ["t", "c"]),  # of a model that predicts no beginning
        (["▁", "▁c"], ["", "c"]),
        (["▁", "<0xE7>", "<0x8C>", "<0xAB>"], ["猫"]),
        (["▁", "<0xE7>", "▁c"], ["\ufffd", "c"]),
        (["▁<0xE7>"], ["<0xE7>"]),
        ([], []),
    ],
)
def test_any_pieces_can_be_joined(ids, words):
    model = MODELS["unigram"]
    assert model.join(ids) == words
    assert len(model.starts(ids)) == len(words)


def test_an_unknown_character_without_bytes_is_one_unknown_token():
    model = SentencePiece(model_bytes(fallback=False))
    pipeline = side(model)
    assert pipeline.encode("猫") == [*pipeline.vocabulary.ids(["▁"]), UNK_ID]
    assert pipeline.decode(pipeline.encode("a 猫 at猫")) == "a <unk> at<unk>"
    assert pipeline.spans("a 猫") == [(0, 1), (2, 2), (2, 3)]


def test_a_word_is_replaced_if_it_is_a_space_and_an_unknown_token():
    pipeline = side(SentencePiece(model_bytes(fallback=False)))
    space, letter = pipeline.vocabulary.ids(["▁", "t"])
    ids = [space, UNK_ID, space, letter, UNK_ID, space, UNK_ID]
    offered = ["no", "cat", "no", "no", "no", "no", "猫"]
    assert pipeline.fill_unknown(ids, offered) == [["cat"], ["t<unk>"], ["猫"]]
    assert pipeline.unknown_words(ids) == [1, None, 6]


def test_a_model_survives_copies_and_files(tmp_path):
    model = MODELS["unigram"]
    model.save(tmp_path, "source")
    loaded = SentencePiece.load(
        tmp_path / "source.model", model.describe()["sentencepiece"]["sha256"]
    )
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), loaded):
        assert other == model
        assert other.split("theatre") == model.split("theatre")
    assert model != MODELS["bpe"]


def test_another_file_than_the_one_used_is_an_error(tmp_path):
    path = tmp_path / "source.model"
    path.write_bytes(model_bytes("bpe"))
    with pytest.raises(DataError, match=r"source\.model: .*abcdef"):
        SentencePiece.load(path, "abcdef")


def without(data, *pieces):
    model = proto(data)
    kept = [piece for piece in model.pieces if piece.piece not in pieces]
    del model.pieces[:]
    model.pieces.extend(kept)
    return model.SerializeToString()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"m\.model: not a S"),
        (b"the cat sat\n" * 50, r"m\.model: not a S"),
        (model_bytes()[:500], r"m\.model: "),
        (model_bytes("word", False, 19), r"m\.model: .* word"),
        (model_bytes("char", False, 14, hard_vocab_limit=False), r"m\.model: .* char"),
        (
            model_bytes(treat_whitespace_as_suffix=True),
            r"m\.model: .*'▁'.*treat_whitespace_as_suffix",
        ),
        (without(model_bytes(), "▁"), r"m\.model: .*'▁'"),
        (without(model_bytes(), "<0x41>"), r"m\.model: "),
    ],
)
def test_a_file_that_cannot_segment_words_is_an_error(tmp_path, data, message):
    path = tmp_path / "m.model"
    path.write_bytes(data)
    with pytest.raises(DataError, match=message):
        SentencePiece.load(path)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"m\.model: No such file"):
        SentencePiece.load(tmp_path / "m.model")


@pytest.mark.parametrize("kind", MODELS)
def test_learning_gives_the_same_model_each_time(kind):
    models = [learn_sentencepiece(iter(TEXT), 285, kind, True) for _ in range(2)]
    assert models[0].data == models[1].data
    assert models[0].describe()["sentencepiece"]["pieces"] == 285
    assert (models[0].kind, models[0].byte_fallback) == (kind, True)
    assert len(set(models[0].pieces)) == 285 - 3  # without <unk>, <s> and </s>


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("fallback", [True, False])
def test_too_many_or_too_few_pieces_name_the_limit(kind, fallback):
    """The largest number named can be learned, one more cannot; likewise the smallest."""
    numbers = []
    for size in (9999, 4):
        with pytest.raises(DataError, match=rf"--x {size}: .*?(\d+) pieces") as found:
            learn_sentencepiece(TEXT, size, kind, fallback, f"--x {size}: it")
        numbers.append(int(str(found.value).split(" pieces")[0].split()[-1]))
    largest, smallest = numbers
    for size in numbers:
        learned = learn_sentencepiece(TEXT, size, kind, fallback)
        assert learned.describe()["sentencepiece"]["pieces"] == size
    for size in (largest + 1, smallest - 1):
        with pytest.raises(DataError):
            learn_sentencepiece(TEXT, size, kind, fallback)


def test_text_with_nothing_to_learn_is_an_error():
    with pytest.raises(DataError, match="--x 5: it "):
        learn_sentencepiece([], 5, "unigram", False, "--x 5: it")


@given(
    word=st.one_of(st.text("theca", min_size=1), TEXTS.filter(lambda text: text.split() == [text]))
)
@pytest.mark.parametrize("kind", MODELS)
def test_a_sampled_segmentation_is_one_of_the_word(kind, word):
    model = MODELS[kind]
    draw = model.drawing(word, 0.3, 0.3)
    for seed in range(3):
        pieces = draw(random.Random(seed))
        assert pieces == draw(random.Random(seed))
        assert model.join(pieces) == [word]
        assert set(pieces) <= set(model.pieces)


def test_sampling_needs_the_option_of_its_type():
    assert MODELS["unigram"].drawing("the", None, 0.5) is None
    assert MODELS["bpe"].drawing("the", 0.5, 0.0) is None
