"""Entries of containers that loops hand on, arrays that change places, and what data choose: the very same objects."""

from __future__ import annotations

import dataclasses
import warnings
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensormagic as tm
from tests.capture.harness import cell
from tests.functions.same_as_python import captures, same


@dataclasses.dataclass
class Model:
    w: Any
    b: Any


class Pair(NamedTuple):
    w: Any
    b: Any


def arrays() -> tuple[Any, Any]:
    return np.array([1.0, 2.0]), np.array([3.0, 4.0])


def dictionary(n: Any = 20) -> Any:
    w, b = arrays()
    return {"w": w, "b": b}, n


def sequence(kind: Any, n: Any = 20) -> Any:
    return kind(arrays()), n


def record(kind: Any, n: Any = 20) -> Any:
    w, b = arrays()
    return kind(w=w, b=b), n


def in_a_dictionary(p, n):
    for _ in range(n):
        p = {"w": p["w"] - 0.1 * p["b"], "b": p["b"]}
    return p


def stored_into_behind(p, n):
    for _ in range(n):
        p = {"w": p["w"] * 0.9, "b": p["b"]}
    p["b"][0] = 1
    return p


def stored_into_within(p, n):
    for _ in range(20):
        p = {"w": p["w"] * 0.9, "b": p["b"]}
        p["b"][0] += 1
    return p


def while_it_is_large(p, n):
    while p["w"].sum() > 1.0:
        p = {"w": p["w"] * 0.9, "b": p["b"]}
    return p


def while_never(p, n):
    while p["w"].sum() > 100.0:
        p = {"w": p["w"] * 0.9, "b": p["b"]}
    p["b"][0] = 7
    return p


def as_often_as_data_say(p, n):
    for _ in range(int(p["w"][1]) + 5):
        p = {"w": p["w"] * 0.9, "b": p["b"]}
    return p


def until_a_break(p, n):
    for _ in range(20):
        p = {"w": p["w"] * 0.9, "b": p["b"]}
        if p["w"].sum() < 1:
            break
    return p


def under_a_branch(p, n):
    if p["w"].sum() > 1:
        p = {"w": p["w"] * 2, "b": p["b"]}
    return p


def under_no_branch(p, n):
    if p["w"].sum() > 100:
        p = {"w": p["w"] * 2, "b": p["b"]}
    return p


def under_branches_of_a_loop(p, n):
    for _ in range(20):
        if p["w"].sum() > 1:
            p = {"w": p["w"] * 0.9, "b": p["b"]}
    return p


def by_a_function(p, n):
    def step(p, g):
        return {"w": p["w"] - 0.1 * g, "b": p["b"]}

    for _ in range(20):
        p = step(p, p["b"])
    return p


def by_a_comprehension(p, n):
    for _ in range(20):
        p = {k: (v * 0.9 if k == "w" else v) for k, v in p.items()}
    return p


def spread(p, n):
    for _ in range(20):
        p = {**p, "w": p["w"] * 0.9}
    return p


def nested(p, n):
    p = {"l": [p["w"], p["b"]], "m": p["b"], "c": {"b": p["b"]}}
    q = p
    for _ in range(20):
        p = {"l": [p["l"][0] * 0.9, p["l"][1]], "m": p["m"], "c": p["c"]}
    p["m"][1] = 22
    return p, q, p["c"] is q["c"]


def a_part(p, n):
    p = {"l": p["w"], "m": p["b"][::-1]}
    for _ in range(20):
        p = {"l": p["l"] * 0.9, "m": p["m"]}
    p["m"][1] = 22
    return p


def its_own(p, n):
    b = np.zeros(2)
    p = {"w": p["w"], "b": b}
    for _ in range(20):
        p = {"w": p["w"] * 0.9, "b": p["b"]}
    p["b"][1] = 22
    return p, b


def loops_in_loops(p, n):
    for _ in range(3):
        for _ in range(7):
            p = {"w": p["w"] * 0.9, "b": p["b"]}
    return p


