# ruff: noqa: UP028, PTH123 (as users write it)
"""Generators that a capture leaves half-way which is given up: what they do in the end is done once, by Python's own."""

from __future__ import annotations

import gc
import itertools
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.functions.calls import first_call
from tensormagic.ir.errors import CaptureError


def counted(n):
    try:
        for i in range(n):
            yield i
    finally:
        print("closed", n)


def values(x):
    try:
        for v in x:
            print("at")
            yield v
    finally:
        print("closed")


class Manager:
    def __enter__(self):
        print("in")
        return self

    def __exit__(self, *_):
        print("out")


def managed(n):
    with Manager():
        yield from range(n)


class Iterable:
    def __iter__(self):
        try:
            yield 1
            yield 2
        finally:
            print("iterable closed")


def needs_a_value(x):
    return len({float(x[0]): 1})


def with_a_name(x):
    g = counted(5)
    s = next(g) + next(g)
    return x * s * needs_a_value(x)


def reads_a_file_on_a_branch(x):
    g = counted(5)
    s = next(g)
    if x.sum() > 0:
        with open("/dev/null") as file:
            file.read()
    return x * s


def of_a_for_loop(x):
    n = 0
    for i in counted(3):
        n += needs_a_value(x) + i
        if n > 2:
            break
    return x * n


def over_data(x):
    n = 0
    for v in values(x):
        n += needs_a_value(x)
        if v > 0:
            break
    return x * n


def with_a_manager(x):
    g = managed(4)
    a = next(g)
    return x * a + needs_a_value(x)


def of_an_object(x):
    n = 0
    for v in Iterable():
        n += v * needs_a_value(x)
    return x * n


def zipped(x):
    n = 0
    for v, w in zip(counted(3), counted(4), strict=False):
        n += (v + w) * needs_a_value(x)
    return x * n


def in_a_list(x):
    several = [counted(2), counted(3)]
    for g in several:
        next(g)
    return x * needs_a_value(x)


def in_an_attribute(x):
    o = SimpleNamespace(g=counted(3))
    next(o.g)
    return x * needs_a_value(x)


def in_a_helper(x):
    def helper(g):
        next(g)
        return needs_a_value(x)

    return x * helper(counted(3))


def sliced(x):
    g = itertools.islice(counted(4), 3)
    next(g)
    return x * needs_a_value(x)


def one_of_another(x):
    def outer():
        try:
            yield from counted(3)
        finally:
            print("outer")

    g = outer()
    next(g)
    return x * needs_a_value(x)


def that_is_closed(x):
    g = counted(3)
    next(g)
    n = needs_a_value(x)
    g.close()
    print("behind it")
    return x * n


def that_changes_a_list(x):
    found = []

    def own():
        try:
            yield 1
            yield 2
        finally:
            found.append("closed")

    g = own()
    next(g)
    n = needs_a_value(x)
    g.close()
    return x * n, found


PROGRAMS = [
    with_a_name,
    reads_a_file_on_a_branch,
    of_a_for_loop,
    over_data,
    with_a_manager,
    of_an_object,
    zipped,
    in_a_list,
    in_an_attribute,
    in_a_helper,
    sliced,
    one_of_another,
    that_is_closed,
    that_changes_a_list,
]


def printed(function, x, capsys):
    with warnings.catch_warnings(action="ignore"):
        found = function(x)
    del function
    gc.collect()
    return repr(found), capsys.readouterr().out


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_prints_once(program, capsys, monkeypatch):
    monkeypatch.setattr(first_call, "enabled", False)
    for x in (np.array([1.0, 2.0]), np.array([-1.0, 0.5]), np.array([1.0, 0.0])):
        expected = printed(program, x, capsys)
        assert printed(tm.tensor(program), x, capsys) == expected


@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_is_printed_where_it_is_refused(program, capsys):
    with pytest.raises(CaptureError):
        tm.compile(program, "float64[2]")
    gc.collect()
    assert capsys.readouterr().out == ""


def test_a_generator_of_the_callers_goes_on(capsys, monkeypatch):
    monkeypatch.setattr(first_call, "enabled", False)
    mine = counted(3)
    next(mine)

    def refused(o, x):
        return x * needs_a_value(x) + o.shift

    with warnings.catch_warnings(action="ignore"):
        tm.tensor(refused)(SimpleNamespace(g=mine, shift=1.0), np.ones(2))
    assert next(mine) == 1
    assert capsys.readouterr().out == ""
    mine.close()
