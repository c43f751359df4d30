"""Text for pictures: cleaning what users wrote, measuring it, shortening it, and the symbols of operators.

Nothing here knows graphs, and of ops only how they are written.
Widths are of a wide sans-serif face, so that text fits in whatever face the reader has.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from tensormagic.ir.rewriting.rule_text import AS_ACCURATE, LEVEL_WORDS
from tensormagic.ops.indices.scatter import SCATTER_ADD, SCATTER_SET
from tensormagic.ops.op import registry
from tensormagic.ops.scalars.scalar import invert, negative, reciprocal, square
from tensormagic.ops.update import ADD_AT, SET

__all__ = [
    "AS_ACCURATE",
    "DID_NOT",
    "KIND_WORDS",
    "LEVEL_WORDS",
    "STAGES",
    "SYMBOLS",
    "VIEW_WORDS",
    "changes",
    "clean",
    "counted",
    "digits_text",
    "in_cell",
    "operation",
    "placeholders",
    "shorten",
    "symbol",
    "width",
    "wrapped",
]

# widths in em of DejaVu Sans and Arial Bold, the larger of both, rounded up
_EM = {
    character: em
    for em, characters in {
        0.30: "'Iijl",
        0.35: " ,./:;\\|",
        0.40: "()-[]ft",
        0.45: "!r",
        0.50: '"*`',
        0.60: "J_cksvxyz",
        0.65: "$0123456789?FLTabdeghnopqu{}",
        0.70: "EPSVXYZ",
        0.80: "&DGHOQABCKNRU",
        0.90: "#+<=>^w~M",
        1.00: "%@Wm…",
    }.items()
    for character in characters
}
_LETTER = re.compile(r"(?<![\w.])(?!a [a-z]{2})[A-Za-z]\b(?!\()")  # and no article
_NAME = re.compile(r"[^\W\d]\w*")
_FREE = "pqrstuvabcdefghijklmnowxyz"
_BOLD = 1.15
DID_NOT = "did not run"
_OTHER = 1.45  # full-width scripts, emoji and the widest letters

_NICER = {"-": "\N{MINUS SIGN}", "*": "\N{MULTIPLICATION SIGN}"}
SYMBOLS = {
    **{op.name: _NICER.get(op.infix, op.infix) for op in registry.values() if op.infix},
    "true_divide": "/",  # and what NumPy calls them, too
    "mod": "%",
    "matmul": "@",
}
_OF_ONE = {  # operations of one operand that have an operator in Python, or are written with one
    negative.name: "\N{MINUS SIGN} ·",
    invert.name: "~ ·",
    square.name: "· ** 2",
    reciprocal.name: "1 / ·",
}
_STORES = {  # stores that the user has not written, and whose places no text has: what a gradient adds into a part of an array
    SET.name: "·[…] = ·",
    SCATTER_SET.name: "·[…] = ·",
    ADD_AT.name: "·[…] += ·",
    SCATTER_ADD.name: "·[…] += ·",
}
STAGES = {  # what the views are called: one computation, as it goes from what was written to what runs
    "captured": "as written",
    "rewritten": "after rewriting",
    "gradient": "with the gradient",
    "kernels": "as compiled",
}
VIEW_WORDS = {  # what the views are, where a pointer rests on their buttons
    "captured": "nothing is changed yet: ",
    "rewritten": "what rules have made of it: ",
    "gradient": "the derivatives that were asked for are added: ",
    "where it runs": "each frame is a place; between these stands what has moved in the last call, and how many bytes: ",
    "kernels": "each frame is one compiled loop, or one call of a library: ",
}
KIND_WORDS = {  # what the kinds of operations are called, where a reader asks
    "pointwise": "element by element",
    "fold": "along an axis",
    "contract": "products, summed",
    "move": "moves elements",
    "update": "stores into a copy",
    "opaque": "library call",
    "region": "has a graph inside",
    "sent": "moves between places",
}


def symbol(name: str) -> str:
    """Return the operator that reads better than the op's name, or the name itself.

    >>> symbol("matmul"), symbol("exp")
    ('@', 'exp')
    """
    return SYMBOLS.get(name, "\N{MINUS SIGN}" if name == "-" else "\N{MULTIPLICATION SIGN}" if name == "*" else name)


def operation(name: str) -> str:
    """Return the label of an operation without its operands: its Python operator, or its name.

    >>> operation("multiply"), operation("square"), operation("exp"), operation("add_at")
    ('×', '· ** 2', 'exp', '·[…] += ·')
    """
    return _OF_ONE.get(name) or _STORES.get(name) or symbol(name)


def clean(text: str, most: int = 400) -> str:
    r"""Return text that XML can hold and that cannot disturb the line around it.

    Line breaks become spaces; control characters, lone surrogates and marks that reverse the direction of writing
    become U+FFFD; beyond `most` characters the text ends in an ellipsis.

    >>> clean("a\nb\x00")
    'a b\ufffd'
    """
    if len(text) > most:
        text = text[: most - 1] + "…"
    if text.isprintable():
        return text
    kept: list[str] = []
    for character in text:
        category = unicodedata.category(character)
        if category in {"Zl", "Zp"} or character in "\n\r\t":
            kept.append(" ")
        elif category in {"Cc", "Cs", "Cf", "Cn", "Co"}:
            kept.append("\ufffd" if category != "Cf" or character in _REVERSING else "")
        else:
            kept.append(character)
    return "".join(kept)


_REVERSING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")


def _em(character: str) -> float:
    known = _EM.get(character)
    if known is not None:
        return known
    if unicodedata.combining(character):
        return 0.0
    return 0.95 if "\u00a0" <= character <= "\u03ff" else _OTHER


def width(text: str, size: float, *, bold: bool = False) -> float:
    """Return at least the width of `text` in pixels at a font size of `size` pixels."""
    return sum(map(_em, text)) * size * (_BOLD if bold else 1.0)


def digits_text(levels: AbstractSet[str]) -> str:
    """Return one word for the effect on rounding of rules of these levels: that of the strongest; empty without levels."""
    if "real" in levels:
        return "simplified"
    return "more accurate" if "stable" in levels else "rewritten" if levels else ""


def changes(level: str) -> str:
    """Return what a rule of a level may change, for a column of a table.

    >>> changes("exact"), changes("stable")
    ('nothing: same digits', 'digits, never less accurate')
    """
    return f"{'nothing:' if level == 'exact' else 'digits,'} {LEVEL_WORDS[level]}"


def placeholders(rule: str, text: str = "{}") -> str:
    """Return the letters of a rule that match any expression, put into a text; empty for a rule without letters.

    >>> placeholders("-x * y -> -(x * y)", ", any {}"), placeholders("softplus", ", any {}")
    (', any x, y', '')
    """
    letters = dict.fromkeys(_LETTER.findall(rule)) if "->" in rule else {}
    return text.format(", ".join(letters)) if letters else ""


def in_cell(rule: str, source: str) -> str:
    """Return a rule with its letters renamed so that none is a name in the cell's text.

    >>> in_cell("-x * y -> -(x * y)", "z = X @ w + y"), in_cell("einsum(-x, y) -> -einsum(x, y)", "X @ w")
    ('-x * p -> -(x * p)', 'product(-x, y) -> -product(x, y)')
    """
    if "->" not in rule:
        return rule
    names = set(_NAME.findall(source))
    letters = set(_LETTER.findall(rule))
    free = (letter for letter in _FREE if letter not in names | letters)
    fresh = {letter: next(free, letter) for letter in sorted(letters & names)}
    told = _LETTER.sub(lambda found: fresh.get(found[0], found[0]), rule)
    return told if "einsum" in names else told.replace("einsum(", "product(")


def shorten(text: str, most: float, size: float, *, bold: bool = False) -> str:
    """Return `text`, cleaned, with an ellipsis where it would be wider than `most` pixels.

    >>> shorten("x" * 1000, 60, 10)
    'xxxxxxxx…'
    """
    text = clean(text)
    if width(text, size, bold=bold) <= most:
        return text
    room = most - width("…", size, bold=bold)
    scale = size * (_BOLD if bold else 1.0)
    for count, character in enumerate(text):
        room -= _em(character) * scale
        if room < 0:
            return text[:count] + "…"
    return text


_MORE = ",\N{NO-BREAK SPACE}…"


def whole_items(items: Sequence[str], most: float, size: float, *, more: bool = False) -> str:
    r"""Return a list shortened to the items that fit into a width; only the first may itself be cut.

    >>> whole_items(["exp", "tanh", "logistic"], 80, 10)
    'exp, tanh,\xa0…'
    """
    for count in range(len(items), 1, -1):
        text = clean(", ".join(items[:count])) + _MORE * (more or count < len(items))
        if width(text, size) <= most:
            return text
    ends = _MORE * (more or len(items) > 1)
    return shorten(items[0], most - width(ends, size), size) + ends if items else ""


def wrapped(text: str, most: float, size: float) -> list[str]:
    """Bold text as lines that are at most so wide, where its words are.

    >>> wrapped("a loss of 0.5", 60, 14)
    ['a loss', 'of 0.5']
    """
    rows = [""]
    for word in text.split(" "):
        longer = f"{rows[-1]} {word}".strip()
        if rows[-1] and width(longer, size, bold=True) > most:
            rows.append(word)
        else:
            rows[-1] = longer
    return rows


def counted(names: Mapping[str, int]) -> list[str]:
    """Names of operations, each followed by its count in brackets, since some names begin with a number.

    >>> counted({"exp": 1, "/ 40": 21})
    ['exp', '/ 40 (21)']
    """
    return [name if count == 1 else f"{name} ({count})" for name, count in names.items()]
