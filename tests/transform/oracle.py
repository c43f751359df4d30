"""Rules under test: an instance of each, nasty samples, and high precision as the judge of what it changes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import mpmath
import numpy as np

from tensormagic.backend.numpy_tier.reference import evaluate_graph
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, make, topological
from tensormagic.ir.rewriting.rules import WILD, Rule, build
from tensormagic.ir.type import array, symbol
from tensormagic.ops.effects.checks import assumed
from tensormagic.ops.leaf import CONSTANT, constant, parameter
from tensormagic.ops.scalars.scalar import absolute, isnan, maximum, minimum, where

DIGITS = 700
NUMBERS = (2.0, -3.0, 0.5, 1.0, 0.1)
"""What variables that only constants match are tried as."""


@dataclass(frozen=True)
class Instance:
    """A graph that a rule changes: before and after, over parameters that are vectors of one length."""

    rule: Rule
    before: Graph
    after: Graph


def variables(pattern: Node) -> list[Node]:
    return sorted((n for n in topological([pattern]) if n.op is WILD), key=lambda n: n["name"])


def instances(rule: Rule, dtype: object) -> list[Instance]:
    """A pattern's rule, over parameters of ``dtype`` (``bool`` for those that choose) and a few constants."""
    wild = variables(rule.pattern)
    constants = [v["name"] for v in wild if v["only"] == "Constant"]
    found = []
    dtype = np.dtype(dtype)
    whole = tuple(int(n) for n in NUMBERS if dtype.kind != "u" or n > 0)
    for numbers in itertools.product(NUMBERS if dtype.kind == "f" else whole, repeat=len(constants)):
        bound, parameters = {}, []
        for v in wild:
            if v["name"] in constants:
                bound[v["name"]] = constant(dtype.type(numbers[constants.index(v["name"])]))
                continue
            p = parameter(len(parameters), array(bool if v.type.dtype.kind == "b" else dtype, symbol("n0")))
            parameters.append(p)
            bound[v["name"]] = _as_said(p, v["only"])
        before = build(in_numbers(rule.pattern, whole=dtype.kind != "f"), bound)
        result = rule.apply(before)
        if result is not None:
            found.append(Instance(rule, Graph(tuple(parameters), (before,)), Graph(tuple(parameters), (result.node,))))
    return found


def _as_said(p: Node, only: str) -> Node:
    """What a variable of a pattern is bound to: the parameter, or what is made of it so that it is as the pattern asks."""
    if only in {"Positive", "Unsigned"}:
        return absolute(p)
    if only not in {"Above", "Finite", "Regular"}:
        return p
    large = float(np.finfo(p.type.dtype).max) if p.type.dtype.kind == "f" else 100
    if only == "Finite":
        return assumed(minimum(maximum(where(isnan(p), 0, p), -large), large), constant(True), "finite", "")
    known = minimum(
        maximum(where(isnan(p), 1, absolute(p)), float(np.finfo(p.type.dtype).tiny) if p.type.dtype.kind == "f" else 1),
        large,
    )
    return assumed(known, constant(True), "> 0" if only == "Above" else "> 0; finite", "")


def in_numbers(pattern: Node, *, whole: bool) -> Node:
    """A pattern with whole numbers for integers and bools."""
    memo: dict[Node, Node] = {}
    for node in topological([pattern]):
        args = [memo[a] for a in node.args]
        if whole and node.op is CONSTANT and node.type.dtype.kind == "f":
            memo[node] = constant(int(node["bits"].array()))
        else:
            memo[node] = make(node.op, args) if args else node
    return memo[pattern]


# samples --------------------------------------------------------------------------------------------------------------

EDGES = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0)


