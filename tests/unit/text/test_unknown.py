"""Unknown words of a translation, taken from the source."""

from __future__ import annotations

import pytest
import torch

from nmtflex.config import ModelConfig, SearchConfig
from nmtflex.decoding.translation import Translation
from nmtflex.decoding.translator import Translator
from nmtflex.model.build import build_model
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.subwords.bpe import BPE
from nmtflex.text.tokenizers import (
    CharTokenizer,
    MosesTokenizer,
    NoneTokenizer,
    build_tokenizer,
)
from nmtflex.text.vocabulary import UNK_ID, Vocabulary


def side(tokens=(), tokenizer=None, merges=None) -> SidePipeline:
    bpe = BPE(merges) if merges is not None else None
    vocabulary = Vocabulary(list(tokens), [1] * len(tokens))
    return SidePipeline("en", tokenizer or NoneTokenizer(), bpe, vocabulary)


MOSES = MosesTokenizer("en")
MERGES = [("l", "o"), ("o", "w</w>")]


@pytest.mark.parametrize(
    ("tokenizer", "merges", "line", "expected"),
    [
        (NoneTokenizer(), None, " the  zebra\tate ", ["the", "zebra", "ate"]),
        (NoneTokenizer(), None, "<unk> @@ a@@", ["<unk>", "@@", "a@@"]),
        (NoneTokenizer(), MERGES, "low at lo", ["low"] * 2 + ["at"] * 2 + ["lo"] * 2),
        (NoneTokenizer(), [], "a@@ @ b", ["a@@"] * 4 + ["@", "b"]),
        (MOSES, None, 'Say "R&D".', ["Say", '"', "R", "&", "D", '"', "."]),
        (MOSES, [], "it's", ["it", "it", "'s", "'s", "'s", "'s", "'s", "'s", "'s"]),
        (CharTokenizer(), None, "a b▁", ["a", " ", "b", "▁"]),
        (NoneTokenizer(), None, "", []),
        (CharTokenizer(), None, "  ", []),
    ],
)
def test_the_whole_raw_word_behind_each_subword(tokenizer, merges, line, expected):
    pipeline = side(tokenizer=tokenizer, merges=merges)
    assert pipeline.attended_words(line) == expected
    assert len(pipeline.segment(line)) == len(pipeline.encode(line)) == len(expected)


def fill(pipeline: SidePipeline, ids: list[int]) -> list[str]:
    """Offer another word for each id: 0, 1, 2 and so on."""
    return flat(pipeline.fill_unknown(ids, [str(number) for number in range(len(ids))]))


def flat(words: list[list[str]]) -> list[str]:
    return [word for parts in words for word in parts]


def test_words_without_bpe():
    pipeline = side(["the", "cat"])
    assert fill(pipeline, [4, UNK_ID, 5, UNK_ID]) == ["the", "1", "cat", "3"]
    assert fill(pipeline, [UNK_ID]) == ["0"]
    assert fill(pipeline, [4, 5]) == ["the", "cat"]
    assert fill(pipeline, []) == []


def test_a_marker_is_text_where_there_is_no_bpe():
    pipeline = side(["a@@", "@@"])
    assert fill(pipeline, [4, UNK_ID, 5, UNK_ID]) == ["a@@", "1", "@@", "3"]


def test_a_literal_unk_is_a_word_like_others():
    pipeline = side(["<unk>", "x"])
    assert pipeline.encode("<unk>") == [4]
    assert fill(pipeline, [4, UNK_ID, 4, 5]) == ["<unk>", "1", "<unk>", "x"]


LOW, AT, L, O, W = range(4, 9)  # noqa: E741


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([LOW, UNK_ID, AT], ["low", "1", "at"]),
        ([UNK_ID, L, O, W, UNK_ID], ["0", "low", "4"]),
        ([L, UNK_ID, AT], ["l<unk>", "at"]),  # inside a word that BPE built
        ([L, UNK_ID, UNK_ID], ["l<unk>", "2"]),  # it ends that word; the next stands alone
        ([UNK_ID, UNK_ID], ["0", "1"]),
        ([UNK_ID, L], ["0", "l"]),  # cut off inside a word
        ([AT, L, O], ["at", "lo"]),
        ([], []),
    ],
)
def test_words_with_bpe(ids, expected):
    pipeline = side(["low", "at", "l@@", "o@@", "w"], merges=MERGES)
    assert fill(pipeline, ids) == expected
    if UNK_ID not in ids:
        assert pipeline.decode_words(ids) == expected


def test_a_literal_marker_under_bpe():
    """``@@`` of the text is escaped in pieces; whole or cut, it shifts no word."""
    line = "x @@ a@@ y"
    cut = side(tokenizer=NoneTokenizer(), merges=[])
    tokens = list(dict.fromkeys(cut.segment(line)))
    pipeline = side(tokens, merges=[])
    ids = pipeline.encode(line)
    assert pipeline.decode_words(ids) == line.split()
    filled = fill(pipeline, [*ids, UNK_ID, *ids, UNK_ID])
    assert filled == [*line.split(), str(len(ids)), *line.split(), str(2 * len(ids) + 1)]


