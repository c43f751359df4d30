"""What decides a value beside its graph is part of every key: levels of rewriting and rules of the user's own."""

import random
from contextlib import nullcontext
from dataclasses import fields

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session

SMALL = 1e-18
SEEN = {"exact": 0.0, "stable": SMALL, "real": SMALL}  # what log(1 + SMALL) is at each level
ORDER = ("stable", "exact", "real", "exact", "stable")


@pytest.fixture(autouse=True)
def _level_as_before():
    before = tm.config.math
    yield
    tm.config.math = before


def test_a_function_has_the_level_of_each_call():
    f = tm.tensor(lambda x: np.log(1 + x))
    x = np.array([SMALL])
    for level in ORDER:
        tm.config.math = level
        assert f(x).tolist() == [SEEN[level]], level
        assert f(np.array([[SMALL]])).tolist() == [[SEEN[level]]], level


def test_a_function_follows_rules_that_come_and_go():
    f = tm.tensor(lambda x: np.cosh(x) + np.sinh(x))
    x = np.array([30.0])
    before = f(x)

    @tm.rule(level="stable")
    def halved(x):
        yield np.cosh(x) + np.sinh(x), 2 * np.exp(x) / 2

    try:
        assert f(x).tolist() == (2 * np.exp(x) / 2).tolist()
    finally:
        tm.rules.remove("halved")
    assert f(x).tolist() == before.tolist()


def test_a_lazy_value_is_asked_for_at_each_level():
    x = tm.tensor(np.array([SMALL]))
    y = np.log(1 + x)
    for level in ORDER:
        tm.config.math = level
        assert y.numpy().tolist() == [SEEN[level]], level
        assert tm.evaluate(y).tolist() == [SEEN[level]], level
        assert (y * 2).numpy().tolist() == [2 * SEEN[level]], level
        assert ("log1p" in y.explain()) == (level != "exact"), level
        assert ("log1p" in y.optimized.text) == (level != "exact"), level
        assert ("log1p" in y.code()) == (level != "exact"), level


def test_a_lazy_value_of_a_block_keeps_its_level():
    x = tm.tensor(np.array([SMALL]))
    before = np.log(1 + x)
    with tm.config.using(math="exact"):
        y = np.log(1 + x)
        view, copy = y[:1], y.copy()
    assert [v.numpy().tolist() for v in (y, view, copy, y[:1], y.copy())] == [[0.0]] * 5
    assert before.numpy().tolist() == [SMALL]
    assert [v.tolist() for v in tm.evaluate(before, y, before)] == [[SMALL], [0.0], [SMALL]]
    assert "log1p" not in y.explain()
    assert "log1p" in before.explain()


def test_a_functions_own_level_is_that_of_lazy_values_too():
    f = tm.tensor(math="exact")(lambda x: np.log(1 + x))
    assert f(tm.tensor(np.array([SMALL]))).numpy().tolist() == [0.0]
    assert f(np.array([SMALL])).tolist() == [0.0]
    assert tm.compile(f, "float64[n]").run(np.full(2, SMALL)).tolist() == [0.0] * 2
    assert tm.compile(f, "float64[n]", math="stable").run(np.full(2, SMALL)).tolist() == [SMALL] * 2


@pytest.mark.parametrize("level", SEEN)
def test_a_compiled_function_keeps_the_level_that_it_was_compiled_at(level):
    tm.config.math = level
    compiled = tm.compile(lambda x: np.log(1 + x), "float64[n]")
    for other in ORDER:
        tm.config.math = other
        assert compiled.run(np.full(2, SMALL)).tolist() == [SEEN[level]] * 2


