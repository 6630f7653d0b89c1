"""``nmtflex.load`` as a program uses it: what lines may be, copies, forks, a bound."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import warnings

import pytest

import nmtflex

LINES = ["a b c", "", "c a b b", "h"]


@pytest.fixture
def translator(tiny_run):
    return nmtflex.load(tiny_run, device="cpu", threads=1)


@pytest.mark.parametrize("make", [iter, tuple, dict.fromkeys, lambda lines: (x for x in lines)])
def test_any_iterable_of_lines(translator, make):
    assert translator.translate(make(LINES)) == translator.translate(LINES)
    assert len(translator.n_best(make(LINES), 2)) == len(LINES)


def test_an_open_file(translator, tmp_path):
    path = tmp_path / "lines"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    with path.open(encoding="utf-8") as file:
        assert translator.translate(file) == translator.translate(LINES)


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (None, ["NoneType"]),
        (7, ["int"]),
        (b"a b", ["bytes"]),
        (bytearray(b"a b"), ["bytearray"]),
        ("a b", ["one string"]),
        ([None], ["line 0", "NoneType"]),
        (["a", 7], ["line 1", "int"]),
        (iter(["a", "b", b"c"]), ["line 2", "bytes", "decode"]),
        ([["a"]], ["line 0", "list"]),
    ],
)
@pytest.mark.parametrize("method", ["translate", "n_best"])
def test_what_is_no_line_is_named(translator, lines, named, method):
    if method == "n_best" and not isinstance(lines, str | bytes | bytearray | int | None | list):
        pytest.skip("the iterator is used up")
    with pytest.raises(TypeError) as caught:
        translator.translate(lines) if method == "translate" else translator.n_best(lines, 1)
    assert [word for word in named if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    "make", [copy.deepcopy, copy.copy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_translate_alike(tiny_run, monkeypatch, make):
    monkeypatch.chdir(tiny_run.parent)
    options = {"beam": 3, "max_length": 7, "device": "cpu", "threads": 1, "dtype": "float64"}
    translator = nmtflex.load(tiny_run.name, **options)
    monkeypatch.chdir("/")  # the copy finds the run from anywhere
    copied = make(translator)
    assert (copied.search, copied.batch) == (translator.search, translator.batch)
    assert copied.n_best(LINES, 3) == translator.n_best(LINES, 3)


def test_an_ensemble_is_copied_whole(make_tiny_run):
    from nmtflex.config import FlexibleConfig, GlobalConfig

    runs = make_tiny_run("one", FlexibleConfig()), make_tiny_run("two", GlobalConfig(), seed=2)
    translator = nmtflex.load(runs, tau=0.4, device="cpu", threads=1)
    assert pickle.loads(pickle.dumps(translator)).n_best(LINES, 2) == translator.n_best(LINES, 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.parametrize(
    "before", ["translator.translate(['a b'])", pytest.param("None", marks=pytest.mark.slow)]
)
def test_a_forked_process_says_what_to_do(tiny_run, before):
    """It would wait for ever, or end without a word of ours."""
    program = f"""
import os, sys, warnings
warnings.simplefilter("ignore")
import nmtflex
translator = nmtflex.load({str(tiny_run)!r}, device="cpu", threads=2)
{before}
child = os.fork()
if child == 0:
    for call in (lambda: translator.translate(["a b"]), lambda: nmtflex.load({str(tiny_run)!r})):
        try:
            call()
        except RuntimeError as error:
            print(error, flush=True)
    os._exit(7)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status))
print(len(translator.translate(["a b"])))
"""
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    first, second, code, lines = result.stdout.splitlines()
    assert first == second
    assert "spawn" in first
    assert (code, lines) == ("7", "1")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_process_forked_before_the_first_load_translates(tiny_run):
    program = f"""
import os
import nmtflex
if (child := os.fork()) == 0:
    lines = nmtflex.load({str(tiny_run)!r}, device="cpu", threads=2).translate(["a b", "c"])
    os._exit(len(lines))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert result.stdout == "2\n"


def test_a_bound_on_the_source(tiny_run):
    bounded = nmtflex.load(tiny_run, max_source_length=3, device="cpu", threads=1)
    free = nmtflex.load(tiny_run, device="cpu", threads=1)
    lines = ["a b c", "a b c d e", "", "h " * 5000]
    with pytest.warns(UserWarning, match="max_source_length") as caught:
        found = bounded.translate(lines)
    assert found == free.translate(["a b c", "a b c", "", "h h h"])
    told = [str(one.message) for one in caught if "max_source_length" in str(one.message)]
    assert [one.split(" tokens")[0] for one in told] == [
        "line 1 (from 0) has 5", "line 3 (from 0) has 5,000"
    ]  # fmt: skip
    assert [best.unread for (best,) in bounded.n_best(lines, 1)] == [0, 2, 0, 4997]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bounded.translate(lines[:1])


def test_what_attention_looked_at_of_a_cut_line(tiny_run):
    from nmtflex.decoding.alignment import align

    bounded = nmtflex.load(tiny_run, max_source_length=3, device="cpu", threads=1)
    [[best]] = bounded.n_best(["a b c d e"], 1, trace=True)
    assert best.trace.weights.shape[1] == 3
    alignment = align(bounded.pipeline, "a b c d e", best)
    assert alignment.source == ["a", "b", "c"]
    assert set(alignment.attended) <= {0, 1, 2}


@pytest.mark.parametrize("options", [{"max_length": 2}, {"max_length_ratio": 0.5}, {}])
def test_translations_as_long_as_they_may_be_are_counted(tiny_run, options):
    translator = nmtflex.load(tiny_run, device="cpu", threads=1, **options)
    lines = ["a b c", "", "h g f e", "c a b b d e", "b"]
    found = [best for (best,) in translator.n_best(lines, 1)]
    limits = [options.get("max_length") or int(options.get("max_length_ratio", 3) * words) + 20
              for words in (3, 0, 4, 6, 1)]  # fmt: skip
    full = [len(best.tokens) == limit for best, limit in zip(found, limits, strict=True)]
    assert [best.truncated for best in found] == full
    assert any(full)
    with pytest.warns(UserWarning, match=f"{sum(full)} of 5 .* line {full.index(True)} "):
        translator.translate(lines)
