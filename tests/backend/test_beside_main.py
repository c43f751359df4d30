"""What runs beside the main thread: what may take long, as far as is known."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.planning.work_counts import LONG, Pace
from tensormagic.backend.running import runtime

MANY = 2_000_000


@contextmanager
def threads_begun(monkeypatch: pytest.MonkeyPatch) -> Generator[list[str]]:
    """The names of threads that begin meanwhile to run kernels."""
    begun: list[str] = []

    class Noted(threading.Thread):
        def start(self) -> None:
            if self.name == "tensormagic run":
                begun.append(self.name)
            super().start()

    with monkeypatch.context() as patched:
        patched.setattr(runtime.threading, "Thread", Noted)
        yield begun


def chained(steps: int) -> Callable[[Any], Any]:
    """A chain of its own, of which nothing is known."""

    def chain(x: Any) -> Any:
        for _ in range(steps):
            x = x * 0.5 + 0.1 * x * x
        return x

    return chain


def until_small(x: Any) -> Any:
    while np.max(x) > 0.5:
        x = x * 0.5
    return x


def taking(seconds: float) -> Callable[[], float]:
    """A clock of which each look is so much later."""
    ticks = iter(range(1000))
    return lambda: seconds * next(ticks)


def test_vectorized_work_that_took_little_time_runs_in_the_main_thread(monkeypatch: pytest.MonkeyPatch):
    x = np.linspace(0.0, 1.0, MANY)
    with tm.config.using(tier="numba"), threads_begun(monkeypatch) as begun:
        monkeypatch.setattr(runtime.time, "perf_counter", taking(0.001))
        called = tm.tensor(chained(6))
        for _ in range(4):
            np.testing.assert_allclose(np.asarray(called(x)), chained(6)(x))
    assert len(begun) == 1


def test_work_that_took_long_goes_on_beside_it(monkeypatch: pytest.MonkeyPatch):
    x = np.linspace(0.0, 1.0, MANY)
    with tm.config.using(tier="numba"), threads_begun(monkeypatch) as begun:
        monkeypatch.setattr(runtime.time, "perf_counter", taking(0.02))
        called = tm.tensor(chained(7))
        for _ in range(3):
            called(x)
    assert len(begun) == 3


def test_much_more_work_than_took_little_time_runs_beside_it_again(monkeypatch: pytest.MonkeyPatch):
    with tm.config.using(tier="numba"), threads_begun(monkeypatch) as begun:
        monkeypatch.setattr(runtime.time, "perf_counter", taking(0.001))
        called = tm.tensor(chained(8))
        for size in (MANY, MANY, 3 * MANY, 3 * MANY, MANY):
            called(np.linspace(0.0, 1.0, size))
    assert len(begun) == 2


def test_a_number_of_iterations_that_depends_on_data_says_nothing_of_the_next(monkeypatch: pytest.MonkeyPatch):
    x = np.linspace(0.0, 1.0, MANY)
    with tm.config.using(tier="numba"), threads_begun(monkeypatch) as begun:
        monkeypatch.setattr(runtime.time, "perf_counter", taking(0.0001))
        called = tm.tensor(until_small)
        for _ in range(3):
            np.testing.assert_array_equal(np.asarray(called(x)), until_small(x))
    assert len(begun) >= 3


@pytest.mark.parametrize(
    ("seconds", "most"), [(1e-3, 2 * LONG), (1e-6, 2 * LONG), (0.008, 1.25 * LONG), (0.02, LONG), (5.0, LONG)]
)
def test_a_pace_is_that_of_ten_milliseconds_and_of_at_most_twice_what_was_seen(seconds: float, most: float):
    pace = Pace()
    pace.note(LONG, seconds)
    assert pace.most == pytest.approx(most)