def exchanged(p, n):
    for _ in range(int(n)):
        p = {"w": p["b"], "b": p["w"]}
    return p


def exchanged_and_stored(p, n):
    for _ in range(int(n)):
        p = {"w": p["b"], "b": p["w"]}
    p["b"][0] = 9
    return p


DICTIONARIES = [
    *(in_a_dictionary, stored_into_behind, stored_into_within, while_it_is_large, while_never, as_often_as_data_say),
    *(until_a_break, under_a_branch, under_no_branch, under_branches_of_a_loop, by_a_function, by_a_comprehension),
    *(spread, nested, a_part, its_own, loops_in_loops, exchanged, exchanged_and_stored),
]


@pytest.mark.parametrize("program", DICTIONARIES, ids=lambda f: f.__name__)
def test_an_entry_that_is_handed_on_stays_the_same_array(program):
    same(program, dictionary)
    if program is not under_branches_of_a_loop:  # which dictionary it is, any iteration may have decided: Python's
        captures(program, *dictionary())


@pytest.mark.parametrize("n", [0, 1, 2, 5, 6])
@pytest.mark.parametrize("program", [exchanged, exchanged_and_stored], ids=lambda f: f.__name__)
def test_entries_that_data_exchange(program, n):
    same(program, lambda: dictionary(np.array(n)))


def in_a_sequence(p, n):
    for _ in range(n):
        p = type(p)((p[0] * 0.9, p[1]))
    return p


def in_a_list(p, n):
    for _ in range(n):
        p = [p[0] * 0.9, p[1]]
    p[1][0] = 7
    return p


def in_a_tuple(p, n):
    for _ in range(n):
        p = (p[0] * 0.9, p[1])
    p[1][0] = 7
    return p


def in_an_object(p, n):
    for _ in range(n):
        p = type(p)(w=p.w * 0.9, b=p.b)
    p.b[0] = 7
    return p


def replaced(p, n):
    for _ in range(n):
        p = dataclasses.replace(p, w=p.w * 0.9)
    return p


def replaced_in_a_named_tuple(p, n):
    while p.w.sum() > 1:
        p = p._replace(w=p.w * 0.9)
    p.b[1] = 5
    return p


def attributes(p, n):
    o = SimpleNamespace(w=p.w, b=p.b)
    for _ in range(n):
        o.w = o.w * 0.9
        o.b = o.b
    o.b[1] = 22
    return o


@pytest.mark.parametrize(
    ("program", "make"),
    [
        *((in_a_list, lambda: sequence(list)), (in_a_tuple, lambda: sequence(tuple))),
        *((in_a_sequence, lambda: sequence(list)), (in_a_sequence, lambda: sequence(tuple))),
        *((in_an_object, lambda: record(Model)), (in_an_object, lambda: record(Pair))),
        *((replaced, lambda: record(Model)), (replaced_in_a_named_tuple, lambda: record(Pair))),
        *((in_an_object, lambda: record(SimpleNamespace)), (attributes, lambda: record(Model))),
    ],
)
def test_entries_of_every_kind_of_container(program, make):
    same(program, make)


def chosen(a, b):
    return a if a.sum() > 1 else b


def other(a, b):
    return b if a.sum() > 1 else a


def bound_in_one_branch(a, b):
    if a.sum() > 100:
        a = a * 2
    return a, b


def chosen_part(a, b):
    c = a if a.sum() > 1 else b
    return c[1:], c


def chosen_of_three(a, b):
    c = a * 2
    d = a if a[0] > 5 else (b if a[1] > 0 else c)
    return d, c


def doubled(a, b):
    while a.sum() < 100:
        a = a * 2
    return a


def never_doubled(a, b):
    while a.sum() > 100:
        a = a * 2
    return a


def best(a, b):
    found = a
    for _ in range(20):
        b = b * 0.9
        if b.sum() > found.sum():
            found = b
    return found


