"""Code that hardly any other test has: each function gives what Python gives, at its first call and at the next."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm


def counted_without_end(x):
    total = 0.0
    for k in itertools.count(2, 3):
        total = total + x[k % 4] * k
        if total > 40:
            break
    return total, k


def extended(x):
    kept = []
    for v in x:
        if v > 1:
            kept.extend([v, v * 2])
    return np.array(kept).sum(), len(kept)


def added_in_place(x):
    kept = [x[0]]
    for v in x:
        if v > 1:
            kept += [v]
    kept += [x[1], x[2]]
    return np.array(kept)


def texts_joined(x):
    s = "low" if x.sum() > 3 else "high"
    return s.upper() + "!", s + "er", "over" + s, s == "low", s != "low"


def texts_of_numbers_changed(x):
    s = f"{x.sum():.2f}"
    return s.rjust(12), s + " units", f"{s:>10}"


def numbers_formatted(x):
    v = float(x[0])
    return format(v, ".3f"), format(int(x[1]), "d"), str(round(int(x[2]), 1)), round(bool(x[0] > 0))


def starred_pattern(x):
    match x.tolist():
        case [a, *rest, b]:
            return a, rest, b
    return None


def smoothed_through_views(x):
    y = x.copy()
    y[1:][:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
    z = y[1:-1][1:]
    z += np.log(3 + x[2:-1])
    return y


def pairs_compared(x):
    return max(x.tolist()), sorted(x.tolist(), reverse=True), min((v * v, k) for k, v in enumerate(x))


def stored_through_flat(x):
    y = x.reshape(2, 2).copy()
    y.flat[np.array(1)] = 7.0
    y.flat[[0, 2]] = x[:2]
    return y


def flags(x):
    return x.flags["C_CONTIGUOUS"], x[::2].flags["C_CONTIGUOUS"]


def agree(ours: Any, pythons: Any) -> bool:
    """Whether two results are equal, with their dtypes and shapes."""
    if isinstance(pythons, tuple | list):
        return len(ours) == len(pythons) and all(map(agree, ours, pythons))
    if isinstance(pythons, str):
        return str(ours) == pythons
    a, b = np.asarray(ours), np.asarray(pythons)
    return (a.dtype, a.shape) == (b.dtype, b.shape) and np.allclose(a, b, rtol=1e-15, atol=0, equal_nan=True)


PROGRAMS = [
    counted_without_end,
    extended,
    added_in_place,
    texts_joined,
    texts_of_numbers_changed,
    numbers_formatted,
    starred_pattern,
    smoothed_through_views,
    pairs_compared,
    stored_through_flat,
    flags,
]


@pytest.mark.parametrize("values", [(1.5, 2.5, 0.5, 3.0), (-1.0, 0.0, 4.0, 2.0)], ids=["some", "others"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_it_gives_what_python_gives(function: Callable[..., Any], values: tuple[float, ...]):
    captured, x = tm.tensor(function), np.array(values)
    for _ in range(2):
        assert agree(captured(x.copy()), function(x.copy()))
