"""LibreTranslate's API, as its clients see it."""

from __future__ import annotations

import json
import re
import urllib.error

import pytest
from libretranslatepy import LibreTranslateAPI

import nmtflex
from nmtflex.config import BatchConfig, DeviceConfig, SearchConfig, ThresholdConfig
from nmtflex.decoding.opening import open_ensemble

pytestmark = pytest.mark.integration

LINES = ["I sent a letter to her last Sunday .", "Run !", "What did the zebra look for ?"]
HELLO = {"q": "Hello", "source": "en", "target": "ja"}


@pytest.fixture(scope="module")
def translator(english):
    return nmtflex.load(english)


def test_a_text_becomes_what_translate_makes_of_it(server, translator):
    assert server.translated(LINES[0]) == translator.translate([LINES[0]])[0]


def test_a_list_becomes_a_list_in_its_order(server, translator):
    assert server.translated([*LINES, *LINES[::-1]]) == translator.translate([*LINES, *LINES[::-1]])


@pytest.mark.parametrize("sent", ["json", "data", "files", "params"])
def test_fields_may_come_in_any_form(server, translator, sent):
    fields = {"q": LINES[0], "source": "en", "target": "ja", "format": "text"}
    if sent == "files":  # multipart/form-data
        fields = {name: (None, value) for name, value in fields.items()}
    answer = server.client.post("/translate", **{sent: fields})
    assert answer.json() == {"translatedText": translator.translate([LINES[0]])[0]}
    assert answer.headers["content-type"] == "application/json"


def test_white_space_and_what_has_no_words_come_back(server):
    for text in ["😀", " \n\t", "...\r\n\r\n!\u2028"]:
        assert server.translated(text) == text
    assert server.translated(["😀", "😁"]) == ["😀", "😁"]


def test_a_paragraph_is_translated_sentence_by_sentence(server):
    first, second = server.translated(LINES[:2])
    assert server.translated(f"  {LINES[1]}\r\n\n{LINES[0]} ") == f"  {second}\r\n\n{first} "


def test_alternatives_are_the_n_best_list(server, translator):
    expected = [one.text for one in translator.n_best([LINES[0]], 4)[0]]
    answer = server.post("/translate", q=LINES[0], source="en", target="ja", alternatives=3).json()
    assert [answer["translatedText"], *answer["alternatives"]] == list(dict.fromkeys(expected))
    several = server.post("/translate", q=LINES, source="en", target="ja", alternatives=2).json()
    assert [len(others) for others in several["alternatives"]] == [2, 2, 2]
    assert several["alternatives"][0] == answer["alternatives"][:2]


def test_the_source_is_found_out(server):
    text = "This is a sentence written in English for testing purposes"
    answer = server.client.post("/translate", data={"q": text, "source": "auto", "target": "ja"})
    assert answer.json()["detectedLanguage"]["language"] == "en"
    assert answer.json()["detectedLanguage"]["confidence"] > 50
    both = [text, "Ceci n'est pas du tout une phrase en anglais, comme chacun le voit"]
    answer = server.post("/translate", q=both, source="auto", target="ja").json()
    assert [one["language"] for one in answer["detectedLanguage"]] == ["en", "fr"]
    assert answer["translatedText"][0] == server.translated(text)


def test_no_direct_run_means_a_way_through_another_language(server):
    middle = server.translated(LINES[0], "fr", "en")
    assert server.translated(LINES[0], "fr", "ja") == server.translated(middle, "en", "ja")


def test_the_same_language_is_left_alone(server):
    assert server.translated("Hello there.", "en", "en") == "Hello there."


def test_two_runs_of_one_direction_are_an_ensemble(server, germans):
    options = (SearchConfig(), ThresholdConfig(), BatchConfig(), DeviceConfig(device="cpu"))
    ensemble = open_ensemble(germans, *options).translator
    answer = server.post("/translate", q=LINES[0], source="de", target="ja", alternatives=1).json()
    expected = [one.text for one in ensemble.n_best([LINES[0]], 2)[0]]
    assert [answer["translatedText"], *answer["alternatives"]] == expected
    single = server.post("/translate", q=LINES[0], source="en", target="ja", alternatives=1).json()
    assert single != answer


@pytest.mark.parametrize("code", ["EN", "en-GB", "en_US"])
def test_a_country_may_be_named(server, code):
    assert server.translated(LINES[0], code) == server.translated(LINES[0])


REFUSED = [
    ({"q": None}, "Invalid request: missing q parameter"),
    ({"q": []}, "Invalid request: missing q parameter"),
    ({"source": None}, "Invalid request: missing source parameter"),
    ({"target": None}, "Invalid request: missing target parameter"),
    ({"source": "zz"}, "zz is not supported"),
    ({"target": "zz"}, "zz is not supported"),
    ({"format": "xml"}, "xml format is not supported"),
    ({"alternatives": "abc"}, "Invalid request: alternatives parameter is not a number"),
    ({"alternatives": -1}, "Invalid request: alternatives parameter is not a number"),
    ({"alternatives": 4}, "Invalid request: alternatives parameter must be <= 3"),
    ({"q": 401 * "a"}, "Invalid request: request (401) exceeds text limit (400)"),
    ({"q": 21 * ["a"]}, "Invalid request: request (21) exceeds text limit (20)"),
    ({"target": "fr"}, "French (fr) is not available as a target language from English (en)"),
]


