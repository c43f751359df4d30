"""An argument that an object, a list or a name holds, too, and that is stored into there; and such stores in a ``try``."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

pytestmark = pytest.mark.filterwarnings("ignore::tensormagic.ir.errors.PlainRunWarning")


class Slots:
    __slots__ = ("v",)

    def __init__(self, v: Any) -> None:
        self.v = v

    def step(self, d: Any) -> None:
        self.v[0] += d


GLOBAL = SimpleNamespace(v=np.zeros(3))


def in_place(x: Any, o: Any) -> Any:
    u = x[0]
    o.v *= 2.0
    return u


def one_element(x: Any, o: Any) -> Any:
    u = x.sum()
    o.v[0] = 9.0
    return u


def by_another_name(x: Any, o: Any) -> Any:
    u = x[1] * 2
    w = o.v
    w += 1
    return u


def in_a_loop(x: Any, o: Any) -> Any:
    found = []
    for u in x:
        o.v *= 2.0
        found.append(u)
    return found


def by_out(x: Any, o: Any) -> Any:
    u = x[0]
    np.add(o.v, 1, out=o.v)
    return u


def of_a_global(x: Any, o: Any) -> Any:
    GLOBAL.v = o.v
    u = x[0]
    GLOBAL.v[:] = 3.0
    return u


def by_a_method(x: Any, o: Any) -> Any:
    u = x[0] + 1
    Slots.step(o, 1.0)
    return u


def in_a_branch(x: Any, o: Any) -> Any:
    u = x[0]
    if u > 0:
        o.v -= 1.0
    return u


@pytest.mark.parametrize(
    "function",
    [in_place, one_element, by_another_name, in_a_loop, by_out, of_a_global, by_a_method, in_a_branch],
)
@pytest.mark.parametrize("kind", [Slots, lambda v: SimpleNamespace(v=v)])
def test_stores_through_an_object(function: Callable[..., Any], kind: Callable[[Any], Any]):
    captured = tm.tensor(function)
    for share in ("no", "all", "part", "no", "all", "all"):
        seen = list[Any]()
        for called in (function, captured):
            x = np.arange(1.0, 5.0)
            o = kind({"no": x.copy(), "all": x, "part": x[::-1]}[share])
            seen.append((np.asarray(called(x, o)).tolist(), x.tolist(), o.v.tolist()))
        assert seen[0] == seen[1], share


def caught(x: Any, o: Any) -> Any:
    try:
        o.v[1] += x[0]
    except ValueError:
        return -1.0
    return x[0]


def caught_all(x: Any, o: Any) -> Any:
    s = 3.0
    try:
        o.v[0] += x[1]
        if x[0] > 50:
            raise ValueError("large")  # noqa: TRY301 (what is tested)
    except Exception:  # noqa: BLE001 (what is tested)
        s *= 2
    x[:] = s
    return x


def caught_in_a_method(x: Any, o: Any) -> Any:
    try:
        Slots.step(o, x[1])
    except (IndexError, ValueError, KeyError):
        return 0.0
    return o.v.sum()


def caught_in_a_loop(x: Any, o: Any) -> Any:
    n = 0
    for k in range(3):
        try:
            o.v[k] = x[k] * 2
        except (TypeError, ValueError):
            n += 1
    return n


def with_finally(x: Any, o: Any) -> Any:
    try:
        o.v[2] = x.mean()
    except ValueError:
        x[0] = -1.0
    finally:
        x[1] = 5.0
    return x


def really_wrong(x: Any, o: Any) -> Any:
    try:
        o.v[1] = x
    except ValueError:
        return -1.0
    return 1.0


@pytest.mark.parametrize(
    "function", [caught, caught_all, caught_in_a_method, caught_in_a_loop, with_finally, really_wrong]
)
@pytest.mark.parametrize("kind", [Slots, lambda v: SimpleNamespace(v=v)])
def test_a_try_does_not_catch_refusals_that_numpy_tells_of(function: Callable[..., Any], kind: Callable[[Any], Any]):
    """A lazy number in an array of NumPy's own is an error there, which is none of the program's."""
    captured = tm.tensor(function)
    for k in range(4):
        seen = list[Any]()
        for called in (function, captured):
            x, o = np.arange(1.0, 5.0) + k, kind(np.ones(4))
            seen.append((np.asarray(called(x, o)).tolist(), x.tolist(), o.v.tolist()))
        assert seen[0] == seen[1]
