"""A row that data choose is NumPy's view when it is given back, too: a store of the caller into it reaches the array."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import tensormagic as tm
from tests.capture.harness import check
from tests.functions.stored_after import runs_in_python, same_after_stores

ROWS = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
SCORES = [np.array(v) for v in ([0.0, 2.0, 1.0], [5.0, 2.0, 1.0], [0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [7.0, 7.0, 7.0])]
CALLS = [lambda s=s: (ROWS.copy(), s.copy()) for s in SCORES]


def the_best(a, s):
    return a[np.argmax(s)]


def a_part_of_it(a, s):
    return a[np.argmax(s)][1:], a[np.argmin(s), ::-1]


def counted_from_the_end(a, s):
    return a[-1 - np.argmax(s)]


def a_number_that_may_be_negative(a, s):
    return a[int(s[0])]


def a_column(a, s):
    return [a[:, np.argmin(s)], a.T[np.argmax(s)]]


def with_a_new_axis(a, s):
    return a[np.argmax(s), None], a[np.argmax(s)].reshape(3, 1)


def stored_into_before(a, s):
    r = a[np.argmax(s)]
    r *= 2
    return r, a


def of_a_computed_array(a, s):
    b = a * 2
    r = b[np.argmax(s)]
    r += 1
    return b, r


def two_of_a_computed_array(a, s):
    b = a + 1
    return b[np.argmax(s)], b[np.argmin(s)]


def on_a_branch(a, s):
    i = np.argmax(s)
    return a[i] if s[0] > 0 else a[i - 1]


def of_one_branch(a, s):
    r = a[0]
    if s.sum() > 3:
        r = a[np.argmax(s)]
    return r


def of_a_loop(a, s):
    n = 0
    while n < len(s) - 1 and s[n] < 1:
        n += 1
    return a[n], n


def in_a_dictionary(a, s):
    return {"row": a[s.argmax()], "rest": [a, s]}


def exchanged(a, s):
    r, q = a[np.argmax(s)], a[np.argmin(s)]
    r[...], q[...] = q.copy(), r.copy()
    return r


def sorted_rows(a, s):
    order = np.argsort(s)
    return [a[order[k]] for k in range(3)]


def no_views(a, s):
    return a[np.argsort(s)], a[[np.argmax(s)]], a[np.argmax(s)] * 1, a[np.argmax(s), 0]


PROGRAMS = [
    the_best,
    a_part_of_it,
    counted_from_the_end,
    a_number_that_may_be_negative,
    a_column,
    with_a_new_axis,
    stored_into_before,
    of_a_computed_array,
    two_of_a_computed_array,
    on_a_branch,
    of_one_branch,
    of_a_loop,
    in_a_dictionary,
    exchanged,
    sorted_rows,
    no_views,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_stores_of_the_caller_reach_what_the_row_is_of(program):
    same_after_stores(program, *CALLS)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_graph_gives_it(program):
    assert not runs_in_python(program, CALLS[0]())


def test_a_row_that_is_kept_in_an_object():
    def keep(o, a, s):
        o.best = a[np.argmax(s)]
        o.best += 1
        return o.best.sum()

    for make in CALLS:
        results = []
        for f in (keep, tm.tensor(keep)):
            o, (a, s) = SimpleNamespace(best=None), make()
            f(o, a, s)
            o.best[0] = 50.0
            results.append((o.best.tolist(), a.tolist()))
        assert results[0] == results[1]


def test_derivatives_and_batches_concern_values():
    a, s = CALLS[0]()
    np.testing.assert_allclose(tm.grad(lambda a, s: the_best(a, s).sum())(a, s), np.eye(3)[1][:, None] * np.ones(3))
    batched = tm.vmap(the_best)(np.stack([a, a + 1]), np.stack([s, -s]))
    np.testing.assert_allclose(batched, [a[1], a[0] + 1])


def test_cells():
    check("r = a[np.argmax(s)]\nr[0] = 50.0\nq = a[:, np.argmin(s)]\nq += 1", a=ROWS, s=SCORES[0])
