"""Tries a user's rules on numbers before they are used: both sides at many points, and again with more digits."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from tensormagic.ir.errors import ParseError
from tensormagic.ir.node import Node, topological
from tensormagic.ir.rewriting.rule_text import show
from tensormagic.ir.rewriting.rules import WILD, Rule
from tensormagic.ops.leaf import CONSTANT, constant
from tensormagic.ops.real_numbers import UnknownError, numbers, real_values, reals

_POINTS = 400
_EDGES = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1e-18,
    -1e-18,
    1e-300,
    1e-310,
    40.0,
    -40.0,
    1000.0,
    -1000.0,
    1e300,
    np.inf,
    -np.inf,
    np.nan,
)
_MOST_EDGES = 4096
_AGREES = 1e-9
_ULPS = 8
_ROUNDINGS = 1000
_FAR = 20_000  # an exponent outside the range of all of NumPy's floats
_MOST_REAL = 100
"""At how many points a side is computed as a real number."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Trial:
    """The result of a trial.

    Parameters
    ----------
    points
        The number of points at which both sides were compared.
    apart
        The largest relative difference, in more than double precision.
    fault
        Why the rule may not be used at its level; empty if it may.
    """

    points: int
    apart: float
    fault: str = ""


def trial(
    pattern: Node, replacement: Node, level: str, assumed: Sequence[str] = (), not_negative: Sequence[str] = ()
) -> Trial:
    """Return the result of comparing both sides of a rule on numbers.

    Parameters
    ----------
    pattern, replacement
        The sides, over pattern variables.
    level
        What is asked of it. ``"real"``: that the sides agree. ``"stable"``: that besides the replacement is nowhere less
        accurate in float64. ``"exact"``: that besides all bits are the same.
    assumed, not_negative
        Conditions on the variables, as text; and variables that are nowhere below zero.
    """
    if _unordered(pattern) == _unordered(replacement):
        return Trial(0, 0.0, "both sides are the same, but for the order of operands, which no rule has to change")
    names = sorted({n["name"] for n in topological([pattern]) if n.op is WILD})
    random, edges = _samples(names, not_negative)
    with np.errstate(all="ignore"):
        random, edges = (_where(points, assumed) for points in (random, edges))
        count = len(next(iter(random.values()), ()))
        if not count:
            return Trial(0, 0.0, f"no point was found where {' and '.join(assumed)}")
        longer = _longer(random, pattern, replacement)
        eps = np.finfo(next(iter(longer.values())).dtype).eps
        values = [_values(side, longer) for side in (pattern, replacement)]
        left, right = values[0][pattern], values[1][replacement]
        known = np.isfinite(left) & np.isfinite(right)
        largest = np.max(
            [np.abs(v) for table in values for v in table.values()], axis=0
        )  # cancellation leaves the terms' rounding errors
        known &= np.abs(left - right) > _ROUNDINGS * eps * largest
        apart = np.where(known, _relative(left, right), 0.0)
        worst = int(np.argmax(apart))
        if apart[worst] > _AGREES:
            told = (
                f"{_at(random, worst)}: {show(pattern)} is {left[worst]:.6g}, {show(replacement)} is {right[worst]:.6g}"
            )
            return Trial(count, float(apart[worst]), f"the sides differ {told}")
        if (lost := np.isfinite(left) & np.isnan(right)).any():
            k = int(np.argmax(lost))
            told = f"{_at(random, k)}: {show(pattern)} is {left[k]:.6g}, {show(replacement)} is nan"
            return Trial(count, float(apart[worst]), f"the sides differ {told}")
        judge = {"real": None, "stable": _less_accurate, "exact": _other_bits}[level]
        fault = "" if judge is None else judge(pattern, replacement, random) or judge(pattern, replacement, edges)
    return Trial(count, float(apart[worst]), fault)


