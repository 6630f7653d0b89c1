"""Trained runs to finetune."""

from __future__ import annotations

import pytest
from base_runs import LOOP, Bases


@pytest.fixture(scope="session")
def bases(tmp_path_factory) -> Bases:
    return Bases(tmp_path_factory.mktemp("finetune"))


@pytest.fixture
def finetune(command_line):
    def run(base, new, *options):
        return command_line("finetune", base, "--run", new, *LOOP, *options)

    return run
