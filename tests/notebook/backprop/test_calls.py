"""One box for each call and for each part of an array, with the derivative of all that it became."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.notebook.backprop.sheet import Sheet
from tensormagic.notebook.backprop.subject import of_function

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(6, 4))
T = RANDOM.integers(0, 4, 6)


@pytest.fixture(autouse=True)
def reference_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tm.config, "tier", "numpy")


def total(x):
    return np.mean(x**2)


def along(x):
    m = x.mean(axis=0)
    return np.sum(m**3)


def spread(x):
    z = (x - x.mean()) / x.std()
    return np.sum(z**3)


def variance(x):
    v = np.var(x, axis=1)
    return v.max()


def length(x):
    return np.linalg.norm(x[0] - x[1])


def clipped(x):
    return np.sum(np.clip(x, -0.5, 0.5) ** 2)


def chosen(x):
    rows = np.arange(6)
    p = x[rows, T]
    return np.sum(p**2)


def cross_entropy(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    return -np.mean(np.log(p[np.arange(6), T]))


def parts(x):
    return x[1, 2] * x[0] @ x[-1] + np.sum(x[:, 1] * x[::2, 0].sum())


def masked(x):
    return np.sum(np.where(x > 0, x, 0.1 * x))


def differences(x):
    d = np.diff(x, axis=0)
    return np.sum(d**2)


def covariance(x):
    c = np.cov(x.T)
    return np.sum(c**2)


def least(x):
    return np.sum(x.min(axis=0) ** 2)


def average(x):
    return np.average(x[:, 0], weights=np.exp(x[:, 1]))


def area(x):
    return np.trapezoid(x[0], x[1])


HEADINGS = {  # what the picture has to name, and what it may not show
    total: ["total = mean(x ** 2)"],
    along: ["m = mean(x, axis=0)"],
    spread: ["mean(x)", "std(x)"],
    variance: ["v = var(x, axis=1)"],
    length: ["x[0]", "x[1]", "length = norm(x[0] − x[1])"],
    clipped: ["clip(x, -0.5, 0.5)"],
    chosen: ["p = x[rows, T]"],
    cross_entropy: [
        "max(x, axis=1, keepdims=True)",
        "sum(e, axis=1, keepdims=True)",
        "p[np.arange(6), T]",
        "cross_entropy = −mean(·)",
    ],
    parts: ["x[1, 2]", "x[0]", "x[-1]", "x[:, 1]", "x[::2, 0]"],
    masked: ["where(x > 0, x, 0.1 × x)"],
    differences: ["d = diff(x, axis=0)"],
    covariance: ["c = cov(x.T)"],
    least: ["min(x, axis=0)"],
    average: ["exp(x[:, 1])", "average = average(x[:, 0], exp(x[:, 1]))"],
    area: ["x[0]", "x[1]", "area = trapezoid(x[0], x[1])"],
}


@pytest.mark.parametrize("function", HEADINGS, ids=lambda f: f.__name__)
def test_a_call_is_one_box_with_the_derivative_of_all_of_it(function):
    sheet = Sheet(of_function(function, (X,)))
    headings = [n.heading for n in sheet.nodes]
    for wanted in HEADINGS[function]:
        assert headings.count(wanted) == 1, headings
    assert not [h for h in headings if "logical_and" in h or "reshape" in h or "const" in h], headings
    found = sheet.passes.run(sheet.subject.values)
    (own,) = [found.adjoints[n.node] for n in sheet.nodes if n.heading == "x"]
    np.testing.assert_allclose(own, tm.grad(function)(X), rtol=1e-10, atol=1e-12)
    for shown in sheet.nodes:  # the adjoint of each box is the sum of what its uses add
        if shown.adjoint is not None and shown.uses:
            whole = sum(np.asarray(found.parts[k]) for k in shown.uses)
            np.testing.assert_allclose(whole, found.adjoints[shown.node], rtol=1e-10, atol=1e-12)


def squashed(x):
    return np.tanh(x)


def twice(x):
    return squashed(squashed(x))


def mean_of_mean(x):
    return np.mean(np.mean(x, axis=0) ** 2)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def composed(x):
    return sigmoid(sigmoid(x))


def test_what_is_called_twice_is_two_boxes_and_functions_of_the_users_are_shown_inside():
    assert [n.heading for n in Sheet(of_function(twice, (0.5,))).nodes] == ["x", "tanh(x)", "twice = tanh(tanh(x))"]
    headings = [n.heading for n in Sheet(of_function(mean_of_mean, (X,))).nodes]
    assert headings == ["x", "mean(x, axis=0)", "mean(x, axis=0) ** 2", "mean_of_mean = mean(mean(x, axis=0) ** 2)"]
    assert len(Sheet(of_function(composed, (0.5,))).nodes) == 9


def test_parts_and_extremes_are_told_in_words_on_their_arrows():
    texts = {
        sheet.nodes[u.target].heading: sheet.local_text(u, sheet.frame)
        for function in (chosen, cross_entropy, least, parts, length)
        for sheet in [Sheet(of_function(function, (X,)))]
        for u in sheet.uses
        if u.part is not None
    }
    assert texts["p = x[rows, T]"] == "adjoint, added into x[rows, T]"
    assert texts["p[np.arange(6), T]"] == "adjoint, added into p[np.arange(6), T]"
    assert texts["x[::2, 0]"] == "adjoint, added into x[::2, 0]"
    assert texts["x[0]"] == "adjoint, added into x[0]"
    assert texts["max(x, axis=1, keepdims=True)"] == "adjoint where x is largest"
    assert texts["min(x, axis=0)"] == "adjoint where x is smallest"
    assert not [text for text in texts.values() if "add_at" in text]
