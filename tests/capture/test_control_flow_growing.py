"""Arrays whose length differs from iteration to iteration, and lists of data-dependent length, in functions."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.control_flow import Cases, V, check_gradient, check_value

CASES = Cases()
case = CASES.enter
X = np.array([0.513, -1.257, 2.031, 0.752, -0.508, 1.512])

# arrays ---------------------------------------------------------------------------------------------------------------


@case(X, while_=1)
def doubled_until_large(x):
    y = x
    while y.sum() < 100:
        y = np.concatenate([y, y[-1:] * 2 + 3])
    return y


@case(X, while_=1)
def without_the_least(x):
    y = x**2
    while len(y) > 2:
        y = y[y > y.min()]
    return y


@case(X, X[:0], any_regions=True)
def those_that_are_left(x):
    kept = x
    for k in range(40):
        kept = kept[kept > 0.01 * k]
    return kept.sum()


@case(X, -X, cond=1)
def parts_of_different_length(x):
    y = x[:3] if x.sum() > 0 else x * 2
    return (y * y).sum() + len(y)


@case(X, any_regions=True)
def appended_where_positive(x):
    y = np.array([])
    for v in x:
        if v > 0:
            y = np.append(y, v * 3)
    return y


@case(X, any_regions=True)
def two_that_shrink(x):
    value, place = x.copy(), np.arange(6)
    total = 0.0
    while len(value) > 0:
        total = total + (value * (place + 1)).sum()
        value = value * 0.7
        keep = np.abs(value) > 0.3
        value, place = value[keep], place[keep]
    return total


@case(X, any_regions=True)
def matrix_of_rows(x):
    rows = x[None]
    while np.abs(rows[-1]).max() > 0.5:
        rows = np.concatenate([rows, rows[-1:] * 0.6])
    return rows.sum(axis=0)


# lists ----------------------------------------------------------------------------------------------------------------


@case(X, while_=1)
def history_of_a_while(x):
    history, y, error = [], x, 1.0
    while error > 1e-3:
        new = np.cos(y)
        error = np.abs(new - y).max()
        history.append(error)
        y = new
    return y.sum() + np.sum(history)


@case(X, while_=1)
def rows_read_back(x):
    out = [x]
    while np.abs(out[-1]).max() > 0.1:
        out.append(out[-1] * 0.5)
    return np.stack(out)


@case(X, any_regions=True)
def left_early(x):
    out, total = [], 0.0
    for k in range(100):
        total = total + x[k % 6] ** 2
        out.append(total)
        if total > 10:
            break
    return np.array(out)


@case(X, any_regions=True)
def appended_by_data(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v * 2)  # noqa: PERF401 (what is tried)
    return np.array(out)


@case(X, while_=1)
def two_lists(x):
    first, second, v = [], [], x.sum()
    while v < 50:
        v = v * 1.5 + 1
        first.append(v)
        second.append(v * v)
    return np.array(first) @ np.array(second)


@case(X, while_=1)
def lists_in_a_dictionary(x):
    history = {"loss": [], "size": []}
    w = x
    while np.abs(w).max() > 0.1:
        w = w * 0.6
        history["loss"].append((w**2).sum())
        history["size"].append(np.abs(w).max())
    return np.array(history["loss"]) * np.array(history["size"])


class Trainer:
    def __init__(self, w):
        self.w, self.history = w, []

    def run(self):
        while np.abs(self.w).max() > 0.1:
            self.w = self.w * 0.6
            self.history.append((self.w**2).sum())
        return self.w


@case(X, while_=1)
def list_of_an_object(x):
    trainer = Trainer(x)
    w = trainer.run()
    return np.array(trainer.history).sum() + w.sum()


@case(X, while_=1, smooth=False)
def given_back(x):
    out = [x[2]]
    while out[-1] < 50:
        out.append(out[-1] * 2 + x[0])
    return out, len(out)


@case(X, any_regions=True)
def what_python_does_with_lists(x):
    out, v = [], x.sum()
    while v < 50:
        v = v * 2 + 1
        out.append(v)
    total = 0.0
    for k, u in enumerate(out):
        total = total + k * u
    if out:
        total = total + out[0] * out[-1]
    return total + sum(out) + max(out) + min(out)


@case(X, any_regions=True)
def pairs(x):
    out, v = [], x.sum()
    while v < 50:
        v = v * 2 + 1
        out.append((v, x * v))
    total = 0.0
    for a, b in out:
        total = total + a * b.sum()
    return total


@case(X, while_=1)
def joined(x):
    out, v = [], x
    while np.abs(v).max() > 0.3:
        v = v * 0.7
        out.append(v)
    total = np.stack(out, axis=1).sum(axis=1) + np.mean(out, axis=0) + np.vstack(out).sum(axis=0)
    return total + np.concatenate(out).sum() + np.hstack(out)[2] + np.column_stack(out)[:, 0] + np.array(out)[-1]


@case(X, while_=1)
def parts_of_it(x):
    out, v = [], x.sum()
    while v < 500:
        v = v * 2 + 1
        out += [v]
    return np.mean(out[-3:]) + np.sum(out[1:]) + np.exp(np.array(out) * 1e-3).sum()


@case(X, any_regions=True)
def a_list_that_two_loops_fill(x):
    out = []
    for k in range(40):
        v = x[k % 6] + 2
        while v > 1:
            v = v * 0.8
            out.append(v)
    return np.sum(out)


@case(X, any_regions=True)
def whole_numbers_and_others(x):
    out, v = [0], x.sum()
    while v < 9:
        v = v + 1
        out.append(v)
    return np.array(out)


# comprehensions -------------------------------------------------------------------------------------------------------


@case(X, any_regions=True)
def chosen_by_data(x):
    return np.array([v * v for v in x if v > 0])


@case(X, any_regions=True)
def chosen_pairs(x):
    return np.sum([a * b for a, b in zip(x, x[::-1], strict=True) if a > b])


@case(X, any_regions=True)
def summed_where_positive(x):
    return sum(v for v in x if v > 0 if v < 2) + sum(v for v in filter(lambda v: v > 1, x))


@case(X, any_regions=True)
def of_a_list(x):
    return len([v for v in [x[0], x[1], x[2]] if v > 0]) * x.sum()


@case(X)
def chosen_by_number(x):
    return np.stack([x[k] * k for k in range(6) if k % 2])


@case(X, any_regions=True)
def over_what_is_left(x):
    return sum([v * v for v in x[x > 0]])


@pytest.mark.parametrize("name", CASES)
def test_value_and_region(name):
    check_value(CASES[name])


@pytest.mark.parametrize("name", CASES.smooth)
def test_gradient(name):
    check_gradient(CASES[name])


@pytest.mark.parametrize(
    "name", ["without_the_least", "rows_read_back", "appended_by_data", "left_early", "chosen_by_data"]
)
def test_compiled(name, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numba")
    check_value(CASES[name])


def test_another_length_runs_the_same_graph():
    f = tm.tensor(rows_read_back)
    assert f.graph(X) == f.graph(4 * X)
    assert f(4 * X).shape == (8, 6)


def test_no_iteration_leaves_a_list_empty():
    def f(x):
        out = []
        while x < 10:
            x = x * 2
            out.append(x)
        return out

    captured = tm.tensor(f)
    assert captured(3.0) == [6.0, 12.0]
    assert captured(30.0) == []


@pytest.mark.parametrize("use", [lambda x, v: x if x.sum() > v else -x, lambda x, v: x[x > v]])
def test_what_does_not_fit_the_sum_of_a_list_may_fit_that_of_an_empty_one(use):
    def f(x, y, k):
        return use(x, sum([y * 2 for _ in range(k.max())]))

    with pytest.raises(CaptureError, match=r"a list may be empty in .*, depending on data"):
        tm.tensor(f).graph(X, np.ones((2, 2)), np.array([0]))


def test_what_python_would_not_meet_with_an_empty_list_is_refused():
    def f(x, k):
        rows = [x * i for i in range(k[0])]
        table = np.array(rows).T
        if len(table) < 2:
            last = table + 1
        return last

    assert f(np.arange(3.0), np.array([0])).size == 0
    with pytest.raises(
        CaptureError, match=r"a list may be empty in .*, depending on data, and is assumed not to be"
    ) as caught:
        tm.tensor(f).graph(np.arange(3.0), np.array([0]))
    assert "ends in UnboundLocalError" in str(caught.value)


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
def test_sizes_that_do_not_fit_an_empty_list_are_pythons(tier):

    def f(x, k):
        rows = np.array([np.outer(x, x) for i in range(k[0])])
        rows.T[...] = rows + 1
        return rows

    captured = tm.tensor(f)
    assert captured(np.arange(3.0), np.array([0])).shape == f(np.arange(3.0), np.array([0])).shape
    assert np.array_equal(captured(np.arange(3.0), np.array([3])), f(np.arange(3.0), np.array([3])))
    with pytest.raises(ValueError, match="do not fit"):
        captured(np.arange(3.0), np.array([2]))


@pytest.mark.parametrize("extreme", [min, max])
def test_the_extreme_of_an_empty_list(extreme):
    def f(x, k):
        return extreme([x[0] * (i - 1) for i in range(k[0])]), extreme(np.median(x) * i for i in range(k[0]))

    captured = tm.tensor(f)
    assert captured(np.array([2.0, 3.0]), np.array([3])) == f(np.array([2.0, 3.0]), np.array([3]))
    with pytest.raises(ValueError, match="empty") as pythons:
        extreme([])
    for function in (f, captured):
        with pytest.raises(ValueError, match=re.escape(str(pythons.value))):
            function(np.array([2.0, 3.0]), np.array([0]))


def test_an_element_that_is_not_there():
    def f(x):
        out = []
        while x < 10:
            x = x * 2
            out.append(x)
        return out[1]

    captured = tm.tensor(f)
    assert captured(3.0) == 12.0
    with pytest.raises(IndexError):
        captured(9.0)


def test_what_lists_without_a_length_cannot_do():
    def popped(x):
        todo, total = [x], 0.0
        while todo:
            v = todo.pop()
            if v > 1:
                todo.append(v / 2)
                todo.append(v / 3)
            total = total + v
        return total

    with pytest.raises(CaptureError, match="list"):
        tm.tensor(popped).graph(8.0)

    def known_to_another(x):
        out = []
        also = out
        while x < 10:
            x = x * 2
            out.append(x)
        return also

    with pytest.raises(CaptureError, match="list grows"):
        tm.tensor(known_to_another).graph(1.0)

    def stored_into_after(x):
        out = []
        while x.sum() < 10:
            x = x * 2
            out.append(x)
            x[0] = 1.0
        return np.stack(out)

    with pytest.raises(CaptureError):
        tm.tensor(stored_into_after).graph(np.ones(3))

    def of_two_shapes(x):
        out = [x]
        while x.sum() < 10:
            x = x * 2
            out.append(x[1:])
        return out

    with pytest.raises(CaptureError, match="elements of a list that grows a data-dependent number of times"):
        tm.tensor(of_two_shapes).graph(np.ones(3))


def test_a_batch_has_arrays_of_one_length():
    with pytest.raises(ValueError, match="another length for each element of a batch"):
        tm.vmap(doubled_until_large)(np.stack([X, 2 * X]))
    lists = tm.vmap(lambda x: sum(v for v in x if v > 0))(np.stack([X, -X]))
    np.testing.assert_allclose(lists, [X[X > 0].sum(), -X[X < 0].sum()])


def test_second_derivatives():
    f = tm.grad(lambda x: history_of_a_while(x) ** 2)
    found = tm.grad(lambda x: (f(x) * V.sum()).sum())(X)
    step = 1e-5
    differences = [(f(X + step * e).sum() - f(X - step * e).sum()) / (2 * step) * V.sum() for e in np.eye(6)]
    np.testing.assert_allclose(found, differences, rtol=1e-6, atol=1e-7)


def test_the_extreme_of_arrays_of_which_data_say_how_many():
    def largest(x, k):
        return max(x[i] * 2 for i in range(k[0]))

    def smallest(x, k):
        return min([x[i] - 1 for i in range(k[0])])

    x = np.arange(6.0).reshape(2, 3)
    for function in (largest, smallest):
        captured = tm.tensor(function)
        np.testing.assert_array_equal(captured(x, np.array([1])), function(x, np.array([1])))
        with pytest.raises(ValueError, match="truth value of an array"):
            captured(x, np.array([2]))
        np.testing.assert_array_equal(captured(x[:, :1], np.array([2])), function(x[:, :1], np.array([2])))
