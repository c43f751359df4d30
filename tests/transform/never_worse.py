"""Texts as people write them, and where their rewritten forms are less accurate: drawn expressions, all kinds of numbers, many digits.

Formulas of statistics, physics, finance, losses, geometry and textbooks of numerical analysis, with what stands in their places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special

import tensormagic as tm
from tensormagic.backend.numpy_tier.reference import evaluate_graph
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import topological
from tensormagic.ops.leaf import CONSTANT
from tensormagic.transform.rewriting import rewrite
from tests.transform import oracle
from tests.transform.formulas import FORMULAS, PLACES

mp = oracle.mp


def texts(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Subject and text of each formula as it stands, then with something else in its places; ``count`` of them."""
    r = np.random.default_rng(seed)
    every = [(subject, formula) for subject, formulas in FORMULAS.items() for formula in formulas]
    plain = dict(zip("uvw", "xyz", strict=True))
    found = dict.fromkeys((subject, _filled(formula, plain)) for subject, formula in every)
    while len(found) < count:
        subject, formula = every[r.integers(len(every))]
        places = dict(plain)
        for place in "uvw":
            if r.random() < 0.5:
                form = PLACES[r.integers(len(PLACES))]
                places[place] = f"({form.replace('{}', str(r.choice(list('xy'))))})"
        found[subject, _filled(formula, places)] = None
    yield from list(found)[:count]


def _filled(formula: str, places: dict[str, str]) -> str:
    """A formula with what stands in its places; ``u``, ``v``, ``w`` are words of their own."""
    return re.sub(r"\b[uvw]\b", lambda m: places[m[0]], formula)


def function_of(text: str) -> tuple[Any, int]:
    """The function that a text is, and how many arguments it has."""
    names = [n for n in "xyz" if re.search(rf"\b{n}\b", text)]
    return eval(f"lambda {', '.join(names)}: {text}", {"np": np, "special": special}), len(names)


