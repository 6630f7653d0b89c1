"""The page of ``nmtflex serve``, used in a headless Chromium against a server of two tiny runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.integration

GOLDEN = Path(__file__).parents[1] / "golden"
RUNS = ("bahdanau-global", "luong-flexible")  # en-ja, ja-en
LIMIT = 300  # characters
JAPANESE = "私は先生が公園で走ったかどうか知りません。"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve two runs; return the server's address."""
    runs = [str(GOLDEN / name) for name in RUNS]
    options = ["--port", "0", "--workers", "1", "--threads", "1", "--char-limit", str(LIMIT)]
    process = subprocess.Popen(
        [sys.executable, "-m", "nmtflex", "serve", *runs, *options],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    with process:
        said = iter(process.stderr)
        found = next(filter(None, (re.search(r"http://127\.0\.0\.1:\d+", line) for line in said)))
        yield found[0]
        process.terminate()


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Open the page; whatever went wrong in it, or left the server, fails the test at its end."""
    contexts: list[Any] = []
    complaints: list[str] = []
    requests: list[str] = []

    def open_page(
        width: int = 1280,
        complains: bool = False,
        routes: dict[str, Callable[[Any], None]] | None = None,
        **options: Any,
    ) -> Any:
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, locale="en-GB", **options)
        contexts.append(context)
        context.on("request", lambda request: requests.append(request.url))
        for pattern, answer in (routes or {}).items():
            context.route(pattern, answer)
        page = context.new_page()
        page.set_default_timeout(20_000)
        if not complains:
            page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.goto(f"{address}/")
        page.wait_for_selector("#target option", state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith((f"{address}/", "data:"))] == []


def explained(address: str, **fields: Any) -> dict[str, Any]:
    answer = httpx.post(f"{address}/explain", json=fields, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def type_in(page: Any, text: str, source: str = "ja", target: str = "en") -> None:
    """Choose languages and type a text; return when its translation is there."""
    page.select_option("#source", source)
    page.select_option("#target", target)
    page.fill("#text", text)
    page.locator("#status", has_text="Translated").wait_for()


def shades(page: Any) -> list[dict[str, Any]]:
    return page.locator(".shade").evaluate_all(
        """(found) => found.map((one) => ({
            text: one.textContent,
            share: Number(one.style.getPropertyValue("--share")),
            looked: one.classList.contains("looked"),
            skipped: one.classList.contains("skipped"),
        }))"""
    )


def refuse(status: int, error: str) -> Callable[[Any], None]:
    return lambda route: route.fulfill(status=status, json={"error": error})


def test_translates_while_typing(visit, address):
    page = visit()
    type_in(page, JAPANESE)
    expected = explained(address, q=JAPANESE, source="ja", target="en", alternatives=3)
    assert page.inner_text("#translation") == expected["translatedText"]
    assert page.locator("#alternatives li").all_inner_texts() == expected["alternatives"]
    assert page.inner_text("#count") == f"{len(JAPANESE)} / {LIMIT}"
    page.click("#clear")
    assert page.inner_text("#translation") == ""
    assert page.is_hidden("#others")
    assert page.is_hidden("#copy")


@pytest.mark.slow
def test_the_language_is_found(visit):
    page = visit()
    type_in(page, "The dog sees the cat in the park.", "auto", "ja")
    assert page.locator("#source option:checked").inner_text() == "English (detected)"


@pytest.mark.slow
def test_a_word_shows_what_it_was_translated_from(visit, address):
    text = f" 𝒳 👋 {JAPANESE}\n\n  {JAPANESE}"
    answer = explained(address, q=text, source="ja", target="en")
    page = visit()
    type_in(page, text)
    number = len(answer["units"][0]["targetWords"]) + 2
    unit = answer["units"][1]
    word = unit["targetWords"][2]
    page.locator(".word").nth(number).hover()
    start, end = word["span"]
    assert page.inner_text(".word.shown") == answer["translatedText"][start:end]
    seen = shades(page)[-len(unit["sourceWords"]) :]
    assert [one["text"] for one in seen] == [text[a:b] for a, b in unit["sourceWords"]]
    assert [one["share"] for one in seen] == word["weights"]
    best = max(range(len(seen)), key=word["weights"].__getitem__)
    share = re.escape(f"{seen[best]['text']} {word['weights'][best]:.0%}".replace("%", " %"))
    assert re.search(rf"comes from\s*{share}", page.inner_text("#about"))
    page.hover("h1")
    assert page.is_hidden("#about")
    assert not any(one["looked"] for one in shades(page))


@pytest.mark.slow
def test_words_are_reached_by_keyboard(visit):
    page = visit()
    type_in(page, JAPANESE)
    page.focus("#clear")
    page.keyboard.press("Tab")
    words = page.locator(".word")
    last = words.count() - 1
    places = {"Tab": 0, "ArrowRight": 1, "ArrowLeft": 0, "End": last, "Home": 0}
    for key, place in places.items():
        if key != "Tab":
            page.keyboard.press(key)
        focused = page.evaluate(
            "[...document.querySelectorAll('.word')].indexOf(document.activeElement)"
        )
        assert focused == place
        assert words.nth(place).get_attribute("aria-describedby") == "about"
        assert page.inner_text("#about strong") == words.nth(place).inner_text()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "copy"
    assert page.inner_text("#about strong") == words.first.inner_text()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Escape")
    assert page.is_hidden("#about")


@pytest.mark.slow
def test_the_slider_skips_words(visit, address):
    page = visit()
    type_in(page, JAPANESE)
    assert page.get_attribute("#tau", "aria-valuetext") == "no threshold"
    whole = float(page.inner_text("#cps"))
    page.locator(".word").first.click()  # stays shown
    assert not any(one["skipped"] for one in shades(page))
    page.focus("#tau")
    with page.expect_response("**/explain") as asked:
        page.keyboard.press("Home")
    tau = asked.value.request.post_data_json["tau"]
    answer = explained(address, q=JAPANESE, source="ja", target="en", tau=tau)
    page.locator("#cps-of", has_text="of").wait_for()
    (unit,) = answer["units"]
    assert page.inner_text("#cps") == f"{unit['cps']:.1f}"
    assert float(page.inner_text("#cps")) < whole == unit["positions"]
    skipped = unit["targetWords"][0]["skipped"]
    assert any(skipped)
    assert [one["skipped"] for one in shades(page)] == skipped
    told = f"left out {sum(skipped)} of {len(skipped)} words"
    assert told in page.inner_text("#about")
    type_in(page, "The dog", "en", "ja")  # a run without a threshold
    assert page.is_hidden("#threshold")


def test_what_cannot_be_explained(address):
    def asked(**fields: Any) -> httpx.Response:
        given = {"q": "The dog", "source": "en", "target": "ja"} | fields
        return httpx.post(f"{address}/explain", json=given, timeout=60)

    for wrong in ({"tau": 1.5}, {"q": ["The dog"]}, {"tau": "low"}, {"target": "de"}, {"q": ""}):
        answer = asked(**wrong)
        assert answer.status_code == 400
        assert answer.json()["error"]
    same = asked(target="en").json()  # no model is needed
    assert (same["translatedText"], same["units"], same["thresholds"]) == ("The dog", [], False)


@pytest.mark.slow
def test_an_older_request_is_cancelled(visit):
    held: list[Any] = []

    def hold_first(route: Any) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)  # never answered

    page = visit(routes={"**/explain": hold_first})
    failed: list[str] = []
    page.on("requestfailed", lambda request: failed.append(request.post_data_json["q"]))
    page.select_option("#source", "ja")
    with page.expect_request("**/explain"):
        page.fill("#text", "犬")
    with page.expect_response("**/explain"):
        page.fill("#text", JAPANESE)
    page.wait_for_selector(".word")
    assert failed == ["犬"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("status", "said"), [(429, "too many requests"), (503, "busy")])
def test_what_may_pass_can_be_tried_again(visit, status, said):
    page = visit(complains=True, routes={"**/explain": refuse(status, "Slowdown: secret detail")})
    page.select_option("#source", "ja")
    page.fill("#text", JAPANESE)
    page.wait_for_selector("#again")
    assert said in page.inner_text("[role=status]")
    page.context.unroute("**/explain")
    page.click("#again")
    page.wait_for_selector(".word")
    assert page.inner_text("[role=status]") == "Translated"
    assert page.is_hidden("#again")


@pytest.mark.slow
def test_a_text_that_is_too_long_is_not_sent(visit):
    sent: list[str] = []
    page = visit()
    page.on("request", lambda request: sent.append(request.url))
    page.fill("#text", "犬" * (LIMIT + 1))
    page.wait_for_timeout(700)
    said = page.inner_text("[role=status]")
    assert f"{LIMIT + 1}" in said
    assert f"{LIMIT}" in said
    assert sent == []


@pytest.mark.slow
def test_languages_are_swapped_and_remembered(visit):
    page = visit()
    type_in(page, JAPANESE)
    english = page.inner_text("#translation")
    page.click("#swap")
    page.wait_for_selector("#translation[lang=ja]")
    assert page.input_value("#text") == english
    page.reload()
    page.wait_for_selector("#target option", state="attached")
    assert (page.input_value("#source"), page.input_value("#target")) == ("en", "ja")


@pytest.mark.slow
def test_confidence_is_shown_where_it_is_known(visit, address):
    answer = explained(address, q=JAPANESE, source="ja", target="en")
    words = answer["units"][0]["targetWords"]
    for place, word in enumerate(words):
        word["confidence"] = 0.93 if place else 0.21
    page = visit(routes={"**/explain": lambda route: route.fulfill(json=answer)})
    type_in(page, JAPANESE)
    assert page.locator(".word.unsure").count() == 1
    for place, said in enumerate(("21 %", "93 %")):
        page.locator(".word").nth(place).hover()
        assert f"Confidence {said}" in page.inner_text("#about")


def test_a_key_is_asked_for_and_sent(visit, address):
    settings = httpx.get(f"{address}/frontend/settings").json()
    settings |= {"apiKeys": True, "keyRequired": True, "explainLimit": len(JAPANESE) - 1}
    page = visit(routes={"**/frontend/settings": lambda route: route.fulfill(json=settings)})
    page.select_option("#source", "ja")
    page.fill("#text", JAPANESE)
    page.wait_for_selector("#status.refused")
    with page.expect_request("**/translate") as asked:
        page.fill("#api-key", "secret")
        page.press("#api-key", "Enter")
    assert asked.value.post_data_json["api_key"] == "secret"
    page.locator("#status", has_text="Translated").wait_for()
    assert page.inner_text("#translation")
    assert page.locator(".word").count() == 0  # too long to explain


@pytest.mark.slow
def test_the_translation_is_copied(visit):
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    type_in(page, JAPANESE)
    page.click("#copy")
    page.locator("#status", has_text="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.inner_text("#translation")


def test_nothing_but_the_servers_own_scripts_may_run(visit):
    page = visit(complains=True)
    refused = page.evaluate(
        """async () => {
            const refused = [];
            document.addEventListener("securitypolicyviolation", (event) => {
                refused.push(event.effectiveDirective);
            });
            const attempt = (action) => {
                try {
                    action();
                } catch {
                    // The policy says so.
                }
            };
            const add = (name, attribute, value) => {
                const element = document.createElement(name);
                element.setAttribute(attribute, value);
                document.body.append(element);
            };
            attempt(() => document.body.insertAdjacentHTML("beforeend", "<b>bold</b>"));
            attempt(() => add("img", "src", "data:image/png,drawn"));
            attempt(() => add("iframe", "src", "data:text/html,framed"));
            await fetch("data:text/plain,fetched").catch(() => null);
            for (let tries = 0; tries < 100 && new Set(refused).size < 4; tries++) {
                await new Promise((done) => setTimeout(done, 50));
            }
            return refused;
        }"""
    )
    assert set(refused) >= {"require-trusted-types-for", "img-src", "frame-src", "connect-src"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 360)])
def test_axe_finds_nothing_to_mend_on_the_page(visit, scheme, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = visit(width=width, color_scheme=scheme, bypass_csp=True)
    type_in(page, JAPANESE)
    page.locator(".word").nth(1).hover()
    assert page.is_visible("#threshold")
    assert page.is_visible("#about")
    page.wait_for_timeout(300)  # colours fade
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_theme_is_chosen_and_remembered(visit):
    page = visit(color_scheme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    button = page.get_by_role("button", name="Theme")
    button.click()
    assert page.evaluate(paper) == light
    button.click()
    dark = page.evaluate(paper)
    assert dark != light
    page.reload()
    assert page.evaluate(paper) == dark
    assert page.get_by_role("button", name="Theme: dark").count() == 1


@pytest.mark.slow
def test_without_a_server_the_page_says_so(visit):
    page = visit(complains=True)
    page.context.route("**/explain", lambda route: route.abort())
    page.fill("#text", "犬")
    page.wait_for_selector("#again")
    assert "cannot be reached" in page.inner_text("[role=status]")
