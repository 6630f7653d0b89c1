"""One queue for all requests: who is next, with whom, and what happens when a worker ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from workers_played import PlayedPool, PlayedWorker

from nmtflex.serving import queueing
from nmtflex.serving.queueing import WINDOW, Busy, Dispatcher, Faulty, Lost, Work

PLAIN = Work(0, (("n_best", 1),))
MORE = Work(0, (("n_best", 5),))
OTHER = Work(1, (("n_best", 1),))


@contextlib.asynccontextmanager
async def serving(
    *workers: PlayedWorker, limit: int = 1000, latency: float = 60.0, timeout: float = 60.0
) -> AsyncIterator[Dispatcher]:
    dispatcher = Dispatcher(PlayedPool(*workers), limit, latency, timeout)
    dispatcher.start()
    try:
        yield dispatcher
    finally:
        await dispatcher.stop()


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run a test that must not take for ever."""
    asyncio.run(asyncio.wait_for(test(), 60))


async def entered(dispatcher: Dispatcher, work: Work, *texts: str) -> asyncio.Task[list[object]]:
    """Let a request enter, and go on when its sentences wait or are with a worker."""
    task = asyncio.create_task(dispatcher.translate(work, texts))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


def test_answers_are_in_the_order_of_the_texts():
    async def test():
        async with serving(PlayedWorker(), PlayedWorker()) as dispatcher:
            texts = [f"text {number}" for number in range(3 * WINDOW + 1)]
            assert await dispatcher.translate(PLAIN, texts) == [text.upper() for text in texts]
            assert await dispatcher.translate(PLAIN, []) == []

    run(test)


def test_what_waits_together_is_translated_together_the_oldest_first():
    async def test():
        worker = PlayedWorker(holds=True)
        async with serving(worker) as dispatcher:
            requests = [await entered(dispatcher, PLAIN, "first")]
            requests += [await entered(dispatcher, PLAIN, text) for text in "abc"]
            assert dispatcher.waiting == 3
            worker.free.set()
            assert await asyncio.gather(*requests) == [["FIRST"], ["A"], ["B"], ["C"]]
            assert worker.batches == [["first"], ["a", "b", "c"]]

    run(test)


def test_a_batch_has_one_model_and_one_set_of_options():
    async def test():
        worker = PlayedWorker(holds=True)
        async with serving(worker) as dispatcher:
            asked = [(PLAIN, "0"), (MORE, "a"), (PLAIN, "b"), (OTHER, "c"), (MORE, "d")]
            requests = [await entered(dispatcher, work, text) for work, text in asked]
            worker.free.set()
            await asyncio.gather(*requests)
            assert worker.batches == [["0"], ["a", "d"], ["b"], ["c"]]
            assert worker.options == [tuple(work) for work in (PLAIN, MORE, PLAIN, OTHER)]

    run(test)


def test_a_batch_takes_no_longer_than_it_should(monkeypatch):
    """At a pace of 0.1 s a character, one second is ten characters."""

    async def test():
        worker = PlayedWorker(holds=True)
        async with serving(worker, latency=1.0) as dispatcher:
            requests = [await entered(dispatcher, PLAIN, "warm")]
            now[0] += 0.4  # of work, for four characters
            requests += [await entered(dispatcher, PLAIN, 4 * letter) for letter in "abcd"]
            requests += [
                await entered(dispatcher, PLAIN, 30 * "x"),
                await entered(dispatcher, PLAIN, "y"),
            ]
            worker.free.set()
            await asyncio.gather(*requests)
            # No time passes in the second batch, so that the pace after it is a tenth less.
            assert worker.batches[:2] == [["warm"], ["aaaa", "bbbb"]]
            assert worker.batches[2] == ["cccc", "dddd"]
            assert worker.batches[3] == [30 * "x"]  # too long for the time, but it must come

    now = [0.0]
    monkeypatch.setattr(queueing.time, "monotonic", lambda: now[0])
    run(test)


def test_free_workers_share_what_waits():
    async def test():
        workers = [PlayedWorker(holds=True) for _ in range(3)]
        async with serving(*workers) as dispatcher:
            large = await entered(dispatcher, PLAIN, *"abcdefghij")
            assert [worker.batches for worker in workers] == [[[*"abcd"]], [[*"efg"]], [[*"hij"]]]
            for worker in workers:
                worker.free.set()
            assert await large == [*"ABCDEFGHIJ"]

    run(test)


