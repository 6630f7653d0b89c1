"""A translator in several threads, in asyncio, in a with block, and after it."""

from __future__ import annotations

import asyncio
import gc
import pickle
import random
import threading
import time
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import nmtflex
from nmtflex.config import FlexibleConfig
from nmtflex.decoding import turns
from nmtflex.decoding.search import beam_search
from nmtflex.decoding.turns import Turns
from nmtflex.errors import OptionError

LINES = ["a b c", "", "c a b b", "h", "g f e d c b a"]
PLAIN = {"device": "cpu", "threads": 1, "dtype": "float64"}
MANY = [
    {"beam": 1},
    {"beam": 4, "tau": 0.3},
    {"max_length": 3, "n_best": 2},
    {"tau": "inf", "length_penalty": 0.0},
    {"batch_sentences": 1, "beam": 2},
    {"align": True, "n_best": 3},
    {"trace": True, "tau": 1.0},
    {"replace_unk": True, "unk": "UNK"},
]


@pytest.fixture
def run(make_tiny_run):
    return make_tiny_run("flexible", FlexibleConfig())


@pytest.fixture
def translator(run):
    return nmtflex.load(run, **PLAIN)


def plain(found):
    """Return results as values that can be compared: numpy arrays cannot."""
    return [[one.to_dict() for one in best] for best in found]


def test_eight_threads_with_other_options_get_what_they_get_alone(translator):
    expected = [plain(translator.translate_batch(LINES, **options)) for options in MANY]
    start = threading.Barrier(len(MANY))

    def work(which):
        start.wait()
        order = random.Random(which).choices(range(len(MANY)), k=3)
        return [
            plain(translator.translate_batch(LINES, **MANY[at])) == expected[at] for at in order
        ]

    with ThreadPoolExecutor(len(MANY)) as pool:
        assert all(all(found) for found in pool.map(work, range(len(MANY))))


def test_translators_with_other_numbers_of_threads_keep_theirs(run, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "nmtflex.decoding.translator.beam_search",
        lambda *given: seen.append(torch.get_num_threads()) or beam_search(*given),
    )
    one = nmtflex.load(run, **PLAIN)
    two = nmtflex.load(run, **{**PLAIN, "threads": 2})
    for translator in (one, two, one):
        translator.n_best(LINES, 1)
    thread = threading.Thread(target=lambda: [one.n_best(LINES, 1), two.n_best(LINES, 1)])
    thread.start()
    thread.join()
    assert seen == [1, 2, 1, 1, 2]


def test_one_thread_computes_for_all_but_the_main_one(translator, monkeypatch):
    """Each thread that computes would keep memory of its own."""
    seen = []
    monkeypatch.setattr(
        "nmtflex.decoding.translator.beam_search",
        lambda *given: seen.append(threading.get_ident()) or beam_search(*given),
    )
    translator.n_best(LINES, 1)
    for _ in range(3):
        thread = threading.Thread(target=translator.n_best, args=(LINES, 1))
        thread.start()
        thread.join()
    assert seen[0] == threading.get_ident()
    assert len(seen) == 4
    assert len(set(seen[1:])) == 1
    assert seen[1] != seen[0]


def test_turns_are_taken_in_the_order_of_asking():
    lock, order = Turns(), []

    def work(number):
        with lock.turn():
            order.append(number)

    with lock.turn():
        threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
        for number, thread in enumerate(threads):
            thread.start()
            while len(lock._waiting) <= number:
                time.sleep(0.001)
        assert order == []
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]
    with lock.turn():  # it is free again
        pass


@pytest.mark.slow
def test_a_short_call_need_not_wait_for_the_end_of_a_long_one(translator):
    ended = []
    begun = threading.Event()

    def long():
        encoded = [translator.pipeline.source.encode("a b c d e f g h")] * 30
        translator.decoding(translator._models).translate_ids(encoded, done=lambda _: begun.set())
        ended.append("long")

    batch = translator.batch
    translator.batch = type(batch)(batch_sentences=1)
    thread = threading.Thread(target=long)
    thread.start()
    begun.wait()
    translator.n_best(["a"], 1)
    ended.append("short")
    thread.join()
    assert ended == ["short", "long"]


