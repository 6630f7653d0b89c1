from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from nmtflex.config import FORMAT
from nmtflex.errors import DataError
from nmtflex.text import pipeline as module
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.subwords.bpe import BPE
from nmtflex.text.tokenizers import (
    CharTokenizer,
    MosesTokenizer,
    NoneTokenizer,
    build_tokenizer,
)
from nmtflex.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Vocabulary

TINY = Path(__file__).parents[2] / "fixtures/tiny.kytea"


def side(tokens, tokenizer=None, merges=None):
    bpe = BPE(merges) if merges is not None else None
    return SidePipeline(
        "en", tokenizer or NoneTokenizer(), bpe, Vocabulary(tokens, [1] * len(tokens))
    )


MERGES = [("o", "w</w>"), ("&", "a"), ("m", "p"), ("&a", "mp"), ("&amp", ";</w>")]


@pytest.fixture
def both():
    source = side(["l@@", "ow", "&amp;"], MosesTokenizer("en"), MERGES)
    target = side(["▁", "a", "\\▁"], CharTokenizer())
    return TextPipeline(source, target)


def test_words_of_a_vocabulary():
    pipeline = side(["the", "cat"])
    assert pipeline.segment("the  black cat ") == ["the", "black", "cat"]
    assert pipeline.encode("the  black cat ") == [4, UNK_ID, 5]
    assert pipeline.decode([4, UNK_ID, 5]) == "the <unk> cat"
    assert pipeline.encode("") == []
    assert pipeline.decode([]) == ""


def test_subwords(both):
    source = both.source
    assert source.words("low & low") == ["low", "&amp;", "low"]
    assert source.segment("low & low") == ["l@@", "ow", "&amp;", "l@@", "ow"]
    assert source.encode("low & low") == [4, 5, 6, 4, 5]
    assert source.decode_words([4, 5, 6, 4, 5]) == ["low", "&amp;", "low"]
    assert source.decode([4, 5, 6, 4, 5]) == "low & low"


def test_specials_vanish_from_the_text(both):
    assert both.source.decode([BOS_ID, 4, 5, EOS_ID, PAD_ID]) == "low"


def test_a_literal_special_is_text():
    pipeline = side(["<unk>", "@@", "</s>"])
    assert pipeline.encode("<unk> </s> @@ <pad>") == [4, 6, 5, UNK_ID]
    assert pipeline.decode(pipeline.encode("<unk> </s> @@")) == "<unk> </s> @@"


def test_a_literal_marker_survives_bpe():
    line = "a@@ b @@ @@@ c"
    pieces = [*dict.fromkeys(piece for word in line.split() for piece in BPE([]).split(word))]
    pipeline = side(pieces, merges=[])
    assert pipeline.decode(pipeline.encode(line)) == line


def test_the_cache_of_words_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "CACHE_LIMIT", 2)
    pipeline = side(["a", "b", "c"])
    assert pipeline.encode("a b c a c b x a") == [4, 5, 6, 4, 6, 5, UNK_ID, 4]
    assert len(pipeline._cache) <= 2


def test_what_is_saved_is_loaded(both, tmp_path):
    both.save(tmp_path / "pipeline")
    loaded = TextPipeline.load(tmp_path / "pipeline")
    assert loaded.describe() == both.describe()
    assert loaded.source.encode("low & low") == [4, 5, 6, 4, 5]
    assert loaded.target.encode("a ▁") == [5, 4, 6]
    assert loaded.target.subwords is None
    assert not loaded.joint
    assert sorted(path.name for path in (tmp_path / "pipeline").iterdir()) == [
        "pipeline.json",
        "source.codes",
        "source.vocabulary",
        "target.vocabulary",
    ]


def test_bpe_without_merges_still_cuts_words_when_loaded(tmp_path):
    pipeline = side(["a@@", "b"], merges=[])
    TextPipeline(pipeline, pipeline).save(tmp_path)
    assert TextPipeline.load(tmp_path).source.encode("ab") == [4, 5]


def test_a_newer_format_is_refused(both, tmp_path):
    both.save(tmp_path)
    description = json.loads((tmp_path / "pipeline.json").read_text())
    (tmp_path / "pipeline.json").write_text(json.dumps(description | {"format": FORMAT + 1}))
    with pytest.raises(DataError, match=f"format {FORMAT + 1} is newer"):
        TextPipeline.load(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "KeyError.'source'"),
        ('{"source": 1, "target": 2}', "pipeline.json: not the description"),
        ('{"format": "x", "source": {"bpe": null, "tokenizer": "none"}}', "KeyError"),
    ],
)
def test_a_damaged_description_is_named(both, tmp_path, content, message):
    both.save(tmp_path)
    (tmp_path / "pipeline.json").write_text(content)
    with pytest.raises(DataError, match=message):
        TextPipeline.load(tmp_path)


