"""A search for accurate forms: all small expressions of one variable, those that are equal, and which of them has the digits.

    python scripts/find_rules.py

Expressions are built up to a size, and sorted by their values at a few points with more digits than float64 has: those that
agree are one class. Where members of a class differ in float64, each is held against many digits over numbers of all sizes.
An expression that is bad there, that rewriting does not mend yet, and that no smaller one inside it explains, is printed with
the best member of its class: where it wins everywhere, alone, and else with the side of a bound on which it does. The rules of
`tensormagic/transform/rewriting/themes/identities.py` are chosen from what this printed: some of its rows are equal on one branch
alone (`arccos(cos(x))`), and most are expressions that nobody writes. `benchmarks/results/found_rules.md` holds a run.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import mpmath
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import tensormagic as tm  # noqa: E402
from tensormagic.backend.numpy_tier.reference import evaluate_graph  # noqa: E402
from tensormagic.transform.rewriting import rewrite  # noqa: E402

mp = mpmath.mp.clone()
mp.dps = 420
X = ("x",)
ONE = ("1",)
TWO = ("2",)
BAD = 2.0**20
"""From how many units of the last place on an expression is bad."""
GOOD = 8.0
PLACES = np.array([0.3711, 0.6237, 1.7131, 2.2177, -0.5371, 0.0713])
UNARY = {  # text, NumPy, many digits
    "-": ("-{}", np.negative, lambda x: -x),
    "square": ("{}**2", np.square, lambda x: x * x),
    "sqrt": ("np.sqrt({})", np.sqrt, lambda x: mp.sqrt(x) if x >= 0 else _undefined()),
    "half": ("{} * 0.5", lambda x: x * x.dtype.type(0.5), lambda x: x / 2),
    "double": ("2 * {}", lambda x: x * x.dtype.type(2), lambda x: x * 2),
    "over": ("1 / {}", np.reciprocal, lambda x: 1 / x),
    "exp": ("np.exp({})", np.exp, mp.exp),
    "expm1": ("np.expm1({})", np.expm1, mp.expm1),
    "log": ("np.log({})", np.log, lambda x: mp.log(x) if x > 0 else _undefined()),
    "log1p": ("np.log1p({})", np.log1p, lambda x: mp.log1p(x) if x > -1 else _undefined()),
    "log2": ("np.log2({})", np.log2, lambda x: mp.log(x) / mp.log(2) if x > 0 else _undefined()),
    "log10": ("np.log10({})", np.log10, lambda x: mp.log(x) / mp.log(10) if x > 0 else _undefined()),
    "sin": ("np.sin({})", np.sin, mp.sin),
    "cos": ("np.cos({})", np.cos, mp.cos),
    "tan": ("np.tan({})", np.tan, mp.tan),
    "sinh": ("np.sinh({})", np.sinh, mp.sinh),
    "cosh": ("np.cosh({})", np.cosh, mp.cosh),
    "tanh": ("np.tanh({})", np.tanh, mp.tanh),
    "arcsin": ("np.arcsin({})", np.arcsin, lambda x: mp.asin(x) if abs(x) <= 1 else _undefined()),
    "arccos": ("np.arccos({})", np.arccos, lambda x: mp.acos(x) if abs(x) <= 1 else _undefined()),
    "arctan": ("np.arctan({})", np.arctan, mp.atan),
    "arcsinh": ("np.arcsinh({})", np.arcsinh, mp.asinh),
    "arccosh": ("np.arccosh({})", np.arccosh, lambda x: mp.acosh(x) if x >= 1 else _undefined()),
    "arctanh": ("np.arctanh({})", np.arctanh, lambda x: mp.atanh(x) if abs(x) < 1 else _undefined()),
    "log2*": ("{} * (1 / np.log(2))", lambda x: x / np.log(x.dtype.type(2)), lambda x: x / mp.log(2)),
    "log10*": ("{} * (1 / np.log(10))", lambda x: x / np.log(x.dtype.type(10)), lambda x: x / mp.log(10)),
}
BINARY = {
    "+": ("({} + {})", np.add, lambda x, y: x + y),
    "-": ("({} - {})", np.subtract, lambda x, y: x - y),
    "*": ("({} * {})", np.multiply, lambda x, y: x * y),
    "/": ("({} / {})", np.divide, lambda x, y: x / y),
}
_SCALES = {"half", "double", "over", "-", "square", "log2*", "log10*"}


def _undefined() -> object:
    raise ValueError


def expressions() -> Iterator[tuple]:
    """All that is looked at, the small ones first."""
    functions = [f for f in UNARY if f not in _SCALES]
    first = [(f, X) for f in UNARY]
    yield from [X, ONE, TWO, *first]
    plain = [(f, X) for f in functions]
    near = [(f, (s, X)) for f in functions for s in ("half", "double", "over", "-", "square")]
    squares = [("square", e) for e in plain]
    terms = [X, ONE, TWO, *first]
    yield from near
    second = [(f, e) for f in UNARY for e in plain]
    yield from second
    pairs = [(o, a, b) for o in BINARY for a in terms for b in terms if a != b or o == "+"]
    yield from pairs
    wide = [(o, a, b) for o in "+-" for a in (ONE, TWO, X) for b in (*squares, *near, *second)]
    wide += [(o, b, a) for o in "-" for a in (ONE, TWO, X) for b in (*squares, *near, *second)]
    yield from wide
    yield from [(o, a, b) for o in "+-" for a in squares for b in squares if a != b]
    small = [(o, a, b) for o in "+-" for a, b in ((ONE, X), (X, ONE), (ONE, ("square", X)), (("square", X), ONE))]
    small += [(o, a, b) for o in "+-" for a in (ONE, TWO) for b in plain]
    yield from [(f, e) for f in UNARY for e in small]
    yield from [(f, e) for f in UNARY for e in near]
    yield from [(o, a, b) for o in "*/" for a in (*plain, X, *squares) for b in small]
    yield from [(o, a, b) for o in "/" for a in small for b in (*plain, X, *squares)]
    deep = [(f, ("sqrt", ("half", X))) for f in functions] + [(f, ("sqrt", X)) for f in functions]
    yield from deep
    yield from [
        (s, e) for s in ("double", "half", "over", "-", "square", "log2*", "log10*") for e in (*near, *deep, *second)
    ]
    yield from [("double", ("square", e)) for e in near]
    yield from [(o, a, b) for o in "*/" for a in (*plain, *near) for b in (*plain, *near)]
    yield from [("square", (o, a, b)) for o in "*/" for a in (ONE, *plain) for b in plain]


def text(e: tuple) -> str:
    """An expression as NumPy text."""
    if len(e) == 1:
        return e[0]
    parts = [text(a) for a in e[1:]]
    if len(e) == 3:
        return BINARY[e[0]][0].format(*parts)
    form = UNARY[e[0]][0]
    return form.format(parts[0] if form.startswith("np.") or len(e[1]) == 1 else f"({parts[0]})")


def parts(e: tuple) -> Iterator[tuple]:
    """What an expression is made of, without itself."""
    for a in e[1:]:
        yield a
        yield from parts(a)


def size(e: tuple) -> int:
    """How many ops an expression has."""
    return 0 if len(e) == 1 else (0 if e[0] in _SCALES else 1) + 0.25 + sum(map(size, e[1:]))


class Values:
    """Values of expressions at points, each part once."""

    def __init__(self, points: np.ndarray) -> None:
        one = points.dtype.type(1)
        self.known = {X: points, ONE: np.full_like(points, one), TWO: np.full_like(points, 2 * one)}

    def of(self, e: tuple) -> np.ndarray:
        """The value of ``e``."""
        found = self.known.get(e)
        if found is None:
            table = BINARY if len(e) == 3 else UNARY
            found = self.known[e] = table[e[0]][1](*map(self.of, e[1:]))
        return found


@lru_cache(maxsize=100_000)
def exactly(e: tuple, x: object) -> object:
    """The same to many digits; an error where it is not defined."""
    if len(e) == 1:
        return x if e == X else mp.mpf(int(e[0]))
    table = BINARY if len(e) == 3 else UNARY
    return table[e[0]][2](*(exactly(a, x) for a in e[1:]))


def points() -> np.ndarray:
    """Numbers of all sizes, both signs, and many near 1 and near where angles turn."""
    r = np.random.default_rng(0)
    wide = 10.0 ** r.uniform(-18, 3, 110)
    around = np.repeat([1.0, np.pi / 2, 0.5], 12) * (1 + r.choice([-1, 1], 36) * 10.0 ** r.uniform(-15, -1, 36))
    ordinary = r.uniform(0, 4, 24)
    return np.concatenate([wide, around, ordinary]) * r.choice([-1.0, 1.0], 170)


def errors(value: np.ndarray, truth: list) -> np.ndarray:
    """Units of the last place; what is no number counts as all of them."""
    found = np.zeros(len(truth))
    for k, true in enumerate(truth):
        if true is None or not 1e-290 < abs(true) < 1e290:
            continue
        v = value[k]
        place = np.spacing(abs(float(true)))
        found[k] = (
            2.0**64 if not np.isfinite(v) else min(float(abs(mp.mpf(float(v)) - true) / mp.mpf(float(place))), 2.0**64)
        )
    return found


def mended(e: tuple, at: np.ndarray, truth: list) -> np.ndarray:
    """The errors of what rewriting makes of an expression."""
    graph = rewrite(tm.trace(eval(f"lambda x: {text(e)}", {"np": np}), at), "stable").graph  # noqa: S307 (text from above)
    return errors(np.broadcast_to(evaluate_graph(graph, [at])[0], at.shape), truth)


def sides(bad: np.ndarray, good: np.ndarray, at: np.ndarray) -> tuple[str, float] | None:
    """On which side of which bound an expression is nowhere worse, and the other one is good on the other side."""
    fine = good <= bad + 2
    for name, key in (("abs(x) <", np.abs(at)), ("abs(x) >", -np.abs(at)), ("x <", at), ("x >", -at)):
        order = np.argsort(key)
        wins = fine[order]
        count = len(wins) if wins.all() else int(np.argmin(wins))
        if not count:
            continue
        left = bad[order][count:]
        if not len(left):
            return "", 0.0
        if left.max() <= BAD / 64 and good[order][:count].max() < GOOD * 8:
            return name, abs(key[order][count])
    return None


def main() -> None:
    """Print what is found."""
    fingerprints = Values(PLACES.astype(np.longdouble))
    at = points()
    doubles = Values(at)
    classes: dict[bytes, list[tuple]] = defaultdict(list)
    seen: set[tuple] = set()
    with np.errstate(all="ignore"):
        for e in expressions():
            if e in seen:
                continue
            seen.add(e)
            value = fingerprints.of(e)
            key = np.array([float(f"{v:.13g}") for v in value])
            if np.isfinite(key).sum() >= 3 and len(set(key)) > 1:
                classes[key.tobytes()].append(e)
        print(f"{len(seen)} expressions, {len(classes)} values", file=sys.stderr)
        explained: set[tuple] = set()
        rows = 0
        for members in sorted((m for m in classes.values() if len(m) > 1), key=lambda m: min(map(size, m))):
            table = np.array([doubles.of(e) for e in members])
            scale = np.abs(table).max(axis=0)
            apart = np.abs(table - table[0]) > 1e-9 * np.where(np.isfinite(scale), scale, 1)
            if not (apart | (np.isfinite(table) != np.isfinite(table[0]))).any():
                continue
            rows += found_in(members, at, doubles, explained)
        print(f"\n{rows} rows", file=sys.stderr)


def found_in(members: list[tuple], at: np.ndarray, doubles: Values, explained: set[tuple]) -> int:
    """Print the rows of one class; how many they are."""
    simplest = min(members, key=size)
    truth: list = []
    for v in at:
        try:
            true = exactly(simplest, mp.mpf(float(v)))
            truth.append(true if mp.isfinite(true) and not isinstance(true, mp.mpc) else None)
        except (ValueError, ZeroDivisionError, OverflowError):
            truth.append(None)
    exactly.cache_clear()
    off = {e: errors(doubles.of(e), truth) for e in members}
    rows = 0
    for e in sorted(members, key=size):
        if off[e].max() < BAD or any(p in explained for p in parts(e)):
            continue
        now = mended(e, at, truth)
        explained.add(e)
        if now.max() < BAD / 1024:
            continue
        options = []
        for q in members:
            where_ = sides(now, off[q], at) if q != e else None
            if where_ is not None and off[q].max() < off[e].max() / 4:
                options.append((bool(where_[0]), size(q), q, where_))
        if options:
            _, _, q, (side, bound) = min(options, key=lambda o: o[:2])
            told = f"where {side} {bound:.3g}" if side else ""
            print(
                f"{text(e)} | {text(q)} | {told} | {np.log2(1 + now).mean():.1f} | {np.log2(1 + off[q]).mean():.1f}",
                flush=True,
            )
            rows += 1
    return rows


if __name__ == "__main__":
    main()
