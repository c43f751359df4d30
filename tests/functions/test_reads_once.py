"""What cannot be asked for again: value and derivative of one run, and Python's own sources of numbers that differ each time."""

from __future__ import annotations

import builtins
import itertools
import os
import random
import secrets
import time
import types
import uuid
from typing import Any
from unittest import mock

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import DifferentiationError

pytestmark = pytest.mark.usefixtures("by_numpy")
X = np.arange(1.0, 4.0)
RATE = 2.0


def one_draw(f: Any, x: Any, pull: Any) -> None:
    """For ``f`` that multiplies by a number: the derivative is the value's own factor."""
    seen = set()
    for _ in range(3):
        value, slope = pull(f, x)
        np.testing.assert_array_equal(value, x * slope)
        seen.add(slope[0])
    assert len(seen) == 3


def by_vjp(f: Any, x: Any) -> Any:
    value, pull = tm.vjp(f, x)
    first, again = pull(np.ones(3))[0], pull(np.ones(3))[0]
    np.testing.assert_array_equal(first, again)
    return value, first


def by_linearize(f: Any, x: Any) -> Any:
    value, along = tm.linearize(f, x)
    return value, along(np.ones(3))


def by_both(f: Any, x: Any) -> Any:
    def both(v: Any) -> Any:
        value, pull = tm.vjp(f, v)
        return value, pull(np.ones(3))[0]

    return tm.tensor(both)(x)


@pytest.mark.parametrize("pull", [by_vjp, by_linearize, by_both])
def test_value_and_derivative_are_of_one_draw(pull):
    one_draw(lambda x: x * random.random(), X, pull)
    one_draw(lambda x: x * time.perf_counter(), X, pull)
    count = itertools.count(1)
    one_draw(lambda x: x * next(count), X, pull)
    assert next(count) == 4  # one run for each
    box = types.SimpleNamespace(n=0)

    def counted(x):
        box.n += 1
        return x * box.n

    one_draw(counted, X, pull)
    assert box.n == 3


@pytest.mark.parametrize("pull", [by_vjp, by_linearize])
def test_draws_of_numpy(pull):
    rng = np.random.default_rng(3)

    def helper(x):
        return x * rng.normal()

    one_draw(lambda x: helper(x), X, pull)
    assert rng.normal() == np.random.default_rng(3).normal(size=4)[3]


def test_what_is_read_and_changed_before_the_derivative(monkeypatch):
    box = types.SimpleNamespace(k=2)
    value, pull = tm.vjp(lambda x: x * box.k, X)
    box.k = 3
    np.testing.assert_array_equal(pull(np.ones(3))[0], value / X)

    def f(x):
        return x * box.k * RATE

    tm.vjp(f, X)
    _, pull = tm.vjp(f, X)  # which is kept: another run is as this one
    np.testing.assert_array_equal(pull(np.ones(3))[0], [6, 6, 6])
    box.k = 4
    with pytest.raises(DifferentiationError, match=r"box\.k, which f reads, has changed since"):
        pull(np.ones(3))
    box.k = 3
    monkeypatch.setitem(globals(), "RATE", 1.0)
    with pytest.raises(DifferentiationError, match=r"RATE, which f reads, has changed since"):
        pull(np.ones(3))


def test_arrays_that_are_stored_into_before_the_derivative():
    scale = np.ones(3)

    def f(x):
        return x**2 * scale

    for _ in range(3):  # of one run, then of one that is as the first was
        x = X.copy()
        _, pull = tm.vjp(f, x)
        _, along = tm.linearize(f, x)
        x[0] = 9
        np.testing.assert_array_equal(pull(np.ones(3))[0], 2 * X)
        np.testing.assert_array_equal(along(np.ones(3)), 2 * X)
    _, pull = tm.vjp(f, X)
    scale[0] = 2
    with pytest.raises(DifferentiationError, match="scale, which f reads, has changed since"):
        pull(np.ones(3))


@pytest.mark.parametrize("make", [tm.jacobian, tm.hessian])
def test_structure_and_entries_are_of_one_run(make):
    rng, same = random.Random(5), random.Random(5)

    def f(x):
        k = rng.choice([0, 1])
        return (x[k:] * x[: 3 - k]) if make is tm.jacobian else np.sum(x[k:] * x[: 3 - k])

    j = make(f, sparse=True)
    for _ in range(6):
        k = same.choice([0, 1])
        plain = make(lambda x: (x[k:] * x[: 3 - k]) if make is tm.jacobian else np.sum(x[k:] * x[: 3 - k]))  # noqa: B023
        np.testing.assert_array_equal(j(X).toarray(), plain(X))


