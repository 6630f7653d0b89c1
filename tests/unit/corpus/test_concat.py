"""``preprocess --concat``: samples of several sentences after the single ones."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from nmtflex.config import ConcatConfig, PreprocessConfig
from nmtflex.corpus import concat
from nmtflex.corpus.concat import join_lines
from nmtflex.corpus.places import name_pairs
from nmtflex.corpus.prepare import prepare
from nmtflex.corpus.store import open_prepared
from nmtflex.errors import DataError, OptionError


@pytest.fixture
def make(tmp_path):
    def made(*parts, out="prepared", valid=None, **options):
        """Prepare corpora of one column: the target is the source in capitals."""
        names = {name for name in ConcatConfig.__dataclass_fields__ if name in options}
        joining = ConcatConfig(**{name: options.pop(name) for name in names})
        paths = [tmp_path / f"part{number}" for number in range(len(parts))]
        for path, lines in zip(paths, parts, strict=True):
            text = "".join(f"{line}\n" for line in lines)
            path.with_name(f"{path.name}.lo").write_text(text)
            path.with_name(f"{path.name}.up").write_text(text.upper())
        languages = {"source_lang": "lo", "target_lang": "up"}
        config = PreprocessConfig(out=tmp_path / out, train=paths, **languages, **options)
        return prepare(config, concat=joining)

    return made


def lines_of(corpus, side="source"):
    """Return the kept pairs and the joined samples of a side, as text."""
    store, pipeline = corpus.store("train", side), getattr(corpus.pipeline, side)
    lines = [pipeline.decode(store[place].tolist()) for place in range(len(store))]
    kept = corpus.manifest["splits"]["train"]["kept"]
    return lines[:kept], lines[kept:]


def words(count, start=0):
    return [f"w{number} ." for number in range(start, start + count)]


def check_runs(samples, runs, most):
    """Check in a plain loop: neighbours of a run, in order, at most so many, each once at most."""
    seen = []
    for sample in samples:
        parts = [f"{part.strip()} ." for part in sample.split(".") if part.strip()]
        assert 2 <= len(parts) <= most
        assert any(
            parts == run[place : place + len(parts)] for run in runs for place in range(len(run))
        ), parts
        seen += parts
    assert len(set(seen)) == len(seen)
    return seen


@pytest.mark.parametrize("most", [2, 3, 7])
def test_neighbours_are_joined_after_the_single_sentences(make, most):
    corpus = make(words(500), concat=most)
    single, joined = lines_of(corpus)
    assert single == words(500)
    seen = check_runs(joined, [words(500)], most)
    assert set(words(500)) - set(seen) <= {"w499 ."}  # nothing may follow the last one
    _, target = lines_of(corpus, "target")
    assert target == [line.upper() for line in joined]
    sizes = np.bincount([line.count(".") for line in joined[:-1]], minlength=most + 1)[2:]
    assert sizes.min() > 0.6 * sizes.mean()  # uniform
    about = corpus.manifest["splits"]["train"]["concat"]
    assert about == {"samples": len(joined), "sentences": len(seen), "shortened": 0}


def test_the_seed_alone_decides(make, tmp_path):
    same = [make(words(50), concat=4, out=f"same{number}") for number in range(2)]
    workers = make(words(50), concat=4, out="workers", workers=2)
    other = make(words(50), concat=4, out="other", concat_seed=2)
    first, *rest = [lines_of(corpus) for corpus in (*same, workers, other)]
    assert first == rest[0] == rest[1] != rest[2]
    assert same[0].fingerprint == workers.fingerprint


def test_documents_end_samples(make, tmp_path):
    """At other names, at dropped pairs, and at the end of a corpus."""
    names = [["one"] * 4 + ["two"] * 5 + ["one"] * 3, ["one"] * 6]
    files = [tmp_path / "names0", tmp_path / "names1"]
    for file, lines in zip(files, names, strict=True):
        file.write_text("".join(f"{name}\n" for name in lines))
    parts = [words(12), [*words(3, 12), "", *words(2, 15)]]
    corpus = make(*parts, concat=9, concat_documents=files)
    runs = [words(4), words(5, 4), words(3, 9), words(3, 12), words(2, 15)]
    single, joined = lines_of(corpus)
    assert single == words(17)
    check_runs(joined, runs, 9)
    assert "w7 . w8 ." in " ".join(joined)
    entries = corpus.manifest["inputs"]["documents"]
    assert [(entry["path"], entry["pairs"]) for entry in entries] == [
        (str(files[0]), 12),
        (str(files[1]), 6),
    ]
    without = make(*parts, concat=9, out="without")
    check_runs(lines_of(without)[1], [words(12), words(3, 12), words(2, 15)], 9)


def test_pairs_dropped_for_their_subwords_end_samples(make):
    long = "abcdefghijklmnop" * 4
    lines = [*["ab ."] * 40, f"{long} .", *["ba ."] * 40]
    corpus = make(lines, concat=5, bpe=2, max_subwords=30)
    assert corpus.manifest["splits"]["train"]["dropped"]["subwords"] == 1
    _, joined = lines_of(corpus)
    assert joined
    assert not any("ab" in line and "ba" in line for line in joined)


def test_random_order_joins_every_sentence_once(make, monkeypatch):
    corpus = make(words(301), concat=3, concat_order="random")
    _, joined = lines_of(corpus)
    numbers = [int(word[1:]) for line in joined for word in line.split() if word != "."]
    assert len(set(numbers)) == len(numbers) >= 300
    apart = [abs(one - two) for one, two in pairwise(numbers)]
    assert np.mean(apart) > 50
    monkeypatch.setattr(concat, "SHUFFLED", 10)
    near = lines_of(make(words(300), concat=3, concat_order="random", out="near"))[1]
    numbers = [int(word[1:]) for line in near for word in line.split() if word != "."]
    assert all(abs(place - number) < 12 for place, number in enumerate(numbers))


def test_a_length_ends_samples_and_is_counted(make):
    draw = random.Random(3)
    lines = [" ".join(["w"] * draw.randint(1, 9)) for _ in range(200)]
    corpus = make(lines, concat=6, concat_length=12)
    train = corpus.manifest["splits"]["train"]
    single, joined = lines_of(corpus)
    assert len(single) == train["kept"] == 200
    lengths = [len(line.split()) for line in joined]
    assert max(lengths) <= 12
    assert train["concat"]["shortened"] > 0
    assert train["source"]["tokens"] == sum(lengths) + sum(len(line.split()) for line in single)
    assert train["source"]["longest"] == 12
    free = make(lines, concat=6, concat_length=0, out="free")
    assert max(len(line.split()) for line in lines_of(free)[1]) > 20
    assert free.manifest["splits"]["train"]["concat"]["shortened"] == 0


def test_everything_else_is_as_without_joining(make, tmp_path):
    valid = tmp_path / "valid"
    for side in ("lo", "up"):
        valid.with_name(f"valid.{side}").write_text("w1 .\nw2 .\n")
    plain = make(words(30), valid=valid, out="plain")
    corpus = make(words(30), valid=valid, concat=3)
    for name, entry in plain.manifest["files"].items():
        if not name.startswith("train."):
            assert corpus.manifest["files"][name] == entry
    for side in ("source", "target"):
        whole = (corpus.folder / f"train.{side}.bin").read_bytes()
        assert whole.startswith((plain.folder / f"train.{side}.bin").read_bytes())
    assert open_prepared(corpus.folder).fingerprint != plain.fingerprint


@pytest.mark.parametrize("name", ["none", "char", "moses"])
def test_samples_are_encoded_as_translate_encodes_text(make, name):
    tokenizers = {"source_tokenizer": name, "target_tokenizer": name}
    lines = [f"It is w{number}." for number in range(40)]
    corpus = make(lines, concat=4, **tokenizers)
    store, source = corpus.store("train", "source"), corpus.pipeline.source
    for place in range(40, len(store)):
        ids = store[place].tolist()
        raw = source.decode(ids)
        assert source.encode(raw) == ids
        first = lines.index(raw.split(".")[0] + ".")
        assert raw == " ".join(lines[first : first + raw.count(".")])


def test_like_joins_too(make, tmp_path):
    first = make(words(60), concat=3)
    again = make(words(60), concat=3, like=first.folder, out="again")
    assert lines_of(again) == lines_of(first)


@pytest.mark.parametrize(
    ("lines", "joined"),
    [
        (["猫だ。", " 犬だ。\r", "鳥だ！"], "猫だ。犬だ。鳥だ！"),
        (["京都", "京都は市だ。", "終"], "京都 京都は市だ。終"),
        (["Kyoto", "It is a city.", "End."], "Kyoto It is a city. End."),
    ],
)
def test_white_space_between_sentences(make, lines, joined):
    char = make(["a"], source_tokenizer="char", target_tokenizer="char").pipeline.source
    assert join_lines(char, lines) == joined


def test_words_are_always_parted_by_spaces(make):
    assert join_lines(make(["a"]).pipeline.source, ["猫 だ 。", "犬。", "鳥"]) == "猫 だ 。 犬。 鳥"


def test_samples_have_names(make):
    corpus = make(words(20), concat=4)
    assert "sample 1 of those joined" in name_pairs(corpus, [20])
    assert "line 20 of" in name_pairs(corpus, [19])


def test_files_of_documents_that_do_not_fit(make, tmp_path):
    file = tmp_path / "names"
    for count in (9, 11):
        file.write_text("x\n" * count)
        with pytest.raises(DataError, match=f"{file}: {count} lines"):
            make(words(10), concat=2, concat_documents=[file])
    make(words(10), concat=2, concat_documents=[file], max_pairs=8)
    with pytest.raises(OptionError, match="1 of 2 --train"):
        make(words(10), words(3), concat=2, concat_documents=[file], out="other")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concat": 0}, "--concat must be at least 1, not 0"),
        ({"concat_seed": 3}, "--concat-seed 3 has no effect without --concat"),
        ({"concat_order": "random"}, "--concat-order random has no effect without --concat"),
        (
            {"concat": 2, "concat_order": "random", "concat_documents": ["x"]},
            "--concat-documents x has no effect with --concat-order random",
        ),
    ],
)
def test_options_without_effect(options, message):
    with pytest.raises(OptionError, match=message):
        ConcatConfig(**options)


@pytest.mark.parametrize("options", [{}, {"concat_order": "random"}, {"workers": 2}, {"bpe": 4}])
def test_joined_samples_keep_the_links_of_their_sentences(make, tmp_path, options):
    lines = [f"w{number} . end" if number % 3 else f"w{number} ." for number in range(40)]
    links = tmp_path / "links"
    links.write_text("".join("0-0 1-0\n" if number % 2 else "1-1\n" for number in range(40)))
    corpus = make(lines, concat=3, guided_alignment=[links], **options)
    single, joined = lines_of(corpus)
    assert single == lines
    found = corpus.links("train")
    places = {line: number for number, line in enumerate(lines)}
    for place, sample in enumerate(joined):
        expected, before = set(), [0, 0]
        for line in parts_of(sample):
            own = found[places[line]] + before
            expected |= {tuple(link) for link in own.tolist()}
            sides = corpus.pipeline.source, corpus.pipeline.target
            sizes = (
                len(side.encode(text))
                for side, text in zip(sides, (line, line.upper()), strict=True)
            )
            before = [count + size for count, size in zip(before, sizes, strict=True)]
        assert {tuple(link) for link in found[40 + place].tolist()} == expected
    about = corpus.manifest["splits"]["train"]["links"]
    assert about["lost"] == 0
    assert about["links"] == sum(len(found[pair]) for pair in range(40 + len(joined)))


def parts_of(sample):
    """Return the sentences of a sample: each begins with w and a number."""
    return [f"w{part}".strip() for part in sample.split("w")[1:]]


def test_links_of_words_that_are_split_otherwise_in_the_joined_line_are_counted(make, tmp_path):
    # Moses splits the full stop from "etc." at the end of a line only, and from "ETC." everywhere.
    links = tmp_path / "links"
    links.write_text("0-0 1-1 2-2\n0-0 2-2\n")
    corpus = make(
        ["see etc.", "low it."],
        concat=2,
        guided_alignment=[links],
        source_tokenizer="moses",
        target_tokenizer="moses",
    )
    # see etc. low it . / SEE ETC . LOW IT .
    assert corpus.links("train")[2].tolist() == [[0, 0], [2, 3], [4, 5]]
    assert corpus.manifest["splits"]["train"]["links"]["lost"] == 2