@pytest.mark.parametrize(("change", "error"), REFUSED, ids=lambda value: str(value)[:50])
def test_bad_requests_get_the_errors_of_libretranslate(server, change, error):
    fields = {name: value for name, value in (HELLO | change).items() if value is not None}
    answer = server.post("/translate", **fields)
    assert (answer.status_code, answer.json()) == (400, {"error": error})


def test_a_body_that_is_no_object_is_refused(server):
    for body in ['["not", "a", "dict"]', '"text"', "{", ""]:
        kind = {"Content-Type": "application/json"}
        answer = server.client.post("/translate", content=body, headers=kind)
        assert (answer.status_code, answer.json()) == (400, {"error": "Invalid JSON format"})


def test_languages(server):
    languages = {one["code"]: one for one in server.get("/languages").json()}
    assert {code: one["name"] for code, one in languages.items()} == {
        "de": "German",
        "en": "English",
        "fr": "French",
        "ja": "Japanese",
    }
    assert languages["fr"]["targets"] == ["en", "fr", "ja"]
    assert languages["de"]["targets"] == ["de", "en", "ja"]
    assert languages["en"]["targets"] == ["en", "ja"]


def test_detect(server):
    for sent in ({"json": {"q": "This is an English sentence"}}, {"data": {"q": "An English one"}}):
        found = server.client.post("/detect", **sent).json()
        assert found[0]["language"] == "en"
        assert {one["language"] for one in found} == {"de", "en", "fr", "ja"}
        assert sum(one["confidence"] for one in found) == pytest.approx(100, abs=0.5)
    assert server.post("/detect").status_code == 400
    answer = server.get("/detect")
    assert (answer.status_code, answer.json()) == (405, {"error": "Method Not Allowed"})


def test_settings(server):
    settings = server.get("/frontend/settings").json()
    assert settings["charLimit"] == 400
    assert (settings["apiKeys"], settings["keyRequired"]) == (True, False)
    assert settings["suggestions"] is False
    assert settings["language"]["source"] == {"code": "auto", "name": "Auto Detect"}
    assert settings["language"]["target"] == {"code": "ja", "name": "Japanese"}


def test_keys_and_their_limits(server):
    wrong = server.post("/translate", **HELLO, api_key="bogus")
    assert (wrong.status_code, wrong.json()) == (403, {"error": "Invalid API key"})
    statuses = [server.post("/translate", **HELLO, api_key="slow").status_code for _ in range(4)]
    assert statuses[:2] == [200, 200]
    assert statuses[3] == 429  # a busy machine may need 30 seconds for the first three
    slow = server.post("/translate", **HELLO, api_key="slow")
    assert slow.json() == {"error": "Slowdown: 2 per 1 minute"}
    assert int(slow.headers["retry-after"]) > 0
    assert server.post("/translate", **HELLO, api_key="unlimited").status_code == 200


def test_the_client_of_libretranslate(server):
    client = LibreTranslateAPI(f"http://127.0.0.1:{server.port}", api_key="unlimited")
    assert client.translate(LINES[0], "en", "ja") == server.translated(LINES[0])
    assert client.detect("This is an English sentence")[0]["language"] == "en"
    assert [one["code"] for one in client.languages()] == ["de", "en", "fr", "ja"]
    with pytest.raises(urllib.error.HTTPError) as caught:
        client.translate("Hello", "en", "zz")
    assert caught.value.code == 400
    assert json.load(caught.value) == {"error": "zz is not supported"}


def test_health_and_metrics(server):
    health = server.get("/health")
    assert (health.status_code, health.json()) == (200, {"status": "ok"})
    server.post("/translate", **HELLO)
    before = server.metric("nmtflex_sentences")
    server.translated("Hello there. I ran. Go!")
    assert server.metric("nmtflex_sentences") == before + 3
    assert server.metric("nmtflex_workers") == 1
    text = server.get("/metrics").text
    assert re.search(r'nmtflex_requests_total\{path="/translate",status="200"\} \d', text)
    assert "Hello" not in text


def test_other_pages_may_ask_only_if_they_are_named(server):
    def allowed(origin):
        answer = server.client.get("/languages", headers={"Origin": origin})
        return answer.headers.get("access-control-allow-origin")

    assert allowed("https://example.com") == "https://example.com"
    assert allowed("https://example.org") is None


def test_the_api_is_described_without_another_host(server):
    page = server.get("/docs").text
    parts = re.findall(r"""(?:href|src)=["']([^"']*)|url: ["']([^"']*)""", page)
    parts = [first or second for first, second in parts]
    assert len(parts) == 4
    for part in parts:
        assert ":" not in part  # relative
        assert server.get(f"/{part}").status_code == 200
    described = server.get("/spec").json()["paths"]
    assert {"/translate", "/detect", "/languages", "/health"} <= set(described)
    body = described["/translate"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["required"]) == {"q", "source", "target"}
