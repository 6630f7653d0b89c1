from __future__ import annotations

import gzip
import io
import json
import lzma
import random
import subprocess
import sys
from pathlib import Path

import pytest

import nmtflex

ONE_THREAD = ("--threads", 1)  # tiny tensors on several are slow where other programs run

LINES = ["a b c", "", "h g f e d c b a", "日本 ?", "  ", "a b c", "d " * 50]


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch):
    """Put bytes on standard input."""

    def put(data: bytes | str) -> None:
        raw = data.encode() if isinstance(data, str) else data
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))

    return put


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("name", ["translate", "decode"])
def test_one_line_out_for_each_in_as_the_api_gives_it(command_line, feed, tiny_run, name) -> None:
    feed(text(LINES))
    result = command_line(
        name, tiny_run, *ONE_THREAD, "--beam", 3, "--batch-sentences", 2, "--buffer", 3
    )
    assert result.code == 0
    assert result.out == text(nmtflex.load(tiny_run, threads=1, beam=3).translate(LINES))
    assert result.out.split("\n")[1] == ""
    assert "7 sentences in" in result.err
    assert sum("warning" not in line for line in result.err.splitlines()) == 1


def test_a_last_line_without_line_feed_and_no_line_at_all(command_line, feed, tiny_run) -> None:
    feed("a b c\nd")
    assert command_line("translate", tiny_run, *ONE_THREAD).out.count("\n") == 2
    feed("")
    result = command_line("translate", tiny_run, *ONE_THREAD)
    assert (result.code, result.out) == (0, "")


def test_files_in_and_out(command_line, tiny_run, tmp_path) -> None:
    source, target = tmp_path / "in.aa", tmp_path / "out.bb"
    source.write_text(text(LINES), encoding="utf-8")
    result = command_line("translate", tiny_run, *ONE_THREAD, "-i", source, "-o", target)
    assert (result.code, result.out) == (0, "")
    assert target.read_text(encoding="utf-8") == text(
        nmtflex.load(tiny_run, threads=1).translate(LINES)
    )


def test_json_holds_the_n_best(command_line, feed, tiny_run) -> None:
    feed(text(LINES))
    result = command_line(
        "translate", tiny_run, *ONE_THREAD, "--format", "json", "--n-best", 3, "--beam", 4
    )
    records = [json.loads(line) for line in result.out.splitlines()]
    assert [record["source"] for record in records] == LINES
    assert [record["index"] for record in records] == list(range(7))
    assert [len(record["translations"]) for record in records] == [3, 1, 3, 3, 1, 3, 3]
    for record in records:
        scores = [translation["score"] for translation in record["translations"]]
        assert scores == sorted(scores, reverse=True)


def test_moses_n_best(command_line, feed, tiny_run) -> None:
    feed("a b\n\n")
    result = command_line("translate", tiny_run, *ONE_THREAD, "--format", "moses", "--n-best", 2)
    fields = [line.split(" ||| ") for line in result.out.splitlines()]
    assert [line[0] for line in fields] == ["0", "0", "1"]
    assert all(len(line) == 4 and line[2].startswith("LogP= ") for line in fields)


class Terminal:
    """A person who types a line only after seeing the translation of the one before."""

    def __init__(self, lines: list[str], out: Path) -> None:
        self.buffer = self
        self._lines, self._out, self._typed = lines, out, 0

    def isatty(self) -> bool:
        return True

    def read1(self, size: int) -> bytes:
        assert self._out.read_bytes().count(b"\n") == self._typed
        if self._typed == len(self._lines):
            return b""
        self._typed += 1
        return f"{self._lines[self._typed - 1]}\n".encode()

    read = read1


def test_a_terminal_is_answered_line_by_line(command_line, monkeypatch, tiny_run, tmp_path) -> None:
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "stdin", Terminal(["a b", "", "c"], out))
    outcome = command_line("translate", tiny_run, *ONE_THREAD, "--output", out)
    assert outcome.code == 0
    assert out.read_bytes().count(b"\n") == 3
    first, second, *_ = outcome.err.splitlines()
    assert str(tiny_run) in first  # what is being loaded
    assert "Ctrl-D" in second  # how to end


def test_nobody_at_a_terminal_is_told_how_to_end(command_line, feed, tiny_run) -> None:
    feed("a b\n")
    assert "Ctrl-D" not in command_line("translate", tiny_run, *ONE_THREAD).err


