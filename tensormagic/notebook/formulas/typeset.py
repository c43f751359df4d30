r"""The LaTeX of formulas as a picture, for pages that have no MathJax: it reads what ``latex.py`` writes, and no more.

So the picture says what the LaTeX says. Spaces are TeX's: they follow from what stands beside each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tensormagic.notebook.formulas import boxes
from tensormagic.notebook.formulas.boxes import EMPTY, Box, beside, glyphs

_SIZES = (16.0, 16.0, 11.5, 9.0)  # in a line of its own, in text, in an index, and in the index of one
_DISPLAY, _TEXT, _SCRIPT = range(3)
_TIMES = r"\cdot"
WIDEST = 480.0  # pixels of a line beside its left side, so that pages of 640 have room for it

_TOKEN = re.compile(r"\\operatorname\*?|\\[A-Za-z]+|\\\\(?:\[\w+\])?|\\.|\s+|.", re.DOTALL)
_GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi omega"
_LETTERS = dict(zip(_GREEK.split(), "αβγδϵζηθικλμνξπρστυϕχψω", strict=True))
_CAPITALS = {name.title(): _LETTERS[name].upper() for name in _GREEK.split() if _LETTERS[name].upper() in "ΓΔΘΛΞΠΣΥΦΨΩ"}
_SIGNS = {  # what a command draws, and how it stands in a line
    **{f"\\{name}": (sign, "letter") for name, sign in _LETTERS.items()},
    **{f"\\{name}": (sign, "ordinary") for name, sign in _CAPITALS.items()},
    "\\partial": ("∂", "ordinary"),
    "\\infty": ("∞", "ordinary"),
    "\\top": ("⊤", "ordinary"),
    "\\prime": ("′", "ordinary"),
    "\\lnot": ("¬", "ordinary"),
    "\\backslash": ("\\", "ordinary"),
    "\\ldots": ("…", "inner"),
    **{
        f"\\{name}": (sign, "relation")
        for name, sign in {"leftarrow": "←", "lt": "<", "gt": ">", "le": "≤", "ge": "≥", "ne": "≠", "sim": "∼"}.items()
    },
    "=": ("=", "relation"),
    **{
        f"\\{name}": (sign, "binary")
        for name, sign in {"land": "∧", "wedge": "∧", "lor": "∨", "oplus": "⊕", "odot": "⊙", "cdot": "·"}.items()
    },
    "\\bmod": ("mod", "binary"),
    "+": ("+", "binary"),
    "-": ("−", "binary"),
    ",": (",", "punctuation"),
}
_BIG = {"\\sum": "∑", "\\prod": "∏", "\\bigvee": "⋁", "\\bigwedge": "⋀"}
_UNDER = {"\\max", "\\min", "\\det", "\\gcd"}  # functions with what they range over below them
_CIRCLE = ("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh")
_FUNCTIONS = _UNDER | {"\\log", "\\exp", *(f"\\{name}" for name in _CIRCLE)}
_FENCES = {"\\lfloor": "⌊", "\\rfloor": "⌋", "\\lceil": "⌈", "\\rceil": "⌉"}
_SPACES = {"\\,": 3 / 18, "\\ ": 0.3, "\\quad": 1.0}
_ESCAPED = {"\\_", "\\$", "\\#", "\\%", "\\&", "\\{", "\\}"}
_SCRIPTS = {"^", "_", "'"}
_ENDS = {"", "}", "&", "\\right", "\\end"}  # of a line
_OPERANDS = {"letter", "ordinary", "inner", "operand", "close"}  # after which a sign is between two


class UnknownCommandError(ValueError):
    """LaTeX that ``latex.py`` does not write."""


@dataclass(frozen=True)
class _Atom:
    """A box, and how it stands in a line: as an operand, a relation, an operator, a function, a space."""

    kind: str
    box: Box
    under: bool = False  # whether an index goes below it
    begin: int = 0  # its first token


def typeset(latex: str, title: str) -> str:
    r"""Return the picture of a formula, as an SVG that stands alone.

    Parameters
    ----------
    latex
        What ``Formula.latex`` holds.
    title
        What the picture is called, for readers who do not see it.

    Raises
    ------
    UnknownCommandError
        For LaTeX of another origin.

    Examples
    --------
    >>> typeset(r"\frac{1}{n}", "1/n")[:32]
    '<svg xmlns="http://www.w3.org/20'
    """
    return boxes.drawing(_line(_read(_TOKEN.findall(latex)), _DISPLAY), title)


def broken(latex: str, room: float = WIDEST) -> list[tuple[str, float]]:
    r"""Return a formula as lines that are not too long, each with its width: broken before a sign between terms, after a comma.

    Where no such place is left, it is broken before a factor in brackets, which then has its sign; else a line is longer
    than there is ``room``.

    Examples
    --------
    >>> [line for line, _ in broken(r"a + b")]
    ['a + b']
    """
    tokens = _TOKEN.findall(latex)
    lines: list[list[_Atom]] = [[]]
    for part in _pieces(_read(tokens)):
        if lines[-1] and _line([*lines[-1], *part], _DISPLAY).width > room:
            lines.append([])
        lines[-1] += part
    split = [_before_brackets(line, room) for line in lines]
    factors = [k > 0 for parts in split for k in range(len(parts))]
    lines = [part for parts in split for part in parts]
    starts = [0, *(line[0].begin for line in lines[1:]), len(tokens)]
    texts = ["".join(tokens[a:b]).strip() for a, b in pairwise(starts)]
    times = _line(_read([_TIMES]), _DISPLAY).width
    found = zip(texts, lines, factors, strict=True)
    return [(f"{_TIMES} {t}" * f or t, _line(line, _DISPLAY).width + times * f) for t, line, f in found]


def _before_brackets(line: list[_Atom], room: float) -> list[list[_Atom]]:
    """Break a line that is too long before its bracketed factors."""
    if _line(line, _DISPLAY).width <= room:
        return [line]
    places: list[int] = []
    before = ""  # the kind of the preceding atom, ignoring spaces
    for k, atom in enumerate(line):
        if atom.kind == "fenced" and before in {*_OPERANDS, "fenced"}:
            places.append(k)
        before = before if atom.kind == "space" else atom.kind
    fits = [k for k in places if _line(line[:k], _DISPLAY).width <= room]
    place = max(fits, default=min(places, default=0))
    return [line[:place], *_before_brackets(line[place:], room)] if place else [line]


def _pieces(atoms: Sequence[_Atom]) -> list[list[_Atom]]:
    pieces: list[list[_Atom]] = [[]]
    for atom in atoms:
        after_comma = pieces[-1] and pieces[-1][-1].kind == "punctuation"
        if pieces[-1] and (atom.kind == "binary" or after_comma):
            pieces.append([])
        pieces[-1].append(atom)
    return pieces


def _read(tokens: Sequence[str]) -> list[_Atom]:
    """Return all atoms of a formula."""
    reader = _Reader(tokens)
    atoms = reader.atoms(_DISPLAY)
    reader.expect("")
    return atoms


def _line(atoms: Sequence[_Atom], style: int) -> Box:
    """Return atoms side by side, with TeX's spaces between them."""
    size, found = _SIZES[style], list[Box]()
    for k, atom in enumerate(atoms):
        before = atoms[k - 1].kind if k else ""
        gap = _gap(before, atom.kind, style) if k else 0.0
        found += [Box(gap * size, 0, 0)] * (gap > 0) + [atom.box]
    return beside(found)