@cache
def changes_digits(rule: Rule) -> bool:
    """Return whether a rule may change a value, the sign of zero aside.

    ``x + 0 -> x`` is not exact, because of ``-0.0 + 0``, but changes no digits. A rule that is no pattern over numbers
    that can be tried may change them.
    """
    if rule.level == "exact":
        return False
    if rule.pattern is None or rule.assumptions:
        return True
    sides = [side if isinstance(side, Node) else constant(side) for side in (rule.pattern, rule.replacement)]
    told = {n["name"]: n["only"] for n in topological([rule.pattern]) if n.op is WILD}
    positive = [name for name, only in told.items() if only in {"Positive", "Unsigned", "Above"}]
    finite = [f"np.isfinite({name})" for name, only in told.items() if only in {"Finite", "Regular"}]
    try:
        with np.errstate(all="ignore"):
            drawn = [_where(points, finite) for points in _samples(sorted(told), positive)]
            tried = [[value_of(side, points) for side in sides] for points in drawn]
    except (ParseError, TypeError, ValueError):  # not a function of floating-point numbers
        return True
    return not all(np.array_equal(a, b, equal_nan=True) for a, b in tried)


def _samples(names: Sequence[str], not_negative: Sequence[str]) -> tuple[dict[str, Array], dict[str, Array]]:
    draw = np.random.default_rng(0)
    size = 4 * _POINTS
    random = {n: draw.normal(size=size) * 10.0 ** draw.uniform(-2, 1, size) for n in names}
    grid = list(product(_EDGES, repeat=len(names)))
    if len(grid) > _MOST_EDGES:
        grid = [grid[k] for k in draw.permutation(len(grid))[:_MOST_EDGES]]
    edges = {n: np.array([point[k] for point in grid]) for k, n in enumerate(names)}
    for name in set(not_negative) & set(names):
        random[name], edges[name] = np.abs(random[name]), np.abs(edges[name])
    return random, edges


def _where(points: Mapping[str, Array], assumed: Sequence[str]) -> dict[str, Array]:
    """Return the points at which the conditions hold."""
    kept = np.ones(len(next(iter(points.values()), ())), bool)
    for text in assumed:
        kept &= np.asarray(condition(text, points), bool)
    return {n: v[kept][:_MOST_EDGES] for n, v in points.items()}


def condition(text: str, points: Mapping[str, Array]) -> Any:
    """Return where a comparison of expressions holds, element by element."""
    return _condition(ast.parse(text, mode="eval").body, points)


def _condition(tree: ast.expr, points: Mapping[str, Array]) -> Any:
    """Return the values of a comparison of expressions at the points."""
    space = {name: getattr(np, name) for name in dir(np) if isinstance(getattr(np, name), np.ufunc)}
    space |= {"np": np, "abs": np.abs, "__builtins__": {}, **points}
    if isinstance(tree, ast.Compare) and len(tree.ops) > 1:  # a < b < c
        sides = [tree.left, *tree.comparators]
        parts = [ast.Compare(a, [op], [b]) for a, op, b in zip(sides, tree.ops, sides[1:], strict=False)]
        return np.logical_and.reduce([_condition(part, points) for part in parts])
    try:
        return eval(compile(ast.fix_missing_locations(ast.Expression(tree)), "rule", "eval"), space)  # noqa: S307 (the user's own text)
    except (AttributeError, NameError, TypeError) as error:
        raise ParseError(f"the condition {ast.unparse(tree)!r} cannot be tried: {error}") from None


def _longer(points: Mapping[str, Array], *sides: Node) -> Mapping[str, Array]:
    """Return the points in more than double precision; unchanged if a function of the sides is not available there."""
    longer = {n: v.astype(np.longdouble) for n, v in points.items()}
    try:
        for side in sides:
            _values(side, {n: v[:1] for n, v in longer.items()})
    except TypeError:
        return points
    return longer


def value_of(node: Node, points: Mapping[str, Array]) -> Array:
    """Return the value of a side of a rule at the points, in their dtype."""
    return _values(node, points)[node]


def _values(node: Node, points: Mapping[str, Array]) -> dict[Node, Array]:
    """Return the values of all nodes of a side of a rule at the points."""
    kind = next(iter(points.values())).dtype
    values: dict[Node, Array] = {}
    for part in topological([node]):
        if part.op is WILD:
            values[part] = points[part["name"]]
        elif part.op is CONSTANT:
            values[part] = np.full(next(iter(points.values())).shape, part["bits"].array().item(), kind)
        else:
            values[part] = np.asarray(_numpy(part)(*(values[a] for a in part.args)))
    return values


def _numpy(node: Node) -> Callable[..., Any]:
    if node.op.name in {"broadcast", "form", "astype"}:
        return lambda x: x
    function: Callable[..., Any] | None = node.op.numpy
    if function is None:
        raise ParseError(f"{node.op.name} cannot be tried on numbers")
    return function


