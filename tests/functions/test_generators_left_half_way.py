# ruff: noqa: SIM108, B905, UP028, C416, C417, B007 (iterators are taken from in all ways)
"""Generators and iterators that ``any``, ``all``, ``next``, ``in`` and ``zip`` leave half-way: who goes on has what Python leaves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.functions.same_as_python import captures, same


def any_of_it(x):
    g = (v for v in x)
    a = any(v < 0 for v in g)
    return a, list(g)


def any_directly(x):
    g = (v * 2 for v in x)
    a = any(g)
    return a, list(g)


def any_of_truths(x):
    g = (v < 0 for v in x)
    a = any(g)
    return bool(a), list(g)


def all_of_truths(x):
    g = (v > 0 for v in x)
    a = all(g)
    return bool(a), list(g)


def all_twice(x):
    g = (v > 0 for v in x)
    a = all(g)
    b = all(g)
    return bool(a), bool(b), sum(g)


def the_next(x):
    g = (v for v in x)
    a = next(g)
    return a, list(g)


def the_next_that_holds(x):
    g = (v for v in x if v > 1)
    a = next(g)
    return a, list(g)


def the_next_or_a_default(x):
    g = (v for v in x if v > 1)
    a = next(g, None)
    b = next(g, 7.0)
    c = next(g, 7.0)
    return a, b, c


def the_next_in_a_branch(x):
    g = iter(x)
    a = next(g)
    if a > 0:
        b = next(g)
    else:
        b = a
    return a, b, list(g)


def is_within(x):
    g = (v for v in x)
    a = 3.0 in g
    return a, list(g)


def is_within_twice(x):
    g = iter(x)
    a = -2.0 in g
    b = 4.0 in g
    return a, b


def zipped_first(x):
    g = (v for v in x)
    a = list(zip(g, [1, 2]))
    return a, list(g)


def zipped_last(x):
    g = iter(x)
    a = list(zip([1, 2], g))
    return a, list(g)


def zipped_with_itself(x):
    g = iter(x)
    a = [p + q for p, q in zip(g, g)]
    return a, list(g)


def a_loop_left(x):
    g = (v for v in x)
    for v in g:
        if v < 0:
            break
    return v, list(g)


def two_loops(x):
    g = (v for v in x)
    s = 0.0
    for v in g:
        s += v
        if s < 0:
            break
    t = 0.0
    for v in g:
        t += v
    return s, t


def any_then_a_loop(x):
    g = (v for v in x)
    t = 0.0
    if any(v < 0 for v in g):
        for v in g:
            t += v
    return t


def a_function(x):
    def gen():
        for v in x:
            yield v

    g = gen()
    a = any(v < 0 for v in g)
    return a, list(g)


def an_endless_function(x):
    def gen():
        k = 0
        while True:
            yield x[k]
            k += 1

    g = gen()
    a = next(v for v in g if v < 0)
    return a, next(g)


def mapped(x):
    g = map(lambda v: v * 2, x)
    a = any(v < 0 for v in g)
    return a, list(g)


def mapped_truths(x):
    g = map(lambda v: v < 0, x)
    return bool(any(g)), list(g)


def filtered(x):
    g = filter(lambda v: v > 0, x)
    a = next(g)
    return a, list(g)


def numbered(x):
    g = enumerate(x)
    a = any(v < 0 for k, v in g)
    return a, list(g)


def numbered_loop(x):
    g = enumerate(x)
    for k, v in g:
        if v < 0:
            break
    return k, [j for j, v in g]


def an_iterator(x):
    g = iter(x)
    a = any(v < 0 for v in g)
    return a, sum(g)


def an_iterator_of_a_list(x):
    g = iter([v for v in x])
    a = all(v > 0 for v in g)
    return a, [*g]


def two_names(x):
    g = (v for v in x)
    h = g
    a = any(v < 0 for v in h)
    return a, list(g)


def within_a_branch(x):
    g = (v for v in x)
    if x[0] > 0:
        a = any(v < 0 for v in g)
    else:
        a = False
    return a, list(g)


def within_a_dictionary(x):
    d = {"g": (v for v in x)}
    a = any(v < 0 for v in d["g"])
    return a, list(d["g"])


def the_largest(x):
    g = (v for v in x)
    a = next(g)
    return a, max(g), list(g)


def sliced(x):
    g = (v for v in x)
    a = list(itertools.islice(g, 2))
    return a, list(g)


def taken_while(x):
    g = (v for v in x)
    a = list(itertools.takewhile(lambda v: v > 0, g))
    return a, list(g)


def printing(x):
    def show(v):
        print(float(v))
        return v

    g = (show(v) for v in x)
    a = any(v < 0 for v in g)
    print("half")
    return a, list(g)


def is_not_within(x):
    g = (v for v in x)
    a = 100.0 not in g
    return a, list(g)


def any_and_any(x):
    g = (v for v in x)
    return any(v < 0 for v in g) and any(v > 3 for v in g), list(g)


def unpacked(x):
    g = (v for v in x)
    a, b = next(g), next(g)
    return a, b, [*g]


def starred(x):
    g = (v for v in x)
    a, *r = g
    return a, r, list(g)


def given_to_a_function(x):
    return first(v for v in x)


def first(g):
    a = any(v < 0 for v in g)
    return a, sum(g)


def bound_on_the_way(x):
    g = (v for v in x)
    if any((w := v) < 0 for v in g):
        return w, list(g)
    return 0.0


def sorted_rest(x):
    g = (v for v in x)
    a = any(v < 0 for v in g)
    return a, sorted(g)


def gone_over_twice(x):
    g = (v for v in x)
    a = any(v < 0 for v in g)
    return a, [v for v in g], np.array(list(g))


def an_array_of_the_rest(x):
    g = (v for v in x)
    a = any(v < 0 for v in g)
    return a, np.array(list(g)).sum()


def while_there_is_one(x):
    g = iter(x)
    s = 0.0
    while (v := next(g, None)) is not None:
        s += v
        if s < 0:
            break
    return s, list(g)


def numbers_of_pythons(x):
    g = (k for k in [1, 2, 3])
    a = any(g)
    return a, list(g)


def rows(x):
    g = (k > 0 for k in x[:3])
    a = any(g)
    return bool(a), list(g)


def indices(x):
    g = (x[k] < 0 for k in range(4))
    a = any(g)
    return bool(a), list(g)


def asked_three_times(x):
    g = (x[k] < 0 for k in range(4))
    return bool(any(g)), bool(any(g)), bool(all(g))


def nobody_goes_on(x):
    g = (x[k] < 0 for k in (0, 1, 2))
    if any(g):
        return 1
    return 2


def one_within_another(x):
    g = (v for v in x)
    h = (v * 2 for v in g)
    a = any(v < 0 for v in h)
    return a, list(h), list(g)


def mapped_generator(x):
    g = (v for v in x)
    a = any(map(lambda v: v < 0, g))
    return bool(a), list(g)


def zipped_generator(x):
    g = (v for v in x)
    a = any(v < w for v, w in zip(g, [0.0, 0.0, 0.0, 0.0, 0.0]))
    return bool(a), list(g)


def nobody_goes_on_with_pairs(x):
    return any(v < w for v, w in zip(x, x[::-1]))


def known(x):
    g = (v is None for v in [1, None, x])
    return any(g), list(g)


def known_in_part(x):
    g = (v for v in [0, x[0] > 0, 5, x[1]])
    return bool(any(g)), list(g)


PROGRAMS = [
    any_of_it,
    any_directly,
    any_of_truths,
    all_of_truths,
    all_twice,
    the_next,
    the_next_that_holds,
    the_next_or_a_default,
    the_next_in_a_branch,
    is_within,
    is_within_twice,
    zipped_first,
    zipped_last,
    zipped_with_itself,
    a_loop_left,
    two_loops,
    any_then_a_loop,
    a_function,
    an_endless_function,
    mapped,
    mapped_truths,
    filtered,
    numbered,
    numbered_loop,
    an_iterator,
    an_iterator_of_a_list,
    two_names,
    within_a_branch,
    within_a_dictionary,
    the_largest,
    sliced,
    taken_while,
    printing,
    is_not_within,
    any_and_any,
    unpacked,
    starred,
    given_to_a_function,
    bound_on_the_way,
    sorted_rest,
    gone_over_twice,
    an_array_of_the_rest,
    while_there_is_one,
    numbers_of_pythons,
    rows,
    indices,
    asked_three_times,
    nobody_goes_on,
    one_within_another,
    mapped_generator,
    zipped_generator,
    nobody_goes_on_with_pairs,
    known,
    known_in_part,
]


def arrays(*values):
    return lambda: (np.array(values),)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_who_goes_on_has_what_is_left(program):
    same(program, arrays(1.0, -2.0, 3.0, 4.0), arrays(5.0, 2.0, -3.0, 7.0, -1.0), arrays(-5.0, 2.0, -3.0, 7.0))


def test_where_nobody_goes_on_it_is_captured():
    captures(nobody_goes_on, np.array([1.0, -2.0, 3.0, 4.0]))
    captures(lambda x: any(v < 0 for v in x), np.array([1.0, -2.0, 3.0, 4.0]))
