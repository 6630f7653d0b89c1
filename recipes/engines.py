"""Decoding speed of nmtflex, Marian and CTranslate2, on one thread and with the same weights.

    python recipes/engines.py FOLDER --ssru RUN --marian PYTHON
    python recipes/engines.py FOLDER --transformer RUN --ctranslate2 PYTHON

Both may be given at once. RUN is a run with a transformer encoder and global attention whose test
data is translated; that of --ssru was trained or finetuned by as_marian.py. PYTHON has pymarian, or
ctranslate2. Models and translations go into FOLDER.

The engines take turns; each loads its model anew in every round. BLEU is that of the run's own test
data: engines that compute the same have nearly the same. Speeds are source words a second, without
tokenization.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import sacrebleu

from nmtflex.text.pipeline import SidePipeline, TextPipeline

HERE = Path(__file__).parent


class System(NamedTuple):
    """An engine with a model."""

    label: str
    python: str
    engine: str  # of time_engine.py
    model: Path


class Text(NamedTuple):
    """The test data of a run."""

    target: SidePipeline
    words: int  # of the source
    references: list[str]

    def restored(self, lines: list[str]) -> list[str]:
        """Turn lines of subwords into text."""
        ids = self.target.vocabulary.ids
        return [self.target.decode(ids(line.split())) for line in lines]


def call(*command: object) -> str:
    """Run a program; return its output.

    Exits with its last line if it fails.
    """
    words = [str(part) for part in command]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{words[1]}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")
    return done.stdout


def read(run: Path, folder: Path) -> Text:
    """Return a run's test data, and write its source as subwords."""
    pipeline = TextPipeline.load(run / "pipeline")
    lines = (run / "raw" / "test.source.txt").read_text(encoding="utf-8").splitlines()
    references = (run / "raw" / "test.target.txt").read_text(encoding="utf-8").splitlines()
    side = pipeline.source
    subwords = [" ".join(map(side.vocabulary.token, side.encode(line))) for line in lines]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "source").write_text("".join(f"{line}\n" for line in subwords), encoding="utf-8")
    return Text(pipeline.target, sum(len(list(side.words(line))) for line in lines), references)


def with_ssru(run: Path, folder: Path, marian: str) -> list[System]:
    """Return nmtflex and Marian with a run's weights, in float32 and in 8 bits."""
    call(sys.executable, HERE / "to_marian.py", run, folder)
    systems = [
        System("nmtflex", sys.executable, "nmtflex-as-marian", run),
        System("nmtflex, 8 bits", sys.executable, "nmtflex-as-marian-int8", run),
        System("Marian", marian, "marian", folder / "model.npz"),
    ]
    for name in ("intgemm8", "packed8avx512"):
        model, program = folder / f"{name}.bin", "import pymarian; pymarian.main()"
        call(
            marian, "-c", program, "convert", "-f", folder / "model.npz", "-t", model,
            "--gemm-type", name,
        )  # fmt: skip
        systems.append(System(f"Marian, 8 bits ({name})", marian, "marian", model))
    return systems


def with_transformer(run: Path, folder: Path, ctranslate2: str) -> list[System]:
    """Return nmtflex and CTranslate2 with a run's weights, in float32 and in 8 bits."""
    systems = [
        System("nmtflex", sys.executable, "nmtflex", run),
        System("nmtflex, 8 bits", sys.executable, "nmtflex-int8", run),
    ]
    for label, name in (("CTranslate2", "float32"), ("CTranslate2, 8 bits", "int8")):
        call(ctranslate2, HERE / "to_ctranslate2.py", run, folder / name, name)
        systems.append(System(label, ctranslate2, "ctranslate2", folder / name))
    return systems


def measure(
    systems: list[System], folder: Path, batches: list[int], beam: int, rounds: int
) -> dict[tuple[int, int], list[float]]:
    """Return the seconds of each system with each batch size, in turns."""
    seconds: dict[tuple[int, int], list[float]] = {}
    for number in range(rounds):
        for batch in batches:
            for place, one in enumerate(systems):
                output = folder / f"output.{place}.{batch}"
                program = one.python, HERE / "time_engine.py", one.engine, one.model
                took = float(call(*program, folder / "source", output, batch, beam))
                seconds.setdefault((place, batch), []).append(took)
                sys.stderr.write(f"round {number + 1}, {batch} at once: {one.label} {took:.1f} s\n")
    return seconds


def table(
    systems: list[System],
    text: Text,
    folder: Path,
    batches: list[int],
    seconds: dict[tuple[int, int], list[float]],
) -> str:
    """Return a table in Markdown; ratios are nmtflex's in the same number format."""
    head = ["engine", "BLEU"]
    head += [cell for batch in batches for cell in (f"words/s, {batch} at once", "ratio")]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for place, one in enumerate(systems):
        made = (folder / f"output.{place}.{batches[0]}").read_text(encoding="utf-8").splitlines()
        bleu = sacrebleu.corpus_bleu(text.restored(made), [text.references]).score
        row = [one.label, f"{bleu:.2f}"]
        ours = 1 if "8 bits" in one.label else 0
        for batch in batches:
            speeds = [text.words / took for took in seconds[place, batch]]
            pairs = zip(seconds[place, batch], seconds[ours, batch], strict=True)
            ratio = statistics.median(theirs / own for theirs, own in pairs)
            middle = statistics.median(speeds)
            row += [f"{middle:,.0f} ({min(speeds):,.0f}-{max(speeds):,.0f})", f"{ratio:.2f}"]
        lines.append(row)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Measure, and print a table for each run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ssru", type=Path, help="run beside which Marian is timed")
    parser.add_argument("--marian", help="Python that has pymarian")
    parser.add_argument("--transformer", type=Path, help="run beside which CTranslate2 is timed")
    parser.add_argument("--ctranslate2", help="Python that has ctranslate2")
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--batches", default="32,1", help="sentences at once, comma-separated")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    batches = list(map(int, given.batches.split(",")))
    for run, other, make in (
        (given.ssru, given.marian, with_ssru),
        (given.transformer, given.ctranslate2, with_transformer),
    ):
        if run is not None:
            folder = given.folder / make.__name__
            text = read(run, folder)
            systems = make(run, folder, other or sys.executable)
            seconds = measure(systems, folder, batches, given.beam, given.rounds)
            sys.stdout.write(f"{run}\n\n{table(systems, text, folder, batches, seconds)}\n")


if __name__ == "__main__":
    main()