def test_clients_that_ask_again_at_once_come_together(monkeypatch):
    monkeypatch.setattr(queueing, "MOMENT", 0.1)  # a busy machine may be slow
    monkeypatch.setattr(queueing, "PATIENCE", 1e9)

    async def test():
        worker = PlayedWorker(holds=True)

        async def client(name):
            for number in range(3):
                await dispatcher.translate(PLAIN, [f"{name}{number}"])
                if number == 0:
                    await asyncio.sleep(0.01 * ord(name) - 0.97)  # one after the other

        async with serving(worker) as dispatcher:
            first = await entered(dispatcher, PLAIN, "first")
            clients = [asyncio.create_task(client(name)) for name in "abc"]
            while dispatcher.waiting < 3:
                await asyncio.sleep(0)
            worker.free.set()
            await asyncio.gather(first, *clients)
            batches = [sorted(batch) for batch in worker.batches]
            assert batches == [["first"], *([f"{name}{n}" for name in "abc"] for n in range(3))]

    run(test)


def test_nobody_waits_after_a_sentence_alone_or_beside_a_full_batch(monkeypatch):
    monkeypatch.setattr(queueing, "MOMENT", 100.0)
    monkeypatch.setattr(queueing, "PATIENCE", 1e9)

    async def test():
        async with serving(PlayedWorker()) as dispatcher:
            for text in "abc":
                await dispatcher.translate(PLAIN, [text])
            texts = [str(number) for number in range(3 * WINDOW)]
            requests = [await entered(dispatcher, PLAIN, *texts) for _ in range(2)]
            done, _ = await asyncio.wait(requests, return_when=asyncio.FIRST_COMPLETED)
            assert done

    run(test)


def test_a_worker_waits_for_no_more_than_its_part_of_all_sentences(monkeypatch):
    """Of six sentences two are answered, two are in work, and two, a third, wait."""
    monkeypatch.setattr(queueing, "MOMENT", 100.0)
    monkeypatch.setattr(queueing, "PATIENCE", 1e9)

    async def test():
        workers = [PlayedWorker(holds=True) for _ in range(2)]
        async with serving(*workers) as dispatcher:
            early = await entered(dispatcher, PLAIN, *"abcd")
            late = await entered(dispatcher, PLAIN, *"ef")
            workers[0].free.set()
            assert await late == [*"EF"]
            assert [worker.batches for worker in workers] == [[[*"ab"], [*"ef"]], [[*"cd"]]]
            workers[1].free.set()
            await early

    run(test)


def test_others_get_their_turn_between_the_sentences_of_a_large_request():
    async def test():
        worker = PlayedWorker(holds=True)
        async with serving(worker) as dispatcher:
            large = await entered(dispatcher, PLAIN, *(f"large {n}" for n in range(10 * WINDOW)))
            assert dispatcher.waiting <= WINDOW
            small = await entered(dispatcher, PLAIN, "small")
            worker.free.set()
            await small
            assert not large.done()
            assert sum("small" in batch for batch in worker.batches[:3]) == 1
            assert len(await large) == 10 * WINDOW

    run(test)


def test_what_is_cancelled_while_it_waits_is_not_translated():
    async def test():
        worker = PlayedWorker(holds=True)
        async with serving(worker) as dispatcher:
            first = await entered(dispatcher, PLAIN, "first")
            leaving = await entered(dispatcher, PLAIN, "leaving", "with it")
            last = await entered(dispatcher, PLAIN, "last")
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            worker.free.set()
            assert await asyncio.gather(first, last) == [["FIRST"], ["LAST"]]
            assert worker.batches == [["first"], ["last"]]

    run(test)


def test_what_is_cancelled_in_a_batch_harms_no_other_in_it():
    async def test():
        worker = PlayedWorker(holds=True)
        async with serving(worker) as dispatcher:
            first = await entered(dispatcher, PLAIN, "first")
            first.cancel()
            second = await entered(dispatcher, PLAIN, "second")
            worker.free.set()
            assert await second == ["SECOND"]

    run(test)


def test_too_many_waiting_sentences_are_refused_and_cancelled_ones_do_not_count():
    async def test():
        worker = PlayedWorker(holds=True)
        async with serving(worker, limit=2) as dispatcher:
            requests = [await entered(dispatcher, PLAIN, text) for text in "abc"]
            with pytest.raises(Busy, match="2 sentences"):
                await dispatcher.translate(PLAIN, ["d"])
            requests.pop().cancel()
            await asyncio.sleep(0)
            requests.append(await entered(dispatcher, PLAIN, "e"))
            worker.free.set()
            assert await asyncio.gather(*requests) == [["A"], ["B"], ["E"]]

    run(test)


