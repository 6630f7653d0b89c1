"""A prepared corpus, and trainings on it."""

from __future__ import annotations

import pytest
from small_trainings import SMALL, make_prepared


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    base = tmp_path_factory.mktemp("letters")
    return make_prepared(base, seed=1)


@pytest.fixture
def train(command_line, prepared):
    def run(folder, *options, data=prepared):
        return command_line("train", data, "--run", folder, *SMALL, *options)

    return run
