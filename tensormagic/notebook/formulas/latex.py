"""Formulas as trees, and how they are written: in LaTeX, and in one line of plain text. It knows no graphs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

MOST_NAME = 24  # characters of a name
_RELATION, _SUM, _PRODUCT, _POWER, _ATOM = range(5)  # how tightly an expression holds together


@dataclass(frozen=True)
class Expression:
    """Part of a formula."""


@dataclass(frozen=True)
class Name(Expression):
    """A variable, or a loop."""

    text: str


@dataclass(frozen=True)
class Number(Expression):
    """A constant."""

    value: Any


@dataclass(frozen=True)
class Cut(Expression):
    """What was left out."""


@dataclass(frozen=True)
class Add(Expression):
    """A sum; a term that is negative is subtracted."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True)
class Negative(Expression):
    """Minus something."""

    body: Expression


@dataclass(frozen=True)
class Product(Expression):
    """Factors: of numbers (``""``), of arrays element by element (``"each"``), of matrices (``"matrix"``)."""

    factors: tuple[Expression, ...]
    sign: Literal["", "each", "matrix"] = ""


@dataclass(frozen=True)
class Quotient(Expression):
    """A fraction."""

    top: Expression
    bottom: Expression


@dataclass(frozen=True)
class Slope(Expression):
    """The derivative of something with respect to something."""

    of: Expression
    wrt: Expression


@dataclass(frozen=True)
class Power(Expression):
    """A power; with a base of None one of Euler's number."""

    base: Expression | None
    exponent: Expression


