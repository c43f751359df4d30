"""Expressions of Herbie's suites that no rule was made for, before and after rewriting: errors in bits, against many digits.

    git clone https://github.com/herbie-fp/herbie
    python benchmarks/unseen.py herbie/bench --inputs 30

The suites are read from that folder, and nothing of them is kept here: the project's licence is MIT (`LICENSE.md` there). Hamming's,
which are in `benchmarks/accuracy.py`, are left out. Expressions have at most three variables, and what NumPy has a name for; inputs are
of all sizes from 1e-12 to 1e8, of both signs, a third of the others near the first, as far as an expression's condition lets them.
Prints Markdown with what came out for each suite; `benchmarks/results/unseen.md` holds a run.
"""

from __future__ import annotations

import argparse
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import tensormagic as tm  # noqa: E402
from benchmarks.accuracy import Digits, bits, mp, wide  # noqa: E402
from tensormagic.backend.numpy_tier.reference import evaluate_graph  # noqa: E402
from tensormagic.config import config  # noqa: E402
from tensormagic.ir.graph import Graph  # noqa: E402
from tensormagic.transform.rewriting import rewrite  # noqa: E402

LEVELS = ("NumPy", "stable", "real")
FORMS: dict[str, Callable[[Any], Any]] = {"0-d": np.array, "np.float64": np.float64, "float": float}
LOST = 3  # bits from which on an expression has lost some
LARGEST, SMALLEST = 1e300, 1e-300
LONGEST = 220  # characters of a text

