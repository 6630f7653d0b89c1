"""HTML as a tree, read as browsers read it and written as its author wrote it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from nmtflex.errors import OptionError
from nmtflex.markup.tags import SPACES, Tag, text_at, write_tag, write_text

if TYPE_CHECKING:
    from justhtml import JustHTML

ROUNDS = 8
_PAGE = re.compile(r"<(?:!doctype|html|head|body|frameset)[\s/>]", re.IGNORECASE)
_FIRST = re.compile(r"(?>[\t\n\f\r ]+|<!--.*?-->)*+<([a-z]+)", re.IGNORECASE | re.DOTALL)
# Parts of a table exist only inside a table, so a fragment that begins with one lies there.
_CONTEXTS = {
    "td": "tr", "th": "tr", "tr": "tbody", "col": "colgroup",
    **dict.fromkeys(("tbody", "thead", "tfoot", "caption", "colgroup"), "table"),
}  # fmt: skip
_DECLARATION = re.compile(r"\s*<\?xml\s[^>]*\?>")  # of XHTML; HTML has none
_DOCTYPE = re.compile(r"<!doctype[^>]*>", re.IGNORECASE)
_LAST = re.compile(r"</body>([\t\n\f\r ]*)</html>([\t\n\f\r ]*)\Z", re.IGNORECASE)


def names(text: str) -> frozenset[str]:
    """Return the names in a text."""
    return frozenset(text.split())


VOID = names(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source "
    "track wbr"
)
RAW = names("iframe noembed noframes noscript plaintext script style xmp")
ENDS = ("\r\n", "\n")  # of lines
_TAKES_LINE_FEED = ("pre", "listing", "textarea")  # these drop the one after their tag


@dataclass(slots=True)
class Node:
    """An element, a text, or what has neither, such as a comment.

    Attributes:
        name: Of an element; "" for anything else.
        opening: The start tag; the markup of anything that is no element.
        closing: The end tag, if it has one.
        text: The characters of a text; None for anything else.
        attributes: Of an element.
        children: Of an element.
    """

    name: str
    opening: str = ""
    closing: str = ""
    text: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)


def parse(html: str) -> Node:
    """Return the root of a page, or of a fragment of one.

    What is written as HTML demands keeps every character. Anything else is written so that it stays
    the same when it is read again: end tags that were left out appear, and tags cross no more.

    Raises:
        OptionError: justhtml is not installed.
    """
    declared = _DECLARATION.match(html)
    lead = declared[0] if declared else ""
    html = html[len(lead) :]
    root = _tree(html)
    for _ in range(ROUNDS):
        written = markup(root)
        if written == html:
            break
        html, root = written, _tree(written)
    root.opening = lead
    return root


def markup(root: Node) -> str:
    """Return the HTML of a node with all that it contains."""
    found: list[str] = []
    stack: list[Node | str] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            found.append(node)
            continue
        found.append(node.opening)
        if node.name == "plaintext":
            found += [child.opening for child in node.children]
            break  # nothing ends it
        stack.append(node.closing)
        stack += reversed(node.children)
    return "".join(found)


def _tree(html: str) -> Node:
    """Parse once."""
    read = _reader(html)
    plain, placed = read(), read(track_node_locations=True)
    # The library reads faulty markup in another way when it tracks locations.
    same = list(_shape(plain)) == list(_shape(placed))
    return _converted(placed if same else plain, html)


def _shape(parsed: JustHTML) -> Iterator[tuple[Any, ...]]:
    """Yield what makes two trees of the library equal."""
    stack: list[tuple[int, Any]] = [(0, parsed.root)]
    while stack:
        depth, node = stack.pop()
        text = node.name == "#text"
        data = node.data if isinstance(node.data, str) else ""
        yield depth, node.name, node.namespace, {} if text else node.attrs, data
        stack += [(depth + 1, child) for child in _children(node)]


def _children(node: Any) -> Sequence[Any]:
    """Return the children of a node of the library."""
    inside = getattr(node, "template_content", None) or node
    return inside.children or ()


def _reader(html: str) -> Callable[..., JustHTML]:
    """Return what parses a page or a fragment."""
    try:
        from justhtml import JustHTML
        from justhtml.parser.context import FragmentContext
    except ImportError as error:
        raise OptionError(
            "HTML needs justhtml; install it with: pip install 'nmtflex[serve]'"
        ) from error

    if _PAGE.search(html):
        context = None
    else:
        first = _FIRST.match(html)
        context = FragmentContext(_CONTEXTS.get(first[1].lower() if first else "", "div"))

    return partial(JustHTML, html, sanitize=False, fragment_context=context)


def _converted(parsed: JustHTML, html: str) -> Node:
    """Return the library's tree as nodes, with the markup of each."""
    root = Node("")
    stack: list[tuple[Any, Node]] = [(parsed.root, root)]
    while stack:
        outer, own = stack.pop()
        raw = outer.name in RAW and outer.namespace == "html"
        for child in _children(outer):
            node = _node(child, html, raw)
            if outer.name in ("#document", "html") and not _follows_text(own):
                node.opening = _space_before(child, html) + node.opening
            own.children.append(node)
            if node.name:
                stack.append((child, node))
    _move_space_out(root, html)
    return root


