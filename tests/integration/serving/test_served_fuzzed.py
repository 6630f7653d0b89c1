"""Any text is translated, and any request answered as the API is described."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.integration

TEXTS = st.text(max_size=80).filter(lambda text: text != "")
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "allow_header_conformance",
    "unsupported_method",
)


@pytest.mark.slow
@settings(max_examples=200)
@given(texts=st.lists(TEXTS, min_size=1, max_size=4), target=st.sampled_from(["ja", "en"]))
def test_any_text_is_translated_and_keeps_its_lines(server, texts, target):
    """The ends of lines are the same; spaces between sentences follow the target language."""
    found = server.translated(texts, "fr", target)
    assert len(found) == len(texts)
    for text, translation in zip(texts, found, strict=True):
        ends = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
        assert ends.findall(translation) == ends.findall(text)


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("schemathesis") is None, reason="pip install schemathesis"
)
def test_schemathesis_finds_nothing(server, tmp_path):
    words = [
        sys.executable,
        "-m",
        "schemathesis.cli",
        "run",
        f"http://127.0.0.1:{server.port}/spec",
    ]
    options = [
        "--checks",
        ",".join(CHECKS),
        "--max-time",
        "120",
        "--continue-on-failure",
        "--no-color",
    ]
    done = subprocess.run(
        [*words, *options], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout
    assert server.translated("Run !")
    assert not [line for line in server.said if "Traceback" in line]
