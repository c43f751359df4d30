"""Tests rules over arrays on numbers before they are used: both sides on random arrays, in double and single precision."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tensormagic.functions.rules.array_rules import ArrayRule, Built, Statement, build, example
from tensormagic.ir.errors import ParseError
from tensormagic.ir.facts import not_negative
from tensormagic.ir.node import Node, topological
from tensormagic.ir.rewriting.rules import Rule
from tensormagic.ir.size import hint
from tensormagic.transform.rewriting.notation import fit
from tensormagic.transform.rewriting.users.trial import Trial

_EXTENTS = (
    *((n, n, n) for n in (1, 2, 3, 5)),
    *((2, 3, 4), (3, 2, 5), (4, 3, 2), (5, 4, 2), (3, 1, 3), (1, 3, 1), (1, 4, 2), (1, 1, 3), (3, 1, 1)),
)
_DRAWS = 12  # draws for each choice of extents
_AGREES = 1e-9
_ROUNDINGS = 64
_TIMES = 2.0  # how much larger the error of the replacement may be than that of the pattern

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class StatedArrays:
    """A rule over arrays, for a trial on numbers."""

    made: ArrayRule

    @cached_property
    def rule(self) -> Rule:
        """The rule."""
        return self.made.rule

    @property
    def assumed(self) -> tuple[str, ...]:
        """The rule's conditions on values, as text."""
        return self.made.statement.assumed

    @property
    def line(self) -> int:
        """The line that states it."""
        return self.made.statement.line

    def trial(self) -> Trial:
        """Return the result of trying the rule on numbers, as its level asks."""
        return trial(self.made)


@dataclass
class _Errors:
    """Results so far: the difference of the sides, and their errors in single precision."""

    count: int = 0
    apart: float = 0.0
    before: float = 0.0
    after: float = 0.0
    fault: str = ""


def trial(rule: ArrayRule) -> Trial:
    """Return the result of comparing both sides of a rule on random arrays of many shapes."""
    stated, seen = rule.statement, _Errors()
    draw = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        for built, arrays in _samples(rule, draw):
            _compare(stated, built, arrays, seen)
            if seen.fault:
                return Trial(seen.count, seen.apart, seen.fault)
    if not seen.count:
        conditions = " and ".join(stated.assumed)
        return Trial(0, 0.0, f"no arrays were found where {conditions}" if conditions else "the shapes never fit")
    limit = _TIMES * seen.before + _ROUNDINGS * float(np.finfo(np.float32).eps)
    if stated.level != "real" and seen.after > limit:
        seen.fault = (
            f"the replacement is less accurate: in single precision it is off by {seen.after:.1e}, "
            f"the pattern by {seen.before:.1e}"
        )
    return Trial(seen.count, seen.apart, seen.fault)


def _samples(rule: ArrayRule, draw: np.random.Generator) -> Iterator[tuple[Built, dict[str, Array]]]:
    stated = rule.statement
    signs = {name for holds, name in stated.checks if holds is not_negative}  # drawn without negative numbers
    fixed = {name for holds, name in stated.checks if holds is not not_negative}
    every = dict.fromkeys(tuple(len(leaf.type.shape) for leaf in case.leaves.values()) for case in rule.cases)
    for axes, extents in itertools.product(every, _EXTENTS):
        ranks = dict(zip(stated.names, axes, strict=True))
        if any(ranks[name] for name in fixed):
            continue  # a constant is a single number
        turned = {n: itertools.cycle(extents[k % 3 :] + extents[: k % 3]) for k, n in enumerate(ranks)}
        shapes = {n: tuple(itertools.islice(turned[n], rank)) for n, rank in ranks.items()}
        built = build(stated, {n: example(shape) for n, shape in shapes.items()}, strict=False)
        if built is None or fit(built.replacement, built.pattern) is None:
            continue
        for iteration in range(_DRAWS):
            arrays = {n: _array(draw, shape, n in signs, iteration) for n, shape in shapes.items()}
            if all(_holds(text, arrays) for text in stated.assumed):
                yield built, arrays


def _holds(text: str, arrays: Mapping[str, Array]) -> bool:
    """Return whether a condition holds of all elements."""
    try:
        return bool(np.all(eval(text, {**vars(np.linalg), **vars(np), "np": np, **arrays})))  # noqa: S307 (the user's own text)
    except np.linalg.LinAlgError:
        return False
    except (AttributeError, NameError, TypeError, ValueError) as error:
        raise ParseError(f"the condition {text!r} cannot be tried: {error}") from None