def inputs(dtype: Any, count: int, arity: int, seed: int) -> list[np.ndarray]:
    """Special values and ends of the range, and numbers of all sizes, near 0, near 1, near each other."""
    r = np.random.default_rng(seed)
    info = np.finfo(dtype)
    columns = oracle.samples(dtype, count // 3, arity, seed)
    rest = count - len(columns[0])
    if rest <= 0:
        return columns
    low, high = np.log10(float(info.tiny)), np.log10(float(info.max))
    more = []
    for k in range(arity):
        ordinary = r.normal(size=rest) * np.exp(r.normal(size=rest))
        positive = 10.0 ** r.uniform(-4, 4, rest)
        unit = r.random(rest)
        small = r.choice([-1.0, 1.0], rest) * 10.0 ** r.uniform(np.log10(float(info.eps)) - 3, 0, rest)
        ends = 10.0 ** np.where(
            r.random(rest) < 0.5, r.uniform(low / 2 - 3, low / 2 + 3, rest), r.uniform(high / 2 - 3, high / 2 + 3, rest)
        )
        near_one = 1 + r.choice([-1.0, 1.0], rest) * 10.0 ** r.uniform(np.log10(float(info.eps)), -0.5, rest)
        exponents = r.uniform(0, np.log(float(info.max)) * 1.1, rest) * r.choice([-1.0, 1.0], rest)
        column = np.choose(
            r.choice(7, rest, p=[0.25, 0.2, 0.2, 0.15, 0.05, 0.05, 0.1]),
            [ordinary, positive, unit, small, ends, near_one, exponents],
        )
        if k:
            beside = r.random(rest)
            near = more[0] * (1 + r.choice([-1.0, 1.0], rest) * 10.0 ** r.uniform(np.log10(float(info.eps)), -1, rest))
            column = np.where(beside < 0.2, near, column)
        more.append(column)
    with np.errstate(all="ignore"):
        return [np.concatenate([a, b.astype(dtype)]) for a, b in zip(columns, more, strict=True)]


# the real value -------------------------------------------------------------------------------------------------------


_EXTRA = {
    "log_gamma": mp.loggamma,
    "floor": mp.floor,
    "logical_and": lambda a, b: a and b,
    "logical_or": lambda a, b: a or b,
    "less_equal": lambda a, b: a <= b,
    "greater_equal": lambda a, b: a >= b,
}
TRUE = {**oracle.TRUE, **_EXTRA}
TRUE.update(
    cbrt=lambda x: mp.cbrt(x) if x >= mp.mpf(0) else mp.mpf(-1) * mp.cbrt(abs(x)),
    exp2=lambda x: mp.mpf(2) ** x,
    arctan=mp.atan,
    lgamma=mp.loggamma,
    form=lambda x: x,
    astype=lambda x: x,
)


def truth(graph: Graph, point: Sequence[Any]) -> Any:
    """The real number that the text is; None where it is none. Digits by the largest and smallest number on the way."""
    kept = mp.dps
    try:
        digits, value = 60, None
        for _ in range(3):
            mp.dps = digits
            value, spread = _at(graph, [mp.mpf(float(v)) for v in point])
            asked = int(45 + 2.5 * spread)
            if value is None or asked <= digits or digits >= 1500:
                break
            digits = min(asked, 1500)
        return value
    finally:
        mp.dps = kept


def _at(graph: Graph, point: Sequence[Any]) -> tuple[Any, float]:
    memo = dict(zip(graph.parameters, point, strict=True))
    spread = 0.0
    try:
        for node in topological(graph.results):
            if node not in memo:
                memo[node] = (
                    mp.mpf(float(node["bits"].array()))
                    if node.op is CONSTANT
                    else TRUE[node.op.name](*(memo[a] for a in node.args))
                )
            value = memo[node]
            if isinstance(value, mp.mpf) and mp.isfinite(value):
                nothing = not value and node.op.name in {"add", "subtract", "log"} and any(memo[a] for a in node.args)
                spread = max(spread, 250 if nothing else abs(float(mp.mag(value))) * 0.30103 if value else 0)
    except (ZeroDivisionError, ValueError, OverflowError):
        return None, spread
    found = memo[graph.results[0]]
    return (found if isinstance(found, mp.mpf) and mp.isfinite(found) else None), spread


# comparing ------------------------------------------------------------------------------------------------------------


@dataclass
class Compared:
    """What was found for one text and dtype."""

    subject: str
    text: str
    dtype: str
    rules: tuple[str, ...] = ()
    tried: int = 0
    judged: int = 0
    above: int = 0
    worse: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    lost: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])


_SMALL = 2.0**-8
_DIGITS = 2.0**20
"""Up to which error a text has a number that may be lost."""


