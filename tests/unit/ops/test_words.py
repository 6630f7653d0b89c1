"""Cross-entropy and the most probable words, against their definitions."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from nmtflex.ops.tensors import padded
from nmtflex.ops.vocabulary import ALIGNED, best_words, cross_entropy_rows, room_for_logits
from nmtflex.ops.vocabulary.reference import best_of

BOTH = pytest.mark.parametrize("kernels", ["auto", "reference"])
EXACT = {torch.float32: 1e-5, torch.float64: 1e-12}


@pytest.fixture(autouse=True)
def chosen(request, monkeypatch):
    if "kernels" in request.fixturenames:
        monkeypatch.setenv("NMTFLEX_KERNELS", request.getfixturevalue("kernels"))


@BOTH
@pytest.mark.parametrize("dtype", EXACT)
@pytest.mark.parametrize("words", [5, 64, 65, 1000])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_and_its_gradient_equal_torch(kernels, dtype, words, smoothing):
    torch.manual_seed(words)
    plain = (3 * torch.randn(7, words, dtype=dtype)).requires_grad_()
    bias, references = torch.randn(words, dtype=dtype), torch.randint(words, (7,))
    expected = functional.cross_entropy(
        plain + bias, references, reduction="sum", label_smoothing=smoothing
    )
    expected.backward()
    logits = room_for_logits(plain, 7, words).copy_(plain.detach())
    smoothed, unsmoothed, of_bias = cross_entropy_rows(logits, bias, references, smoothing, True)
    close = {"rtol": 10 * EXACT[dtype], "atol": EXACT[dtype]}
    torch.testing.assert_close(smoothed, expected.detach(), **close)
    wanted = functional.cross_entropy(plain.detach() + bias, references, reduction="sum")
    torch.testing.assert_close(unsmoothed, wanted, **close)
    torch.testing.assert_close(logits, plain.grad, **close)
    torch.testing.assert_close(of_bias, plain.grad.sum(0), **close)


@BOTH
@pytest.mark.parametrize("threads", [1, 2])
def test_the_cross_entropy_of_bfloat16_logits_is_computed_in_float32(
    kernels, threads, with_threads
):
    with_threads(threads)
    torch.manual_seed(4)
    logits = room_for_logits(torch.empty(0, dtype=torch.bfloat16), 9, 77)
    logits.copy_(3 * torch.randn(9, 77))
    bias, references, same = torch.randn(77), torch.randint(77, (9,)), logits.float()
    wanted = cross_entropy_rows(same, bias, references, 0.1, True)
    found = cross_entropy_rows(logits, bias, references, 0.1, True)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)
    assert torch.equal(logits, same.bfloat16())


@pytest.mark.parametrize(("words", "rows"), [(1, 16), (16, 16), (17, 32), (4906, 4912)])
def test_rows_below_a_weight(words, rows):
    weight = torch.randn(words, 3)
    longer = padded(weight, ALIGNED)
    assert longer.shape == (rows, 3)
    assert torch.equal(longer[:words], weight)
    assert not longer[words:].any()


@BOTH
def test_a_single_row_of_padded_bfloat16(kernels):
    """Converted, it keeps the stride of the padding, and no memory behind it."""
    torch.manual_seed(3)
    room = room_for_logits(torch.empty(0, dtype=torch.bfloat16), 1, 21)
    logits = room.copy_(torch.randn(1, 21)).float()
    bias, reference = torch.randn(21), torch.tensor([20])
    expected = functional.cross_entropy(logits + bias, reference)
    values, words = best_words(logits.clone(), bias, 21)
    assert words.tolist() == (logits + bias).sort(descending=True).indices.tolist()
    smoothed, *_ = cross_entropy_rows(logits, bias, reference, 0.0, gradient=False)
    torch.testing.assert_close(smoothed, expected)
    torch.testing.assert_close(values.exp().sum(), torch.tensor(1.0))


@BOTH
def test_a_word_that_is_never_found_hides_none(kernels):
    """Neither in its own part of the vocabulary nor in another, however probable it is."""
    logits = torch.zeros(1, 300, dtype=torch.float64)
    logits[0, [0, 1, 70, 200]] = torch.tensor([9.0, 3.0, 5.0, 4.0], dtype=torch.float64)
    bias = torch.zeros(300, dtype=torch.float64)
    for count, expected in ((1, [70]), (2, [70, 200]), (3, [70, 200, 1])):
        assert best_words(logits.clone(), bias, count, [0])[1].tolist() == [expected]


@BOTH
@pytest.mark.parametrize("words", [1, 15, 17, 63, 65, 81, 130])
def test_each_word_can_be_the_best(kernels, words):
    """The last one of a block, of a vector and past the last whole vector too."""
    logits = torch.eye(words, dtype=torch.float64)
    found = best_words(logits, torch.zeros(words, dtype=torch.float64), 1)[1]
    assert found.squeeze(1).tolist() == list(range(words))


@BOTH
@pytest.mark.parametrize("count", [1, 3, 40])
def test_of_equal_words_the_first_are_found(kernels, count):
    logits = torch.zeros(2, 200, dtype=torch.float64)
    logits[1, 150] = 1.0
    found = best_words(logits, torch.zeros(200, dtype=torch.float64), count)[1]
    assert found[0].tolist() == list(range(count))
    assert found[1].tolist() == [150, *range(count - 1)]


def by_definition(logits, count, never, only):
    """Sort all words of a row, in float64."""
    total = math.log(sum(math.exp(value) for value in logits))
    allowed = [
        (-(value - total), word)
        for word, value in enumerate(logits)
        if (word == only if only >= 0 else word not in never) and value > -math.inf
    ]
    return [(-value, word) for value, word in sorted(allowed)[:count]]


@BOTH
@settings(max_examples=60)
@given(data=st.data())
def test_the_best_words_are_those_of_a_sort(kernels, data):
    words, rows = data.draw(st.sampled_from([3, 16, 63, 64, 65, 200])), data.draw(st.integers(1, 4))
    count = data.draw(st.integers(1, 25))
    never = data.draw(st.lists(st.integers(0, words - 1), max_size=2, unique=True))
    # Few different numbers, so that many are equal; their sums with the bias are exact.
    number = st.sampled_from([-math.inf, -2.0, -0.5, 0.0, 1.5, 3.0])
    row = st.lists(number, min_size=words, max_size=words).filter(lambda r: max(r) > -math.inf)
    logits = torch.tensor([data.draw(row) for _ in range(rows)], dtype=torch.float64)
    bias = torch.tensor(data.draw(st.sampled_from([0.0, 0.25]))).double().repeat(words)
    only = [data.draw(st.integers(-1, words - 1)) for _ in range(rows)]
    values, found = best_words(
        room_for_logits(logits, rows, words).copy_(logits), bias, count, never, torch.tensor(only)
    )
    assert values.shape == found.shape == (rows, min(count, words))
    for n in range(rows):
        expected = by_definition((logits[n] + bias).tolist(), count, never, only[n])
        real = [pair for pair in zip(values[n].tolist(), found[n].tolist(), strict=True)
                if pair[0] > -math.inf]  # fmt: skip
        assert [word for _, word in real] == [word for _, word in expected]
        assert [value for value, _ in real] == pytest.approx([value for value, _ in expected])


@BOTH
@pytest.mark.parametrize("words", [4906, 50_000])
def test_large_vocabularies(kernels, words):
    torch.manual_seed(3)
    logits, bias = torch.randn(9, words), torch.randn(words)
    values, found = best_words(logits.clone(), bias, 20, never=(0, 2))
    log_probs = torch.log_softmax((logits + bias).double(), dim=1)
    log_probs[:, [0, 2]] = -torch.inf
    expected = log_probs.topk(20)
    torch.testing.assert_close(values.double(), expected.values, rtol=1e-6, atol=1e-5)
    assert torch.equal(found, expected.indices)


@BOTH
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_broken_logits_show_in_the_best_value(kernels, value):
    logits = torch.zeros(2, 70)
    logits[1, 33] = value
    values, _ = best_words(logits, torch.zeros(70), 3)
    assert values[0].tolist() == pytest.approx([-math.log(70)] * 3)
    assert not (values[1] < math.inf).any()


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_do_not_depend_on_those_beside_them(threads):
    torch.manual_seed(5)
    logits, bias = torch.randn(64, 3000), torch.randn(3000)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        together = best_words(logits.clone(), bias, 5)
        alone = [best_words(row.clone()[None], bias, 5) for row in logits]
    finally:
        torch.set_num_threads(before)
    for part, parts in zip(together, zip(*alone, strict=True), strict=True):
        assert torch.equal(part, torch.cat(parts))


def test_log_probabilities_are_not_normalised_again():
    values, words = best_of(torch.tensor([[-1.0, -0.5, -3.0]]), 2, never=(1,))
    assert values.tolist() == [[-1.0, -3.0]]
    assert words.tolist() == [[0, 2]]
