"""Functions that need values which are not there at capture are run by Python, which is told; what makes others of them refuses."""

from __future__ import annotations

import bisect
import collections
import heapq
import json
import math
import statistics
import struct
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

X = np.array([3.0, 1.0, 2.0, 5.0])
KEPT: list[float] = []


def popped(x: Any) -> Any:
    heap: list[Any] = []
    for v in x:
        heapq.heappush(heap, v)
    return [heapq.heappop(heap) for _ in range(len(heap))]


def inserted(x: Any) -> Any:
    ordered: list[Any] = []
    for v in x:
        bisect.insort(ordered, v)
    return ordered


def counted(x: Any) -> Any:
    found: dict[int, int] = {}
    for v in x:
        found[int(v) % 2] = found.get(int(v) % 2, 0) + 1
    return found


def looked_up(x: Any) -> Any:
    try:
        return [10, 20, 30][int(x[0])], x[int(x[1])]
    except IndexError as error:
        return str(error)


def without_end(x: Any) -> int:
    n = 0
    while True:
        try:
            math.sqrt(x[n % len(x)] - n)
            n += 1
        except ValueError:
            return n


def halved(x: Any) -> Any:
    s, n = x[0], 0
    while s > 0.1:
        try:
            s = s - math.sqrt(s - 1)
        except ValueError:
            s = s / 2
        n += 1
    return s, n


def in_a_branch(x: Any) -> Any:
    if x.sum() > 3:
        try:
            return math.log(x[0] - 3)
        except ValueError:
            return 0.0
    return 1.0


def drawn(x: Any) -> Any:
    return heapq.nsmallest(2, x + np.random.rand(len(x)))  # noqa: NPY002 (what it draws from)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "heaps": popped,
    "lists in order": inserted,
    "keys": counted,
    "indices in a try": looked_up,
    "a while True": without_end,
    "a try in a while": halved,
    "a try in a branch": in_a_branch,
    "draws": drawn,
    "statistics": lambda x: (statistics.mean(x.tolist()), statistics.median(x)),
    "json": lambda x: json.dumps({"x": x.tolist(), "m": float(x.mean())}),
    "struct": lambda x: struct.pack("2d", x[0], x[1]),
    "index and count of a list": lambda x: (x.tolist().index(x.max()), x.tolist().count(1.0)),
    "Counter": lambda x: collections.Counter(x.astype(int).tolist()),
    "items of a text": lambda x: "abcdefg"[int(x[0])] + chr(65 + int(x[1])),
    "places": lambda x: bisect.bisect([1.0, 2.0], x[0]),
}


def seen(function: Callable[..., Any], x: Any) -> str:
    np.random.seed(1)  # noqa: NPY002 (as above)
    try:
        return repr(function(x.copy()))
    except Exception as error:  # noqa: BLE001 (whatever Python raises)
        return repr(error)


@pytest.mark.parametrize("name", PROGRAMS)
def test_python_runs_what_needs_values(name: str) -> None:
    function = tm.tensor(PROGRAMS[name])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for x in (X, X[::-1].copy(), np.array([0.5, 0.0, 2.0]), np.array([-1.0, 4.0])):
            assert seen(function, x) == seen(PROGRAMS[name], x)
    kinds = [w for w in told if issubclass(w.category, tm.PlainRunWarning)]
    assert 1 <= len(kinds) <= 2
    assert "is run as ordinary Python, at each call (test_as_written.py line " in str(kinds[0].message)
    assert kinds[0].filename == __file__


@pytest.mark.parametrize("make", [tm.grad, tm.vmap, lambda f: tm.tensor(f).graph], ids=["grad", "vmap", "graph"])
def test_what_needs_a_graph_is_refused(make: Callable[..., Any]) -> None:
    with pytest.raises(tm.TensorError, match="needs a value"):
        make(lambda x: heapq.nlargest(1, list(x.ravel()))[0])(np.ones((2, 2)))


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
def test_what_the_capture_has_done_is_taken_back() -> None:
    def kept(x: Any, given: list[float]) -> int:
        print("at", len(KEPT))
        KEPT.append(1.0)
        given.append(x[0])
        x *= 2
        return bisect.bisect(given, x[1])

    KEPT.clear()
    function, x, given = tm.tensor(kept), X.copy(), [0.5]
    for k in range(3):
        assert function(x, given) == bisect.bisect(given, x[1])
        assert len(KEPT) == k + 1
        assert len(given) == k + 2
    np.testing.assert_array_equal(x, 8 * X)


def test_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    def told(x: Any) -> Any:
        print("before", x[0])
        return heapq.nlargest(1, x)

    with pytest.warns(tm.PlainRunWarning, match="told is run as ordinary Python"):
        assert tm.tensor(told)(X) == [5.0]
    assert capsys.readouterr().out == "before 3.0\n"


def test_it_is_told_once_and_not_captured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    function = tm.tensor(popped)
    with pytest.warns(tm.PlainRunWarning):
        function(X)
    monkeypatch.setattr(type(function), "specialise", None)
    assert function(X + 1) == popped(X + 1)
    assert function(X[:2]) == popped(X[:2])


def test_methods_of_lazy_arrays_alone_stay_refused() -> None:
    with pytest.raises(tm.CaptureError, match="used here as an array of NumPy"):
        tm.tensor(lambda x: x.numpy() + 1)(X)