def test_characters():
    pipeline = side(["a", "▁", "\\▁"], CharTokenizer())
    ids = pipeline.encode("a ▁z")
    assert ids == [4, 5, 6, UNK_ID]
    words = flat(pipeline.fill_unknown(ids, ["q", "r", "s", "日"]))
    assert words == ["a", "▁", "\\▁", "日"]
    assert pipeline.tokenizer.detokenize(words) == "a ▁日"


def test_a_replacement_may_be_several_words():
    pipeline = side(["a"], CharTokenizer())
    assert pipeline.fill_unknown([4, UNK_ID, 4], ["", "日本", ""]) == [["a"], ["日", "本"], ["a"]]


def test_a_space_is_a_character_and_no_word():
    offered = ["a", " ", "b"]
    characters = side(["a"], CharTokenizer())
    assert characters.fill_unknown([UNK_ID] * 3, offered) == [["a"], ["▁"], ["b"]]
    assert side(["a"]).fill_unknown([UNK_ID] * 3, offered) == [["a"], ["<unk>"], ["b"]]


def test_one_replacement_is_offered_for_each_id():
    with pytest.raises(ValueError, match="shorter"):
        side(["a"]).fill_unknown([4, UNK_ID], ["x"])


def test_only_the_words_of_unknown_ids_change():
    """Whatever is offered, known words stay, and so does their number."""
    pipeline = side(["low", "at", "l@@", "o@@", "w"], merges=MERGES)
    ids = [LOW, UNK_ID, L, O, W, UNK_ID, L, UNK_ID, AT]
    plain = pipeline.decode_words(ids)
    assert plain == ["low", "<unk>", "low", "<unk>", "l<unk>", "at"]
    assert pipeline.decode_words(ids, "UNK") == ["low", "UNK", "low", "UNK", "lUNK", "at"]
    filled = flat(pipeline.fill_unknown(ids, ["!"] * len(ids)))
    assert filled == ["low", "!", "low", "!", "l<unk>", "at"]
    filled = flat(pipeline.fill_unknown(ids, ["!"] * len(ids), "UNK"))
    assert filled == ["low", "!", "low", "!", "lUNK", "at"]


def all_unknown(source: SidePipeline, target: SidePipeline, line: str, words: int) -> Translation:
    """Translate by a model that knows no word at all, so that each is replaced."""
    torch.manual_seed(1)
    config = ModelConfig.from_flat(embedding_size=4, encoder_size=3, decoder_size=4)
    model = build_model(config, len(source.vocabulary), len(target.vocabulary), 10).eval()
    model.output.projection.bias.data[UNK_ID] = 50.0
    search = SearchConfig(beam=1, max_length=words, replace_unk=True)
    translator = Translator([model], TextPipeline(source, target), search)
    [[translation]] = translator.n_best([line], 1)
    return translation


@pytest.mark.parametrize("tokenizer", [NoneTokenizer(), MOSES, CharTokenizer()])
def test_a_translation_of_unknown_words_is_the_source_word(tokenizer):
    found = all_unknown(side(), side(tokenizer=tokenizer), "zebra", 1)
    assert found.tokens == ["<unk>"]
    assert found.text == "zebra"


@pytest.mark.parametrize("line", ["zebra", "a▁b"])
def test_replaced_words_are_words_as_the_target_parts_them(line):
    """BLEU and RIBES compare them with the words of the reference, characters with characters."""
    target = side(tokenizer=CharTokenizer())
    found = all_unknown(side(), target, line, 1)
    assert found.text == line
    assert found.words == target.words(line)


@pytest.mark.parametrize("make", [CharTokenizer, lambda: build_tokenizer({"name": "mecab"})])
def test_replaced_words_keep_the_spaces_of_the_source(make):
    """Of a target without spaces; where they do not follow each other, nothing is put between."""
    tokenizer = make()
    target, source = side(["は"], tokenizer=tokenizer), side()
    line = "Windows 10 Pure Land α β"
    pipeline = TextPipeline(source, target)

    def joined(ids, places):
        words = source.attended_words(line)
        filled = target.fill_unknown(ids, [words[place] for place in places])
        return pipeline.join_replaced(line, ids, places, filled)

    assert joined([UNK_ID] * 6, list(range(6))) == line
    assert joined([UNK_ID, UNK_ID, 4, UNK_ID, UNK_ID], [0, 1, 0, 4, 5]) == "Windows 10はα β"
    assert joined([UNK_ID, 4, UNK_ID], [0, 0, 1]) == "Windowsは10"
    assert joined([UNK_ID, UNK_ID], [1, 0]) == "10Windows"
    assert joined([4, 4], [0, 1]) == "はは"
    assert joined([], []) == ""
