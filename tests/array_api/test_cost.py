"""Many small evaluations: they run in NumPy, start no compiler before NumPy has spent what a compiler may save, and cost little."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
import tensormagic.numpy as xp
from tensormagic import session


class Waiting:
    """A compilation that is not done."""

    def ready(self) -> bool:
        return False


@pytest.mark.parametrize(("worth", "planning", "starts"), [(1e9, 0.0, 0), (0.0, 1e9, 0), (0.0, 0.0, 1)])
def test_a_compiler_starts_once_numpy_has_taken_long(
    monkeypatch: pytest.MonkeyPatch, worth: float, planning: float, starts: int
):
    started: list[object] = []
    monkeypatch.setattr(tm.config, "tier", "auto")
    monkeypatch.setattr(session.tiers, "WORTH_COMPILING", worth)
    monkeypatch.setattr(session.tiers, "PLANNING", planning)  # which is for each node
    monkeypatch.setattr(session.tiers.native, "start", lambda plan: started.append(plan) or Waiting())
    factor = 3.0 + starts + planning  # a graph of this case alone
    for k in range(4):
        x = xp.asarray(np.full(5, float(k)))
        assert float(xp.sum(xp.tanh(x * factor))) == pytest.approx(5 * np.tanh(k * factor))
    assert len(started) == starts


def calls(read: Callable[[Any], object], x: Any) -> int:
    """How many calls of functions ``read(x)`` makes: what it costs, on any machine."""
    counted = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        read(x)
    finally:
        sys.setprofile(None)
    return counted


def computed(links: int) -> Any:
    """A computed array, after a chain of operations."""
    x = xp.asarray(np.linspace(0.0, 1.0, 12))
    for _ in range(links):
        x = x * 1.5 - 0.25
    np.asarray(x)
    return x


READING: dict[str, tuple[Callable[[Any], object], int]] = {  # and the calls that it may make
    "an element": (lambda x: x[1], 200),
    "a number": (
        lambda x: float(x[1]),
        440,
    ),  # 100 of them to note what it depends on, for gradients that would miss it
    "a truth value": (lambda x: bool(x[1] < x[2]), 850),
}


@pytest.mark.parametrize("what", READING)
def test_reading_elements_is_cheap(monkeypatch: pytest.MonkeyPatch, what: str):
    read, most = READING[what]
    monkeypatch.setattr(tm.config, "tier", "auto")
    read(computed(3))  # what is made once is there then
    assert calls(read, computed(3)) <= most


@pytest.mark.parametrize("what", ["a number", "a truth value"])
def test_what_led_to_an_array_is_not_looked_at_for_its_elements(monkeypatch: pytest.MonkeyPatch, what: str):
    read, _ = READING[what]
    monkeypatch.setattr(tm.config, "tier", "auto")
    read(computed(3))
    assert calls(read, computed(1000)) <= calls(read, computed(100)) + 10


def sixteen() -> Any:
    return xp.asarray(np.random.default_rng(3).permutation(16) / 4.0)


MADE: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {  # lazy arrays that nobody has computed, and what they hold
    "sorted": lambda: (xp.sort(x := sixteen()), np.sort(np.asarray(x))),
    "of several operations": lambda: (xp.exp(x := sixteen()) * 2.0 + 1.0, np.exp(np.asarray(x)) * 2.0 + 1.0),
    "gathered": lambda: (xp.take(x := sixteen(), xp.asarray([5, 2, 2, 0])), np.asarray(x)[[5, 2, 2, 0]]),
    "chosen by data": lambda: (xp.nonzero((x := sixteen()) > 2.0)[0], np.nonzero(np.asarray(x) > 2.0)[0]),
    "stored into": lambda: _stored(),
}


def _stored() -> tuple[Any, np.ndarray]:
    x = sixteen()
    held = np.array(x)
    for array in (x, held):
        array[3:9:2] = -1.0
        array[array > 3.0] = 0.0
    return x, held


@pytest.mark.parametrize("what", MADE)
def test_an_array_is_computed_once_for_all_its_elements(monkeypatch: pytest.MonkeyPatch, what: str):
    monkeypatch.setattr(tm.config, "tier", "auto")
    close, closed = session.close_over, []
    monkeypatch.setattr(
        session, "close_over", lambda nodes, *rest, **more: closed.append(nodes) or close(nodes, *rest, **more)
    )
    made, want = MADE[what]()
    assert [float(made[k]) for k in range(len(want))] == want.tolist()
    assert [bool(made[k] < made[k - 1]) for k in range(len(want))] == (want < np.roll(want, 1)).tolist()
    assert len(closed) <= 3


def test_elements_at_indices_that_are_data(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tm.config, "tier", "auto")
    values = np.array([2.5, 0.5, 1.5])
    for k in range(-3, 3):
        x, index = xp.asarray(values), xp.asarray(k)
        assert float(x[index]) == values[k]
        assert bool(x[index] == x[-index - 1]) == (values[k] == values[-k - 1])
    for k in (-4, 3):
        with pytest.raises(IndexError, match=f"index {k} is out of bounds for axis 0 with size 3"):
            float(xp.asarray(values)[xp.asarray(k)])


def test_elements_of_parts_whose_bounds_are_data(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tm.config, "tier", "auto")
    values = np.array([2.5, 0.5, 1.5, 3.5])
    for stop in range(-5, 6):
        for at in (0, 2):
            part = xp.asarray(values)[1 : xp.asarray(stop)]
            if at < len(values[1:stop]):
                assert float(part[at]) == values[1:stop][at]
            else:
                with pytest.raises(IndexError):
                    float(part[at])


def test_rules_see_what_elements_are_computed_from():
    x = xp.asarray([1000.0, -1000.0, 0.0])
    assert [float(xp.log(1.0 + xp.exp(x))[k]) for k in range(3)] == [1000.0, 0.0, np.logaddexp(0.0, 0.0)]
    assert float((xp.exp(xp.asarray([1e-20, 0.0])) - 1.0)[0]) == 1e-20
