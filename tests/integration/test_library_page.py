"""Every example of docs/library.md runs, on tiny runs in place of trained ones."""

from __future__ import annotations

import asyncio
import io
import json
import re
import warnings
from pathlib import Path

import pytest

import nmtflex
from nmtflex.config import FlexibleConfig, GlobalConfig

PAGE = Path(__file__).parents[2] / "docs" / "library.md"
SECTIONS = re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.M | re.S)
EXAMPLES = [
    pytest.param(code, id=f"{heading} {number}")
    for heading, text in SECTIONS
    for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S), 1)
]


@pytest.fixture(autouse=True)
def _runs(make_tiny_run, tmp_path, monkeypatch):
    (tmp_path / "runs").mkdir()
    make_tiny_run("runs/deen", FlexibleConfig())
    make_tiny_run("runs/deen2", GlobalConfig(), seed=2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("a b c\nh\n"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # random models reach the maximum length
        yield


def run(code, name="__example__"):
    names = {"__name__": name}
    exec(compile(code, str(PAGE), "exec"), names)
    return names


@pytest.mark.parametrize("code", EXAMPLES)
def test_an_example_runs(code, capsys):
    names = run(code)
    out = capsys.readouterr().out
    assert ("print(" in code) == bool(out)
    for said in re.findall(r"print\(error\)  # (.*)", code):
        assert out == f"{said}\n"
    if "translator" in names:
        with pytest.raises(RuntimeError, match="closed"):
            names["translator"].translate(["a"])


def test_the_answers_to_requests_are_json(capsys):
    (code,) = (one.values[0] for one in EXAMPLES if "requests" in one.values[0])
    run(code)
    answers = json.loads(capsys.readouterr().out)
    assert [len(answer) for answer in answers] == [2, 1, 1]
    assert len(answers[1][0]["attended"]) == len(answers[1][0]["words"])
    assert len(answers[1][0]["tokens"]) <= 12


def test_a_stream_of_standard_input(capsys):
    (code,) = (one.values[0] for one in EXAMPLES if "sys.stdin" in one.values[0])
    run(code)
    with nmtflex.load("runs/deen") as translator:
        assert capsys.readouterr().out.splitlines() == translator.translate(["a b c\n", "h\n"])


def test_the_service_answers_several_clients():
    (code,) = (one.values[0] for one in EXAMPLES if "start_server" in one.values[0])
    names = run(code.replace("5000", "0"))

    async def ask(port, lines):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        found = []
        for line in lines:
            writer.write(f"{line}\n".encode())
            found.append((await reader.readline()).decode().rstrip("\n"))
        writer.close()
        return found

    async def main():
        servers = []
        start = asyncio.start_server

        async def noted(*given):
            servers.append(await start(*given))
            return servers[-1]

        asyncio.start_server = noted
        try:
            service = asyncio.create_task(names["main"]())
            while not servers:
                await asyncio.sleep(0.01)
        finally:
            asyncio.start_server = start
        port = servers[0].sockets[0].getsockname()[1]
        found = await asyncio.gather(*(ask(port, lines) for lines in (["a b", ""], ["h"], ["c"])))
        service.cancel()
        await asyncio.gather(service, return_exceptions=True)
        return found

    found = asyncio.run(main())
    with nmtflex.load("runs/deen") as translator:
        assert found == [translator.translate(lines) for lines in (["a b", ""], ["h"], ["c"])]
