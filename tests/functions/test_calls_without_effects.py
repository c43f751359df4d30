"""Calls that change nothing, or what can be put back, before code that needs values: Python runs the function, once."""

import calendar
import datetime as dt
import decimal
import hashlib
import io
import json
import pathlib
import queue
import random as python_random
import threading
import time
import zlib
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

pytestmark = pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")


def _dates(x: float) -> Any:
    start = dt.date(2024, 1, 31)
    return start + dt.timedelta(days=x), start.strftime("%d %b"), json.dumps(x)


def _durations(x: float) -> Any:
    return dt.timedelta(hours=x).total_seconds(), str(dt.timedelta(minutes=x))


def _times(x: float) -> Any:
    time.sleep(x / 1e6)
    began = time.perf_counter()
    return x * 2, time.perf_counter() >= began


def _money(x: float) -> Any:
    rate = decimal.Decimal("1.10").quantize(decimal.Decimal("0.1"))
    return rate, decimal.Decimal(x) * rate


def _digests(x: float) -> Any:
    return hashlib.sha256(b"abc").hexdigest()[:8], zlib.crc32(str(x).encode())


def _months(x: float) -> Any:
    return calendar.monthrange(2024, 2)[1], [
        dt.datetime(2024, 3, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=x * k) for k in range(3)
    ]


def _a_text(x: float) -> str:
    buffer = io.StringIO()
    print("first", 1, file=buffer)
    buffer.write(f"{x:.2f}")
    print(x, file=buffer)
    return buffer.getvalue()


def _a_file_in_memory(x: float) -> Any:
    buffer = io.BytesIO()
    np.save(buffer, np.array([x, 1.0]))
    buffer.seek(0)
    return np.load(buffer)


@pytest.mark.parametrize(
    "function", [_dates, _durations, _times, _money, _digests, _months, _a_text, _a_file_in_memory]
)
def test_python_runs_the_function(function: Any) -> None:
    captured = tm.tensor(function)
    for x in (1.5, 2.25, 3.0):
        np.testing.assert_equal(captured(x), function(x))


class Logger:
    def __init__(self, buffer: Any) -> None:
        self.buffer, self.lines = buffer, list[str]()

    def info(self, text: str, *values: Any) -> None:
        self.buffer.write("line ")
        self.lines.append(text % values)


def test_what_is_written_into_memory_is_put_back() -> None:
    def logged(log: Any, x: float) -> float:
        log.info("constant %d", 1)
        log.info("x = %.2f, %s", x, [x])
        log.buffer.write(f"{x}\n")
        return x * 2

    captured = tm.tensor(logged)
    own, other = Logger(io.StringIO("abc")), Logger(io.StringIO("abc"))
    for x in (1.5, -2.0, 3.25):
        assert captured(own, x) == logged(other, x)
        assert (own.lines, own.buffer.getvalue(), own.buffer.tell()) == (
            other.lines,
            other.buffer.getvalue(),
            other.buffer.tell(),
        )


@pytest.mark.parametrize("given", [dt.date(2024, 5, 6), pathlib.Path("folder/name.csv"), decimal.Decimal("2.5")])
def test_what_cannot_change_may_be_an_argument(given: Any) -> None:
    captured = tm.tensor(lambda v, x: (str(v), json.dumps({"x": x}), x + 1))
    for x in (0.5, 1.5):
        assert captured(given, x) == (str(given), json.dumps({"x": x}), x + 1)


def _filled(x: float) -> Any:
    waiting = queue.PriorityQueue()
    for k, v in enumerate([x, x / 2, 3.0]):
        waiting.put((v, k))
    return [waiting.get() for _ in range(3)]


def _counted(x: float) -> Any:
    digest, lock = hashlib.md5(b"a", usedforsecurity=False), threading.Lock()
    digest.update(b"b")
    lock.acquire()
    random = python_random.Random(3)
    return digest.hexdigest(), random.random(), json.dumps([x])


@pytest.mark.parametrize("function", [_filled, _counted])
def test_what_a_call_makes_it_may_change(function: Any) -> None:
    captured = tm.tensor(function)
    for x in (1.5, 7.0):
        assert captured(x) == function(x)


class Told:
    def __init__(self) -> None:
        self.lines = list[str]()

    def tell(self, text: str, *values: Any) -> None:
        self.lines.append(text % values)


def _each_step(log: Told, w: Any, n: int) -> Any:
    for k in range(n):
        w = 0.9 * w
        if k % 2 == 0:
            log.tell("step %d norm %.3f", k, float((w**2).sum()))
    return w


def _when_large(log: Told, w: Any, n: int) -> Any:
    if w.sum() > 1:
        log.tell("large: %d, %.1f", n * len(w), w.max())
    return w * n


def _while(log: Told, w: Any, n: int) -> Any:
    while w.max() > 0.5:
        w = w / n
        log.tell("%5.2f after %g", w.max(), w.min())
    return w


@pytest.mark.parametrize("function", [_each_step, _when_large, _while])
def test_an_error_that_a_lazy_value_meets_in_a_branch_is_none_of_the_codes(function: Any) -> None:
    captured, own, other = tm.tensor(function), Told(), Told()
    for scale in (1.0, 0.25, 3.0):
        w = scale * np.array([0.5, 1.0, 0.25])
        np.testing.assert_array_equal(captured(own, w, 2), function(other, w, 2))
        assert own.lines == other.lines
    with pytest.raises(tm.CaptureError, match=r"needs a value|must be known|stores a value in an object"):
        tm.compile(function, own, np.ones(3), 4)
