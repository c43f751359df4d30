# ruff: noqa: PTH123 (as users write it)
"""Functions that read locks, files, clocks and iterators, which nothing follows, change containers as Python does."""

from __future__ import annotations

import io
import itertools
import queue
import random
import threading
import time
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.functions.calls import first_call
from tensormagic.ir.errors import CaptureError
from tests.functions.same_as_python import described

lock = threading.Lock()
again = threading.RLock()
event = threading.Event()
waiting: queue.Queue[Any] = queue.Queue()
counter = itertools.count()
file = io.StringIO("".join(f"{n}\n" for n in range(1000)))
kept: list[Any] = []
state: dict[str, Any] = {}


def behind_a_lock(x, found):
    with lock:
        found.append(x.sum())
    return x


def behind_a_lock_by_hand(x, found):
    found.append(x.sum())
    lock.acquire()
    try:
        return x * len(found)
    finally:
        lock.release()


def behind_one_that_is_entered_twice(x, found):
    with again, again:
        found.append(len(found))
    return x


def with_a_clock(x, found):
    started = time.perf_counter()
    found.append(x * 2)
    return time.perf_counter() - started < 100


def of_a_dictionary(x, found):
    found[0] = {"t": time.time() > 0, "x": x.max()}
    return x * 2


def with_a_line(x, found):
    found.append(file.readline() != "")
    return x


def with_a_file(x, found):
    with open("/dev/null") as one:
        found.append(one.read())
    return x + 1


def with_an_iterator(x, found):
    found.append(next(counter) >= 0)
    found[0] = x * 3
    return x


def with_a_number_of_pythons(x, found):
    found.insert(0, random.random() < 2)
    return x


def with_an_event(x, found):
    event.set()
    found.append(event.is_set())
    return x


def with_a_queue(x, found):
    waiting.put(1)
    found.append(waiting.qsize() > 0)
    return x


def on_a_branch(x, found):
    with lock:
        if x.sum() > 0:
            found[0] = x.sum()
        else:
            found[0] = x.min()
    return x


PROGRAMS = [
    behind_a_lock,
    behind_a_lock_by_hand,
    behind_one_that_is_entered_twice,
    with_a_clock,
    of_a_dictionary,
    with_a_line,
    with_a_file,
    with_an_iterator,
    with_a_number_of_pythons,
    with_an_event,
    with_a_queue,
    on_a_branch,
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("looks", [True, False])
@pytest.mark.parametrize("program", PROGRAMS)
def test_an_arguments_container_is_changed(program, looks, monkeypatch):
    monkeypatch.setattr(first_call, "enabled", looks)
    results = []
    for function in (program, tm.tensor(program)):
        found: list[Any] = [0.0]
        given = [function(np.array(v), found) for v in ([1.0, 2.0], [-1.0, 0.5], [1.0, 0.0])]
        results.append(described([given, found]))
    assert results[0] == results[1]


class Counter:
    def __init__(self):
        self.lock, self.n, self.seen, self.last = threading.Lock(), 0, [], {}

    def step(self, x):
        with self.lock:
            self.n += 1
            self.seen.append(x * self.n)
            self.last["x"] = x.sum()
        return x * self.n


@pytest.mark.filterwarnings("ignore")
def test_what_objects_with_locks_keep_is_there(monkeypatch):
    monkeypatch.setattr(first_call, "enabled", False)
    results = []
    for call in (lambda o, x: o.step(x), tm.tensor(lambda o, x: o.step(x)), tm.tensor(Counter.step)):
        one = Counter()
        given = [call(one, np.array([1.0, k])) for k in range(3)]
        results.append(described([given, one.n, one.seen, one.last]))
    assert results[0] == results[1] == results[2]


def test_one_that_is_read_by_a_name_too_is_refused_before_anything_is_changed(monkeypatch):
    monkeypatch.setattr(first_call, "enabled", False)

    def both(x, found):
        with lock:
            found.append(1.0)
        return x * len(kept)

    kept.clear()
    with pytest.raises(CaptureError, match="also reads by another name"):
        tm.tensor(both)(np.ones(2), kept)
    assert kept == []
