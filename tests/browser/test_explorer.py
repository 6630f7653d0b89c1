"""Sentences: searched, chosen, stepped through; what is told of each step."""

from __future__ import annotations

import json

import pytest
from made_report import PAIRS, make_report

pytestmark = pytest.mark.integration

OPTIONS = "[role=listbox][aria-label=Sentences] [role=option]"
CHOSEN = f"{OPTIONS}[aria-selected=true]"
READOUT = ".readout"
TARGET = ".words.target"


def place(address: str) -> dict[str, int]:
    parts = address.partition("#")[2].split("&")
    return {name: int(number) for name, number in (part.split("=") for part in parts)}


def test_a_sentence_is_found_chosen_and_stepped_through_by_keys(four_runs, open_page):
    page = open_page(four_runs)
    page.locator("#sentences").scroll_into_view_if_needed()
    search = page.get_by_label("Search source")
    search.fill("ＢＡＲＫＩＮＧ")  # full width, capitals
    assert page.locator(OPTIONS).count() == 1
    assert page.get_by_text("1 of 7 sentences").count() == 1
    search.press("Enter")
    assert page.locator("#sentence-heading").inner_text() == "Sentence 1"
    page.locator(TARGET).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    trace = json.loads(make_report().traces[1])[0]
    most = max(trace["weights"][2])
    word = trace["source"][trace["weights"][2].index(most)]
    told = page.locator(READOUT).inner_text()
    assert "Step 3 of 12: いる" in told
    assert f"looks most at “{word}”, {most / 1000:.3f}" in told
    assert "9 of 9 scores computed" in told
    assert place(page.url) == {"sentence": 1, "run": 1, "step": 3}
    page.keyboard.press("End")
    assert "Step 12 of 12: </s>" in page.locator(READOUT).inner_text()
    page.keyboard.press("Home")
    assert "Step 1 of 12" in page.locator(READOUT).inner_text()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("wanted", "found"), [("会合", ["0"]), ("the dog", ["1"]), ("ΑΘΉΝΑΣ", []), ("θ ή ν α σ", ["4"])]
)
def test_a_search_reads_source_reference_and_translations(four_runs, open_page, wanted, found):
    page = open_page(four_runs, "#sentence=0")
    page.get_by_label("Search source").fill(wanted)
    assert page.locator(f"{OPTIONS} .index").all_text_contents() == found


@pytest.mark.slow
def test_an_address_is_followed_and_kept_up_to_date(four_runs, open_page):
    page = open_page(four_runs, "#sentence=4&run=2&step=3")
    assert page.locator(f"{CHOSEN} .index").inner_text() == "4"
    assert page.get_by_role("tab", selected=True).inner_text() == "flex-ft"
    assert "Step 3 of 7" in page.locator(READOUT).inner_text()
    page.locator(TARGET).focus()
    page.keyboard.press("ArrowUp")
    assert place(page.url) == {"sentence": 3, "run": 2, "step": 1}
    page.evaluate("location.hash = '#sentence=1&run=9&step=99'")
    page.get_by_text("Step 12 of 12").wait_for()
    assert page.get_by_role("tab", selected=True).inner_text() == "none"
    page.evaluate("location.hash = '#sentence=1e9&run=x'")
    assert page.locator("#sentence-heading").inner_text() == "Sentence 1"


@pytest.mark.slow
def test_tabs_walk_by_arrow_keys_and_the_panel_is_theirs(four_runs, open_page):
    page = open_page(four_runs, "#sentence=0")
    page.get_by_role("tab", name="global").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(":focus").inner_text() == "flex-ft"
    assert page.get_by_role("tabpanel", name="flex-ft").count() == 1
    assert "gate 0.12" in page.locator(READOUT).inner_text()
    page.keyboard.press("End")
    assert "This run has no attention" in page.get_by_role("tabpanel").inner_text()
    assert not page.get_by_role("grid").is_visible()
    page.keyboard.press("ArrowRight")
    assert page.locator(":focus").inner_text() == "global"


@pytest.mark.slow
def test_what_was_not_computed_is_hatched_and_told(four_runs, open_page):
    page = open_page(four_runs, "#sentence=0&run=2&step=1")
    trace = json.loads(make_report().traces[0])[1]
    windows = list(zip(trace["window_start"], trace["window_stop"], strict=True))
    gaps = sum((start > 0) + (stop < len(trace["source"])) for start, stop in windows)
    assert page.locator(".not-computed").count() == gaps > 0
    assert page.locator(".focus-mark").count() == len(windows)
    assert page.locator(".word.outside").count() == len(trace["source"]) - trace["computed"][0]
    page.get_by_role("grid").focus()
    page.keyboard.press("End")
    cell = page.get_by_role("gridcell")
    assert cell.get_attribute("aria-label") == "“.” → 彼: not computed, step 1, gate 0.12"
    page.keyboard.press("Home")
    assert cell.get_attribute("aria-label") == (
        f"“he” → 彼: {trace['weights'][0][0] / 1000:.3f}, step 1, gate 0.12"
    )
    page.keyboard.press("ArrowDown")
    assert place(page.url)["step"] == 2


