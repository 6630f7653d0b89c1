"""What the elements of HTML are to a translator: structure, inline, or left alone."""

from __future__ import annotations

from collections.abc import Iterable

from nmtflex.markup.parsing import RAW, VOID, Node, names

# These separate texts. Everything else stands inside a sentence, as browsers show what they do not
# know.
STRUCTURE = names(
    "address article aside blockquote body br button caption center col colgroup datalist dd "
    "details dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 "
    "h4 h5 h6 head header hgroup hr html legend li link listing main menu meta nav noscript ol "
    "optgroup option p plaintext pre search section select style summary table tbody td template "
    "tfoot th thead title tr ul xmp"
)
# What is inside is not language; inside a sentence it stands for a noun.
_NO_LANGUAGE = names("code kbd listing pre samp var")
# Placed as a whole, without a word of its own.
_EMBEDDED = names(
    "applet audio canvas embed iframe map math meter object picture progress rp rt svg textarea "
    "video"
)
_CLASS = "notranslate"
LARGEST_MARK = 16  # nodes
TRANSLATED_ATTRIBUTES = ("alt", "title", "placeholder")


def translates(node: Node, around: bool = True) -> bool:
    """Whether the content of an element is translated.

    Its own ``translate`` decides, then its class and name, then what is around it.
    """
    said = node.attributes.get("translate")
    if said is not None and said.lower() in ("", "yes", "no"):
        return said.lower() != "no"
    if _CLASS in node.attributes.get("class", "").split() or node.name in _NO_LANGUAGE:
        return False
    return around


def embedded(node: Node) -> bool:
    """Whether an element is placed as a whole, without a word of its own."""
    return node.name in _EMBEDDED or node.name in VOID or node.name in RAW


def holders(root: Node) -> set[int]:
    """Return the ids of the root, and of nodes with structure or translation again inside."""
    found = {id(root)}
    path: list[Node] = []
    todo: list[tuple[Node, int, bool]] = [(root, 0, True)]
    while todo:
        node, depth, around = todo.pop()
        del path[depth:]
        own = translates(node, around)
        if node.name in STRUCTURE or (own and not around):
            for outer in reversed(path):
                if id(outer) in found:
                    break
                found.add(id(outer))
        path.append(node)
        if node.name not in _EMBEDDED:
            todo += [(child, depth + 1, own) for child in reversed(node.children) if child.name]
    return found


def words_in(nodes: Iterable[Node]) -> str:
    """Return the characters of all texts in some nodes that are read along in a sentence."""
    found: list[str] = []
    stack = list(nodes)[::-1]
    while stack:
        node = stack.pop()
        found.append(node.text or "")
        if not embedded(node):
            stack += reversed(node.children)
    return "".join(found)


def note_mark(node: Node) -> bool:
    """Whether an element refers to a note, ``<sup>1</sup>``: a word and its number are not one."""
    if node.name != "sup":
        return False
    stack, seen = [node], 0
    while stack:
        inner = stack.pop()
        seen += 1
        if seen > LARGEST_MARK or any(map(str.isalpha, inner.text or "")):
            return False
        stack += inner.children
    return True