def _move_space_out(root: Node, html: str) -> None:
    """Move white space behind the body, which parsers read into it, to where it stands."""
    path = [root]
    while path[-1].children and len(path) < 4:
        path.append(path[-1].children[-1])
    found = _LAST.search(html, max(0, html.lower().rfind("</body>")))
    if not found or [node.name for node in path[1:]] != ["html", "body", ""]:
        return
    _, page, body, last = path
    space = found[1] + found[2]
    characters = space.replace("\r\n", "\n").replace("\r", "\n")
    if last.text and last.text.endswith(characters) and last.opening.endswith(space):
        last.text = last.text[: len(last.text) - len(characters)]
        last.opening = last.opening[: len(last.opening) - len(space)]
        body.closing += found[1]
        page.closing += found[2]


def _follows_text(parent: Node) -> bool:
    return bool(parent.children) and parent.children[-1].text is not None


def _space_before(node: Any, html: str) -> str:
    """Return the white space in front of a node outside of the body, which parsers drop."""
    end = node.origin_offset
    if end is None or node.name == "#text":
        return ""
    start = end
    while start and html[start - 1] in SPACES:
        start -= 1
    return html[start:end]


def _node(node: Any, html: str, raw: bool) -> Node:
    """Return a node of the library without its children.

    Args:
        node: The library's.
        html: What was parsed.
        raw: Whether a text has no entities, as a script.
    """
    if node.name == "#text":
        return Node("", _text(node.data, node.origin_offset, html, raw), text=node.data)
    if node.name.startswith(("#", "!")):
        written = node.to_html(pretty=False)
        found = _DOCTYPE.search(html) if node.name == "!doctype" else None
        return Node("", found[0] if found and found[0].lower() == written.lower() else written)
    return _element(node, html)


def _text(data: str, offset: int | None, html: str, raw: bool) -> str:
    """Return the markup of a text: what stands in the source, if it means the same."""
    if raw:
        return data
    if offset is not None:
        # The library counts the line feed that <pre> drops.
        starts = [offset, *(offset + len(end) for end in ENDS if html.startswith(end, offset))]
        for start in starts:
            if (found := text_at(html, start, data)) is not None:
                return found
    return write_text(data)


def _element(node: Any, html: str) -> Node:
    """Return an element of the library, with the tag of the source if it means the same."""
    name, own = node.name, node.namespace == "html"
    attributes = {key: value or "" for key, value in node.attrs.items()}
    found = Node(name, attributes=attributes)
    found.opening, found.closing = write_tag(name, attributes), f"</{name}>"
    start = node.origin_offset
    after = ""  # the character behind the tag
    if start is not None and html.startswith("<", start):
        tag = Tag(html, start)
        written = {key.lower(): value for key, value in attributes.items()}
        if tag.name.lower() == name.lower() and tag.attributes == written:
            found.closing = f"</{tag.name}>"
            after = html[tag.end : tag.end + 1]
            if not tag.closed or (own and name in VOID):
                found.opening = html[start : tag.end]
            elif not own and not node.children:
                found.opening, found.closing = html[start : tag.end], ""
    if own and name in VOID:
        found.closing = ""
    if own and name in _TAKES_LINE_FEED:
        first = node.children[0].data if node.children and node.children[0].name == "#text" else ""
        found.opening += "\n" * (after == "\n" or first.startswith("\n"))
    return found