@pytest.mark.slow
def test_the_number_of_a_cell_stands_beside_the_mouse(four_runs, open_page):
    page = open_page(four_runs, "#sentence=1&run=1&step=1")
    trace = json.loads(make_report().traces[1])[0]
    box = page.locator(".cells").bounding_box()
    width, height = box["width"] / len(trace["source"]), box["height"] / len(trace["target"])
    at = {"x": 1.5 * width, "y": 2.5 * height}
    page.locator(".cells").hover(position=at)
    number = f"{trace['weights'][2][1] / 1000:.3f}"
    assert page.locator(".tip").inner_text() == f"“dog” → いる: {number}, step 3"
    page.locator(".cells").click(position=at)
    assert place(page.url)["step"] == 3


def test_a_memory_shows_what_fills_its_slots_and_what_is_read_of_them(four_runs, open_page):
    page = open_page(four_runs, "#sentence=0&run=3&step=4")
    trace = json.loads(make_report().traces[0])[2]
    grid, cell = page.get_by_role("grid"), page.get_by_role("gridcell")
    page.get_by_label("α: slots × source").check()
    assert grid.get_attribute("aria-rowcount") == "8"
    assert grid.get_attribute("aria-colcount") == "11"
    grid.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    for _ in range(8):
        page.keyboard.press("ArrowUp")
    assert cell.get_attribute("aria-label") == (
        f"“made” → slot 1: {trace['alpha'][1][0] / 1000:.3f}, "
        f"of which step 4 reads {trace['beta'][3][0] / 1000:.3f}"
    )
    page.get_by_label("β: steps × slots").check()
    assert grid.get_attribute("aria-rowcount") == str(len(trace["target"]))
    assert grid.get_attribute("aria-colcount") == "8"
    assert "8 scores computed, one a slot" in page.locator(READOUT).inner_text()


@pytest.mark.slow
def test_an_empty_source_says_that_nothing_was_decoded(four_runs, open_page):
    page = open_page(four_runs, "#sentence=2")
    panel = page.get_by_role("tabpanel")
    assert panel.inner_text() == "The source is empty: nothing was decoded."


@pytest.mark.slow
def test_steps_play_and_stop_at_the_last(four_runs, open_page):
    page = open_page(four_runs, "#sentence=5&run=1&step=6")
    page.get_by_role("button", name="Play").click()
    assert page.locator(READOUT).get_attribute("aria-live") == "off"
    page.get_by_text("Step 7 of 7").wait_for()
    page.get_by_role("button", name="Play").wait_for()
    assert page.locator(READOUT).get_attribute("aria-live") == "polite"
    page.get_by_role("button", name="Previous step").click()
    assert place(page.url)["step"] == 6


@pytest.mark.slow
def test_a_long_sentence_scrolls_in_its_own_box(four_runs, open_page):
    page = open_page(four_runs, "#sentence=6&run=2&step=1", width=768)
    page.locator(TARGET).focus()
    page.keyboard.press("End")
    assert "Step 150 of 150" in page.locator(READOUT).inner_text()
    box = page.get_by_role("grid").bounding_box()
    row = page.locator(".row-label.current").bounding_box()
    assert box["y"] <= row["y"] <= box["y"] + box["height"] - row["height"]
    assert page.evaluate("document.documentElement.scrollWidth") == 768


@pytest.mark.slow
def test_a_thousand_sentences_are_listed_ordered_and_chosen_at_once(thousand, open_page):
    page = open_page(thousand, "#sentence=900")
    assert page.locator(f"{CHOSEN} .index").is_visible()
    taken = page.evaluate(
        """async (options) => {
            const rows = document.querySelectorAll(options);
            const times = [];
            for (const place of [999, 6, 500]) {
                const begin = performance.now();
                rows[place].click();
                await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
                times.push(performance.now() - begin);
            }
            return times;
        }""",
        OPTIONS,
    )
    assert len(taken) == 3
    assert max(taken) < 500, taken  # milliseconds, the next frame included
    page.get_by_role("listbox", name="Sentences").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    assert page.locator("#sentence-heading").inner_text() == "Sentence 998"
    assert page.locator(f"{CHOSEN} .text").is_visible()
    page.get_by_label("Order").select_option(label="greatest difference between runs")
    spreads = [
        max(one["bleu"] for one in sentence["hypotheses"])
        - min(one["bleu"] for one in sentence["hypotheses"])
        for sentence in make_report(PAIRS).report["sentences"]
    ]
    shown = page.locator(f"{OPTIONS} .measure").first.inner_text()
    assert float(shown.removeprefix("Δ ")) >= max(spreads) - 0.05


@pytest.mark.slow
def test_after_a_click_on_a_tab_the_arrow_keys_go_through_the_steps(four_runs, open_page):
    page = open_page(four_runs, "#sentence=0&run=0&step=0")
    page.get_by_role("tab").nth(1).click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    chosen = page.locator("[role=tab][aria-selected=true]")
    assert chosen.get_attribute("id") == "tab-1"
    assert page.locator(".readout").inner_text().startswith("Step 3 of ")
    chosen.focus()  # by the keyboard they are the tabs'
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    assert page.locator("[role=tab][aria-selected=true]").get_attribute("id") == "tab-2"


@pytest.mark.slow
def test_a_printed_page_has_its_sentences(four_runs, open_page):
    page = open_page(four_runs)
    assert page.locator("#sentences .explorer").count() == 0  # it is far below the window
    page.pdf()
    assert page.locator("#sentences .explorer").count() == 1
    assert page.locator("#sentence-heading").inner_text() == "Sentence 0"
