"""Letters to capitals: what the tests of thresholds share."""

from __future__ import annotations

from pathlib import Path

from nmtflex.cli.app import main
from nmtflex.config import AttentionConfig

MODEL = ["--embedding-size", 6, "--encoder-size", 4, "--decoder-size", 8, "--lr", 0.02]


PLACE = ["--threads", 1, "--device", "cpu"]


KINDS = list(AttentionConfig.variants())


ODD_LINES = ["a b c", "", "   ", "zebra <unk> </s>", "a " * 300, "c\u3000b", "f e d", "quagga"]


SMALL_TAU = 0.05


def call(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments]) == 0


def source_lines(corpus: Path, split: str) -> list[str]:
    return (corpus / f"{split}.lo").read_text().splitlines()


def mean_length(lines: list[str]) -> float:
    lengths = [len(line.split()) for line in lines if line.split()]
    return sum(lengths) / len(lengths)
