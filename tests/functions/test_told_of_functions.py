"""What is told of functions that call each other, for first calls: the same in whatever order they are looked through."""

from __future__ import annotations

import ast
import itertools

import numpy as np
import pytest

from tensormagic.capture.staging.analysis.ordinary import _mode, ordinary
from tensormagic.capture.staging.analysis.text_features import leaves_of, linear_in


def squared(v):
    return v * v + 1.0


def quotient(v, w):
    return v / (w + 2.0)


def stores(out, v):
    out[1:] = v[1:] - v[:-1]
    out[0] = v[0] / 3.0


def stores_sums(out, v):
    for k in range(1, len(out)):
        out[k] = out[k - 1] + v[k] * v[k]


def through(v):
    return squared(quotient(v, v)) - quotient(squared(v), v)


def one(x):
    return squared(x) - x


def two(x):
    return quotient(squared(x), x) - squared(quotient(x, x))


def deep(x):
    return through(x) - 1.0


def stored(x):
    out = np.zeros(x.shape)
    stores(out, x)
    return squared(out) - out


def both(x):
    out = np.zeros(x.shape)
    stores_sums(out, quotient(x, x))
    stores(out, squared(out))
    return out - through(out)


def looped(x):
    for _ in range(3):
        x = quotient(x, squared(x)) - x
    return x


def roots(x):
    return np.sqrt(squared(x)) - np.log(quotient(x, squared(x)))


@pytest.mark.parametrize("function", [one, two, deep, stored, both, looped, roots])
def test_the_order_does_not_matter(function):
    found = ordinary(function)
    assert found is not None
    called = set(found.reached) - {function}
    modes = {
        _mode(dict(order), called) for order in itertools.islice(itertools.permutations(found.reached.items()), 24)
    }
    assert modes == {found.mode}


def test_parts_are_told_apart_by_how_they_are_written():
    def of(text):
        return leaves_of(ast.parse(text, mode="eval").body)

    assert of("x[1:, k] + x[1:, k]") == of("x[1: , k]")
    assert len(of("x[1:, k] + x[1:, j] + x[:1, k] + x")) == 4
    assert len(of("x[1] + x[True] + x[1.0] + x[-1] + x['1']")) == 5
    assert len(of("x[i + 1] + x[i - 1] + x[i * 1] + x[f(i)] + x[g(i)] + x[i < 1] + x[i > 1]")) == 7
    assert of("x.shape[0] + len(y) + 2") == frozenset()
    assert {name for name, _ in of("f(x[k], y) * z.T")} == {"f", "x", "y", "z"}


def test_factors_are_those_of_the_same_part():
    def factors(text):
        return linear_in(ast.parse(text, mode="eval").body)

    assert set(factors("x[k + 1] - x[k + 1]").values()) == {0.0}
    assert set(factors("x[k + 1] - x[k]").values()) == {1.0, -1.0}
    assert factors("2 * x - -x * 3") == {("x", ""): 5.0}
    assert factors("x * y") is None
