"""Write docs/api.md, the documentation of ``import nmtflex``, from its docstrings.

    python docs/make_api.py

``make docs`` runs this. griffe2md reads the source, so nothing is imported from the package.
"""

from __future__ import annotations

import re
from pathlib import Path

import griffe
import griffe2md

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER / "api.md"
# What the page shows, in this order.
NAMES = ("load", "Translator", "CallOptions", "Translation", "Glossary")

HEAD = """<!-- Made by `make docs` from the docstrings of the package: edit those. -->

# Python API

"""
STYLE: griffe2md.ConfigDict = {
    "members": list(NAMES),
    "filters": ["!^_"],
    "members_order": "source",
    "docstring_section_style": "list",
    "show_object_full_path": False,
    "show_root_heading": False,
    "show_root_members_full_path": True,
    "show_signature_annotations": True,
    "heading_level": 2,
    "line_length": 10_000,  # signatures are wrapped below
    "summary": False,
}
OPTIONS = {"returns_multiple_items": False, "returns_named_value": False}
WIDTH = 100  # of a signature


def render() -> str:
    """Return the page."""
    package = griffe.load(
        "nmtflex",
        search_paths=[FOLDER.parent],
        docstring_parser="google",
        docstring_options=OPTIONS,
    )
    for name in NAMES:
        if isinstance(package[name].final_target, griffe.Class):
            inherit(package[name].final_target)
    for name in set(package.members) - set(NAMES):
        package.del_member(name)
    for name in NAMES:
        found = package[name].final_target
        for attribute in list(found.attributes):
            found.docstring.parsed  # noqa: B018  (keeps the types for the list of attributes)
            found.del_member(attribute)
    return HEAD + tidy(griffe2md.render_object_docs(package, STYLE))


def inherit(one: griffe.Class) -> None:
    """Give a class the methods of its bases in the package, before its own."""
    for base in one.mro():
        for name, member in base.functions.items():
            if name not in one.members:
                member.lineno -= 10_000
                one.set_member(name, member)
        one.bases = []


def tidy(text: str) -> str:
    """Return griffe2md's Markdown as GitHub shows it well."""
    text = re.sub(r"\[([^\[\]]+)\]\(#[^)]*\)", r"\1", text)  # links to anchors that are not there
    text = re.sub(r"</?code>|(?<!`)``(?!`)", "`", text).replace(r"\|", "|")
    text = re.sub(r"\*\*(\**\w+)\*\* \(", r"`\1` (", text)  # names of parameters
    text = re.sub(r"(?m)^- .+(?:\n(?!- )\S.*)*", lambda item: item[0].replace("\n", "\n  "), text)
    text = re.sub(r"(?m)^\w+\(.*\) -> .*$", wrap, text)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def wrap(signature: re.Match[str]) -> str:
    """Return a signature with a line a parameter, if it is long."""
    line = signature[0]
    if len(line) <= WIDTH:
        return line
    name, rest = line.split("(", 1)
    parameters, result = rest.rsplit(") -> ", 1)
    split = re.sub(r", (?=\**\w+: )", ",\n    ", parameters)
    return f"{name}(\n    {split},\n) -> {result}"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