def test_an_error_gives_the_turn_back(translator, monkeypatch):
    def fail(*_):
        raise KeyError("search")

    with monkeypatch.context() as patched:
        patched.setattr("nmtflex.decoding.translator.beam_search", fail)
        with pytest.raises(KeyError, match="search"):
            translator.n_best(LINES, 1)
    assert not turns._TURNS._taken
    assert len(translator.n_best(LINES, 1)) == len(LINES)


def test_asyncio_gets_the_same_and_its_loop_goes_on(translator):
    ticks = []

    async def tick():
        while True:
            ticks.append(time.perf_counter())
            await asyncio.sleep(0.001)

    async def main():
        ticking = asyncio.create_task(tick())
        texts, *found = await asyncio.gather(
            translator.translate_async(LINES * 20, beam=2),
            *(translator.translate_batch_async(LINES, **options) for options in MANY),
        )
        ticking.cancel()
        return texts, found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        texts, found = asyncio.run(main())
        assert texts == translator.translate(LINES * 20, beam=2)
    expected = [plain(translator.translate_batch(LINES, **options)) for options in MANY]
    assert [plain(one) for one in found] == expected
    assert len(ticks) > 5


def test_a_task_that_is_cancelled_before_its_turn_costs_nothing(translator):
    read = []

    def lines(number):
        read.append(number)
        yield "a b c"

    async def main():
        with turns._TURNS.turn():  # the first call waits, and the others behind it
            tasks = [
                asyncio.create_task(translator.translate_batch_async(lines(number)))
                for number in range(4)
            ]
            while not read:
                await asyncio.sleep(0.001)
            tasks[1].cancel()
            tasks[2].cancel()
            await asyncio.sleep(0)
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, second, third, last = asyncio.run(main())
    assert isinstance(second, asyncio.CancelledError)
    assert isinstance(third, asyncio.CancelledError)
    assert first == last == translator.n_best(["a b c"], 1)
    assert read == [0, 3]


def test_errors_reach_the_task(translator):
    with pytest.raises(OptionError, match=r"translate_async: .*'beem'.*beam"):
        asyncio.run(translator.translate_async(LINES, beem=3))
    with pytest.raises(TypeError, match=r"line 0 .*int"):
        asyncio.run(translator.translate_batch_async([7]))


CALLS = [
    lambda t: t.translate(LINES),
    lambda t: t.translate(LINES, beam=2),
    lambda t: t.translate_batch(LINES),
    lambda t: t.n_best(LINES, 1),
    lambda t: t.stream(LINES),
    lambda t: t.translate_ids([[4, 5]]),
    lambda t: t.align([("a b", "A B")]),
    lambda t: t.traces([], []),
    lambda t: t.warm_up(LINES),
    lambda t: asyncio.run(t.translate_async(LINES)),
    lambda t: asyncio.run(t.translate_batch_async(LINES)),
]


def test_a_with_block_closes_and_frees_the_model(run):
    with nmtflex.load(run, **PLAIN) as translator:
        translator.translate_batch(LINES, tau=0.5, align=True)
        asyncio.run(translator.translate_batch_async(LINES))
        weights = weakref.ref(translator._runs[0].model.target_embedding.weight)
        assert weights() is not None
    gc.collect()
    assert weights() is None
    translator.close()  # again
    messages = set()
    for call in CALLS:
        with pytest.raises(RuntimeError) as caught:
            call(translator)
        messages.add(str(caught.value))
    [message] = messages
    assert "closed" in message
    assert "nmtflex.load" in message


def test_a_stream_ends_with_its_translator(translator):
    stream = translator.stream(["a", "b"], buffer=1)
    next(stream)
    translator.close()
    with pytest.raises(RuntimeError, match="closed"):
        next(stream)


def test_a_call_that_runs_ends_before_the_model_is_freed(translator):
    expected = translator.n_best(LINES, 2)
    with ThreadPoolExecutor(1) as pool:
        with turns._TURNS.turn():
            future = pool.submit(translator.n_best, LINES, 2)
            while not turns._TURNS._waiting:
                time.sleep(0.001)
            translator.close()
            assert translator._models
        assert future.result() == expected
    assert translator._models == []


def test_a_copy_of_a_closed_translator_opens_the_run_again(translator):
    expected = translator.n_best(LINES, 2)
    translator.close()
    assert pickle.loads(pickle.dumps(translator)).n_best(LINES, 2) == expected