def test_workers_change_nothing_but_the_time(command_line, tiny_run, tmp_path) -> None:
    source = tmp_path / "source.txt"
    source.write_text("\n".join("a b c d e f g h"[: 1 + 2 * (n % 8)] for n in range(300)) + "\n")
    found = []
    for workers in (1, 2):
        traces, links = tmp_path / f"{workers}.jsonl", tmp_path / f"{workers}.links"
        outcome = command_line(
            "translate", tiny_run, "--input", source, "--workers", workers, "--threads", 1,
            "--stats", "--attention-output", traces, "--alignment", links,
        )  # fmt: skip
        assert outcome.code == 0, outcome.err
        [stats] = [line for line in outcome.err.splitlines() if "CPS" in line]
        found.append((outcome.out, stats, traces.read_text(), links.read_text()))
    assert found[0] == found[1]
    assert found[0][0].count("\n") == 300


@pytest.mark.slow
def test_forked_workers_share_the_run_and_change_nothing(command_line, tiny_run, tmp_path):
    """In a process of their own: where threads computed before, as here, workers are spawned."""
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{line}\n" for line in ["a b c", "", "h g f e d"] * 200))
    program = (
        "import multiprocessing as m, sys; from nmtflex.cli import app; made = m.get_context\n"
        "m.get_context = lambda how=0: print('how', how, file=sys.stderr) or made(how or None)\n"
        "sys.exit(app.main(sys.argv[1:]))"
    )
    for options in ((), ("--int8",)):
        command = ["translate", tiny_run, "-i", source, "--threads", "1", *options]
        alone = command_line(*command).out
        together = subprocess.run(
            [sys.executable, "-c", program, *command, "--workers", "2"],
            check=True,
            capture_output=True,
            text=True,
        )
        assert "how fork" in together.stderr
        assert together.stdout == alone
        assert alone.count("\n") == 600


@pytest.mark.slow
@pytest.mark.parametrize(("buffer", "count"), [(1, 20), (70, 260)])
def test_workers_return_lines_in_order(command_line, tiny_run, tmp_path, buffer, count) -> None:
    """Lines of any lengths are sorted within a buffer, cut into chunks and put back."""
    source, draw = tmp_path / "in.txt", random.Random(buffer)
    lines = [" ".join(draw.choices("abcdefgh", k=draw.randint(0, 9))) for _ in range(count)]
    source.write_text("".join(f"{line}\n" for line in lines))
    command = ("translate", tiny_run, "-i", source, "--threads", 1, "--format", "json")
    alone, together = (
        command_line(*command, "--workers", workers, "--buffer", buffer).out for workers in (1, 2)
    )
    assert together == alone
    assert [json.loads(line)["source"] for line in alone.splitlines()] == lines


@pytest.mark.slow
def test_lines_before_a_fault_are_translated_by_workers_too(command_line, tiny_run, tmp_path):
    source = tmp_path / "source.txt"
    source.write_bytes(b"a b\nc d\n\xff\n")
    outcome = command_line("translate", tiny_run, "--input", source, "--workers", 2)
    assert (outcome.code, outcome.out.count("\n")) == (1, 2)
    assert f"{source}:3" in outcome.err


def test_an_invalid_line_is_named(command_line, feed, tiny_run) -> None:
    feed(b"a b\nc d\n\xff\n")
    result = command_line("translate", tiny_run, *ONE_THREAD)
    assert result.code == 1
    assert "nmtflex: error: standard input:3: not valid UTF-8" in result.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--n-best", "6", "--format", "json"], 2, "--n-best 6 is more than --beam 5"),
        (["--n-best", "2"], 2, "--n-best 2 needs --format moses or json"),
        (["--beam", "0"], 2, "--beam must be at least 1, not 0"),
        (["--input", "missing.aa"], 1, "missing.aa: No such file or directory"),
    ],
)
def test_wrong_options(command_line, feed, tiny_run, arguments, code, message) -> None:
    feed("a\n")
    result = command_line("translate", tiny_run, *ONE_THREAD, *arguments)
    assert (result.code, result.out) == (code, "")
    assert f"nmtflex: error: {message}" in result.err


def test_the_input_is_never_overwritten(command_line, tiny_run, tmp_path) -> None:
    source = tmp_path / "text"
    source.write_text("a b\n")
    result = command_line(
        "translate", tiny_run, *ONE_THREAD, "-i", source, "-o", tmp_path / "." / "text"
    )
    assert result.code == 2
    assert f"--output {source} is the --input file" in result.err
    assert source.read_text() == "a b\n"


def test_a_folder_that_is_no_run_keeps_the_output_as_it_was(command_line, tmp_path) -> None:
    old = tmp_path / "old"
    old.write_text("kept\n")
    result = command_line("translate", tmp_path, "--output", old)
    assert result.code == 1
    assert str(tmp_path) in result.err
    assert old.read_text() == "kept\n"


