from __future__ import annotations

import numpy as np
import pytest

from nmtflex.corpus.batches import Batches
from nmtflex.corpus.sampling import SampledBatches, open_batches, resegmenters
from nmtflex.errors import OptionError
from nmtflex.text.vocabulary import UNK_ID

ENGLISH = "the cat sat on a mat\nthen the hen ate meat\nten cats eat the theatre\n" * 4
JAPANESE = "猫 が 座った 座った猫\n鶏 が 肉 を 食べた 食べた鶏\n猫 が 劇場 を 食べた 劇場猫\n" * 4
KINDS = {
    "unigram": ({"sentencepiece": "275"}, (0.3, 0.0)),
    "merges": ({"sentencepiece": "275", "sentencepiece_type": "bpe"}, (None, 0.4)),
    "bpe": ({"bpe": 2}, (None, 0.4)),
}


@pytest.fixture
def corpus(run, write):
    return lambda **options: run(train=[write("train", ENGLISH, JAPANESE)], **options)


def opened(corpus, sampling, tokens=40):
    return open_batches(corpus, resegmenters(corpus, *sampling), tokens)


def read(batches, epoch, pairs=None, seed=1):
    batches.order(seed, epoch)
    pairs = np.arange(12) if pairs is None else np.array(pairs)
    return [[list(map(int, ids)) for ids in side] for side in batches.read(pairs)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_words_stay_and_their_pieces_change(corpus, kind):
    options, sampling = KINDS[kind]
    corpus = corpus(**options)
    batches = opened(corpus, sampling)
    epochs = [read(batches, epoch) for epoch in range(4)]
    for side, name in enumerate(("source", "target")):
        pipeline = getattr(corpus.pipeline, name)
        text = (ENGLISH, JAPANESE)[side].splitlines()
        for found in epochs:
            assert [pipeline.decode(ids) for ids in found[side]] == text
            assert not any(UNK_ID in ids for ids in found[side])
        assert len({str(found[side]) for found in epochs}) > 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_draw_depends_on_seed_epoch_and_pair_alone(corpus, kind):
    options, sampling = KINDS[kind]
    corpus = corpus(**options)
    source, target = read(opened(corpus, sampling), 3)
    fresh = opened(corpus, sampling)
    read(fresh, 7, [5, 1])  # whatever was read before
    assert read(fresh, 3, [11, 4]) == [[source[11], source[4]], [target[11], target[4]]]
    assert read(fresh, 3, seed=2) != [source, target]


def test_batches_have_what_is_drawn_and_count_it(corpus):
    corpus = corpus(sentencepiece="275")
    batches = opened(corpus, (0.1, 0.0))
    for pairs in batches.order(1, 1):
        sources, targets = batches.read(pairs)
        batch = batches.collate(pairs)
        assert batch.lengths.tolist() == [len(ids) for ids in sources]
        assert batch.num_tokens == sum(len(ids) + 1 for ids in targets)
        assert (batch.target_out != 0).sum() == batch.num_tokens


def test_fewer_sentences_make_up_for_their_length(corpus):
    """The stretch is the ratio of the mean widths, drawn and stored; so few pairs are all drawn."""
    corpus = corpus(sentencepiece="275")
    batches = opened(corpus, (0.1, 0.0), 1000)
    sources, targets = read(batches, 0, seed=0)
    widths = [max(len(x), len(y) + 1) for x, y in zip(sources, targets, strict=True)]
    assert batches.stretch == sum(widths) / batches.widths().sum() > 1
    assert batches.tokens == int(1000 / batches.stretch)


def test_a_sentence_with_an_unknown_token_stays_and_is_counted(run, write):
    train = [write("train", "猫 a\n" + ENGLISH * 200, "x\n" + JAPANESE * 200)]
    corpus = run(train=train, sentencepiece="23", byte_fallback=False, target_tokenizer="char")
    assert corpus.manifest["splits"]["train"]["source"]["unknown"] == 1
    batches = opened(corpus, (0.1, 0.0))
    stored = corpus.store("train", "source")[0].tolist()
    assert UNK_ID in stored
    assert {str(read(batches, epoch, [0])[0]) for epoch in range(9)} == {str([stored])}
    notes = list(batches.notes())
    assert any("source" in note and "1 in all" in note for note in notes)
    assert any(note.startswith("target") for note in notes)  # not sampled


def test_words_whose_pieces_the_vocabulary_lacks_stay_and_are_counted(run, write):
    """Each word is one merge of two letters, which never stand alone."""
    train = [write("train", "ab ab\n" * 9, "x x\n" * 9)]
    corpus = run(train=train, bpe=1)
    batches = opened(corpus, (None, 0.9))
    stored = corpus.store("train", "source")[0].tolist()
    assert {str(read(batches, epoch, [0])[0]) for epoch in range(9)} == {str([stored])}
    share = [note for note in batches.notes() if "%" in note and "source" in note]
    assert len(share) == 1
    assert batches.stretch == 1


def test_without_sampling_batches_read_what_is_stored(corpus):
    batches = opened(corpus(bpe=30), (None, 0.0))
    assert type(batches) is Batches
    assert list(batches.notes()) == []


def test_one_side_alone_can_be_sampled(corpus):
    corpus = corpus(source_sentencepiece="275")
    batches = opened(corpus, (0.2, 0.0))
    assert isinstance(batches, SampledBatches)
    _, targets = read(batches, 1)
    assert targets == [
        ids.tolist() for ids in map(corpus.store("train", "target").__getitem__, range(12))
    ]


@pytest.mark.parametrize(
    ("options", "sampling", "words"),
    [
        ({}, (0.5, 0.0), ["--subword-alpha 0.5", "no subwords (source)"]),
        ({}, (None, 0.1), ["--bpe-dropout 0.1", "no subwords (target)"]),
        ({"bpe": 5}, (0.5, 0.0), ["--subword-alpha 0.5", "BPE (source)", "--bpe-dropout applies"]),
        (
            {"sentencepiece": "275"},
            (None, 0.1),
            ["--bpe-dropout 0.1", "SentencePiece unigram (target)", "--subword-alpha applies"],
        ),
        (
            {"sentencepiece": "275", "sentencepiece_type": "bpe"},
            (0.2, 0.0),
            ["--subword-alpha 0.2", "SentencePiece bpe (source)", "--bpe-dropout applies"],
        ),
        ({"segmented": "bpe"}, (None, 0.1), ["--bpe-dropout 0.1", "segmented text (source)"]),
    ],
)
def test_an_option_without_its_model_is_an_error(corpus, options, sampling, words):
    corpus = corpus(**options)
    with pytest.raises(OptionError) as error:
        resegmenters(corpus, *sampling)
    for word in [*words, str(corpus.folder)]:
        assert word in str(error.value)
