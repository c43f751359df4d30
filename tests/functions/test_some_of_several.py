"""``any`` and ``all`` of values whose computation changes something: no more of them are computed than Python computes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tensormagic as tm


def draws(x, rng):
    return any(v > rng.random() * 4 for v in x), rng.random()


def draws_for_all(x, rng):
    return all(v > rng.random() - 0.5 for v in x), rng.random()


def appends(x, rng):
    taken = []

    def noted(v):
        taken.append(v)
        return v

    return any(noted(v) > 2 for v in x), taken


def appends_in_a_map(x, rng):
    taken = []

    def noted(v):
        taken.append(v)
        return v > 2

    return any(map(noted, x)), taken


def stores(x, rng):
    count = np.zeros(1)

    def noted(v):
        count[0] += 1
        return v

    return all(noted(v) < 2 for v in x), count


def binds(x, rng):
    if any((found := v) > 2 for v in x):
        return found
    return -1.0


def takes_from_an_iterator(x, rng):
    left = iter(x)
    return any(v > 2 for v in left), 6.0 in left, list(left)


def changes_nothing(x, rng):
    return any(v > 2 for v in x), all(v > 0 for v in x), any(np.sin(v) > 0.9 for v in x), any(v < 0 for v in x)


PROGRAMS = [draws, draws_for_all, appends, appends_in_a_map, stores, binds, takes_from_an_iterator, changes_nothing]


def alike(one, other):
    if isinstance(one, tuple | list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            alike(a, b)
    else:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_no_more_is_computed_than_in_python(program):
    captured = tm.tensor(program)
    for x in ([1.0, 3.0, 0.5, 6.0, 2.0], [0.5, 0.25, 0.125, 1.0, 0.5], [9.0, 1.0, 3.0, 1.0, 6.0]):
        for seed in (0, 1):
            with warnings.catch_warnings(action="ignore"):
                found = captured(np.array(x), np.random.default_rng(seed))
            alike(found, program(np.array(x), np.random.default_rng(seed)))


def test_values_whose_computation_changes_nothing_stay_in_the_graph():
    assert len(tm.tensor(changes_nothing).graph(np.ones(5), np.random.default_rng(0)).results) == 4
