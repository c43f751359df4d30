"""One box for each call and for each part of an array, with the derivative of all that it became."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.notebook.backprop.sheet import Sheet
from tensormagic.notebook.backprop.subject import of_function

pytestmark = pytest.mark.usefixtures("by_numpy")
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(6, 4))
T = RANDOM.integers(0, 4, 6)


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
    assert texts["p = x[rows, T]"] == "adjoint, added at [rows, T] of x"
    assert texts["p[np.arange(6), T]"] == "adjoint, added at [np.arange(6), T] of p"
    assert texts["x[::2, 0]"] == "adjoint, added at [::2, 0] of x"
    assert texts["x[0]"] == "adjoint, added at [0] of x"
    assert texts["max(x, axis=1, keepdims=True)"] == "adjoint where x is largest"
    assert texts["min(x, axis=0)"] == "adjoint where x is smallest"
    assert not [text for text in texts.values() if "add_at" in text]


def by_number(b):
    return np.sum(np.tanh(X + b))


def by_row(r):
    return np.mean((X * r) ** 2)


def by_column(c):
    return np.sum(np.exp(-X) / c)


def in_a_list(b):
    return np.sum(np.stack([np.tanh(row - b) for row in X[:2]]))


def in_a_branch(b):
    return np.sum(np.maximum(X, b)) if X.shape[0] > 2 else np.sum(b)


def by_product(w):
    return np.sum((X @ w) ** 2)


def by_equal(x):
    return np.sum(x * X)


def larger_of_two(x, y):
    return np.sum(np.maximum(x, y))


def smaller_of_its_own(x, y):
    return np.sum(np.minimum(x * y, x + y))


def larger_of_number(x, y):
    return np.sum(np.maximum(x, y[0])) + y[1]


def larger_given(x, y):
    return np.mean(np.maximum(X, x) * y[0])


def larger_given_first(x, y):
    return np.sum(np.minimum(x.sum() * X, X)) * y[0]


@pytest.mark.parametrize(
    ("function", "formulas"),
    [
        (larger_of_two, ["adjoint where x > y, half where equal", "adjoint where y > x, half where equal"]),
        (
            smaller_of_its_own,
            ["adjoint where x × y < x + y, half where equal", "adjoint where x + y < x × y, half where equal"],
        ),
        (larger_of_number, ["adjoint where x > y[0], half where equal"]),
        (larger_given, []),
        (larger_given_first, []),
    ],
)
def test_the_larger_of_two_is_told_for_each_that_gets_something(function, formulas):
    x, y = RANDOM.normal(size=4), RANDOM.normal(size=4)
    sheet = Sheet(of_function(function, (x, y)))
    found = [use.formula for use in sheet.uses]
    assert [one for one in formulas if one not in found] == []
    result = function(x, y)
    assert sheet.frame[sheet.result.value.at] == pytest.approx(result)


@pytest.mark.parametrize(
    ("function", "value", "repeats"),
    [
        (by_number, 0.5, {24}),
        (by_row, np.ones(4), {6}),
        (by_column, np.full((6, 1), 2.0), {4}),
        (in_a_list, 0.1, {4}),
        (in_a_branch, 0.2, {24}),
        (by_product, np.ones(4), set()),
        (by_equal, X, set()),
    ],
)
def test_what_is_broadcast_says_into_how_many_elements_it_goes(function, value, repeats):
    sheet = Sheet(of_function(function, (value,)))
    message = sheet.message()
    inputs = {k for k, n in enumerate(message["nodes"]) if n["heading"] in function.__code__.co_varnames[:1]}
    assert {u["repeats"] for u in message["uses"] if u["source"] in inputs} - {0} == repeats
