"""What calls leave in objects, and what a refused ``tm.compile`` does not: as Python has it, of what kind of class they may be."""

import functools
import weakref
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError


class Inner:
    k = 2.0


class Plain:
    def __init__(self) -> None:
        self.w, self.s, self.inner = np.array([1.0, 2.0]), 1.5, Inner()


class Slots:
    __slots__ = ("inner", "s", "w", "z")

    def __init__(self) -> None:
        self.w, self.s, self.inner = np.array([1.0, 2.0]), 1.5, Inner()


def state(o: Any) -> dict[str, Any]:
    own = (
        {n: getattr(o, n) for n in ("inner", "s", "w", "z") if hasattr(o, n)} if isinstance(o, Slots) else dict(vars(o))
    )
    return {n: v.tolist() if isinstance(v, np.ndarray) else v for n, v in own.items()} | {"order": [*own]}


def rebound(o, _x):
    o.w = o.w + 1
    return o.w


def beside(o, x):
    o.w = o.w * 2
    return x + 1, o.w


def new(o, x):
    o.z = o.w - 1
    return x, o.z[:1]


def of_the_argument(o, x):
    o.z = x * 2
    return o.z


@pytest.mark.parametrize("make", [Plain, Slots])
@pytest.mark.parametrize("body", [rebound, beside, new, of_the_argument])
def test_an_array_that_is_kept_and_returned_is_one(make, body):
    one, other, x = make(), make(), np.array([0.5, 1.0])
    captured = tm.tensor(body)
    for _ in range(3):
        found, expected = captured(one, x), body(other, x)
        found, expected = (v[-1] if isinstance(v, tuple) else v for v in (found, expected))
        for name in ("w", "z"):
            held, own = getattr(one, name, None), getattr(other, name, None)
            assert (held is found) == (own is expected)
            assert np.shares_memory(held, found) == np.shares_memory(own, expected) if own is not None else held is None
        np.testing.assert_array_equal(found, expected)


def chosen(o, x):
    if x[0] > 0:
        o.w = x
    return x * 2


def best(o, x):
    loss = (x * x).sum()
    if loss < o.s:
        o.s, o.w = loss, x
    return o.w


def computed(o, x):
    y = x * 2
    if x[0] > 0:
        o.w = y
    elif x[1] > 0:
        o.w = x
    return y


def of_two(o, x):
    y = x if x[1] > 1 else o.w
    o.z = y if x[0] > 0 else x
    return o.z


@pytest.mark.parametrize("make", [Plain, Slots])
@pytest.mark.parametrize("body", [chosen, best, computed, of_two])
def test_arrays_that_data_choose_are_kept_themselves(make, body):
    one, other, captured = make(), make(), tm.tensor(body)
    for row in ([0.5, 1.0], [-0.5, 1.0], [0.1, 2.0], [-0.1, -2.0], [-0.1, 2.0]):
        x, y, w, v = np.array(row), np.array(row), one.w, other.w
        found, expected = captured(one, x), body(other, y)
        for name in ("w", "z"):
            held, own = getattr(one, name, None), getattr(other, name, None)
            assert (held is x, held is w, held is found) == (own is y, own is v, own is expected)
        found[:] = 7.0
        expected[:] = 7.0
        np.testing.assert_array_equal(one.w, other.w)
        one.w, other.w = one.w.copy(), other.w.copy()


def unbinding(o, x):
    o.s = o.s + x[0]
    del o.w
    return x


def appearing(o, x):
    o.z = x * 2
    for k in range(2):
        o.w[k] = x[k] + o.s
    return x


def choosing(o, x):
    o.s = x[1] * 2
    if x.sum() > 0:
        o.w = o.w * 2
    return x


@pytest.mark.parametrize("make", [Plain, Slots])
@pytest.mark.parametrize("body", [unbinding, appearing, choosing])
def test_slots_that_are_empty(make, body):
    one, other, x = make(), make(), np.array([0.5, 1.0])
    captured = tm.tensor(body)
    for _ in range(2):
        errors = []
        for function, o in ((captured, one), (body, other)):
            try:
                function(o, x)
            except AttributeError as error:
                errors.append(str(error))
        assert len({*errors}) == len(errors) // 2
        assert state(one) | {"inner": 0} == state(other) | {"inner": 0}
        assert type(one.s) is type(other.s)


class Counted:
    count = 0

    def __init__(self) -> None:
        self.k = 2.0


O, C = Plain(), Counted()
LEAVING = {
    "an attribute by object's method": lambda x: (object.__setattr__(O, "z", x), x)[1],
    "an attribute that nothing reads": lambda x: (object.__setattr__(O, "inner", x), x)[1],
    "one by its dictionary": lambda x: (O.__dict__.update(z=x), x)[1],
    "a deleted attribute": lambda x: (delattr(O, "w"), x)[1],
    "an attribute of a class": lambda x: (setattr(type(C), "extra", 3.0), x)[1],
    "a count of a class": lambda x: (setattr(Counted, "count", Counted.count + 1), x)[1],
    "beside what cannot be followed": lambda x: (O.__dict__.update(z=x), weakref.WeakValueDictionary(), x)[2],
}


@pytest.mark.parametrize("what", LEAVING)
def test_a_refused_compile_leaves_objects_as_they_were(what):
    before, held, own = state(O), [*vars(O).values()], dict(vars(Counted))
    with pytest.raises(CaptureError):
        tm.compile(LEAVING[what], np.ones(2))
    assert state(O) == before
    assert all(a is b for a, b in zip(vars(O).values(), held, strict=True))
    assert dict(vars(Counted)) == own


def test_classes_that_functions_give_attributes():
    def count(x):
        type(C).extra = getattr(C, "extra", 0.0) + 1.0  # type: ignore[attr-defined]
        return x * C.extra  # type: ignore[attr-defined]

    captured = tm.tensor(count)
    try:
        assert [captured(np.ones(1))[0] for _ in range(3)] == [1.0, 2.0, 3.0]
        assert Counted.extra == 3.0  # type: ignore[attr-defined]
    finally:
        del Counted.extra  # type: ignore[attr-defined]


def test_a_cache_of_results():
    @functools.lru_cache
    def table(n):
        return n * 2.0

    def keeps(x):
        O.__dict__["z"] = x
        return x * table(3)

    with pytest.raises(CaptureError):
        tm.compile(keeps, np.ones(2))
    assert tuple(table.cache_info()) == (0, 0, 128, 0)
    run = tm.compile(lambda x: x * table(4), np.ones(2)).run
    table(9)
    assert run(np.ones(2)).tolist() == [8.0, 8.0]


def test_weak_references_that_a_function_makes():
    def f(x):
        O.w[0] = x[1]
        return x * weakref.ref(O.inner)().k

    captured = tm.tensor(f)
    for k in (2.0, 3.0):
        O.inner.k = k
        assert captured(np.array([1.0, k])).tolist() == [k, k * k]
        assert O.w[0] == k
    O.w[0], O.inner.k = 1.0, 2.0