def test_a_vocabulary_cut_short_is_found(both, tmp_path):
    both.save(tmp_path)
    (tmp_path / "target.vocabulary").write_bytes("▁\t1\n".encode())
    with pytest.raises(DataError, match=r"target.vocabulary: 5 entries .* says 7"):
        TextPipeline.load(tmp_path)


def test_white_space_alone_is_an_empty_line_even_in_characters(both):
    assert both.target.words(" \t ") == []
    assert both.target.encode("\u3000") != []
    normalized = side(["a"], build_tokenizer({"name": "char", "normalize": "nfkc"}))
    assert normalized.words("\u3000") == []


def test_a_dos_line_end_is_no_text(both):
    assert both.target.encode("a\r") == both.target.encode("a")
    assert both.source.encode("low\r") == both.source.encode("low")


def test_normalisation_travels_with_the_pipeline(tmp_path):
    normalized = build_tokenizer({"name": "none", "normalize": "wat-width"})
    TextPipeline(side(["Ａ", "日"], normalized), side(["x"])).save(tmp_path)
    loaded = TextPipeline.load(tmp_path)
    assert loaded.source.encode("A 日") == [4, 5]
    assert loaded.source.decode([4, 5]) == "Ａ 日"
    assert loaded.describe()["source"]["tokenizer"] == {"name": "none", "normalize": "wat-width"}


def test_moses_options_travel_with_the_pipeline(tmp_path):
    moses = MosesTokenizer("en", aggressive=True, escape=False)
    TextPipeline(side([], moses), side([])).save(tmp_path)
    assert TextPipeline.load(tmp_path).source.words("a-b 's") == ["a", "@-@", "b", "'", "s"]


@pytest.fixture
def with_model(tmp_path):
    """Save a pipeline whose target needs a model, which is then gone from where it was."""
    pytest.importorskip("vaporetto")
    shutil.copy(TINY, tmp_path / "mine.bin")
    kytea = build_tokenizer({"name": "kytea"}, tmp_path / "mine.bin")
    TextPipeline(side(["a"]), side(["東京", "へ"], kytea)).save(tmp_path / "pipeline")
    (tmp_path / "mine.bin").unlink()
    return tmp_path / "pipeline"


def test_a_model_is_copied_into_the_pipeline(with_model, tmp_path):
    assert (with_model / "target.kytea").read_bytes() == TINY.read_bytes()
    moved = with_model.rename(tmp_path / "moved")
    loaded = TextPipeline.load(moved)
    assert loaded.target.encode("東京へ") == [4, 5]
    assert loaded.target.decode([4, 5]) == "東京へ"
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again/target.kytea").read_bytes() == TINY.read_bytes()
    assert str(tmp_path) not in (moved / "pipeline.json").read_text(encoding="utf-8")


def test_another_model_in_the_pipeline_is_found(with_model):
    (with_model / "target.kytea").write_bytes(TINY.read_bytes() + b"x")
    with pytest.raises(DataError, match=r"target\.kytea: its SHA-256 begins with"):
        TextPipeline.load(with_model)
    (with_model / "target.kytea").unlink()
    with pytest.raises(DataError, match=r"target\.kytea: No such file"):
        TextPipeline.load(with_model)


def test_a_pipeline_of_the_first_version_is_read(tmp_path):
    (tmp_path / "pipeline.json").write_text(
        """{"format": 1, "joint": false,
            "source": {"language": "de", "bpe": null, "vocabulary": 5,
                       "tokenizer": {"name": "moses", "language": "de",
                                     "version": "sacremoses 0.1.1"}},
            "target": {"language": "ja", "bpe": null, "vocabulary": 5,
                       "tokenizer": {"name": "char"}}}""",
        encoding="utf-8",
    )
    (tmp_path / "source.vocabulary").write_text("Herrn\t1\n", encoding="utf-8")
    (tmp_path / "target.vocabulary").write_text("▁\t1\n", encoding="utf-8")
    loaded = TextPipeline.load(tmp_path)
    assert loaded.source.words("ca. 3 Herrn's") == ["ca.", "3", "Herrn", "&apos;", "s"]
    assert loaded.source.encode("Herrn") == loaded.target.encode("a ")[1:] == [4]


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        ({"name": "mose"}, "unknown tokenizer 'mose'"),
        ({"name": "none", "normalize": "nfd"}, "unknown normalisation 'nfd'"),
        ({"name": "mecab", "colour": "red"}, "not the description of .*: TypeError.*'colour'"),
    ],
)
def test_a_tokenizer_of_another_version_is_named(both, tmp_path, tokenizer, message):
    both.save(tmp_path)
    description = json.loads((tmp_path / "pipeline.json").read_text(encoding="utf-8"))
    description["target"]["tokenizer"] = tokenizer
    (tmp_path / "pipeline.json").write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        TextPipeline.load(tmp_path)
