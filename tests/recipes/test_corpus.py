"""A corpus that is missing, half fetched or damaged is one line that says what to do."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import tarfile
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "recipes"


@pytest.fixture
def corpus(script, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("RECIPE", "some.sh")
    monkeypatch.chdir(tmp_path)
    module = script("corpus")

    def run(*arguments: str) -> str:
        code = module.main(*arguments)
        line = capsys.readouterr().err
        assert (code, line.count("\n")) == ((1, 1) if line else (0, 0))
        return line.removeprefix("some.sh: ").rstrip("\n")

    return run


def archive(path: Path, **members: str) -> None:
    with tarfile.open(path, "w:gz") as opened:
        for name, text in members.items():
            info = tarfile.TarInfo(f"training/{name}")
            info.size = len(text)
            opened.addfile(info, io.BytesIO(text.encode()))


def test_files_plain_or_compressed(corpus):
    Path("a.en").touch()
    Path("a.ja.zst").touch()
    assert corpus("need", "a.en", "a.ja") == ""
    assert corpus("need", "a.en", "a.de") == (
        "a.de is missing; set DATA to the folder of the corpus"
    )
    Path("a.de.gz.part").touch()
    assert corpus("need", "a.de") == "a.de is half fetched (a.de.gz.part); fetch the rest of it"


def test_a_wrong_checksum(corpus):
    Path("a.en").write_text("x")
    good, bad = hashlib.sha256(b"x").hexdigest(), "0" * 64
    Path("SHA256SUMS").write_text(f"{bad}  other\n{good}  ./a.en\n")
    assert corpus("need", "a.en") == ""
    Path("SHA256SUMS").write_text(f"{bad} *a.en\n")
    assert corpus("need", "a.en") == (
        f"a.en has the sha256 {good}, and SHA256SUMS says {bad}; fetch it anew"
    )


def test_unpack(corpus):
    archive(Path("a.tgz"), **{"x.en": "one\n"})
    assert corpus("unpack", "a.tgz", "x.en", "y") == ""
    assert Path("y").read_text() == "one\n"
    assert corpus("unpack", "a.tgz", "x.de", "z") == (
        "a.tgz holds no x.de; delete it to fetch it anew"
    )
    whole = Path("a.tgz").read_bytes()
    Path("a.tgz").write_bytes(whole[:40])
    fault = corpus("unpack", "a.tgz", "x.en", "z")
    assert fault.startswith("a.tgz: ")
    assert fault.endswith("; delete it to fetch it anew")
    assert not Path("z").exists()


def test_count(corpus):
    Path("a.en").write_text("1\n2\x85\n3\n")
    assert corpus("count", "a.en", "3") == ""
    wrong = "a.en has 3 lines, and 1,920,209 are expected; delete it to fetch it anew"
    assert corpus("count", "a.en", "1920209") == wrong
    packed = gzip.compress(b"1\n" * 10_000)
    Path("b.gz").write_bytes(packed)
    assert corpus("count", "b.gz", "10000") == ""
    Path("b.gz").write_bytes(packed[:-9])
    assert corpus("count", "b.gz", "10000").startswith("b.gz: ")


@pytest.fixture
def fetch(bash, tmp_path):
    """Call functions of fetch.sh: ``fetch("fetch URL FILE")``."""

    def call(line: str, **settings: object):
        sources = "".join(f"source {FOLDER / name}; " for name in ("common.sh", "fetch.sh"))
        return bash("-c", f"{sources}{line}", "some.sh", **settings)

    return call


def test_fetch_takes_its_name_when_it_is_whole(fetch, tmp_path):
    source, file = tmp_path / "source.gz", tmp_path / "data" / "file.gz"
    source.write_bytes(gzip.compress(b"text\n" * 1000))
    line = f"fetch file://{source} {file}"
    assert fetch(line).returncode == 0
    assert file.read_bytes() == source.read_bytes()
    source.unlink()
    assert fetch(line).returncode == 0  # it is there


def test_fetch_goes_on_with_a_half(fetch, tmp_path):
    source, file, part = (tmp_path / name for name in ("source.gz", "file.gz", "file.gz.part"))
    whole = gzip.compress(bytes(range(256)) * 100)
    source.write_bytes(b"not read again" + whole[14:])
    part.write_bytes(whole[:20])
    assert fetch(f"fetch file://{source} {file}").returncode == 0
    assert file.read_bytes() == whole
    file.rename(part)  # stopped between the last byte and the name
    source.unlink()
    assert fetch(f"fetch file://{source} {file}").returncode == 0
    assert file.read_bytes() == whole


def test_what_cannot_be_fetched_is_one_line(fetch, tmp_path):
    file = tmp_path / "file.gz"
    done = fetch(f"fetch file://{tmp_path}/nowhere {file}; echo went on")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == (
        f"some.sh: file://{tmp_path}/nowhere could not be fetched (curl's exit 37); run the recipe "
        f"again to go on, or first delete {file}.part to begin anew"
    )


def test_a_damaged_download_is_one_line(fetch, tmp_path):
    source, file = tmp_path / "source.gz", tmp_path / "file.gz"
    source.write_bytes(gzip.compress(b"text" * 1000)[:-4])
    done = fetch(f"fetch file://{source} {file}; echo went on")
    assert (done.returncode, done.stdout) == (1, "")
    size = source.stat().st_size
    assert done.stderr.splitlines()[-1] == (
        f"some.sh: {file}.part is no whole gzip file ({size} bytes of file://{source}); delete it "
        f"and run the recipe again"
    )
    assert not file.exists()


def test_a_test_set_comes_from_sacrebleu(fetch, tmp_path):
    program = tmp_path / "sacrebleu"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    file = tmp_path / "newstest2015.de"
    line = f"test_set wmt15 de-en src {file}"
    assert fetch(line, SACREBLEU=program).returncode == 0
    assert file.read_text() == "--test-set wmt15 --language-pair de-en --echo src\n"
    assert fetch(line, SACREBLEU="false").returncode == 0
    file.unlink()
    done = fetch(f"{line}; echo went on", SACREBLEU="false")
    assert (done.returncode, done.stdout) == (1, "")
    assert "some.sh: sacrebleu could not give wmt15 de-en; pip install sacrebleu" in done.stderr
    assert not file.exists()


@pytest.fixture
def mirror(tmp_path):
    """Make what WMT's server has, small."""
    folder = tmp_path / "mirror"
    for name in ("wmt13", "wmt15", "wmt17/translation-task/preprocessed/tr-en"):
        (folder / name).mkdir(parents=True)
    archives = {
        "wmt13/training-parallel-europarl-v7": "europarl-v7",
        "wmt13/training-parallel-commoncrawl": "commoncrawl",
        "wmt15/training-parallel-nc-v10": "news-commentary-v10",
    }
    for path, name in archives.items():
        members = {f"{name}.de-en.{language}": "a\nb\n" for language in ("de", "en", "fr")}
        archive(folder / f"{path}.tgz", **members)
    turkish = folder / "wmt17/translation-task/preprocessed/tr-en"
    names = ("newsdev2016.tc", "newstest2016.tc")
    archive(turkish / "dev.tgz", **{f"{n}.{lang}": "a\n" for n in names for lang in ("en", "tr")})
    for language in ("en", "tr"):
        (turkish / f"corpus.tc.{language}.gz").write_bytes(gzip.compress(b"a\n"))
    return f"file://{folder}"


