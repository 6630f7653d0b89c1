"""Fixtures that several folders of tests use."""

from __future__ import annotations

import gc
import io
import logging
import os
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from nmtflex.cli.app import main
from nmtflex.config import RUN_FORMAT, AttentionConfig, GlobalConfig, ModelConfig
from nmtflex.files import write_json

# Nothing depends on how fast the machine is, or on what else it does.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# On a fresh machine the first tests compile, and what they say on standard error is compared.
os.environ["NMTFLEX_COMPILE_NOTICE"] = "off"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave all but one in N cases of a ``sampled(N)`` test to ``-m slow``; slow ones stay slow."""
    tests = defaultdict[str, list[Any]](list)
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("slow"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        sample = _sample(cases, cases[0].get_closest_marker("sampled").args[0])
        for item in cases:
            if item not in sample:
                item.add_marker(pytest.mark.slow)


def _sample(cases: list[Any], n: int) -> list[Any]:
    """Return one in n cases, and at least one of each parameter's value that n or more have.

    Names alone choose them: a fixed sample, and another one for each test, so that the tests of one
    list of cases go through most of it together.
    """
    drawn = sorted(cases, key=lambda item: zlib.crc32(item.nodeid.encode()))
    sample = drawn[: -(-len(drawn) // n)]
    having = defaultdict[tuple[str, str], list[Any]](list)  # cases of each value
    for item in drawn:
        for name, value in item.callspec.params.items():
            having[name, repr(value)].append(item)
    for some in having.values():
        if len(some) >= n and not any(item in sample for item in some):
            sample.append(some[0])
    return sample


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over all that importing made, which takes 5 % of the time."""
    gc.freeze()


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Return what is logged from now on.

    pytest's own plugin for this is off, because it slows down every test by some milliseconds.
    """
    handler = logging.StreamHandler(io.StringIO())
    logging.getLogger().addHandler(handler)
    yield handler.stream
    logging.getLogger().removeHandler(handler)


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def command_line(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run ``nmtflex`` in this process: ``command_line("eval", run, "--json")``."""

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def make_tiny_run(tmp_path: Path) -> Callable[..., Path]:
    """Make run folders of random weights (letters to capitals), each with a test split."""
    import torch

    from nmtflex.model.build import build_model
    from nmtflex.runs.folder import RunFolder
    from nmtflex.runs.weights import model_tensors, save_tensors
    from nmtflex.text.pipeline import SidePipeline, TextPipeline
    from nmtflex.text.tokenizers import build_tokenizer
    from nmtflex.text.vocabulary import Vocabulary

    def side(language: str, letters: str) -> SidePipeline:
        vocabulary = Vocabulary(list(letters), [1] * len(letters))
        return SidePipeline(language, build_tokenizer({"name": "none"}), None, vocabulary)

    def make(name: str, attention: AttentionConfig, seed: int = 1, **options: object) -> Path:
        sizes = {"embedding_size": 6, "encoder_size": 4, "decoder_size": 8}
        config = ModelConfig.from_flat(attention=attention, **{**sizes, **options})
        folder = RunFolder(tmp_path / name)
        folder.checkpoints.mkdir(parents=True)
        folder.raw.mkdir()
        for text_side, text in (("source", "a b c\n\nc a b b\n"), ("target", "A B C\n\nC A B B\n")):
            (folder.raw / f"test.{text_side}.txt").write_text(text, encoding="utf-8")
        TextPipeline(side("aa", "abcdefgh"), side("bb", "ABCDEFGH")).save(folder.pipeline)
        torch.manual_seed(seed)
        model = build_model(config, 12, 12, 10)
        for parameter in model.parameters():
            parameter.data.normal_(std=0.7)
        save_tensors(folder.best, model_tensors(model), {"update": "1"})
        data = {
            "source_size": 12,
            "target_size": 12,
            "longest_source": 10,
            "mean_valid_source": 4.0,
        }
        write_json(folder.config, {"format": RUN_FORMAT, "model": config.to_dict(), "data": data})
        return folder.path

    return make


@pytest.fixture
def make_layered_run(make_tiny_run: Callable[..., Path]) -> Callable[..., Path]:
    """Make run folders whose decoder has two layers of two heads; see ``make_tiny_run``."""

    def make(name: str, attention: AttentionConfig, decoder: str = "ssru", **more: object) -> Path:
        heads = {"encoder": "transformer", "encoder_size": 8, "encoder_heads": 2}
        layers = {"encoder_layers": 1, "decoder_layers": 2, "decoder_heads": 2}
        sizes = {"embedding_size": 8, "decoder": decoder}
        return make_tiny_run(name, attention, **{**heads, **layers, **sizes, **more})

    return make


@pytest.fixture
def tiny_run(make_tiny_run: Callable[..., Path]) -> Path:
    """Make a run folder with global attention; see ``make_tiny_run``."""
    return make_tiny_run("tiny", GlobalConfig())