def best_is_first(a, b):
    found = b
    for _ in range(20):
        a = a * 0.9
        if a.sum() > found.sum():
            found = a
    return found


def best_and_last(a, b):
    found = a
    for _ in range(20):
        b = b * 1.1
        if b.sum() > found.sum():
            found = b
    return found, b


def two_terms(a, b):
    for _ in range(int(a[0])):
        a, b = b, a + b
    return a, b


def rotated(a, b):
    s = (a, b, a * 2)
    for _ in range(int(b[0])):
        s = (s[1], s[2], s[0])
    s[0][0] = 5.0
    return s


def kept_in_a_loop(a, b):
    for k in range(3):
        pair = (a * k, b)
    return pair


def chosen_in_a_loop(a, b):
    for k in range(int(b[1])):
        a = b if k == 2 else a
    return a


@pytest.mark.parametrize(
    "program",
    [
        *(chosen, other, bound_in_one_branch, chosen_part, chosen_of_three, doubled, never_doubled, best),
        *(best_is_first, best_and_last, two_terms, rotated, kept_in_a_loop, chosen_in_a_loop),
    ],
    ids=lambda f: f.__name__,
)
def test_what_data_choose_is_the_array_that_it_is(program):
    same(program, arrays, lambda: (np.array([0.0, 0.5]), np.array([2.0, 3.0])), lambda: arrays()[::-1])


CONFIGURATION = {"rate": np.ones(2)}


def a_dictionary_of_the_module(p, n):
    return CONFIGURATION if p["w"].sum() > 1 else p


def test_containers_that_data_choose():
    def larger(p, q):
        return p if p["w"].sum() > q["w"].sum() else q

    def one_of_two_or_new(p, q):
        if p["w"].sum() > 10:
            q = {"w": p["w"], "b": q["b"]}
        return q, p

    def clipped(p, q):
        if p["w"].max() > q["w"].max():
            p = {k: v / 2 for k, v in p.items()}
        return p

    def pairs():
        return [{"w": np.array([x, 2.0]), "b": np.ones(1)} for x in (5.0, 3.0)]

    for program in (larger, one_of_two_or_new, clipped):
        same(program, pairs, lambda: pairs()[::-1])
        captures(program, *pairs())
    with warnings.catch_warnings(action="ignore", category=tm.PlainRunWarning):
        assert tm.tensor(a_dictionary_of_the_module)(*dictionary()) is CONFIGURATION


def test_gradients_and_compiled_functions_have_the_same_values():
    def loss(p, x):
        for _ in range(20):
            p = {"w": p["w"] - 0.1 * p["b"] * x, "b": p["b"]}
        return (p["w"] ** 2).sum()

    p, x = dictionary()[0], 0.5
    (found,) = [tm.grad(loss)(p, x)]
    for key in p:
        for k in range(2):
            near = {k: v.copy() for k, v in p.items()}
            near[key][k] += 1e-6
            assert abs((loss(near, x) - loss(p, x)) / 1e-6 - found[key][k]) < 1e-3

    def swaps(a, b, n):
        for _ in range(n):
            a, b = b, a
        return a - b

    compiled = tm.compile(swaps, "float64[2]", "float64[2]", "int")
    for n in range(4):
        np.testing.assert_array_equal(compiled.run(*arrays(), n), swaps(*arrays(), n))
        np.testing.assert_array_equal(tm.grad(lambda a, b, n: swaps(a, b, n).sum())(*arrays(), n), [1 - n % 2 * 2] * 2)


@pytest.mark.parametrize("count", ["20", "int(n[0])"])
def test_entries_stay_in_cells(count):
    names = {"p": dictionary()[0], "n": np.array([3])}
    b = names["p"]["b"]
    found = cell(f"q = p\nfor _ in range({count}):\n    q = {{'w': q['w'] * 0.9, 'b': q['b']}}\nq['b'][0] = 7", names)
    assert found.outputs["q"]["b"].place.buffer.array is b
