"""Charts, tables and the theme they follow."""

from __future__ import annotations

import re

import pytest
from made_report import make_report

pytestmark = pytest.mark.integration

DARK = "rgb(20, 23, 26)"
LIGHT = "rgb(252, 252, 250)"


def drawn(page, section: str):
    """Scroll to a section and return its first chart, drawn."""
    page.locator(section).scroll_into_view_if_needed()
    page.locator(f"{section} .main-svg").first.wait_for()
    return page.locator(f"{section} .plot").first


def test_the_metric_and_the_axis_change_the_curves(four_runs, open_page):
    page = open_page(four_runs)
    assert page.evaluate("typeof Plotly") == "undefined"  # not before it is needed
    chart = drawn(page, "#learning")
    assert chart.evaluate("node => node.data.length") == 4  # BLEU: validation of each run
    page.locator("#learning").get_by_label("Loss", exact=True).check()
    page.wait_for_function("document.querySelector('#learning .plot').data.length === 8")
    widths = chart.evaluate("node => node.data.slice(0, 2).map((trace) => trace.line.width)")
    assert widths[0] > widths[1]  # validation bold, training thin
    assert chart.evaluate("node => node.data[1].y.length") == 45  # the infinite loss is left out
    page.locator("#learning").get_by_label("minutes", exact=True).check()
    caption = page.locator("#learning figcaption").inner_text()
    assert caption == "Loss by minutes of training; bold: validation, thin: training"
    assert chart.evaluate("node => node.data[0].x[0]") == pytest.approx(400 * 0.13 / 60)
    page.locator("#learning").get_by_label("Gate", exact=True).check()
    assert chart.evaluate("node => node.data.map((trace) => trace.name)") == ["flex-ft"]
    page.locator("#learning").get_by_text("Numbers").click()
    page.locator("#learning tbody").wait_for()
    assert page.locator("#learning tbody tr").count() == 11


@pytest.mark.slow
def test_the_trade_off_shows_thresholds_and_runs_without(four_runs, open_page):
    page = open_page(four_runs)
    chart = drawn(page, "#trade-off")
    assert chart.evaluate("node => node.data[0].text") == [
        "τ = 0.05", "τ = 0.2", "τ = 0.5", "τ = 1.2", "τ = 3", "no threshold",
    ]  # fmt: skip
    names = "node => node.data.map((trace) => trace.name)"
    assert chart.evaluate(names) == ["flex-ft, beam 5", "global", "memory", "none"]
    page.locator("#trade-off").get_by_label("valid", exact=True).check()
    assert chart.evaluate(names) == ["flex-ft, beam 5"]  # the scores are of test


@pytest.mark.slow
def test_charts_have_no_button_that_sends_them_away(four_runs, open_page):
    page = open_page(four_runs)
    chart = drawn(page, "#lengths")
    labels = chart.locator(".modebar-btn").evaluate_all(
        "nodes => nodes.map((node) => node.getAttribute('aria-label') ?? node.dataset.title)"
    )
    assert len(labels) == 4
    assert not [label for label in labels if re.search("share|cloud|logo|produced", label, re.I)]
    image = chart.evaluate("node => Plotly.toImage(node, { format: 'svg' })")
    assert image.startswith("data:image/svg+xml")


@pytest.mark.slow
def test_the_theme_is_the_systems_until_one_is_chosen(four_runs, open_page):
    page = open_page(four_runs, color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == DARK
    chart = drawn(page, "#learning")
    ink = "node => node.layout.font.color"
    before = chart.evaluate(ink)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(paper) == LIGHT
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(paper) == DARK
    page.get_by_label("Light", exact=True).check()
    assert page.evaluate(paper) == LIGHT
    assert chart.evaluate(ink) != before
    page.reload()
    assert page.evaluate(paper) == LIGHT  # remembered


def test_one_run_without_anything_is_a_page_too(write_page, open_page):
    made = make_report()
    run = made.report["runs"][0] | {"learning": [], "sweeps": [], "lengths": [], "time": []}
    settings = [row | {"values": row["values"][:1]} for row in made.report["settings"]]
    report = made.report | {"runs": [run], "settings": settings, "sentences": []}
    report |= {"sentence_count": 0}
    page = open_page(write_page("bare", made._replace(report=report, traces=[])))
    text = page.locator("main").inner_text()
    assert "None of the runs has a file of metrics." in text
    assert "nmtflex sweep RUN" in text
    assert "The page was made without sentences." in text
    assert page.get_by_role("tab").count() == 0


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_a_hash_is_cut_short(write_page, open_page, width):
    made = make_report()
    digest = "0123456789abcdef" * 4
    rows = [{"group": "data", "name": "fingerprint", "values": [digest] * 4}]
    rows += [{"group": "software", "name": "base", "values": ["", digest, "", ""]}]
    made.report["settings"] = rows
    page = open_page(write_page("hash", made), width=width)
    page.locator("#settings summary").click()
    for cell in page.locator("#settings code[title]").all():
        assert cell.get_attribute("title") == digest
        assert cell.inner_text() == "0123456789ab…"
    assert page.locator("#settings code[title]").count() == 2
    heights = page.locator("#settings tbody tr").evaluate_all(
        "rows => rows.map((row) => row.getBoundingClientRect().height)"
    )
    assert max(heights) < 80  # two lines at most


@pytest.mark.slow
def test_a_table_shows_that_it_scrolls(four_runs, open_page):
    """The shadow stands still; what covers it at the end moves with the table."""
    page = open_page(four_runs, width=390)
    box = page.locator("#settings .scroll").first
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    kinds = box.evaluate("box => getComputedStyle(box).backgroundAttachment").split(", ")
    assert (kinds.count("local"), kinds.count("scroll")) == (4, 4)


@pytest.mark.slow
def test_a_run_stands_once_in_the_legend_of_the_learning_curves(four_runs, open_page):
    page = open_page(four_runs)
    page.locator("#learning").scroll_into_view_if_needed()
    page.locator("#learning .legendtext").first.wait_for()
    page.locator("#learning").get_by_label("Loss", exact=True).check()
    page.wait_for_function("document.querySelector('#learning .plot').data.length === 8")
    assert page.locator("#learning .legendtext").count() == 4
