from __future__ import annotations

import gzip
import io
import lzma

import pytest
import zstandard

from nmtflex.corpus import readers
from nmtflex.corpus.readers import find_text, read_lines, read_pairs, read_stream, starts_with_mark
from nmtflex.errors import DataError

PACK = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.fixture(params=PACK)
def packed(request, tmp_path):
    """Write text as a file of each kind."""

    def write(content: bytes):
        path = tmp_path / f"text.en{request.param}"
        path.write_bytes(PACK[request.param](content))
        return path

    return write


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\nb\n", ["a", "b"]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"a\r\nb\rc\n", ["a\r", "b\rc"]),
        ("a\u0085b\u2028c\x1cd\x0be\n日本\n".encode(), ["a\u0085b\u2028c\x1cd\x0be", "日本"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
    ],
)
def test_lines_end_at_newlines_alone(packed, content, lines):
    assert list(read_lines(packed(content))) == lines


def test_lines_longer_than_a_block(packed, monkeypatch):
    monkeypatch.setattr(readers, "BLOCK", 16)
    lines = ["あ" * 50, "", "b", "é" * 17]
    assert list(read_lines(packed("\n".join(lines).encode()))) == lines


def test_joined_compressed_files_are_read_whole(packed):
    path = packed(b"a\n")
    path.write_bytes(path.read_bytes() * 2)
    assert list(read_lines(path)) == ["a", "a"]


def test_a_byte_order_mark_is_seen(packed):
    assert starts_with_mark(packed(b"\xef\xbb\xbfa\n"))
    assert not starts_with_mark(packed(b"a\n"))
    assert not starts_with_mark(packed(b""))


@pytest.mark.parametrize("block", [1 << 20, 4])
def test_invalid_utf8_names_line_and_column(packed, monkeypatch, block):
    monkeypatch.setattr(readers, "BLOCK", block)
    path = packed(b"a\n" * 1041 + "日本語 xy".encode() + b"\xff\nb\n")
    message = r"text.en\S*:1042: not valid UTF-8 \(byte 0xff at column 7\); convert .* iconv"
    with pytest.raises(DataError, match=message):
        list(read_lines(path))


def test_a_character_cut_at_the_end_of_the_file(tmp_path):
    path = tmp_path / "text.ja"
    path.write_bytes(b"a\n" + "日".encode()[:2])
    with pytest.raises(DataError, match=r"text\.ja:2: .*byte 0xe6 at column 1"):
        list(read_lines(path))


def test_nul_bytes_name_line_and_column(packed):
    with pytest.raises(DataError, match=r"text.en\S*:2: NUL byte at column 3"):
        list(read_lines(packed(b"a\nbc\0\n")))


@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_truncated_files_are_found(tmp_path, kind):
    path = tmp_path / f"text.en.{kind}"
    data = PACK[f".{kind}"](bytes(range(1, 128)) * 9)
    path.write_bytes(data[:-5])
    with pytest.raises(DataError, match=rf"text\.en\.{kind}: truncated: the {kind} data end"):
        list(read_lines(path))


@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_a_file_that_is_not_what_its_name_says(tmp_path, kind):
    path = tmp_path / f"text.en.{kind}"
    path.write_bytes(b"plain text, not packed at all\n")
    with pytest.raises(DataError, match=rf"text\.en\.{kind}: not a valid {kind} file"):
        list(read_lines(path))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.en: No such file"):
        list(read_lines(tmp_path / "none.en"))


def test_a_stream_is_read_line_by_line():
    class Slow(io.RawIOBase):
        """Gives a byte at a time, then refuses: what is complete must have come before."""

        def __init__(self):
            self.left = list(b"a\nb\nc")

        def readable(self):
            return True

        def readinto(self, buffer):
            if not self.left:
                raise KeyboardInterrupt
            buffer[0] = self.left.pop(0)
            return 1

    lines = read_stream(io.BufferedReader(Slow()))
    assert next(lines) == "a"
    assert next(lines) == "b"
    with pytest.raises(KeyboardInterrupt):
        next(lines)


def test_a_stream_in_errors_has_its_name():
    with pytest.raises(DataError, match=r"standard input:2: not valid UTF-8 \(byte 0xfe"):
        list(read_stream(io.BytesIO(b"a\n\xfe\n")))
    with pytest.raises(DataError, match="pipe:1: NUL byte"):
        list(read_stream(io.BytesIO(b"\0"), "pipe"))


def test_plain_files_come_before_packed_ones(tmp_path):
    for suffix in (".zst", ".xz", ".gz", ""):
        path = tmp_path / f"train.en{suffix}"
        path.touch()
        assert find_text(tmp_path / "train", "en") == path


def test_a_dot_in_the_prefix_is_kept(tmp_path):
    (tmp_path / "news.2014.en").touch()
    assert find_text(tmp_path / "news.2014", "en").name == "news.2014.en"


def test_a_missing_language_names_what_was_tried_and_what_there_is(tmp_path):
    for name in ("train.de", "train.en.xz", "trainer.fr"):
        (tmp_path / name).touch()
    message = (
        r"train: no file for language 'fr'; "
        r"tried train\.fr, train\.fr\.gz, train\.fr\.xz, train\.fr\.zst; "
        r"there is train\.de, train\.en\.xz$"
    )
    with pytest.raises(DataError, match=message):
        find_text(tmp_path / "train", "fr")


def test_a_missing_prefix(tmp_path):
    with pytest.raises(DataError, match=r"'en'; tried .*\.zst$"):
        find_text(tmp_path / "none", "en")
    with pytest.raises(DataError, match=r"there is no folder .*nowhere"):
        find_text(tmp_path / "nowhere/none", "en")


def test_a_file_given_for_a_prefix(tmp_path):
    (tmp_path / "train.en").touch()
    with pytest.raises(DataError, match="give the prefix without the language"):
        find_text(tmp_path / "train.en", "en")


@pytest.mark.parametrize(
    ("bad", "words"), [(b"x\xffy", "not valid UTF-8"), (b"x\0y", "NUL byte"), (b"\0\xff", "NUL")]
)
def test_what_stands_before_a_fault_is_given_first(tmp_path, bad, words):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\n" + bad + b"\nfour\n")
    lines = read_lines(path)
    assert [next(lines), next(lines)] == ["one", "two"]
    with pytest.raises(DataError, match=f"a.txt:3: {words}"):
        next(lines)


def test_parallel_files_of_unequal_length_are_named_with_their_counts(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("a\nb\nc\n")
    two.write_text("A\n")
    with pytest.raises(DataError, match=r"one has 3 lines but .*two has 1"):
        list(read_pairs(one, two))
    with pytest.raises(DataError, match=r"two has 1 line but .*one has 3"):
        list(read_pairs(two, one))