def _relative(x: Array, y: Array) -> Array:
    scale = np.maximum(np.maximum(np.abs(x), np.abs(y)), np.finfo(np.float64).tiny)
    return np.where(x == y, 0.0, np.abs(x - y) / scale).astype(float)


def _unordered(node: Node) -> object:
    """Return a side in a form independent of the order of commutative operands."""
    if not node.args:
        return show(node)
    if not node.op.commutative:
        return node.op.name, tuple(map(_unordered, node.args))
    terms: list[object] = []
    for arg in node.args:
        own = _unordered(arg)
        terms += own[1] if isinstance(own, tuple) and own[0] == node.op.name else [own]
    return node.op.name, tuple(sorted(terms, key=repr))


def _less_accurate(pattern: Node, replacement: Node, points: Mapping[str, Array]) -> str:
    """Return a description of where the replacement is less accurate in float64; empty if nowhere."""
    longer = _longer(points, pattern, replacement)
    if points and next(iter(longer.values())).dtype != np.float64:
        truth, other = value_of(pattern, longer), value_of(replacement, longer)
        known = (np.isnan(truth) & np.isnan(other)) | (truth == other) | (_relative(truth, other) < _AGREES)
    else:  # a function known in float64 only: the other side may tell its exact value
        points = {n: v[:: max(1, len(v) // _MOST_REAL)] for n, v in points.items()}
        truth = next((t for t in (_real(side, points) for side in (pattern, replacement)) if t is not None), None)
        if truth is None:
            return (
                "which side is more accurate cannot be measured: both use functions that are available in float64 only"
            )
        known = ~np.isnan(truth)
    values = [value_of(side, points) for side in (pattern, replacement)]
    before, after = (_error(value, truth) for value in values)
    worse = known & (after > np.maximum(before, _ULPS * np.finfo(np.float64).eps))
    worse |= np.any([np.isnan(v) for v in points.values()], axis=0) & np.isnan(values[0]) & ~np.isnan(values[1])
    if not worse.any():
        return ""
    k = int(np.argmax(worse))
    shown = f"{show(pattern)} is {values[0][k]:.17g} there, and {show(replacement)} is {values[1][k]:.17g}"
    true = "" if np.isnan(truth[k]) else f" (with more digits {float(truth[k]):.17g})"
    return f"{show(replacement)} is less accurate {_at(points, k)}: {shown}{true}"


def _real(side: Node, points: Mapping[str, Array]) -> Array | None:
    """Return the exact values of a side, rounded to NumPy's widest float, or None if they are not known."""
    memo: dict[Node, Any] = {}
    try:
        for node in topological([side]):
            wild = node.op is WILD
            memo[node] = reals(points[node["name"]]) if wild else real_values(node, [memo[a] for a in node.args], int)
    except (ImportError, UnknownError):
        return None
    found = np.broadcast_to(memo[side], next(iter(points.values())).shape)
    parts = [numbers().frexp(v) if numbers().isfinite(v) else (v, 0) for v in found]
    return np.ldexp(
        np.array([np.longdouble(str(m)) for m, _ in parts]), np.array([int(min(max(e, -_FAR), _FAR)) for _, e in parts])
    )


def _error(value: Array, truth: Array) -> Array:
    """Return the relative error; infinite where only one is nan or infinite."""
    target = truth.astype(np.float64)
    same = (value == target) | (np.isnan(value) & np.isnan(target))
    found = _relative(value.astype(np.longdouble), truth)
    return np.where(same, 0.0, np.where(np.isfinite(value) & np.isfinite(target), found, np.inf))


def _other_bits(pattern: Node, replacement: Node, points: Mapping[str, Array]) -> str:
    left, right = (np.asarray(value_of(side, points), np.float64) for side in (pattern, replacement))
    other = (left.view(np.int64) != right.view(np.int64)) & ~(np.isnan(left) & np.isnan(right))
    if not other.any():
        return ""
    k = int(np.argmax(other))
    return f"{show(pattern)} and {show(replacement)} differ in bits {_at(points, k)}"


def _at(points: Mapping[str, Array], k: int) -> str:
    return f"at {', '.join(f'{n} = {float(v[k]):.6g}' for n, v in points.items())}"
