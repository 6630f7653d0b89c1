"""Pages written to a file and opened in a headless Chromium, which must not complain."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from made_report import PAIRS, Made, make_report, many_pairs

from nmtflex.report.page import render

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# What a browser would otherwise do unasked: look for updates, open connections, draw on a GPU.
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start a browser for the tests of a module; its event loop must not run in those of others."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on the PATH")
    with driver.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def write_page(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Made], Path]:
    """Write a page under a name."""
    pytest.importorskip("plotly", reason="plotly is not installed")

    def write(name: str, made: Made) -> Path:
        path = tmp_path_factory.mktemp("page") / f"{name}.html"
        path.write_text("".join(render(*made)), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def four_runs(write_page: Callable[[str, Made], Path]) -> Path:
    """Write the page of every mechanism and of sentences that are hard to show."""
    return write_page("four", make_report())


@pytest.fixture(scope="session")
def thousand(write_page: Callable[[str, Made], Path]) -> Path:
    """Write a page of a thousand sentences."""
    return write_page("thousand", make_report([*PAIRS, *many_pairs(1000 - len(PAIRS))]))


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open pages; whatever went wrong in them, or left them, fails the test at its end."""
    contexts: list[Any] = []
    complaints: list[str] = []
    requests: list[str] = []

    def open_one(
        path: Path, address: str = "", width: int = 1280, complains: bool = False, **options: Any
    ) -> Any:
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, **options)
        contexts.append(context)
        context.on("request", lambda request: requests.append(request.url))
        page = context.new_page()
        page.set_default_timeout(10_000)
        if not complains:
            page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.goto(f"{path.as_uri()}{address}")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