SOURCES = {  # what gives other numbers each time
    "uuid": lambda x: x + uuid.uuid4().int % 1000003,
    "secrets": lambda x: x + secrets.randbelow(1 << 40),
    "token": lambda x: x + int(secrets.token_hex(5), 16),
    "urandom": lambda x: x + int.from_bytes(os.urandom(5), "big"),
    "system": lambda x: x + random.SystemRandom().random(),
    "process clock": lambda x: x + time.monotonic_ns() % 1000003,
    "getrandbits": lambda x: x + random.getrandbits(40),
}


@pytest.mark.parametrize("name", SOURCES)
def test_sources_of_numbers(name):
    f = tm.tensor(SOURCES[name])
    assert len({float(f(X)[0]) for _ in range(4)}) == 4


def test_input(monkeypatch):
    given = iter(["1", "2", "3"])
    monkeypatch.setattr(builtins, "input", lambda *_: next(given))
    f = tm.tensor(lambda x: x * int(input("n")))
    assert [f(2.0) for _ in range(3)] == [2, 4, 6]


def test_hash_of_an_object_whose_key_changes():
    class Key:
        def __init__(self, k):
            self.k = k

        def __hash__(self):
            return self.k

    key = Key(2)
    f = tm.tensor(lambda x: x * hash(key))
    assert f(3.0) == 6
    key.k = 4
    assert f(3.0) == 12


def test_builtins_that_are_replaced(monkeypatch):
    f = tm.tensor(lambda x: x * divmod(7, 3)[0])
    assert f(3.0) == 6
    monkeypatch.setattr(builtins, "divmod", lambda *_: (5, 0))
    assert f(3.0) == 15
    monkeypatch.undo()
    assert f(3.0) == 6


def test_builtins_that_come(monkeypatch):
    monkeypatch.setattr(builtins, "tensor_factor", 2, raising=False)
    f = tm.tensor(lambda x: x * tensor_factor)  # noqa: F821
    assert f(3.0) == 6
    monkeypatch.setattr(builtins, "tensor_factor", 5)
    assert f(3.0) == 15
    monkeypatch.setitem(globals(), "tensor_factor", 7)
    assert f(3.0) == 21


def test_axes_that_are_changed():
    axes: list[Any] = [0, None]
    f = tm.vmap(lambda x, y: np.sum(x) * y, in_axes=axes)
    m = np.arange(6.0).reshape(3, 2)
    first = f(m, 2.0)
    np.testing.assert_array_equal(first, m.sum(1) * 2)
    axes[0] = 1  # the function is made for what was said when it was made
    np.testing.assert_array_equal(f(m, 2.0), first)
    np.testing.assert_array_equal(f(m[:2], 2.0), m[:2].sum(1) * 2)


def test_arguments_that_are_changed():
    numbers = [0]
    f = tm.grad(lambda x, y: np.sum(x * y * y), argnums=numbers)
    j = tm.jacobian(lambda x, y: x * y * y, argnums=numbers, sparse=True)
    assert f(2.0, 3.0) == (9.0,)
    numbers[0] = 1
    assert f(2.0, 3.0) == (9.0,)
    assert f(2.0, X)[0] == 14.0
    np.testing.assert_array_equal(j(X, X)[0].toarray(), np.diag(X**2))


def test_an_object_that_asks_itself_for_every_attribute():
    class Asked:
        def __init__(self, held):
            self.held = held

        def __getattr__(self, name):
            return self.held[name]  # no AttributeError

    f = tm.tensor(lambda x, o: x * o.k)
    asked = Asked({"k": 2})
    assert f(3.0, asked) == 6
    asked.held["k"] = 3
    assert f(3.0, asked) == 9


def test_what_tests_replace_in_numpy():
    f = tm.tensor(lambda x: np.sin(x) * np.linalg.norm(x))
    first = f(X)
    with mock.patch("numpy.sin", np.cos):
        np.testing.assert_allclose(f(X), np.cos(X) * np.linalg.norm(X))
    with mock.patch("numpy.linalg.norm", np.max):
        np.testing.assert_allclose(f(X), np.sin(X) * 3.0)
    np.testing.assert_array_equal(f(X), first)