def test_an_unreadable_first_line_keeps_the_output_as_it_was(
    command_line, tiny_run, tmp_path
) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"\xff\n")
    output.write_text("precious")
    result = command_line("translate", tiny_run, "--threads", 1, "-i", source, "-o", output)
    assert result.code == 1
    assert f"{source}:1: not valid UTF-8" in result.err
    assert output.read_text() == "precious"


def test_output_is_packed_as_its_name_says(command_line, tiny_run, tmp_path) -> None:
    source = tmp_path / "in.txt"
    source.write_text(text(LINES))
    plain = command_line("translate", tiny_run, *ONE_THREAD, "-i", source).out.encode()
    for suffix, unpack in ((".gz", gzip.decompress), (".xz", lzma.decompress)):
        path = tmp_path / f"out{suffix}"
        assert command_line("translate", tiny_run, *ONE_THREAD, "-i", source, "-o", path).code == 0
        assert unpack(path.read_bytes()) == plain
    path = tmp_path / "out.gz"
    assert command_line("eval", tiny_run, "--output", path).code == 0
    assert gzip.decompress(path.read_bytes()).count(b"\n") == 3


def test_lines_that_are_cut_are_named(command_line, feed, tiny_run, tmp_path) -> None:
    lines = ["a b", "a b c d", "", *["h " * 9] * 6]
    feed("".join(f"{line}\n" for line in lines))
    attention = tmp_path / "attention.jsonl"
    options = ["--max-source-length", 3, "--attention-output", attention]
    outcome = command_line("translate", tiny_run, *options)
    assert outcome.code == 0, outcome.err
    assert "--max-source-length cut 7 lines" in outcome.err
    assert "(line 2, 4, 5, 6, 7 and 2 more)" in outcome.err
    records = [json.loads(line) for line in attention.read_text().splitlines()]
    assert [len(record["source"]) for record in records] == [2, 3, 0, *[3] * 6]
    assert all(len(row) == 3 for record in records[3:] for row in record["weights"])
    feed("a b\n")
    assert "--max-source-length" not in command_line("translate", tiny_run, *options).err


def test_outputs_that_reach_the_maximum_length_are_counted(command_line, feed, tiny_run) -> None:
    feed(text(LINES))
    options = [*ONE_THREAD, "--format", "json", "--max-length", 2]
    result = command_line("translate", tiny_run, *options)
    records = [json.loads(line) for line in result.out.splitlines()]
    best = [record["translations"][0] for record in records]
    full = [number for number, one in enumerate(best, start=1) if len(one["tokens"]) == 2]
    assert [one["truncated"] for one in best] == [len(one["tokens"]) == 2 for one in best]
    assert full
    named = f"{len(full)} translation" + "s" * (len(full) > 1)
    [warning] = [line for line in result.err.splitlines() if "warning" in line]
    assert f"{named} reached" in warning
    assert f"(line {', '.join(map(str, full))})" in warning
    result = command_line("eval", tiny_run, "--max-length", 2, "--json")
    translator = nmtflex.load(tiny_run, threads=1, max_length=2)
    found = translator.n_best(["a b c", "c a b b"], 1)  # its test split
    assert json.loads(result.out)["truncated"] == sum(best.truncated for (best,) in found) == 2
    assert f"{tiny_run}: 2 translations reached" in result.err


def test_outputs_that_repeat_themselves_to_the_end_are_counted(command_line, tiny_run) -> None:
    found = command_line("eval", tiny_run, "--beam", 1, "--max-length", 60, "--json")
    translator = nmtflex.load(tiny_run, threads=1, beam=1, max_length=60)
    cut = [best for (best,) in translator.n_best(["a b c", "c a b b"], 1) if best.truncated]
    loops = 0
    for best in cut:
        rows = [" ".join(best.tokens[start : start + 4]) for start in range(len(best.tokens) - 3)]
        loops += any(rows.count(row) >= 3 for row in rows)
    assert loops  # what a model with random weights does
    facts = json.loads(found.out)
    assert (facts["truncated"], facts["looping"]) == (len(cut), loops)
    assert f"{loops} of them in a loop" in found.err
    assert "--retry-loops" in found.err
    for against in ["--no-repeat-ngram", 4], ["--retry-loops"]:
        found = command_line("eval", tiny_run, "--beam", 1, "--max-length", 60, "--json", *against)
        again = json.loads(found.out)
        assert again["looping"] == 0
        assert again["cps"] == facts["cps"]  # of global attention, the mean source length
        assert "--retry-loops" not in found.err


def test_the_maximum_length_is_fixed_or_relative(command_line, feed, tiny_run) -> None:
    feed("a\n")
    both = ["--max-length", 5, "--max-length-ratio", 2]
    result = command_line("translate", tiny_run, *ONE_THREAD, *both)
    assert result.code == 2
    assert "--max-length-ratio 2.0 has no effect with --max-length 5" in result.err
