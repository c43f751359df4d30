"""A function that is captured anew at each call says so, once, when that has taken noticeable time."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.functions.reads import recaptured


class Chosen:
    """Functions of a module that is in a closure, by names that no code has."""

    def __init__(self, module):
        self.module = module

    def __getattr__(self, name):
        return getattr(self.module, name)


def unfollowed(x):
    """Reads an attribute by a name that is not in the code, of something that leads to ``np.random``."""
    draws = Chosen(np.random)
    return np.sum(x) * (1 if hasattr(draws, "normal") else 2)


def test_it_is_told_once_with_the_reason(monkeypatch):
    monkeypatch.setattr(recaptured, "_SECONDS", 0.0)
    f = tm.tensor(unfollowed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(12):
            assert f(np.ones(3)) == 3
    told = [str(w.message) for w in caught if issubclass(w.category, tm.RecaptureWarning)]
    assert len(told) == 1
    assert "unfollowed is captured anew at each call (5 calls" in told[0]
    assert "np.random" in told[0]
    assert caught[0].filename == __file__


def test_quick_captures_are_not_told(monkeypatch):
    monkeypatch.setattr(recaptured, "_SECONDS", 1000.0)
    f = tm.tensor(unfollowed)
    with warnings.catch_warnings(action="error"):
        for _ in range(6):
            f(np.ones(3))


@pytest.mark.parametrize("scale", [2.0, np.float64(3.0)])
def test_functions_that_are_followed_are_not_told(monkeypatch, scale):
    monkeypatch.setattr(recaptured, "_SECONDS", 0.0)
    f = tm.tensor(lambda x: np.sum(x) * scale)
    with warnings.catch_warnings(action="error"):
        for _ in range(12):
            assert f(np.ones(3)) == 3 * scale


class Holder:
    """Something that leads to NumPy's module of random numbers."""

    module = np.random


def the_module():
    return np.random


def of_an_attribute():
    return Holder.module


def seeded(seed, x):
    rng = np.random.default_rng(seed)
    for _ in range(3):
        x = x + rng.normal(size=3) * rng.random()
    return x


def by_a_name(x):
    found = np.random
    return x + found.normal(size=3)


def of_a_call(x):
    found = the_module()
    return x + found.normal(size=3)


def of_a_call_and_an_attribute(x):
    found = of_an_attribute()
    return x + found.normal(size=3)


def of_a_call_at_once(x):
    return x + the_module().normal(size=3)


def imported(x):
    from numpy import random as found

    return x + found.normal(size=3)  # noqa: NPY002 (what is tested)


def beside_a_generator(x):
    rng = np.random.default_rng(3)
    return x + rng.normal(size=3) + np.random.normal(size=3)  # noqa: NPY002 (what is tested)


def by_default(x, found=np.random):
    return x + found.normal(size=3)


def test_a_function_that_makes_its_generator_of_a_seed_is_captured_once(monkeypatch):
    again: list[str] = []
    monkeypatch.setattr(recaptured.Recaptured, "add", lambda _self, _name, reason, _seconds: again.append(reason))
    ours = tm.tensor(seeded)
    for seed in (0, 1, 1, 2):
        np.testing.assert_array_equal(ours(seed, np.ones(3)), seeded(seed, np.ones(3)))
    assert again == []


@pytest.mark.parametrize(
    "draw",
    [by_a_name, of_a_call, of_a_call_and_an_attribute, of_a_call_at_once, imported, beside_a_generator, by_default],
    ids=lambda f: f.__name__,
)
def test_whatever_leads_to_numpys_own_generator_draws_at_each_call(draw):
    ours, found = tm.tensor(draw), []
    for function in (ours, draw):
        np.random.seed(0)  # noqa: NPY002 (as above)
        found.append([np.array(function(np.zeros(3))) for _ in range(4)])
    np.testing.assert_array_equal(*found)
    assert len({value.tobytes() for value in found[0]}) == 4
