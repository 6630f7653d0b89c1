"""What attention looked at, in words that a figure can show."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nmtflex.config import BatchConfig, FlexibleConfig, ModelConfig, SearchConfig
from nmtflex.decoding.translator import Translator
from nmtflex.errors import DataError
from nmtflex.figures.sentence import Looked, look_at, raw_tokens
from nmtflex.model.build import build_model
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.subwords.bpe import BPE
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import Vocabulary


def side_of(tokenizer: str = "none", bpe: BPE | None = None) -> SidePipeline:
    about = {"name": tokenizer} | ({"language": "en"} if tokenizer == "moses" else {})
    return SidePipeline("xx", build_tokenizer(about), bpe, Vocabulary("abcde", [1] * 5))


@pytest.fixture
def translator() -> Translator:
    torch.manual_seed(3)
    config = ModelConfig.from_flat(
        attention=FlexibleConfig(), embedding_size=5, encoder_size=4, decoder_size=8
    )
    model = build_model(config, 9, 9, 10).eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.7)
    pipeline = TextPipeline(side_of(), side_of())
    return Translator([model], pipeline, SearchConfig(beam=2, max_length=6), BatchConfig())


def test_labels_and_trace_fit_the_best_translation(translator):
    line = "a zzz  c d"
    looked = look_at(translator, line)
    [[best]] = translator.n_best([line], 1)
    assert looked.source == ["a", "zzz", "c", "d"]  # an unknown word is shown as it is
    assert looked.target == [*best.tokens, "</s>"]
    assert looked.trace.weights.shape == (len(looked.target), 4)
    assert looked.computed == "CPS 4, 4 source tokens"


@pytest.mark.parametrize("line", ["", " \t"])
def test_a_sentence_without_words_is_named(translator, line):
    with pytest.raises(DataError) as caught:
        look_at(translator, line)
    assert str(caught.value) == f"the sentence {line!r} has no words, so there are no steps to draw"


def test_computations_are_counted_a_step(trace):
    looked = Looked(["a"] * 7, ["x", "y", "</s>"], trace(computed=[7, 2, 1]))
    assert looked.computed == "CPS 3.33, 7 source tokens"


def test_what_lies_outside_the_windows(trace):
    looked = Looked(list("abc"), ["x", "</s>"], trace(window_start=[0, 1], window_stop=[3, 2]))
    assert looked.outside.tolist() == [[False] * 3, [True, False, True]]
    assert Looked(list("abc"), ["x"], trace(weights=np.ones((1, 3)))).outside is None


def test_tokens_are_shown_as_the_raw_text_has_them():
    assert raw_tokens(side_of("moses"), ["don", "&apos;t", "&amp;"]) == ["don", "'t", "&"]
    assert raw_tokens(side_of("char"), ["a", "▁"])[0] == "a"
    assert raw_tokens(side_of(), ["a@@", "b"]) == ["a@@", "b"]  # no BPE: "@@" is text


def test_parts_of_words_stay_parts():
    pieces = [*BPE([("a", "b</w>")]).split("cab"), "&apos;s", "x@@"]
    assert pieces == ["c@@", "ab", "&apos;s", "x@@"]
    side = side_of("moses", BPE([("a", "b</w>")]))
    assert raw_tokens(side, pieces) == ["c@@", "ab", "'s", "x@@"]
