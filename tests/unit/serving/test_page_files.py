"""How the files of the page are served."""

from __future__ import annotations

import re
from importlib import resources

import pytest

testclient = pytest.importorskip("starlette.testclient", reason="httpx is not installed")
fastapi = pytest.importorskip("fastapi", reason="fastapi is not installed")


@pytest.fixture
def client():
    from nmtflex.serving.page import add_page

    app = fastapi.FastAPI(openapi_url=None)
    add_page(app)
    return testclient.TestClient(app)


def referred(client) -> list[str]:
    """Return the addresses in the page and in its scripts."""
    found = re.findall(r'(?:href|src)="(page/[^"]+)"', client.get("/").text)
    modules = [re.findall(r'from "\./([^"]+)"', client.get(f"/{path}").text) for path in found]
    modules.append(re.findall(r'from "\./([^"]+)"', client.get("/page/words.js").text))
    return [*found, *(f"page/{name}" for names in modules for name in names)]


def test_all_that_the_page_refers_to_is_there(client):
    paths = referred(client)
    assert len(set(paths)) >= 8
    kinds = {path: client.get(f"/{path}").headers["content-type"] for path in paths}
    for path, kind in kinds.items():
        assert {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}[
            path.rpartition(".")[2]
        ] in kind
    files = resources.files("nmtflex.serving.page").iterdir()
    names = {file.name for file in files if not file.name.startswith("__")}
    assert names == {path.removeprefix("page/") for path in paths} | {"index.html"}


@pytest.mark.parametrize("path", ["/", "/page/page.js"])
def test_a_copy_is_asked_about_and_confirmed(client, path):
    first = client.get(path)
    assert first.headers["cache-control"] == "no-cache"
    tag = first.headers["etag"]
    for asked in (tag, f'"other", W/{tag}'):
        again = client.get(path, headers={"If-None-Match": asked})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
    assert client.get(path, headers={"If-None-Match": '"other"'}).content == first.content
    head = client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(first.content))


def test_nothing_inline_and_nothing_foreign(client):
    policy = dict(
        part.split(" ", 1)
        for part in client.get("/").headers["content-security-policy"].split("; ")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    page = client.get("/").text
    assert "<style" not in page
    assert not re.search(r"<script>|\son\w+=|\sstyle=", page)
    texts = [page, *(client.get(f"/{path}").text for path in referred(client))]
    assert not any(re.search(r"https?://(?!www\.w3\.org/2000/svg)", text) for text in texts)


def test_only_the_files_of_the_page_are_served(client):
    for path in ("/page/__init__.py", "/page/../fields.py", "/page/", "/page/%2e%2e/fields.py"):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize(("page", "status"), [(True, 200), (False, 404)])
def test_the_page_can_be_left_out(page, status):
    from nmtflex.config import AccessConfig, LimitConfig
    from nmtflex.serving.access import Access
    from nmtflex.serving.app import build_app
    from nmtflex.serving.desk import Desk
    from nmtflex.serving.languages import Languages, Pair
    from nmtflex.serving.metrics import Metrics
    from nmtflex.serving.service import Service

    limits = LimitConfig()
    desk = Desk(Languages([Pair("de", "en")]), limits, Access(AccessConfig(), limits))
    app = build_app(desk, Service([], None), [], Metrics(), page=page)
    assert testclient.TestClient(app).get("/").status_code == status
    assert not any(path == "/" or path.startswith("/page") for path in app.openapi()["paths"])
