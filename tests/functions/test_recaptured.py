"""A function that is captured anew at each call says so, once, when that has taken noticeable time."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.functions import recaptured


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
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(6):
            f(np.ones(3))


@pytest.mark.parametrize("scale", [2.0, np.float64(3.0)])
def test_functions_that_are_followed_are_not_told(monkeypatch, scale):
    monkeypatch.setattr(recaptured, "_SECONDS", 0.0)
    f = tm.tensor(lambda x: np.sum(x) * scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(12):
            assert f(np.ones(3)) == 3 * scale