def _gap(left: str, right: str, style: int) -> float:
    """Return the space between two kinds of atoms, in em."""
    if "space" in (left, right):
        return 0.0
    if style < _SCRIPT:
        if "relation" in (left, right):
            return 5 / 18
        if "binary" in (left, right):
            return 4 / 18
        if left == "punctuation":
            return 3 / 18
    if (left == "function" and right != "fenced") or (right == "function" and left in {*_OPERANDS, "fenced"}):
        return 3 / 18
    return 3 / 18 if style < _SCRIPT and "inner" in (left, right) else 0.0


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._place = 0
        self._structures: dict[str, Callable[[int], _Atom]] = {
            "{": self._braced,
            "\\frac": self._fraction,
            "\\left": self._fenced,
            "\\sqrt": self._root,
            "\\overline": self._overlined,
            "\\mathrm": self._upright,
            "\\text": self._upright,
            "\\operatorname": self._operator,
            "\\operatorname*": self._operator_over,
            "\\begin": self._table,
        }

    @property
    def _next(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _take(self) -> str:
        piece = self._next
        self._place += 1
        return piece

    def expect(self, piece: str) -> None:
        """Take a piece that has to be there."""
        found = self._take()
        if found != piece:
            raise UnknownCommandError(f"{found or 'the end'} stands where {piece or 'the end'} is expected")

    def _name(self) -> str:
        """Return the text between braces, as it stands."""
        self.expect("{")
        found = ""
        while self._next not in {"}", ""}:
            found += self._take()
        self.expect("}")
        return found

    # lines ------------------------------------------------------------------------------------------------------------

    def atoms(self, style: int) -> list[_Atom]:
        """Parse and return the atoms of a line, up to its end."""
        found: list[_Atom] = []
        while self._next not in _ENDS and not self._next.startswith("\\\\"):
            begin, piece = self._place, self._take()
            if piece.isspace():
                continue
            if piece in _SCRIPTS:
                base = found.pop() if found else _Atom("operand", EMPTY, begin=begin)
                found.append(replace(self._with_scripts(base, piece, style), begin=base.begin))
            else:
                atom = self._atom(piece, style)
                if atom.kind == "binary" and (not found or found[-1].kind not in {*_OPERANDS, "fenced"}):
                    atom = _Atom("operand", atom.box)  # a sign, as in -x
                found.append(replace(atom, begin=begin))
        return found

    def _group(self, style: int) -> Box:
        """Parse and return a group in braces, or one atom if there are none."""
        if self._next != "{":
            return self._atom(self._take(), style).box
        self._take()
        found = _line(self.atoms(style), style)
        self.expect("}")
        return found

    def _with_scripts(self, base: _Atom, first: str, style: int) -> _Atom:
        above: Box | None = None
        below: Box | None = None
        inner = max(style + 1, _SCRIPT) if style < _SCRIPT else _SCRIPT + 1
        piece = first
        while piece:
            if piece == "_":
                below = self._group(inner)
            else:
                more = glyphs("′", _SIZES[inner]) if piece == "'" else self._group(inner)
                above = more if above is None else beside([above, more])
            piece = self._take() if self._next in _SCRIPTS else ""
        size = _SIZES[style]
        if base.under and style == _DISPLAY and below is not None:
            return _Atom(base.kind, boxes.under(base.box, below, size))
        kind = "operand" if base.kind in {"letter", "ordinary", "inner"} else base.kind
        return _Atom(kind, boxes.scripts(base.box, above, below, size))

    # atoms ------------------------------------------------------------------------------------------------------------

    def _atom(self, piece: str, style: int) -> _Atom:
        size = _SIZES[style]
        if piece in self._structures:
            return self._structures[piece](style)
        if piece in _SIGNS:
            sign, kind = _SIGNS[piece]
            return _Atom(kind, glyphs(sign, size, slanted=kind == "letter"))
        if piece in _BIG:
            return _Atom("function", boxes.big(_BIG[piece], size, tall=style == _DISPLAY), under=True)
        if piece in _FUNCTIONS:
            return _Atom("function", glyphs(piece[1:], size), under=piece in _UNDER)
        if piece in _SPACES:
            return _Atom("space", Box(_SPACES[piece] * size, 0, 0))
        if piece in _ESCAPED:
            return _Atom("ordinary", glyphs(piece[1:], size))
        if piece.startswith("\\") or piece in {"}", ""}:
            raise UnknownCommandError(f"{piece or 'the end'} cannot be part of a formula")
        return self._plain(piece, size)

    def _plain(self, piece: str, size: float) -> _Atom:
        """Return a letter, or a number."""
        while piece[-1].isdigit() or piece[-1] == ".":
            if not (self._next.isdigit() or self._next == "."):
                break
            piece += self._take()
        slanted = len(piece) == 1 and piece.isalpha()
        return _Atom("letter" if slanted else "ordinary", glyphs(piece, size, slanted=slanted))

    def _braced(self, style: int) -> _Atom:
        self._place -= 1
        return _Atom("operand", self._group(style))

    def _fraction(self, style: int) -> _Atom:
        inner = min(style + 1, len(_SIZES) - 1)
        top = self._group(inner)
        return _Atom("inner", boxes.fraction(top, self._group(inner), _SIZES[style]))

    def _fenced(self, style: int) -> _Atom:
        left = self._fence()
        body = _line(self.atoms(style), style)
        self.expect("\\right")
        return _Atom("fenced", boxes.between(left, body, self._fence(), _SIZES[style]))

    def _fence(self) -> str:
        piece = self._take()
        sign = _FENCES.get(piece, piece)
        if sign not in set("()[]|⌊⌋⌈⌉"):
            raise UnknownCommandError(f"{piece} is no fence")
        return sign

    def _root(self, style: int) -> _Atom:
        return _Atom("operand", boxes.root(self._group(style), _SIZES[style]))

    def _overlined(self, style: int) -> _Atom:
        return _Atom("operand", boxes.overlined(self._group(style), _SIZES[style]))

    def _upright(self, style: int) -> _Atom:
        return _Atom("operand", glyphs(self._words(), _SIZES[style]))

    def _operator(self, style: int) -> _Atom:
        return _Atom("function", glyphs(self._words(), _SIZES[style]))

    def _operator_over(self, style: int) -> _Atom:
        return _Atom("function", glyphs(self._words(), _SIZES[style]), under=True)

    def _words(self) -> str:
        """Return the text between braces, unescaped."""
        self.expect("{")
        found = ""
        while self._next not in {"}", ""}:
            piece = self._take()
            if piece == "{":
                self._place -= 1
                found += self._words()
            elif piece in _ESCAPED or piece == "\\ ":
                found += piece[1:]
            elif not piece.startswith("\\"):
                found += piece
            elif piece in _SIGNS:
                found += _SIGNS[piece][0]
                if self._next.isspace():  # which ends the command
                    self._take()
            else:
                raise UnknownCommandError(f"{piece} cannot be part of a name")
        self.expect("}")
        return found

    # tables -----------------------------------------------------------------------------------------------------------

    def _table(self, style: int) -> _Atom:
        kind = self._name()
        if kind not in {"cases", "aligned"}:
            raise UnknownCommandError(f"a table of the kind {kind}")
        inner = _DISPLAY if kind == "aligned" else max(style, _TEXT)
        rows: list[list[list[_Atom]]] = [[]]
        while self._next != "\\end":
            rows[-1].append(self.atoms(inner))
            piece = self._take()
            if piece.startswith("\\\\"):
                rows.append([])
            elif piece != "&":
                self._place -= 1
                break
        self.expect("\\end")
        if self._name() != kind:
            raise UnknownCommandError(f"a table of the kind {kind} that ends as another")
        return self._cases(rows, inner) if kind == "cases" else _aligned(rows)

    @staticmethod
    def _cases(rows: Sequence[Sequence[Sequence[_Atom]]], style: int) -> _Atom:
        size = _SIZES[style]
        lines = [[_line(cell, style) for cell in row] for row in rows]
        body = boxes.grid(lines, (False, False), across=size, down=0.2 * size, size=size)
        return _Atom("inner", boxes.between("{", body, "", size))


def _aligned(rows: Sequence[Sequence[Sequence[_Atom]]]) -> _Atom:
    """Return equations under one another."""
    size = _SIZES[_DISPLAY]
    lines = [[_line(cell, _DISPLAY) for cell in row] for row in rows]
    across = 5 / 18 * size
    return _Atom("operand", boxes.grid(lines, (True, False), across=across, down=0.5 * size, size=size))
