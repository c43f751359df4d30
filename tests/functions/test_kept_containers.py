"""Containers of the caller's that a call keeps in objects are the caller's own; and what a call binds, each call binds."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensormagic as tm

X = np.arange(3.0)


class Holder:
    """What a call keeps values in."""

    def __init__(self, first: Any = None) -> None:
        self.history: list[Any] = []
        self.first = first

    @property
    def kept(self) -> Any:
        return self.behind

    @kept.setter
    def kept(self, value: Any) -> None:
        self.behind = value


class Slotted:
    """The same, with slots."""

    __slots__ = ("kept",)


@dataclass
class Point:
    """A record, which a call takes apart."""

    at: Any


class Pair(NamedTuple):
    """A tuple of names."""

    left: Any
    right: int


class Rows(list):  # type: ignore[type-arg]
    """A list of another class."""


def _nested(o: Any, p: Any) -> None:
    o.kept = {"in": [(p, 1)]}


def _later(o: Any, p: Any) -> None:
    o.kept = lambda: p


KEEPS = {
    "attribute": (lambda o, p: setattr(o, "last", p), lambda o: o.last),
    "property": (lambda o, p: setattr(o, "kept", p), lambda o: o.behind),
    "list": (lambda o, p: o.history.append(p), lambda o: o.history[-1]),
    "pair": (lambda o, p: o.history.append((0, p)), lambda o: o.history[-1][1]),
    "deque": (lambda o, p: setattr(o, "last", deque([p])), lambda o: o.last[0]),
    "nested": (_nested, lambda o: o.kept["in"][0][0]),
    "object": (lambda o, p: setattr(o, "last", Holder(p)), lambda o: o.last.first),
    "function": (_later, lambda o: o.kept()),
}
GIVEN = {
    "empty": list,
    "text": lambda: {"name": "a"},
    "numbers": lambda: [1.0, 2],
    "arrays": lambda: [np.ones(2), 3.0],
    "dictionary": lambda: {"w": np.ones(2)},
    "ordered": lambda: OrderedDict(w=np.ones(2)),
    "record": lambda: Point(np.ones(2)),
    "class": lambda: Rows([np.ones(2)]),
}


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("same", [False, True])
def test_an_object_keeps_the_callers_container(keep: str, given: str, same: bool):
    keeps, kept = KEEPS[keep]

    def f(o: Any, p: Any, x: Any) -> Any:
        keeps(o, p)
        return x.sum()

    captured, o = tm.tensor(f), Holder()
    for k in range(3):
        o, p = o if same else Holder(), GIVEN[given]()
        assert captured(o, p, X + k) == (X + k).sum()
        assert kept(o) is p
        assert repr(p) == repr(GIVEN[given]())


def test_a_container_inside_of_one_is_kept_itself():
    def f(o: Any, p: Any, x: Any) -> Any:
        o.inner, o.both = p["a"], [p, p["a"]]
        return x.sum()

    captured, o = tm.tensor(f), Holder()
    for _ in range(3):
        p = {"a": [np.ones(2)], "b": Pair([1.0], 2)}
        captured(o, p, X)
        assert o.inner is p["a"]
        assert o.both[0] is p
        assert o.both[1] is p["a"]


def test_a_container_that_is_changed_and_kept_is_the_callers():
    def f(o: Any, p: Any, x: Any) -> Any:
        p["sum"] = x.sum()
        o.history.append(p)
        return Holder(p)

    captured, o = tm.tensor(f), Holder()
    for k in range(3):
        p: Any = {"a": np.ones(2)}
        made = captured(o, p, X + k)
        assert o.history[-1] is p
        assert made.first is p
        assert type(p["sum"]) is np.float64
        assert p["sum"] == (X + k).sum()
    assert len({id(p) for p in o.history}) == 3


CONSTANT = "done"


def _bind(o: Any) -> None:
    o.state = CONSTANT


def _bind_property(o: Any) -> None:
    o.kept = CONSTANT


def _bind_by_name(o: Any) -> None:
    setattr(o, "st" + "ate", CONSTANT)


def _bind_in_space(o: Any) -> None:
    o.__dict__["state"] = CONSTANT


def _bind_both(o: Any) -> None:
    o.state = o.other = CONSTANT


@pytest.mark.parametrize("bind", [_bind, _bind_property, _bind_by_name, _bind_in_space, _bind_both])
@pytest.mark.parametrize("make", [Holder, SimpleNamespace, lambda: lambda: None])
def test_an_attribute_that_a_call_binds_is_bound_by_each_call(bind: Any, make: Any):
    own, plain = make(), make()

    def f(o: Any, x: Any) -> Any:
        bind(o)
        return x.sum()

    captured = tm.tensor(f)
    for k in range(4):
        for call, o in ((captured, own), (f, plain)):
            for name in set(vars(o)) - {"history", "first"}:
                if k != 2:
                    delattr(o, name)
                else:
                    setattr(o, name, k)
            call(o, X)
        assert {n: v for n, v in vars(own).items() if n != "history"} == {
            n: v for n, v in vars(plain).items() if n != "history"
        }


def test_attributes_of_modules_and_slots_are_bound_by_each_call():
    o = Slotted()

    def f(x: Any) -> Any:
        o.kept = CONSTANT
        return x.sum()

    captured = tm.tensor(f)
    for _ in range(3):
        captured(X)
        assert o.kept == CONSTANT
        o.kept = None
        captured(X)
        assert o.kept == CONSTANT
        del o.kept


def test_what_is_bound_once_is_captured_twice_and_then_known(monkeypatch: pytest.MonkeyPatch):
    from tensormagic.functions.calls.specialised import Specialised

    traces, usual = [0], Specialised.specialise

    def counted(self: Any, *args: Any) -> Any:
        traces[0] += 1
        return usual(self, *args)

    monkeypatch.setattr(Specialised, "specialise", counted)
    o = Holder()

    def f(x: Any) -> Any:
        o.state = CONSTANT  # type: ignore[attr-defined]
        return x.sum()

    captured = tm.tensor(f)
    for _ in range(6):
        captured(X)
    assert traces == [2]


def test_a_container_is_the_one_that_was_kept():
    class Model:
        def __init__(self) -> None:
            self.params: Any = None
            self.made = 0

        def __call__(self, params: Any, other: Any, x: Any) -> Any:
            if params is not self.params:
                self.params = params
                self.made += 1
            return params is other, other is self.params, x.sum() * params["w"]

    def run(wrap: Any) -> list[Any]:
        model, found = Model(), []
        step = wrap(lambda params, other, x: model(params, other, x))
        given = [{"w": 1.0}, {"w": 2.0}]
        for k in (0, 0, 1, 1, 0, 1):
            for j in (0, 1):
                found += [step(given[k], given[j], X), model.made, model.params is given[k]]
        return found

    assert repr(run(tm.tensor)) == repr(run(lambda f: f))


def test_containers_that_change_places_are_changed_each():
    def f(grid: Any, x: Any) -> Any:
        for row in grid:
            for j in range(len(row)):
                row[j] += x[j]
        grid[0], grid[1] = grid[1], grid[0]
        grid.insert(0, [0.0])
        grid.pop()
        return grid

    captured = tm.tensor(f)
    for k in range(3):
        grids = [[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]] for _ in range(2)]
        rows = [[*grid] for grid in grids]
        results = [g(grid, X + k) for g, grid in zip((captured, f), grids, strict=True)]
        assert results[0] is grids[0]
        assert repr(grids[0]) == repr(grids[1])
        assert repr(rows[0]) == repr(rows[1])
        held, plain = ([[row is old for old in own] for row in grid] for grid, own in zip(grids, rows, strict=True))
        assert held == plain


def test_a_list_that_is_kept_and_given_is_one():
    def f(o: Any, x: Any) -> Any:
        o.log = [*getattr(o, "log", []), "called"]
        return o.log, x.sum()

    captured, o = tm.tensor(f), Holder()
    for k in range(4):
        found, _ = captured(o, X)
        assert found is o.log
        assert found == ["called"] * (k + 1)


def test_a_tuple_that_stands_twice_is_one_object():
    import copy

    def asked(held, other):
        made = copy.deepcopy(held)
        made[0][0].append(2.0)
        return made[0] is made[1], made, held[0] is held[1], other is held[0], len({id(v) for v in [*held, other]})

    function = tm.tensor(asked)
    pair = ([np.ones(2)], 1)
    for held, other in (
        ([pair, pair], pair),
        ([pair, (pair[0], 1)], pair),
        ([pair, pair], ([1.0], 2)),
        ([pair, pair], pair),
    ):
        expected, found = asked(held, other), function(held, other)
        assert (found[0], *found[2:]) == (expected[0], *expected[2:])
        assert [len(p[0]) for p in found[1]] == [len(p[0]) for p in expected[1]]


def test_arrays_of_known_numbers_that_cannot_be_stored_into():
    def stretched(x):
        return np.broadcast_to(1.0, (3,)), [np.broadcast_to(np.arange(2), (3, 2))], x, np.zeros(2)

    function = tm.tensor(stretched)
    for _ in range(3):
        found = function(np.ones(2))
        assert [v.flags.writeable for v in (found[0], found[1][0], found[2], found[3])] == [False, False, True, True]