def compared(subject: str, text: str, dtype: Any, count: int, seed: int, most: int = 150) -> Compared:
    """The text and its rewritten form over ``count`` inputs; at most ``most`` of those that differ are judged."""
    function, arity = function_of(text)
    points = inputs(dtype, count, arity, seed)
    found = Compared(subject, text, np.dtype(dtype).name, tried=len(points[0]))
    with np.errstate(all="ignore"):
        before = tm.trace(function, *(p[:3] for p in points))
        done = rewrite(before, "stable")
        found.rules = tuple(dict.fromkeys(f.rule.name for f in done.fired if f.rule.level != "exact"))
        if not found.rules:
            return found
        old, new = (
            np.broadcast_to(v, points[0].shape) for v in (function(*points), evaluate_graph(done.graph, points)[0])
        )
        if old.dtype != new.dtype:
            found.lost.append((f"{old.dtype} became {new.dtype}",))
            return found
        apart = np.abs(new.astype(np.longdouble) - old) > np.spacing(np.abs(np.where(np.isfinite(old), old, 1)))
        apart |= np.isfinite(old) != np.isfinite(new)
        apart &= ~np.isnan(old)
    finite = np.logical_and.reduce([np.isfinite(p) for p in points])
    for k in np.flatnonzero(apart & ~finite):  # a number at infinity that the text has, too
        if np.isnan(new[k]) and not np.isnan(old[k]):
            found.lost.append((*(p[k] for p in points), old[k], new[k], None))
    good, unsure = _suspects(function, points, old, new, apart & finite)
    r = np.random.default_rng(seed)
    judged = [*r.permutation(good)[:most], *r.permutation(unsure)[: most // 3]]
    info = np.finfo(dtype)
    for k in judged:
        point = tuple(p[k] for p in points)
        true = truth(before, point)
        found.judged += 1
        if true is None:
            continue  # where there is no real number, the text has one by its roundings
        was, is_ = oracle.ulps(float(old[k]), true, dtype), oracle.ulps(float(new[k]), true, dtype)
        if is_ <= was + 1:
            continue
        found.above += 1
        if np.isinf(is_) and was < _DIGITS and abs(true) < mp.mpf(float(info.max)):
            found.lost.append((*point, old[k], new[k], float(true)))
        elif all(_around(function, before, done.graph, point, dtype, n) for n in (24, 100, 200)):
            found.worse.append((*point, was, is_, float(true)))
    return found


def _suspects(
    function: Any, points: list[np.ndarray], old: np.ndarray, new: np.ndarray, apart: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs at which more digits of the machine's say that the text is nearer: those where it is near, and others."""
    with np.errstate(all="ignore"):
        try:
            wide = np.broadcast_to(function(*(p.astype(np.longdouble) for p in points)), old.shape)
        except TypeError:  # functions of SciPy's
            wide = np.broadcast_to(function(*(p.astype(float) for p in points)), old.shape).astype(np.longdouble)
        place = np.spacing(np.abs(old)).astype(np.longdouble)
        was, is_ = np.abs(old - wide) / place, np.abs(new - wide) / place
        suspect = apart & ~(is_ <= was + 0.9)
    near = suspect & (was < 4)
    return np.flatnonzero(near), np.flatnonzero(suspect & ~near)


def _around(function: Any, before: Graph, after: Graph, point: tuple[Any, ...], dtype: Any, count: int) -> bool:
    """Whether the rewritten form is worse by a unit and by half on the average of ``count`` inputs beside ``point``.

    24 inputs are within 8 units, 100 within half of the digits, 200 within a sixty-fourth, or of other small sizes where ``point`` is
    small: neighbours of a small ``x`` share one rounding of ``x + 1``, and its luck.
    """
    r = np.random.default_rng(count)
    reach = 8 if count < 100 else 2 ** (np.finfo(dtype).nmant // 2)
    top = np.finfo(dtype).max  # which has no number above it
    beside: list[np.ndarray] = []
    with np.errstate(over="ignore"):
        for v in map(np.asarray, point):
            if count < 200:
                around = v + np.spacing(np.minimum(np.abs(v), top / 2)) * r.integers(-reach, reach + 1, count)
            elif v and abs(v) < _SMALL:
                around = v * 2.0 ** r.uniform(-4, np.log2(_SMALL) - np.log2(abs(v)), count)
            else:
                around = v * 2.0 ** r.uniform(-(2**-6), 2**-6, count)
            beside.append(np.clip(around, -float(top), float(top)).astype(dtype))
    with np.errstate(all="ignore"):
        old, new = (np.broadcast_to(v, (count,)) for v in (function(*beside), evaluate_graph(after, beside)[0]))
    was, is_ = [], []
    for k, p in enumerate(zip(*beside, strict=True)):
        true = truth(before, p)
        if true is not None:
            was.append(min(oracle.ulps(old[k], true, dtype), 1e30))
            is_.append(min(oracle.ulps(new[k], true, dtype), 1e30))
    return bool(was) and bool(
        np.mean(is_) > np.mean(was) + (1 if count < 100 else 0.5) and np.mean(is_) > 1.5 * np.mean(was)
    )