def finite_samples(dtype: object, count: int, seed: int) -> np.ndarray:
    """Finite numbers of all magnitudes, and many near where functions iteration."""
    r = np.random.default_rng(seed)
    info = np.finfo(dtype)
    exponents = np.log10(float(info.max)), np.log10(float(info.smallest_subnormal))
    wide = 10.0 ** r.uniform(exponents[1], exponents[0], count)
    near = 10.0 ** r.uniform(-18, 3, count)
    moderate = r.normal(size=count) * 3
    around = np.asarray([0.5, 1.0, 2.0, 20.0, 700.0, 89.0])[r.integers(6, size=count)] * (
        1 + 10.0 ** r.uniform(-16, -1, count)
    )
    mixed = np.choose(r.integers(4, size=count), [wide, near, moderate, around]) * r.choice([-1.0, 1.0], count)
    with np.errstate(all="ignore"):
        values = mixed.astype(dtype)
    return np.where(np.isfinite(values), values, 1).astype(dtype)


def samples(dtype: object, count: int, arity: int, seed: int) -> list[np.ndarray]:
    """One array a variable, edges first; integers and bools for such dtypes."""
    dtype = np.dtype(dtype)
    r = np.random.default_rng(seed)
    if dtype.kind == "b":
        return [r.integers(2, size=count).astype(bool) for _ in range(arity)]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        special = np.asarray([0, 1, 2, info.min, info.max, info.max // 2], dtype)
        return [
            np.where(
                r.random(count) < 0.4,
                r.choice(special, count),
                r.integers(info.min, info.max, count, dtype, endpoint=True),
            )
            for _ in range(arity)
        ]
    info = np.finfo(dtype)
    edges = np.asarray(
        [
            *EDGES,
            info.max,
            -info.max,
            info.tiny,
            info.smallest_subnormal,
            -info.smallest_subnormal,
            info.eps,
            1 + info.eps,
        ],
        dtype,
    )
    pairs = list(itertools.islice(itertools.product(edges, repeat=arity), 200)) if arity else []
    columns = [np.asarray([p[k] for p in pairs], dtype) for k in range(arity)]
    rest = [finite_samples(dtype, count, seed + 10 * k + 1) for k in range(arity)]
    for k in range(1, arity):  # some operands equal, opposite or near each other
        near = r.random(count)
        with np.errstate(all="ignore"):
            rest[k] = np.where(
                near < 0.1,
                rest[0],
                np.where(near < 0.2, -rest[0], np.where(near < 0.35, rest[0] * (1 + near * 1e-9), rest[k])),
            ).astype(dtype)
    return [np.concatenate(c) for c in zip(columns, rest, strict=True)]


def values_of(graph: Graph, values: list[np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array(np.broadcast_to(evaluate_graph(graph, values)[0], values[0].shape))


def run(instance: Instance, values: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The values before and after, by NumPy."""
    return values_of(instance.before, values), values_of(instance.after, values)


def same_bits(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Where two arrays agree to the bit; every nan is like every other."""
    if left.dtype != right.dtype:
        return np.zeros(left.shape, bool)
    if left.dtype.kind != "f":
        return left == right
    return (np.isnan(left) & np.isnan(right)) | ((left == right) & (np.signbit(left) == np.signbit(right)))


# high precision -------------------------------------------------------------------------------------------------------

mp = mpmath.mp.clone()
mp.dps = DIGITS


def _sigmoid(x):
    return 1 / (1 + mp.exp(-x)) if x >= 0 else mp.exp(x) / (1 + mp.exp(x))


def _power(x, y):
    found = mp.nan if x < 0 and y != mp.floor(y) else mp.power(x, y)
    if isinstance(found, mp.mpc) or mp.isnan(found):
        raise ValueError
    return found


def _log(x):
    if x <= 0:
        raise ValueError
    return mp.log(x)


def _within(function, x, bound):
    if abs(x) > bound:
        raise ValueError
    return function(x)


def _above(function, x, bound):
    if x < bound:
        raise ValueError
    return function(x)


def _root(x):
    if x < 0:
        raise ValueError
    return mp.sqrt(x)


def _gammaln(x):
    """The logarithm of the size of the gamma function."""
    if x > 0:
        return mp.loggamma(x)
    if x == mp.floor(x):
        raise ZeroDivisionError
    return mp.log(mp.pi / abs(mp.sinpi(x))) - mp.loggamma(1 - x)


TRUE = {
    "gammaln": _gammaln,
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "reciprocal": lambda x: 1 / x,
    "negative": lambda x: -x,
    "absolute": abs,
    "square": lambda x: x * x,
    "sign": mp.sign,
    "power": _power,
    "sqrt": _root,
    "exp": mp.exp,
    "expm1": mp.expm1,
    "log": _log,
    "log1p": lambda x: _log(1 + x),
    "log1mexp": lambda x: _log(-mp.expm1(x)),
    "sigmoid": _sigmoid,
    "softplus": lambda x: mp.log(1 + mp.exp(x)),
    "logaddexp": lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
    "log_hypot": lambda x, y: _log(x * x + y * y) / 2,
    "log_erfc": lambda x: mp.log(mp.erfc(x)),
    "logit": lambda x: _log(x / (1 - x)),
    "sin": mp.sin,
    "cos": mp.cos,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": mp.tanh,
    "arccos": lambda x: _within(mp.acos, x, 1),
    "arcsin": lambda x: _within(mp.asin, x, 1),
    "arctan2": mp.atan2,
    "arcsinh": mp.asinh,
    "arctanh": lambda x: _within(mp.atanh, x, 1 - mp.mpf(10) ** -600),
    "arccosh": lambda x: _above(mp.acosh, x, 1),
    "log2": lambda x: _log(x) / mp.log(2),
    "log10": lambda x: _log(x) / mp.log(10),
    "tan": mp.tan,
    "erf": mp.erf,
    "erfc": mp.erfc,
    "hypot": mp.hypot,
    "xlogy": lambda x, y: mp.mpf(0) if x == 0 else x * _log(y),
    "positive": lambda x: x,
    "broadcast": lambda x: x,
    "less": lambda x, y: x < y,
    "greater": lambda x, y: x > y,
    "maximum": max,
    "minimum": min,
    "where": lambda c, x, y: x if c else y,
    "conjugate": lambda x: x,
    "real": lambda x: x,
    "require": lambda x, _: x,
    "isnan": lambda _: False,
}


def truth(graph: Graph, values: list) -> object:
    """The real number that a graph of scalar functions is at real numbers; None where it is not defined."""
    memo = dict(zip(graph.parameters, values, strict=True))
    try:
        for node in topological(graph.results):
            if node not in memo:
                memo[node] = (
                    mp.mpf(float(node["bits"].array()))
                    if node.op is CONSTANT
                    else TRUE[node.op.name](*(memo[a] for a in node.args))
                )
    except (ZeroDivisionError, ValueError, OverflowError):
        return None
    found = memo[graph.results[0]]
    return found if isinstance(found, bool) or (mp.isfinite(found) and not isinstance(found, mp.mpc)) else None


def ulps(value: float, true: object, dtype: object) -> float:
    """How far ``value`` is from a real number, in units of the last place of that number; 0 for the right overflow."""
    info = np.finfo(dtype)
    if abs(true) >= mp.mpf(float(info.max)) * (1 + mp.mpf(float(info.eps)) / 4):
        return 0.0 if np.isinf(value) and (value > 0) == (true > 0) else np.inf
    if not np.isfinite(value):
        return np.inf
    exponent = mp.frexp(true)[1] if true else -100000
    place = mp.ldexp(1, max(int(exponent) - info.nmant - 1, int(np.log2(float(info.smallest_subnormal)))))
    return float(abs(mp.mpf(float(value)) - true) / place)


def condition(graph: Graph, values: list, true: object, dtype: object) -> float:
    """By how many units of the last place the result moves when every operand moves by one."""
    info = np.finfo(dtype)
    total = 0.0
    for k, v in enumerate(values):
        step = max(abs(v) * mp.mpf(float(info.eps)), mp.mpf(float(info.smallest_subnormal)))
        moved = truth(graph, [*values[:k], v + step, *values[k + 1 :]])
        if moved is not None:
            exponent = mp.frexp(true)[1] if true else -100000
            place = mp.ldexp(1, max(int(exponent) - info.nmant - 1, int(np.log2(float(info.smallest_subnormal)))))
            total += float(min(abs(moved - true) / place, mp.mpf(10) ** 300))
    return total


@dataclass(frozen=True)
class Worse:
    """A sample at which a rule loses digits or a value."""

    values: list
    before: object
    after: object
    lost: float

    def __str__(self) -> str:
        return f"at {self.values}: {self.before!r} became {self.after!r}, {self.lost:.3g} ulp worse"


SLACK = 2.0
"""How many units of the last place a stable rule may lose at a sample, and as many more as moving the operands by one costs."""


def losses(instance: Instance, values: list[np.ndarray], dtype: object) -> list[Worse]:
    """The samples at which a rule is less accurate than what it replaces."""
    before, after = run(instance, values)
    found = []
    for k, point in enumerate(zip(*values, strict=True)):
        real = [bool(v) if isinstance(v, np.bool_) else mp.mpf(float(v)) for v in point]
        true = truth(instance.before, real)
        if true is None or isinstance(true, bool):
            if (
                not np.isnan(before[k])
                and before[k] != after[k]
                and not np.all(np.isfinite(point))
                and defined_beside(instance, point)
            ):
                found.append(Worse(list(point), before[k], after[k], np.inf))
            continue
        old, new = ulps(before[k], true, dtype), ulps(after[k], true, dtype)
        if new > old + SLACK and new > old + SLACK * (1 + condition(instance.before, real, true, dtype)):
            found.append(Worse(list(point), before[k], after[k], new - old))
    return found


def defined_beside(instance: Instance, point: tuple) -> bool:
    """Whether the value at infinite operands is that of a function with values at large ones."""
    if any(np.isnan(v) for v in point):
        return False
    large = [np.full(2, np.clip(v, np.finfo(v.dtype).min, np.finfo(v.dtype).max)) for v in point]
    return not np.isnan(values_of(instance.before, large)[0])


HOLDS = {
    "x is finite": lambda x, **_: np.isfinite(x),
    "x != 0": lambda x, **_: x != 0,
    "x > 0": lambda x, **_: x > 0,
    "x >= 0": lambda x, **_: x >= 0,
    "x >= -1": lambda x, **_: x >= -1,
    "y > 0": lambda y, **_: y > 0,
    "p > 0": lambda p, **_: p != 0,
    "p is finite": lambda p, **_: np.isfinite(p),
    "y is finite": lambda y, **_: np.isfinite(y),
    "y != 0": lambda y, **_: y != 0,
    "x > y": lambda x, y, **_: x > y,
    "0 < x < 1": lambda x, **_: 0 < x < 1,
    "0 * log(0) is 0": lambda **_: True,
}


def real_losses(instance: Instance, values: list[np.ndarray], dtype: object) -> tuple[list[Worse], int]:
    """Samples of moderate size at which a rule's assumptions hold and its result is wrong by more than rounding."""
    before, after = run(instance, values)
    names = [v["name"] for v in variables(instance.rule.pattern) if v["only"] != "Constant"]
    found: list[Worse] = []
    tried = 0
    for k, point in enumerate(zip(*values, strict=True)):
        if not all(np.isfinite(v) and (v == 0 or 1e-3 < abs(v) < 1e2) for v in point):
            continue
        if not all(HOLDS[a](**dict(zip(names, point, strict=True))) for a in instance.rule.assumptions):
            continue
        real = [mp.mpf(float(v)) for v in point]
        true = truth(instance.after, real)
        if true is None:
            continue
        tried += 1
        naive = truth(instance.before, real)
        if naive is not None and abs(naive - true) > abs(true) * mp.mpf(10) ** -600 + mp.mpf(10) ** -600:
            found.append(Worse(list(point), before[k], after[k], np.inf))
            continue
        allowed = 8 * (1 + condition(instance.after, real, true, dtype)) * (1 + max(abs(float(v)) for v in point))
        if ulps(after[k], true, dtype) > max(allowed, ulps(before[k], true, dtype)):
            found.append(Worse(list(point), before[k], after[k], ulps(after[k], true, dtype)))
    return found, tried
