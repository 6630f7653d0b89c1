"""docs/api.md names all that ``import nmtflex`` offers, and is what ``make docs`` writes."""

from __future__ import annotations

import inspect
import runpy
from pathlib import Path

import pytest

import nmtflex

FOLDER = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def page() -> str:
    return (FOLDER / "api.md").read_text(encoding="utf-8")


def test_every_public_name_has_a_section(page):
    for name in set(nmtflex.__all__) - {"__version__"}:
        assert f"\n## `nmtflex.{name}`\n" in page


def test_every_method_of_a_translator_is_there_with_its_parameters(page):
    found = inspect.getmembers(nmtflex.Translator, inspect.isfunction)
    methods = {name: method for name, method in found if not name.startswith("_")}
    assert methods.keys() >= {"translate", "n_best"}
    for name, method in methods.items():
        _, section = page.split(f"\n### `{name}`\n")
        section, *_ = section.split("\n## ")[0].split("\n### ")
        for parameter in list(inspect.signature(method).parameters.values())[1:]:
            stars = "**" * (parameter.kind is parameter.VAR_KEYWORD)
            assert f"- `{stars}{parameter.name}` (" in section, (name, parameter)


def test_every_field_of_a_translation_is_there(page):
    _, section = page.split("\n## `nmtflex.Translation`\n")
    for field in nmtflex.Translation._fields:
        assert f"- `{field}` (" in section


def test_the_page_is_up_to_date(page):
    pytest.importorskip("griffe2md", reason="griffe2md, of the dev extra, is not installed")
    assert runpy.run_path(str(FOLDER / "make_api.py"))["render"]() == page, "run make docs"
