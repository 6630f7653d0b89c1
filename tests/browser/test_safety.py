"""What data cannot do to the page, and who can read it."""

from __future__ import annotations

import pytest
from made_report import PAIRS, make_report

pytestmark = pytest.mark.integration

SECTIONS = ("#learning", "#trade-off", "#lengths", "#sentences")
SCROLLABLE_IS_FOCUSABLE = """() => [...document.querySelectorAll(".scroll")].every((box) =>
    (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight)
    === box.hasAttribute("tabindex"))"""


def see_all(page) -> None:
    """Scroll through the page until every chart is drawn."""
    for section in SECTIONS:
        page.locator(section).scroll_into_view_if_needed()
    page.wait_for_function(
        "[...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('.main-svg'))"
    )


def test_a_script_in_a_sentence_is_shown_and_not_run(four_runs, open_page):
    page = open_page(four_runs, "#sentence=3")  # a dialog would fail the test
    assert page.locator(".passage").first.inner_text() == PAIRS[3][0]
    assert page.locator(".words.source .word").first.inner_text() == "<script>alert(1)</script>"


@pytest.mark.slow
def test_names_that_look_like_markup_are_names(write_page, open_page):
    made = make_report()
    name = "<img src=x onerror=alert(1)>&amp;</title><b>"
    made.report["title"] = made.report["runs"][0]["name"] = made.report["command"] = name
    page = open_page(write_page("names", made))
    assert page.title() == name
    assert page.locator("h1").inner_text() == name
    see_all(page)
    assert page.locator("#lengths .legendtext").first.inner_html() == (
        "&lt;img src=x onerror=alert(1)&gt;&amp;amp;&lt;/title&gt;&lt;b&gt;"
    )


def test_nothing_but_the_pages_own_scripts_and_styles_may_work(four_runs, open_page):
    page = open_page(four_runs, complains=True)
    refused = page.evaluate(
        """async () => {
            const refused = [];
            document.addEventListener("securitypolicyviolation", (event) => {
                refused.push(event.effectiveDirective);
            });
            const add = (name, properties) =>
                document.body.append(Object.assign(document.createElement(name), properties));
            add("script", { textContent: "window.ran = true" });
            add("script", { src: "data:text/javascript,window.ran = true" });
            add("style", { textContent: "body { display: none }" });
            add("iframe", { src: "data:text/html,framed" });
            await fetch("data:text/plain,fetched").catch(() => null);
            // A busy machine reports the frame late.
            for (let n = 0; n < 200 && !refused.includes("frame-src"); n += 1)
                await new Promise((done) => setTimeout(done, 50));
            return refused;
        }"""
    )
    assert set(refused) >= {"script-src-elem", "style-src-elem", "frame-src", "connect-src"}
    assert page.evaluate("window.ran === undefined")


@pytest.mark.slow
def test_the_page_never_scrolls_sideways(four_runs, open_page):
    page = open_page(four_runs, "#sentence=6&run=2&step=40", width=1440)
    see_all(page)
    for details in page.locator("summary").all():
        details.click()
    for width in (1440, 768, 360):
        page.set_viewport_size({"width": width, "height": 900})
        for _ in range(100):  # whatever watches the size takes its time on a busy machine
            page.wait_for_timeout(200)
            if (wide := page.evaluate("document.documentElement.scrollWidth")) == width:
                break
        assert wide == width


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_axe_finds_nothing_to_mend(four_runs, open_page, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = open_page(four_runs, "#sentence=0&run=3&step=2", color_scheme=scheme)
    see_all(page)
    for details in page.locator("summary").all():
        details.click()
    page.wait_for_function(SCROLLABLE_IS_FOCUSABLE)  # it is made so after the layout
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