def test_the_sentences_of_a_lost_batch_are_tried_again_one_by_one():
    async def test():
        worker = PlayedWorker(holds=True)
        async with serving(worker) as dispatcher:
            first = await entered(dispatcher, PLAIN, "0")
            others = [await entered(dispatcher, PLAIN, text) for text in ("a", "b", "deadly", "c")]
            worker.lethal = {"deadly"}
            worker.free.set()
            assert await first == ["0"]
            found = await asyncio.gather(*others, return_exceptions=True)
            assert [found[0], found[1], found[3]] == [["A"], ["B"], ["C"]]
            assert isinstance(found[2], Lost)
            assert worker.batches == [
                ["0"],
                ["a", "b", "deadly", "c"],
                ["a"],
                ["b"],
                ["deadly"],
                ["c"],
            ]
            assert worker.starts == dispatcher.restarts == 2

    run(test)


def test_lost_sentences_that_nobody_wants_any_more_are_not_tried_again():
    async def test():
        worker = PlayedWorker(holds=True)
        async with serving(worker) as dispatcher:
            gone = await entered(dispatcher, PLAIN, "gone")
            gone.cancel()
            await asyncio.sleep(0)
            worker.die()
            worker.free.set()
            assert await dispatcher.translate(PLAIN, ["next"]) == ["NEXT"]
            assert worker.batches == [["gone"], ["next"]]

    run(test)


def test_a_worker_that_ends_while_nothing_waits_is_started_again():
    async def test():
        worker = PlayedWorker()
        async with serving(worker) as dispatcher:
            await asyncio.sleep(0)
            worker.die()
            while not worker.alive:
                await asyncio.sleep(0)
            assert (worker.starts, dispatcher.alive) == (1, 1)

    run(test)


def test_a_start_that_fails_is_tried_again(monkeypatch):
    monkeypatch.setattr(queueing, "PAUSE", 0.0)

    class Reluctant(PlayedWorker):
        async def start(self) -> None:
            await super().start()
            if self.starts < 3:
                self.alive = False
                raise OSError("no memory")

    async def test():
        worker = Reluctant()
        worker.die()
        async with serving(worker) as dispatcher:
            assert await dispatcher.translate(PLAIN, ["text"]) == ["TEXT"]
            assert worker.starts == 3

    run(test)


def test_a_worker_that_hangs_is_ended(monkeypatch):
    """The first sentence hangs with every worker; the one after it is translated."""
    monkeypatch.setattr(queueing, "HUNG", 0.0)

    class Hanging(PlayedWorker):
        async def ask(self, message):
            if "hangs" in message["texts"]:
                self.batches.append(message["texts"])
                await asyncio.sleep(60)
            return await super().ask(message)

    async def test():
        worker = Hanging()
        async with serving(worker, timeout=0.05) as dispatcher:
            with pytest.raises(Lost):
                await dispatcher.translate(PLAIN, ["hangs"])
            assert await dispatcher.translate(PLAIN, ["text"]) == ["TEXT"]
            assert worker.batches == [["hangs"], ["hangs"], ["text"]]

    run(test)


def test_an_error_of_the_translator_fails_the_batch_and_nothing_else():
    async def test():
        worker = PlayedWorker()
        worker.faulty = {"bad"}
        async with serving(worker) as dispatcher:
            with pytest.raises(Faulty, match="too long"):
                await dispatcher.translate(PLAIN, ["bad"])
            assert await dispatcher.translate(PLAIN, ["good"]) == ["GOOD"]
            assert worker.starts == 0

    run(test)


def test_at_the_end_what_waits_is_cancelled_and_the_workers_end():
    async def test():
        pool = PlayedPool(PlayedWorker(holds=True))
        dispatcher = Dispatcher(pool, 10, 1.0, 60.0)
        dispatcher.start()
        requests = [await entered(dispatcher, PLAIN, text) for text in "ab"]
        await dispatcher.stop()
        await asyncio.gather(*requests, return_exceptions=True)
        assert [request.cancelled() for request in requests] == [True, True]
        assert pool.stopped

    run(test)


def test_it_counts_what_it_translates():
    async def test():
        async with serving(PlayedWorker()) as dispatcher:
            await dispatcher.translate(PLAIN, ["ab", "cde"])
            await dispatcher.translate(PLAIN, ["f"])
            assert dispatcher.batches == [2, 3, 6]

    run(test)
