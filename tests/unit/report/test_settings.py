"""The settings of runs as one table."""

from __future__ import annotations

from nmtflex.report.settings import settings


def test_a_row_an_option_with_a_value_a_run():
    first = {
        "format": 1,
        "model": {"attention": {"kind": "global", "score": "dot"}, "dropout": 0.2},
        "train": {"lr": 0.001, "updates": None},
    }
    second = {
        "format": 1,
        "model": {"attention": {"kind": "memory", "K": 64}, "dropout": 0.2},
        "train": {"lr": 0.001, "freeze": ["encoder*"], "compile": True},
        "data": {"source_size": 12},
    }
    assert settings([first, second]) == [
        {"group": "software", "name": "format", "values": ["1", "1"]},
        {"group": "model", "name": "attention.kind", "values": ["global", "memory"]},
        {"group": "model", "name": "attention.score", "values": ["dot", ""]},
        {"group": "model", "name": "dropout", "values": ["0.2", "0.2"]},
        {"group": "model", "name": "attention.K", "values": ["", "64"]},
        {"group": "train", "name": "lr", "values": ["0.001", "0.001"]},
        {"group": "train", "name": "updates", "values": ["", ""]},
        {"group": "train", "name": "freeze", "values": ["", "encoder*"]},
        {"group": "train", "name": "compile", "values": ["", "yes"]},
        {"group": "data", "name": "source_size", "values": ["", "12"]},
    ]


def test_no_is_told_from_nothing():
    assert settings([{"model": {"tied": False, "path": None}}]) == [
        {"group": "model", "name": "tied", "values": ["no"]},
        {"group": "model", "name": "path", "values": [""]},
    ]