# reading --------------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r';[^\n]*|"[^"]*"|[()\[\]]|[^\s()\[\]";]+')
_ONE = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "fabs": "abs"} | {
    name: name for name in ["sqrt", "exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "log1p", "expm1", "cbrt"]
}
_TWO = {"atan2": "arctan2", "hypot": "hypot", "fmax": "maximum", "fmin": "minimum"}
_SIGNS = frozenset(("<", "<=", ">", ">=", "==", "!="))


class NotReadError(Exception):
    """What is no expression of numbers."""


def parsed(source: str) -> list[Any]:
    """The lists of a file."""
    tokens = [t for t in _TOKEN.findall(source) if not t.startswith(";")]

    def read(k: int) -> tuple[Any, int]:
        if tokens[k] not in "([":
            return tokens[k], k + 1
        items: list[Any] = []
        k += 1
        while tokens[k] not in (")", "]"):
            item, k = read(k)
            items.append(item)
        return items, k + 1

    found: list[Any] = []
    k = 0
    while k < len(tokens):
        item, k = read(k)
        found.append(item)
    return found


def text_of(e: Any, names: Mapping[str, str]) -> str:
    """An expression in NumPy's words."""
    if isinstance(e, str):
        return _word(e, names)
    op, *args = e
    if op == "!":
        return text_of(args[-1], names)
    if op in ("let", "let*"):
        new = dict(names)
        for name, value in args[0]:
            new[name] = text_of(value, new if op == "let*" else names)
        return text_of(args[1], new)
    given = [text_of(a, names) for a in args]
    if op == "-" and len(given) == 1:
        return f"(-{given[0]})"
    if op in {"+", "-", "*", "/"}:
        return "(" + f" {op} ".join(given) + ")"
    if op == "pow":
        return f"({given[0]} ** {given[1]})"
    if op == "fma":
        return f"({given[0]} * {given[1]} + {given[2]})"
    name = _ONE.get(op) or _TWO.get(op)
    if name is None:
        raise NotReadError(op)
    return f"np.{name}({', '.join(given)})"


def _word(e: str, names: Mapping[str, str]) -> str:
    if e in names:
        return names[e]
    if e in {"PI", "E"}:
        return f"np.{e.lower()}"
    if re.fullmatch(r"[-+]?\d+/\d+", e):
        return f"({e.replace('/', ' / ')})"
    float(e)
    return f"({e})" if e.startswith("-") else e


def condition_of(e: Any, names: Mapping[str, str]) -> str:
    """A condition in NumPy's words."""
    op, *args = e
    if op in {"and", "or"}:
        sign = " & " if op == "and" else " | "
        return f"({sign.join(condition_of(a, names) for a in args)})"
    if op not in _SIGNS:
        raise NotReadError(op)
    given = [text_of(a, names) for a in args]
    pairs = [f"({a} {op} {b})" for a, b in pairwise(given)]
    return f"({' & '.join(pairs)})"


@dataclass(frozen=True)
class Case:
    """An expression of a suite, in x, y and z."""

    suite: str
    text: str
    names: str
    asked: str


def cases(folder: Path) -> Iterator[Case]:
    """What the suites have, each text once."""
    seen: set[str] = set()
    for path in sorted(folder.rglob("*.fpcore")):
        suite = str(path.relative_to(folder).with_suffix(""))
        if suite.startswith(("hamming", "demo", "regression")):  # the latter repeat some of them
            continue
        for core in parsed(path.read_text()):
            case = _case(suite, core)
            if case is not None and case.text not in seen:
                seen.add(case.text)
                yield case


def _case(suite: str, core: Any) -> Case | None:
    if core[0] != "FPCore" or not isinstance(core[1], list) or not 1 <= len(core[1]) <= 3:
        return None
    said = {core[k]: core[k + 1] for k in range(2, len(core) - 1) if isinstance(core[k], str) and core[k][0] == ":"}
    if any(isinstance(a, list) for a in core[1]) or said.get(":precision") == "binary32":
        return None
    names = dict(zip(core[1], "xyz", strict=False))
    try:
        text = text_of(core[-1], names)
        asked = condition_of(said[":pre"], names) if ":pre" in said else ""
    except (NotReadError, KeyError, ValueError, TypeError, IndexError):
        return None
    used = any(re.search(rf"\b{v}\b", text) for v in names.values())
    return Case(suite, text, "xyz"[: len(names)], asked) if used and len(text) <= LONGEST else None


# judging --------------------------------------------------------------------------------------------------------------


def _rounded(name: str) -> Any:
    """A function of a text's own number is NumPy's; of an input it is exact."""
    exactly, plainly = getattr(Digits, name), getattr(np, name)
    return staticmethod(lambda v: mp.mpf(float(plainly(v))) if isinstance(v, int | float) else exactly(v))


class Exactly(Digits):
    """NumPy's functions with many digits."""

    pi, e = np.pi, np.e
    arcsin, arccos, arctan, sinh, cosh, tanh, tan = mp.asin, mp.acos, mp.atan, mp.sinh, mp.cosh, mp.tanh, mp.tan
    arctan2, maximum, minimum, abs, expm1 = mp.atan2, max, min, abs, mp.expm1
    hypot = staticmethod(lambda a, b: mp.sqrt(a * a + b * b))
    log1p = staticmethod(lambda v: mp.log(1 + v))
    cbrt = staticmethod(lambda v: mp.cbrt(v) if v >= 0 else -mp.cbrt(-v))


for _name in ("log", "exp", "sqrt", "sin", "cos"):
    setattr(Exactly, _name, _rounded(_name))


@dataclass
class Judged:
    """Wrong bits of a case, a number for each of NumPy, *stable* and *real*; inputs at which *stable* has over 1.3 bits less."""

    case: Case
    arrays: np.ndarray
    forms: dict[str, np.ndarray] = field(default_factory=dict)
    gradient: np.ndarray | None = None
    worse: int = 0


def judged(case: Case, count: int) -> Judged | None:
    """What comes of a case; None where fewer than five inputs have a value."""
    function, exactly = (
        eval(f"lambda {', '.join(case.names)}: {case.text}", {"np": space})  # noqa: S307 (the suites' arithmetic)
        for space in (np, Exactly)
    )
    points, truths = _inputs(case, exactly, count)
    if len(points) < 5:
        return None
    columns = [np.array(c) for c in zip(*points, strict=True)]
    errors = _errors(function, [columns], truths)
    found = Judged(case, errors.mean(0), worse=int((errors[:, 1] > errors[:, 0] + 1.3).sum()))
    for name, form in FORMS.items():
        given = [[form(v) for v in p] for p in points[:10]]
        found.forms[name] = _errors(function, given, truths[:10]).mean(0)
    found.gradient = _gradient(function, exactly, points[:16], columns)
    return found


def _inputs(case: Case, exactly: Any, count: int) -> tuple[list[Any], list[Any]]:
    draw = np.random.default_rng(zlib.crc32(case.text.encode()))
    many = 100 * count
    columns = [wide(draw, 1e-12, 1e8, many) for _ in case.names]
    for k in range(1, len(columns)):
        near = columns[0] * (1 + wide(draw, 1e-12, 0.1, many))
        columns[k] = np.where(draw.random(many) < 1 / 3, near, columns[k])
    if case.asked:
        kept = eval(case.asked, {"np": np}, dict(zip(case.names, columns, strict=True)))  # noqa: S307 (as above)
        columns = [c[kept] for c in columns]
    points: list[Any] = []
    truths: list[Any] = []
    for point in zip(*columns, strict=True):
        true = _true(exactly, point)
        if true is not None:
            points.append(point)
            truths.append(true)
        if len(points) == count:
            break
    return points, truths


def _true(exactly: Any, point: Sequence[Any]) -> Any:
    """The value at a point, where it is a real number of ordinary size."""
    try:
        true = exactly(*(mp.mpf(float(v)) for v in point))
    except (ValueError, ZeroDivisionError, TypeError, OverflowError):
        return None
    if isinstance(true, mp.mpc):
        true = true.real if true.imag == 0 else mp.nan
    return true if mp.isfinite(true) and SMALLEST < abs(true) < LARGEST else None


def _errors(function: Any, given: list[Any], truths: Sequence[Any]) -> np.ndarray:
    """The wrong bits of each input; inputs for which Python raises are left out."""
    graph = tm.trace(function, *given[0])
    graphs = (graph, rewrite(graph, "stable").graph, rewrite(graph, "real").graph)
    values = [[v for p in given for v in _values(g, p)] for g in graphs]
    rows = [
        [64.0 if v is None else bits(float(v), t) for v in row]
        for *row, t in zip(*values, truths, strict=True)
        if row[0] is not None
    ]
    return np.array(rows or np.zeros((1, 3)))


def _values(graph: Graph, point: Any) -> list[Any]:
    shape = np.shape(point[0])
    try:
        with np.errstate(all="ignore"):
            return list(np.broadcast_to(evaluate_graph(graph, list(point))[0], shape).ravel())
    except ArithmeticError:
        return [None] * max(int(np.prod(shape)), 1)


def _gradient(function: Any, exactly: Any, points: Sequence[Any], columns: list[Any]) -> np.ndarray | None:
    """The mean error of all slopes, as a cell or function that calls ``tm.grad`` has them."""
    values = [_slopes(function, columns, level) for level in ("exact", "stable", "real")]
    found = []
    for k, point in enumerate(points):
        for j in range(len(point)):
            true = _true(lambda *p, j=j: _slope(exactly, p, j), point)
            if true is not None and abs(true) > 1e-150:
                found.append([bits(float(level[j][k]), true) for level in values])
    return np.array(found).mean(0) if found else None


def _slopes(function: Any, columns: list[Any], level: str) -> list[np.ndarray]:
    """The slopes by all operands at a level: ``tm.grad`` is captured with the rest, and all is rewritten as a whole."""
    before, config.math = config.math, level
    try:
        every = tm.grad(lambda *given: np.sum(function(*given)), argnums=tuple(range(len(columns))))
        graph = rewrite(tm.trace(every, *columns), level).graph
    finally:
        config.math = before
    with np.errstate(all="ignore"):
        return [np.broadcast_to(v, columns[0].shape) for v in evaluate_graph(graph, columns)]


def _slope(exactly: Any, point: Sequence[Any], j: int) -> Any:
    step = abs(point[j]) * mp.mpf(10) ** -120
    ends = [exactly(*(v + s * step if i == j else v for i, v in enumerate(point))) for s in (1, -1)]
    return (ends[0] - ends[1]) / (2 * step)


# telling --------------------------------------------------------------------------------------------------------------


def summary(of: Sequence[np.ndarray]) -> str:
    """How many lose less than three bits, and how many bits those lose on average of which NumPy loses three."""
    kept = [sum(e[k] < LOST for e in of) for k in range(3)]
    hard = [e for e in of if e[0] >= LOST]
    means = [np.mean([e[k] for e in hard]) if hard else 0.0 for k in range(3)]
    return " | ".join([str(len(of)), *map(str, kept), str(len(hard)), *(f"{m:.1f}" for m in means)])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--inputs", type=int, default=30)
    parser.add_argument("--every", type=int, default=1, help="one case in so many")
    given = parser.parse_args()
    mp.dps = 400
    found = [j for c in list(cases(given.folder))[:: given.every] if (j := judged(c, given.inputs)) is not None]
    print(f"# Expressions that no rule was made for, measured on {date.today():%Y-%m-%d}\n")  # noqa: DTZ011 (the machine's)
    print(
        f"{len(found)} expressions of Herbie's suites (<https://herbie.uwplse.org>) other than Hamming's, by `benchmarks/unseen.py`, "
        f"{given.inputs} inputs each, 10 for single numbers, 16 for gradients; against {mp.dps} digits.\n"
    )
    heads = "| expressions | NumPy | stable | real | hard | NumPy | stable | real |"
    print("How many lose less than 3 bits (of 64) on average; how many bits those lose that NumPy's text loses 3 of.\n")
    print(f"| {heads}\n|---|---|---|---|---|---|---|---|---|")
    print(f"| arrays | {summary([j.arrays for j in found])} |")
    for name in FORMS:
        print(f"| {name} | {summary([j.forms[name] for j in found])} |")
    print(f"| gradients | {summary([j.gradient for j in found if j.gradient is not None])} |")
    worse = sum(j.worse for j in found)
    print(f"\nInputs at which *stable* has over 1.3 bits less than NumPy: {worse}.\n\n## Each suite, arrays\n")
    print(f"| {heads}\n|---|---|---|---|---|---|---|---|---|")
    for suite in dict.fromkeys(j.case.suite for j in found):
        print(f"| {suite} | {summary([j.arrays for j in found if j.case.suite == suite])} |")


if __name__ == "__main__":
    main()