def test_wmt15_is_fetched_and_counted(bash, mirror, tmp_path):
    data = tmp_path / "data"
    settings = {"DATA": data, "FETCH": "yes", "STATMT": mirror, "SACREBLEU": "echo"}
    done = bash(FOLDER / "wmt15_de_en.sh", **settings)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"wmt15_de_en.sh: {data}/europarl-v7.de-en.de has 2 lines, and 1,920,209 are expected; "
        f"delete it to fetch it anew"
    )
    # The program does nothing, so the recipe comes as far as its first output.
    counts = {"EUROPARL_LINES": 2, "COMMONCRAWL_LINES": 2}
    done = bash(FOLDER / "wmt15_de_en.sh", **settings, **counts)
    assert "nmtflex preprocess made no " in done.stderr
    assert (data / "news-commentary-v10.de-en.en").read_text() == "a\nb\n"
    assert "wmt13" in (data / "newstest2013.de").read_text()


def test_wmt17_is_fetched(bash, mirror, tmp_path):
    data = tmp_path / "data"
    settings = {"DATA": data, "FETCH": "yes", "STATMT": mirror}
    done = bash(FOLDER / "wmt17.sh", PAIRS="en-tr", **settings)
    assert "nmtflex preprocess made no " in done.stderr
    assert (data / "tr-en" / "newsdev2016.tc.tr").read_text() == "a\n"
    done = bash(FOLDER / "wmt17.sh", PAIRS="en-fi", **settings)
    assert done.returncode == 1
    assert "preprocessed/fi-en/dev.tgz could not be fetched (curl's exit 37)" in done.stderr


def test_the_first_lines(corpus):
    lines = [f"line {number}\n".encode() for number in range(5)]
    plain, packed, other = Path("a.en"), Path("b.en.gz"), Path("c.en.xz")
    for path, opened in ((plain, open), (packed, gzip.open), (other, lzma.open)):
        with opened(path, "wb") as file:
            file.write(b"".join(lines))
        name = path.name.split(".")[0]
        assert corpus("head", f"{name}.en", "3", f"out/{name}.en") == ""
        assert Path(f"out/{name}.en").read_bytes() == b"".join(lines[:3])
    # What is made of a copy stays valid when the recipe runs again.
    before = Path("out/a.en").stat().st_mtime_ns
    corpus("head", "a.en", "3", "out/a.en")
    assert Path("out/a.en").stat().st_mtime_ns == before
    corpus("head", "a.en", "9", "out/a.en")
    assert Path("out/a.en").read_bytes() == b"".join(lines)


def test_lines_that_are_joined(corpus):
    Path("a.en.gz").write_bytes(gzip.compress(b"one \ntwo\n\nfour\nfive"))
    assert corpus("join", "a.en", "2", "out/a.en") == ""
    assert Path("out/a.en").read_bytes() == b"one two\n four\nfive\n"


def test_the_first_lines_of_a_file_that_cannot_be_read(corpus):
    Path("a.en.gz").write_bytes(gzip.compress(b"line\n" * 1000)[:-9])
    assert "a.en.gz" in corpus("head", "a.en", "2000", "out")
    Path("b.en.zst").touch()
    assert "b.en.zst" in corpus("head", "b.en", "3", "out")
    assert "c.en" in corpus("head", "c.en", "3", "out")
    assert not Path("out").exists()


def test_tokens_with_white_space_inside_become_solid(corpus):
    """An aligner that splits as Python does finds the words that the tokenizer made."""
    Path("words").write_text("a \u3000（ b\u00a0c \u2028\n\td\u0085 e\n\n", encoding="utf-8")
    assert corpus("solid", "words", "out") == ""
    lines = Path("out").read_bytes().decode().split("\n")
    assert [line.split() for line in lines] == [["a", "_（", "b_c", "_"], ["_d_", "e"], [], []]
    assert "words" in corpus("solid", "nothing/words", "out")