def test_derivatives_have_the_level_of_each_call():
    """What is differentiated is rewritten first: the slope of log(1 + exp(x)) is nan at 1000, as it is written."""
    slopes = {"exact": np.nan, "stable": 1.0, "real": 1.0}

    def f(x):
        return np.sum(np.log(1 + np.exp(x)))

    gradient, x = tm.grad(f), np.array([1000.0])
    lazy = tm.tensor(x)
    value = f(lazy)
    for level in ORDER:
        tm.config.math = level
        with np.errstate(all="ignore"):
            wanted = [slopes[level]]
            assert np.array_equal(gradient(x), wanted, equal_nan=True), level
            assert np.array_equal(value.grad(lazy).numpy(), wanted, equal_nan=True), level
            assert np.array_equal(tm.vjp(f, x)[1](1.0)[0], wanted, equal_nan=True), level


def test_values_follow_rules_that_come_and_go():
    tm.config.math = "real"
    x = np.linspace(1.0, 2.0, 50)
    z = np.sin(tm.tensor(x)) ** 2
    before = z.numpy().tolist()

    @tm.rule(level="real")
    def doubled(x):
        yield np.sin(x) ** 2, 1 - np.cos(x) ** 2

    try:
        assert "cos" in z.optimized.text
        assert z.numpy().tolist() != before
        np.testing.assert_allclose(z, 1 - np.cos(x) ** 2, rtol=1e-15)
    finally:
        tm.rules.remove("doubled")
    assert z.numpy().tolist() == before
    assert all(key[1] == () for key in session.kept.values._tables)


def test_what_is_printed_is_printed_once(capsys):
    x = tm.tensor(np.array([SMALL, 3.0]))

    @tm.tensor
    def f(x):
        if x[1] > 2:
            print("large")
        return np.log(1 + x)

    y = f(x)
    for level in ORDER:
        tm.config.math = level
        y.numpy()
    assert capsys.readouterr().out.count("large") == 1


def test_every_field_of_the_configuration_is_here_or_changes_no_value():
    """The tier is no part of a key: what is there is not computed again by another; each run asks which tier is ready.

    The device is one (tests/backend/cuda/test_residence.py), what is said of copies changes no value, and no bit depends on the
    number of threads (tests/backend/test_threads.py).
    """
    assert {f.name for f in fields(tm.config)} == {
        "math",
        "tier",
        "device",
        "transfers",
        "plain",
        "cache_folder",
        "carried_folder",
        "memory",
        "threads",
    }
    x = tm.tensor(np.array([SMALL]))
    y = np.log(1 + x)
    f = tm.tensor(lambda x: np.log(1 + x))
    for name, values in {
        "transfers": ("refuse", "warn"),
        "tier": ("numpy", "auto"),
        "device": ("auto", "cpu"),
        "plain": (True, False),
    }.items():
        for value in values:
            with tm.config.using(**{name: value}):
                assert y.numpy().tolist() == [SMALL]
                assert f(np.array([SMALL])).tolist() == [SMALL]


@pytest.mark.parametrize("seed", range(20))
def test_drawn_orders_of_levels_and_askers(seed):
    """Whoever asks, in whatever order: the value is that of the level in force."""
    rng = random.Random(seed)
    x = np.full(3, rng.choice([1e-18, 1e-17, 3e-18]))
    lazy = tm.tensor(x)
    f, g = tm.tensor(lambda x: np.log(1 + x) * 3), tm.tensor(lambda x: np.exp(x) - 1)
    y = np.log(1 + lazy) * 3
    askers = {
        "function": lambda: f(x),
        "lazily": lambda: y.numpy(),
        "anew": lambda: (np.log(1 + lazy) * 3).numpy(),
        "of another": lambda: (y / 3 * 3).numpy(),
        "exponential": lambda: g(x) * 3,
        "evaluate": lambda: tm.evaluate(y),
        "compiled": lambda: tm.compile(f, "float64[n]").run(x),
        "inside": lambda: tm.vmap(lambda v: np.log(1 + v) * 3)(x),
    }
    for _ in range(12):
        level, asker = rng.choice(list(SEEN)), rng.choice(list(askers))
        block = rng.random() < 0.5
        with tm.config.using(math=level) if block else nullcontext():
            if not block:
                tm.config.math = level
            wanted = 0.0 if level == "exact" else 3 * x[0]
            assert askers[asker]()[0] == pytest.approx(wanted, rel=1e-15, abs=0), (level, asker, block)
