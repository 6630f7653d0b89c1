"""kill -9 at random moments: the next start goes on, and nothing is lost.

The moments are drawn from a seed; the one that fails is named with its seed and its number.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
from killing import Server
from safetensors.torch import load_file

from nmtflex.corpus.store import open_prepared
from nmtflex.errors import RunError
from nmtflex.files import file_hash, read_json
from nmtflex.runs.weights import load_tensors

MODEL = ["--embedding-size", 8, "--encoder-size", 8, "--decoder-size", 8]
PLACE = ["--threads", 1, "--device", "cpu"]
LOOP = ["--batch-sentences", 16, "--valid-beam", 1, "--log-every", 5]
SEED = 8
KILLS = 35  # of each kind, three kinds; a moment after the end is none
SAVING = {"training": 0.002, "writing": 1e-9}  # minutes between checkpoints; the last: always
UPDATES = {"training": 48, "writing": 24}


@pytest.fixture(scope="module")
def server():
    with Server() as started:
        yield started


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """Words of letters, and the same in capitals; 3,000 pairs."""
    folder = tmp_path_factory.mktemp("words")
    draw = random.Random(SEED)
    words = ["".join(draw.choices("abcdefgh", k=draw.randint(1, 6))) for _ in range(400)]
    for split, pairs in (("train", 3000), ("valid", 20)):
        lines = [" ".join(draw.choices(words, k=draw.randint(1, 8))) for _ in range(pairs)]
        (folder / f"{split}.lo").write_text("".join(f"{line}\n" for line in lines))
        (folder / f"{split}.up").write_text("".join(f"{line.upper()}\n" for line in lines))
    return folder


def preprocess(corpus: Path, out: Path) -> list[object]:
    splits = ["--train", corpus / "train", "--valid", corpus / "valid"]
    languages = ["--source-lang", "lo", "--target-lang", "up"]
    return ["preprocess", *languages, *splits, "--bpe", 300, "--out", out]


@pytest.fixture(scope="module")
def prepared(server, corpus) -> Path:
    ended = server.run(corpus, *preprocess(corpus, corpus / "prepared"))
    assert ended.code == 0, ended.err
    # What is compiled for the first time may round otherwise than what comes from disk later.
    server.run(corpus, *training(corpus / "prepared", corpus / "warm", "training"), "--updates", 2)
    return corpus / "prepared"


def training(prepared: Path, run: Path, kind: str) -> list[object]:
    length = ["--updates", UPDATES[kind], "--validate-every", 12]
    options = [*MODEL, *LOOP, *PLACE, *length, "--save-every", SAVING[kind]]
    return ["train", prepared, "--run", run, *options]


def final_files(run: Path) -> dict[str, object]:
    """What a training ends with: its tensors and its counts, the clock's apart."""
    last = max((run / "checkpoints").glob("update-*"))
    best = run / "checkpoints" / "best.safetensors"
    files = [last / "weights.safetensors", last / "trainer.safetensors", best]
    found = {path.name: {k: v.tolist() for k, v in load_file(path).items()} for path in files}
    counts = read_json(last / "progress.json", RunError)
    clock = {"sha256"} | {name for name in counts if name.endswith("seconds")}
    rows = [line.split(",") for line in (run / "metrics.csv").read_text().splitlines()]
    return found | {
        "counts": {name: value for name, value in counts.items() if name not in clock},
        "rows": [row[:2] + row[3:] for row in rows],  # without the seconds
    }


def check_what_is_there(run: Path) -> int:
    """Check that nothing under a final name is half written; return the last update saved."""
    checkpoints = sorted((run / "checkpoints").glob("update-*"))
    for path in [*(run / "checkpoints").glob("*.safetensors")] + [
        file for checkpoint in checkpoints for file in checkpoint.glob("[a-z]*.safetensors")
    ]:
        load_tensors(path)  # raises where its checksum is another
    for checkpoint in checkpoints:
        names = {path.name for path in checkpoint.iterdir() if path.name[0] != "."}
        assert names == {"weights.safetensors", "trainer.safetensors", "progress.json"}
    return int(checkpoints[-1].name.removeprefix("update-")) if checkpoints else 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(SAVING))
def test_a_training_killed_at_many_moments(server, prepared, tmp_path, kind):
    """Each time it goes on; it ends as if it had not been killed."""
    draw = random.Random(f"{SEED} {kind}")
    whole = tmp_path / "whole"
    unbroken = server.run(tmp_path, *training(prepared, whole, kind))
    assert unbroken.code == 0, unbroken.err
    expected, counts = final_files(whole), Counter[str]()
    cut, number = tmp_path / "cut", 0
    while counts["killed"] < KILLS or cut.exists():
        process = server.start(tmp_path, *training(prepared, cut, kind))
        # After the last kill the training goes on to its end.
        if counts["killed"] < KILLS:
            process.kill_after(delay := draw.uniform(0.0, unbroken.seconds))
            number += 1
        ended = process.wait()
        told = f"{kind}, seed {SEED}, moment {number}, {delay:.3f} s: {ended}"
        counts[{-9: "killed", 0: "finished"}.get(ended.code, told)] += 1
        assert ended.code in (-9, 0), told
        assert "Traceback" not in ended.err, told
        if ended.code == 0:
            assert final_files(cut) == expected, told
            assert not list(tmp_path.rglob("*unfinished*")), told
            assert not list((cut / "checkpoints").glob(".*")), told
            shutil.rmtree(cut)
        elif (cut / "checkpoints").is_dir():
            counts["with a checkpoint"] += bool(check_what_is_there(cut))
    sys.stderr.write(f"{kind}: {dict(counts)}\n")  # for the docs; pytest -s shows it


@pytest.mark.slow
def test_a_preprocessing_killed_at_many_moments(server, corpus, prepared, tmp_path):
    """Each time the same command then makes it whole."""
    draw = random.Random(f"{SEED} preprocess")
    seconds = server.run(tmp_path, *preprocess(corpus, tmp_path / "first")).seconds
    expected = open_prepared(prepared).fingerprint
    out, counts = tmp_path / "prepared", Counter[str]()
    number = 0
    while counts["killed"] < KILLS:
        number += 1
        process = server.start(tmp_path, *preprocess(corpus, out))
        process.kill_after(delay := draw.uniform(0.0, seconds))
        ended = process.wait()
        told = f"preprocess, seed {SEED}, moment {number}, {delay:.3f} s: {ended}"
        assert ended.code in (-9, 0), told
        counts["killed" if ended.code else "finished"] += 1
        if not out.exists():
            again = server.run(tmp_path, *preprocess(corpus, out))
            assert again.code == 0, (told, again)
        found = open_prepared(out)
        assert found.fingerprint == expected, told
        for name, entry in found.manifest["files"].items():
            assert file_hash(out / name) == entry["sha256"], told
        shutil.rmtree(out)
    server.run(tmp_path, *preprocess(corpus, out))
    assert not list(tmp_path.glob(".*"))  # what was half made is gone
    again = server.run(tmp_path, *preprocess(corpus, out))
    assert again.err == (
        f"nmtflex: error: --out {out} already exists; remove it or choose another folder\n"
    )
    sys.stderr.write(f"preprocess: {dict(counts)}\n")
