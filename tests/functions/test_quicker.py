"""Calls of a function that Python runs since machine code takes longer, by times that the tests give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.config import config
from tensormagic.functions.calls import first_call, python_is_quicker


@pytest.fixture
def race(monkeypatch: Any):
    """Give what Python and machine code take for each run, in turn (seconds); gives who has run what since."""
    ran: list[str] = []
    took: dict[str, list[float]] = {}
    own = first_call.result_of

    class Clock:
        def __init__(self) -> None:
            self.who = "python" if ran and ran[-1] == "python" else "machine"

        @property
        def seconds(self) -> float:
            return took[self.who].pop(0) if len(took[self.who]) > 1 else took[self.who][0]

    def result_of(function: Any, args: Any, begins: Any) -> Any:
        ran.append("python")
        result = own(function, args, begins)
        ran[-1] = "asked" if result is first_call.NOT else "python"
        return result

    def begun(python: list[float], machine: list[float]) -> list[str]:
        took.update(python=python, machine=machine)
        return ran

    monkeypatch.setattr(first_call, "enabled", True)
    monkeypatch.setattr(config, "tier", "auto")
    monkeypatch.setattr(python_is_quicker, "Clock", Clock)
    monkeypatch.setattr(first_call, "result_of", result_of)
    return begun


def decay(x, n):
    for _ in range(n):
        x = x - x * x / 8
    return x


X = np.linspace(0.1, 0.9, 5)


def called(f: Any, ran: list[str], times: int, *args: Any) -> list[str]:
    """Who runs calls, of which each has the function's value."""
    found: list[str] = []
    for _ in range(times):
        ran[:] = []
        np.testing.assert_allclose(f(*args), f.__wrapped__(*args), rtol=1e-14)
        found.append(ran[0] if ran else "machine")
    return found


def compiled(f: Any, *args: Any) -> None:
    with tm.config.using(tier="numba"):
        f(*args)


def test_machine_code_that_is_quicker_runs_all_later_calls(race):
    ran = race([0.02], [0.001])
    f = tm.tensor(decay)
    assert called(f, ran, 1, X, 3) == ["python"]
    compiled(f, X, 3)
    assert called(f, ran, 8, X, 3) == ["machine"] * 8


def test_python_runs_again_where_machine_code_takes_about_as_long_and_then_the_quicker_one(race):
    ran = race([0.02, 0.005, 0.004, 0.004], [0.010, 0.009, 0.009])
    f = tm.tensor(decay)
    called(f, ran, 1, X, 3)
    compiled(f, X, 3)
    assert called(f, ran, 8, X, 3) == ["machine"] * 3 + ["python"] * 5


def test_machine_code_runs_on_where_python_is_no_quicker_when_it_runs_again(race):
    ran = race([0.012, 0.011, 0.010], [0.010, 0.009, 0.009])
    f = tm.tensor(decay)
    called(f, ran, 1, X, 3)
    compiled(f, X, 3)
    assert called(f, ran, 9, X, 3) == ["machine"] * 3 + ["python"] * 2 + ["machine"] * 4


def test_who_runs_is_told_for_each_size_and_whole_number(race):
    ran = race([0.004], [0.010])
    f = tm.tensor(decay)
    called(f, ran, 1, X, 3)
    compiled(f, X, 3)
    compiled(f, X, 4)
    compiled(f, X[:4], 3)
    assert called(f, ran, 6, X, 3)[3:] == ["python"] * 3
    assert called(f, ran, 6, X, 4) == ["machine"] * 6
    assert called(f, ran, 6, X[:4], 3) == ["machine"] * 6


def test_short_calls_are_never_pythons(race):
    ran = race([0.0005], [0.1])
    f = tm.tensor(decay)
    called(f, ran, 1, X, 3)
    compiled(f, X, 3)
    assert called(f, ran, 6, X, 3) == ["machine"] * 6


def test_a_tier_that_is_asked_for_runs(race):
    ran = race([0.004], [0.010])
    f = tm.tensor(decay)
    called(f, ran, 1, X, 3)
    compiled(f, X, 3)
    called(f, ran, 6, X, 3)
    for tier in ("numba", "numpy"):
        with tm.config.using(tier=tier):
            assert called(f, ran, 2, X, 3) == ["machine"] * 2
    assert called(f, ran, 1, X, 3) == ["python"]
    f.forget()
    compiled(f, X, 3)
    assert called(f, ran, 2, X, 3) == ["machine"] * 2


def test_a_call_that_python_cannot_run_to_its_end_is_the_programs_again(race, monkeypatch):
    ran = race([0.004], [0.010])
    f = tm.tensor(decay)
    called(f, ran, 1, X, 3)
    compiled(f, X, 3)
    assert called(f, ran, 6, X, 3)[-1] == "python"
    monkeypatch.setattr(first_call, "result_of", lambda *_: first_call.NOT)
    assert called(f, ran, 3, X, 3) == ["machine"] * 3
