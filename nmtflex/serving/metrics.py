"""Counts of the server, as Prometheus reads them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from nmtflex.serving.queueing import Dispatcher

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """All that ``/metrics`` shows. Neither texts nor clients are in it."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        here = self._registry
        self.in_flight = Gauge(
            "nmtflex_requests_in_flight", "Requests being answered", registry=here
        )
        self._requests = Counter(
            "nmtflex_requests", "Requests answered", ["path", "status"], registry=here
        )
        self._seconds = Histogram(
            "nmtflex_request_seconds", "Time to answer", ["path"], buckets=SECONDS, registry=here
        )

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def watch(self, dispatcher: Dispatcher) -> None:
        """Show what a dispatcher does."""
        shown = {
            ("nmtflex_sentences_waiting", "Sentences in the queue"): lambda: dispatcher.waiting,
            ("nmtflex_workers", "Worker processes that can translate"): lambda: dispatcher.alive,
            ("nmtflex_worker_restarts", "Workers started again"): lambda: dispatcher.restarts,
            ("nmtflex_batches", "Batches translated"): lambda: dispatcher.batches[0],
            ("nmtflex_sentences", "Sentences translated"): lambda: dispatcher.batches[1],
            ("nmtflex_characters", "Characters translated"): lambda: dispatcher.batches[2],
        }
        for (name, text), value in shown.items():
            Gauge(name, text, registry=self._registry).set_function(value)

    def text(self) -> bytes:
        """Return all of it in Prometheus' text format."""
        return generate_latest(self._registry)
