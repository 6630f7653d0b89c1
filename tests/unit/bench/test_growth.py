"""How quantities grow with the length, and the orders of the lecture's table."""

from __future__ import annotations

import csv
import math

import pytest

from nmtflex.bench.decoding import Ratio, Times
from nmtflex.bench.growth import QUANTITIES, as_csv, growths
from nmtflex.bench.synthetic import Bytes, SyntheticRow
from nmtflex.config import BenchConfig


def row(backbone: str, mechanism: str, length: int, training: bool = True) -> SyntheticRow:
    """A model whose training takes t ms per token, and whose other quantities are known."""
    config = BenchConfig(synthetic=True, backbones=backbone, mechanisms=mechanism)
    once = Times([1.0])
    return SyntheticRow(
        model=config.models()[0],
        length=length,
        milliseconds=Times([2.0, 8.0, 3.0]),
        ratio=Ratio(1, 1, 1),
        encoder=once,
        whole=once,
        training=Times([float(length)]) if training else None,
        cps=None,
        bytes=Bytes(9, 100.0, 7.0 * length, float(length**2) if training else None),
    )


def orders(backbone: str, mechanism: str, tau: float = math.inf) -> list[str]:
    return [one.order for one in growths([row(backbone, mechanism, 5)], tau)]


@pytest.mark.parametrize(
    ("backbone", "mechanism", "wanted"),
    [
        # The lecture's three rows, operations divided by t.
        ("recurrent+luong", "none", ["k² d", "t k d", "k² d", "k d", "k"]),
        ("recurrent+bahdanau", "global", ["t k² d", "t² k d", "t k² d", "k d", "t k d"]),
        ("transformer+transformer", "global", ["t k d", "t k d", "t k d", "t k d", "t k d"]),
        # An SSRU's state is an RNN's; its attention is a transformer's.
        ("transformer+ssru", "global", ["t k d", "t k d", "t k d", "k d", "t k d"]),
        # A window or K slots in place of the whole source.
        ("recurrent+luong", "memory", ["k² d", "t k d", "k² d", "k d", "K k d"]),
        ("recurrent+luong", "abc", ["k² d", "t k d", "k² d", "k d", "K k d"]),
        ("transformer+ssru", "rfa", ["t k d", "t k d", "k² d", "k d", "F k d"]),
        ("recurrent+ssru", "local-p", ["k² d", "t k d", "k² d", "k d", "t k d"]),
        ("transformer+ssru", "memory", ["t k d", "t k d", "k² d", "k d", "K k d"]),
        ("recurrent+transformer", "memory", ["t k d", "t k d", "t k d", "t k d", "K k d"]),
    ],
)
def test_orders(backbone, mechanism, wanted):
    assert orders(backbone, mechanism) == wanted


def test_a_threshold_is_for_decoding():
    assert orders("recurrent+luong", "flexible") == orders("recurrent+luong", "global")
    training, _, decoding, *_ = orders("recurrent+luong", "flexible", tau=1.2)
    assert (training, decoding) == ("t k² d", "k² d")


def test_powers_of_the_two_longest():
    rows = [row("recurrent+luong", "global", length) for length in (3, 10, 1000)]
    found = {one.quantity.column: one for one in growths(rows, math.inf)}
    assert len(found) == len(QUANTITIES)
    powers = [one.power for one in found.values()]
    assert powers == pytest.approx([1, 2, 0, 0, 1])
    training = found["training_bytes_per_sentence"]
    assert (training.lengths, training.values) == ([3, 10, 1000], [9, 100, 1e6])
    decoding = found["decoding_milliseconds_per_target_token"]
    assert decoding.to_dict() == {
        "backbone": "recurrent+luong",
        "attention": "global",
        "quantity": "decoding_milliseconds_per_target_token",
        "order": "t k² d",
        "power": 0.0,
    }


def test_one_length_has_no_power():
    assert {one.power for one in growths([row("recurrent+luong", "global", 9)], 1)} == {None}


def test_without_training_there_is_decoding_alone():
    rows = [row("recurrent+luong", "global", length, training=False) for length in (3, 10)]
    assert [one.quantity for one in growths(rows, 1)] == list(QUANTITIES[2:])


def test_models_are_apart_in_their_order():
    names = [
        ("recurrent+luong", "global"),
        ("recurrent+luong", "memory"),
        ("recurrent+ssru", "none"),
    ]
    rows = [row(*name, length) for name in names for length in (3, 10)]
    found = growths(rows, 1)
    assert list(dict.fromkeys((one.backbone, one.attention) for one in found)) == names
    assert len(found) == 3 * len(QUANTITIES)


def test_csv():
    rows = [row("recurrent+luong", "global", length) for length in (3, 10)]
    (_, found) = csv.DictReader(as_csv(rows).splitlines())
    assert (found["backbone"], found["attention"], found["length"]) == (
        "recurrent+luong", "global", "10",
    )  # fmt: skip
    values = [float(found[quantity.column]) for quantity in QUANTITIES]
    assert values == [10, 100, 3, 100, 70]