def _array(draw: np.random.Generator, shape: tuple[int, ...], without_sign: bool, iteration: int) -> Array:
    """Return random numbers: of both signs, of one sign, of many sizes, or with a nan or an infinity, by turns."""
    found = np.asarray(draw.normal(size=shape))
    if iteration % 4 == 1 or without_sign:
        found = np.abs(found)
    if iteration % 4 == 2:
        found = found * 10.0 ** draw.uniform(-3, 3, shape)
    if iteration in {5, 6} and found.size and not without_sign:
        found.flat[int(draw.integers(found.size))] = np.nan if iteration == 5 else np.inf
    return found


def _compare(stated: Statement, built: Built, arrays: Mapping[str, Array], seen: _Errors) -> None:
    double = _values(built, arrays)
    if double is None:
        return
    pattern, replacement = (np.asarray(v, float) for v in double)
    finite = all(np.isfinite(a).all() for a in arrays.values())
    if finite:
        seen.count += 1
        distance = _distance(replacement, pattern)
        seen.apart = max(seen.apart, distance)
        if distance > _AGREES * _condition_of(built, arrays, pattern):
            seen.fault = f"the sides differ {_told(arrays, pattern, replacement)}"
            return
        single = _values(built, {n: a.astype(np.float32) for n, a in arrays.items()})
        truth = _values(built, {n: a.astype(np.float32).astype(float) for n, a in arrays.items()})
        if single is not None and truth is not None:
            seen.before = max(seen.before, _distance(np.asarray(single[0], float), np.asarray(truth[0], float)))
            seen.after = max(seen.after, _distance(np.asarray(single[1], float), np.asarray(truth[0], float)))
    elif stated.level != "real" and np.any(np.isnan(pattern) & ~np.isnan(replacement)):
        seen.fault = f"a nan goes {_told(arrays, pattern, replacement)}"
    bits = [np.where(np.isnan(v), np.nan, v).view(np.int64) for v in (pattern, replacement)]
    if stated.level == "exact" and not np.array_equal(bits[0], bits[1]):
        seen.fault = f"the sides differ in bits {_told(arrays, pattern, replacement)}"


def _distance(found: Array, truth: Array) -> float:
    """Return the largest difference, relative to the largest value."""
    scale = float(np.max(np.abs(truth), initial=0.0)) or 1.0
    return float(np.max(np.abs(found - truth), initial=0.0)) / scale


def _condition_of(built: Built, arrays: Mapping[str, Array], pattern: Array) -> float:
    """Return by how many roundings one rounding of the arrays moves the pattern; at least 1."""
    eps = 2.0**-40
    moved = _values(built, {n: a * (1 + eps * np.cos(np.arange(a.size)).reshape(a.shape)) for n, a in arrays.items()})
    return 1.0 if moved is None else max(1.0, _distance(np.asarray(moved[0], float), pattern) / eps)


def _told(arrays: Mapping[str, Array], pattern: Array, replacement: Array) -> str:
    apart = np.abs(np.broadcast_to(replacement, pattern.shape) - pattern)
    place = np.unravel_index(int(np.argmax(np.where(np.isnan(apart), np.inf, apart))), pattern.shape)
    shapes = ", ".join(f"{n}{list(a.shape)}" if a.shape else f"{n} = {float(a):.6g}" for n, a in arrays.items())
    where = f"[{', '.join(map(str, place))}]" if place else ""
    values = f"{pattern[place]:.6g} on the left, {np.broadcast_to(replacement, pattern.shape)[place]:.6g} on the right"
    return f"for {shapes}: {f'at {where} ' if where else ''}{values}"


def _values(built: Built, arrays: Mapping[str, Array]) -> tuple[Any, Any] | None:
    """Return both sides computed by NumPy, or None if it raises."""
    known: dict[Node, Any] = {leaf: arrays[n] if leaf.type.shape else arrays[n][()] for n, leaf in built.leaves.items()}
    replacement = fit(built.replacement, built.pattern)
    if replacement is None:
        return None
    try:
        for node in topological([built.pattern, replacement]):
            if node not in known:
                known[node] = node.op.evaluate(node, [known[a] for a in node.args], _number)
    except (ArithmeticError, np.linalg.LinAlgError):
        return None
    return known[built.pattern], known[replacement]


def _number(size: Any) -> int:
    return size if isinstance(size, int) else int(hint(size) or 0)