@dataclass(frozen=True)
class Call(Expression):
    """A function on arguments."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Big(Expression):
    """A sum, product, maximum or the like over an index that counts from zero to a bound; without indices, over all."""

    symbol: str
    indices: tuple[tuple[str, str, Expression], ...]
    body: Expression


@dataclass(frozen=True)
class Part(Expression):
    """An element, or a part, by its indices."""

    base: Expression
    indices: tuple[Expression, ...]


@dataclass(frozen=True)
class Transposed(Expression):
    """A matrix with its axes exchanged, or its inverse."""

    base: Expression
    sign: Literal["T", "-1"] = "T"


@dataclass(frozen=True)
class Fence(Expression):
    """Something between marks: ``abs``, ``floor``, ``ceil``, ``sqrt``, ``conj``."""

    kind: str
    body: Expression


@dataclass(frozen=True)
class Cases(Expression):
    """One of two, by a condition."""

    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True)
class Relation(Expression):
    """Two expressions with a sign between them: ``<``, ``==``, ``and``."""

    sign: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Row(Expression):
    """The elements of a short vector."""

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Table(Expression):
    """The array of an expression for all values of indices."""

    body: Expression
    indices: tuple[str, ...]


@dataclass(frozen=True)
class Next(Expression):
    """What a variable becomes in an iteration: the left side of such a line."""

    base: Expression


# LaTeX ----------------------------------------------------------------------------------------------------------------

_GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|upsilon|phi|chi|psi|omega"
    "|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega"
)
_ESCAPED = {
    "_": r"\_",
    "$": r"\$",
    "#": r"\#",
    "%": r"\%",
    "&": r"\&",
    "{": r"\{",
    "}": r"\}",
    "\\": r"\backslash ",
    "^": r"{\wedge}",
    "~": r"{\sim}",
    "<": r"{\lt}",
    ">": r"{\gt}",
    " ": r"\ ",
    "'": r"{\prime}",
    '"': r"{\prime\prime}",
    "…": r"\ldots ",
    "`": r"{\prime}",
}
_FUNCTIONS = {
    *("log", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "exp", "max", "min", "det"),
    "gcd",
}
_SYMBOLS = {"σ": r"\sigma", "Γ": r"\Gamma", "ψ": r"\psi", "π": r"\pi", "∞": r"\infty"}
_BIG = {"sum": r"\sum", "prod": r"\prod", "max": r"\max", "min": r"\min", "any": r"\bigvee", "all": r"\bigwedge"}
_SIGNS = {
    "<": r"\lt",
    "<=": r"\le",
    ">": r"\gt",
    ">=": r"\ge",
    "==": "=",
    "!=": r"\ne",
    "and": r"\land",
    "or": r"\lor",
    "xor": r"\oplus",
    "mod": r"\bmod",
}
_FENCES = {
    "abs": (r"\left|", r"\right|"),
    "floor": (r"\left\lfloor ", r"\right\rfloor"),
    "ceil": (r"\left\lceil ", r"\right\rceil"),
    "sqrt": (r"\sqrt{", "}"),
    "conj": (r"\overline{", "}"),
    "not": (r"\lnot\left(", r"\right)"),
}
_JOINED = {"": r"\,", "each": r" \odot ", "matrix": r"\,"}


def _shortened(text: str) -> str:
    """Return a name in one line, cut if it is long, without control characters such as those that change the text direction."""
    kept = "".join(" " if c.isspace() else c for c in text[: 4 * MOST_NAME] if unicodedata.category(c) not in _TURNING)
    return kept if len(kept) <= MOST_NAME and len(text) <= 4 * MOST_NAME else kept[: MOST_NAME - 1] + "…"


_TURNING = {"Cf", "Cs", "Co"}


def name_in_latex(text: str) -> str:
    r"""Return a name as mathematics writes it: one letter is slanted, longer ones are upright, ``x_1`` has an index.

    Examples
    --------
    >>> print(name_in_latex("w"), name_in_latex("loss"), name_in_latex("x_1"), name_in_latex("alpha"))
    w \mathrm{loss} x_{1} \alpha
    """
    found = re.fullmatch(r"([^\W\d_]|[A-Za-z]+?)_?(\d+)", text)
    if found is not None and len(text) <= MOST_NAME and (len(found[1]) == 1 or _GREEK.fullmatch(found[1])):
        return f"{name_in_latex(found[1])}_{{{found[2]}}}"
    if text.endswith("′"):
        return f"{name_in_latex(text[:-1])}'"
    if _GREEK.fullmatch(text):
        return f"\\{text}"
    if text in _SYMBOLS:
        return _SYMBOLS[text]
    if len(text) == 1 and text.isalpha():
        return text
    return "\\mathrm{" + "".join(_ESCAPED.get(c, c) for c in _shortened(text)) + "}"


def latex(e: Expression) -> str:
    r"""Return a formula in LaTeX, as MathJax and KaTeX read it.

    Examples
    --------
    >>> print(latex(Quotient(Number(1), Name("n"))))
    \frac{1}{n}
    """
    return _LATEX[type(e)](e)


def _held(e: Expression, least: int) -> str:
    text = latex(e)
    return text if _level(e) >= least else f"\\left({text}\\right)"


def _level(e: Expression) -> int:
    """Return how tightly an expression holds together in LaTeX."""
    if isinstance(e, Relation):
        return _RELATION
    if isinstance(e, Add | Negative | Big | Cases) or (isinstance(e, Number) and _is_negative(e.value)):
        return _SUM
    if isinstance(e, Product):
        return _PRODUCT
    if isinstance(e, Number) and "e" in _number(e.value):
        return _PRODUCT
    return _POWER if isinstance(e, Power | Transposed | Quotient | Slope) else _ATOM


def _is_negative(value: Any) -> bool:
    return _number(value).startswith("-")


def _number(value: Any) -> str:
    return (
        f"({value:.6g})" if isinstance(value, complex) else f"{value:.6g}" if isinstance(value, float) else str(value)
    )


def _number_latex(e: Number) -> str:
    text = _number(e.value)
    base, power, exponent = text.partition("e")
    if power and exponent.lstrip("+-").isdigit():
        ten = f"10^{{{int(exponent)}}}"
        return ten if base == "1" else f"{base} \\cdot {ten}"
    return {"inf": r"\infty", "-inf": r"-\infty", "nan": r"\mathrm{nan}"}.get(text, text)


def _sum(e: Add, write: Callable[[Expression, int], str]) -> str:
    text = ""
    for k, term in enumerate(e.terms):
        minus = isinstance(term, Negative)
        last = k + 1 == len(e.terms)
        part = term.body if isinstance(term, Negative) else term
        open_end = isinstance(part, Big | Cases) and last  # what nothing follows needs no brackets
        written = write(part, _RELATION + 1 if open_end or (isinstance(part, Add) and not minus) else _PRODUCT)
        text += (" - " if minus and k else "-" if minus else " + " if k else "") + written
    return text


def _product_latex(e: Product) -> str:
    written = [_held(f, _least(e, k)) for k, f in enumerate(e.factors)]
    text = written[0]
    for k, factor in enumerate(written[1:], 1):
        numbers = isinstance(e.factors[k], Number) or re.match(r"[\d.]", factor)
        text += (r" \cdot " if numbers and not e.sign else _JOINED[e.sign]) + factor
    return text


def _least(e: Product, k: int) -> int:
    """Return how tightly a factor has to bind at its place."""
    factor = e.factors[k]
    if isinstance(factor, Big) and 0 < k == len(e.factors) - 1:
        return _SUM
    if not isinstance(factor, Product) or not e.sign or factor.sign == e.sign:
        return _PRODUCT
    return _POWER if "matrix" in {e.sign, factor.sign} else _PRODUCT


def _power_latex(e: Power) -> str:
    exponent = latex(e.exponent)
    if e.base is not None:
        base = _held(e.base, _ATOM)
        return f"{base}^{{{exponent}}}"
    simple = len(exponent) <= 40 and not re.search(r"\\frac|\\sum|\\begin|\\left", exponent)
    return f"e^{{{exponent}}}" if simple else f"\\exp\\left({exponent}\\right)"


def _function_latex(name: str) -> str:
    known = name.partition("_")[0] if re.fullmatch(r"log_\d+", name) else name
    if known in _FUNCTIONS:
        return f"\\{known}" + (f"_{{{name.partition('_')[2]}}}" if known != name else "")
    found = re.fullmatch(r"(\w+?)#(\d+)", name)
    if found is not None:  # a named block
        return f"\\operatorname{{{_operator(found[1])}}}_{{{found[2]}}}"
    return _SYMBOLS.get(name) or f"\\operatorname{{{_operator(name)}}}"


def _operator(name: str) -> str:
    return "".join(_ESCAPED.get(c, c) for c in _shortened(name))


def _call_latex(e: Call) -> str:
    return f"{_function_latex(e.function)}\\left({', '.join(map(latex, e.arguments))}\\right)"


def _big_latex(e: Big) -> str:
    symbol = _BIG.get(e.symbol) or f"\\operatorname*{{{_operator(e.symbol)}}}"
    below = ",\\, ".join(f"{i} {_SIGNS[sign]} {latex(bound)}" for i, sign, bound in e.indices)
    return f"{symbol}_{{{below}}} {latex(e.body) if isinstance(e.body, Big | Cases) else _held(e.body, _PRODUCT)}"


def _part_latex(e: Part) -> str:
    apart = "" if all(len(latex(i)) == 1 for i in e.indices) else ", "
    base = latex(e.base) if isinstance(e.base, Name) and "_" not in latex(e.base) else f"{{{_held(e.base, _ATOM)}}}"
    return f"{base}_{{{apart.join(map(latex, e.indices))}}}"


def _cases_latex(e: Cases) -> str:
    rows = f"{latex(e.then)} & \\text{{if }} {latex(e.condition)} \\\\ {latex(e.otherwise)} & \\text{{otherwise}}"
    return f"\\begin{{cases}} {rows} \\end{{cases}}"


def _transposed_latex(e: Transposed) -> str:
    return f"{_held(e.base, _ATOM)}^{{{chr(92) + 'top' if e.sign == 'T' else '-1'}}}"


_LATEX: dict[type[Expression], Callable[[Any], str]] = {
    Name: lambda e: name_in_latex(e.text),
    Number: _number_latex,
    Cut: lambda _: r"\ldots",
    Add: lambda e: _sum(e, _held),
    Negative: lambda e: f"-{_held(e.body, _PRODUCT)}",
    Product: _product_latex,
    Quotient: lambda e: f"\\frac{{{latex(e.top)}}}{{{latex(e.bottom)}}}",
    Slope: lambda e: f"\\frac{{\\partial\\,{latex(e.of)}}}{{\\partial\\,{latex(e.wrt)}}}",
    Power: _power_latex,
    Call: _call_latex,
    Big: _big_latex,
    Part: _part_latex,
    Transposed: _transposed_latex,
    Fence: lambda e: latex(e.body).join(_FENCES[e.kind]),
    Cases: _cases_latex,
    Relation: lambda e: f"{_held(e.left, _SUM)} {_SIGNS[e.sign]} {_held(e.right, _SUM)}",
    Row: lambda e: f"\\left({', '.join(map(latex, e.items))}\\right)",
    Next: lambda e: latex(e.base),
    Table: lambda e: f"\\left[{latex(e.body)}\\right]_{{{''.join(e.indices)}}}",
}


# plain text -----------------------------------------------------------------------------------------------------------

_WORDS = {"sqrt": "sqrt", "abs": "abs", "floor": "floor", "ceil": "ceil", "conj": "conj", "not": "not "}


def plain(e: Expression) -> str:
    """Return a formula in one line, as near to Python as mathematics allows.

    Examples
    --------
    >>> plain(Product((Quotient(Number(1), Name("n")), Name("x"))))
    '1/n * x'
    """
    return _PLAIN[type(e)](e)


def _held_plain(e: Expression, least: int) -> str:
    level = _PRODUCT if isinstance(e, Quotient | Slope) else _ATOM if isinstance(e, Cases | Transposed) else _level(e)
    text = plain(e)
    return text if level >= least else f"({text})"


def _product_plain(e: Product) -> str:
    sign = " @ " if e.sign == "matrix" else " * "
    written: list[str] = []
    for k, factor in enumerate(e.factors):
        least = _least(e, k)
        inner = isinstance(factor, Product | Quotient) and k and (e.sign == "matrix" or isinstance(factor, Quotient))
        written.append(_held_plain(factor, _POWER if inner else least))
    return sign.join(written)


def _big_plain(e: Big) -> str:
    below = ",".join(f"{i}{sign}{plain(bound)}" for i, sign, bound in e.indices)
    body = plain(e.body) if isinstance(e.body, Big) else _held_plain(e.body, _PRODUCT)
    return f"{e.symbol}_{{{below}}} {body}"


def _plain_number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float | complex) else str(value)


_PLAIN: dict[type[Expression], Callable[[Any], str]] = {
    Name: lambda e: _shortened(e.text),
    Number: lambda e: _plain_number(e.value),
    Cut: lambda _: "…",
    Add: lambda e: _sum(e, _held_plain),
    Negative: lambda e: f"-{_held_plain(e.body, _PRODUCT)}",
    Product: _product_plain,
    Quotient: lambda e: f"{_held_plain(e.top, _PRODUCT)}/{_held_plain(e.bottom, _POWER)}",
    Slope: lambda e: f"d {plain(e.of)}/d {plain(e.wrt)}",
    Power: lambda e: (
        f"exp({plain(e.exponent)})"
        if e.base is None
        else f"{_held_plain(e.base, _ATOM)}**{_held_plain(e.exponent, _POWER)}"
    ),
    Call: lambda e: f"{e.function.replace('#', '_')}({', '.join(map(plain, e.arguments))})",
    Big: _big_plain,
    Part: lambda e: f"{_held_plain(e.base, _ATOM)}[{', '.join(map(plain, e.indices))}]",
    Transposed: lambda e: f"{_held_plain(e.base, _ATOM)}{'.T' if e.sign == 'T' else '**-1'}",
    Fence: lambda e: f"{_WORDS[e.kind].strip()}({plain(e.body)})",
    Cases: lambda e: f"where({plain(e.condition)}, {plain(e.then)}, {plain(e.otherwise)})",
    Relation: lambda e: f"{_held_plain(e.left, _SUM)} {e.sign} {_held_plain(e.right, _SUM)}",
    Row: lambda e: f"({', '.join(map(plain, e.items))}{',' * (len(e.items) == 1)})",
    Next: lambda e: plain(e.base),
    Table: lambda e: f"[{plain(e.body)}]_{{{','.join(e.indices)}}}",
}
