"""A generator among the arguments: each call changes lists, dictionaries, objects and arrays as Python does, also where it fails."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensormagic as tm


def appended(rng, x, box, things):
    box.append(rng.integers(5))
    return box


def replaced(rng, x, box, things):
    box[0] = rng.normal() * x[0]


def of_dictionary(rng, x, box, things):
    things["z"] = rng.normal() * things["a"]
    things["list"].append(x.sum())
    return things


def of_array(rng, x, box, things):
    x[0] = rng.random()
    x[1:] += rng.normal(size=2)
    return x


def printed(rng, x, box, things):
    print("drawn", rng.integers(9))
    box[0] = 2


def stored_and_failed(rng, x, box, things):
    x[0] = 9.0
    rng.normal()
    if x[1] > 0:
        raise ValueError("bad")
    return x


def failed_in_a_loop(rng, x, box, things):
    for v in x:
        rng.normal()
        if v >= 3:
            raise ValueError(f"v={v}")
        x[0] += 1


def failed_after_all(rng, x, box, things):
    box.append(1)
    x += rng.normal(size=3)
    things["a"] = x[1]
    return x[int(abs(x[1]) * 100) + 3]


def singular(rng, x, box, things):
    x[0] = rng.random()
    return np.linalg.inv(np.zeros((2, 2)) + x[0])


PROGRAMS = [
    appended, replaced, of_dictionary, of_array, printed, stored_and_failed, failed_in_a_loop, failed_after_all, singular
]  # fmt: skip


def outcome(function: Any, seed: int, capsys: Any, kind: Any = np.random.default_rng) -> Any:
    rng, x, box, things = kind(seed), np.array([1.0, 2.0, 3.0]), [1.0, 2.0], {"a": 1.0, "list": []}
    try:
        result: Any = function(rng, x, box, things)
    except Exception as error:  # noqa: BLE001 (told)
        result = str(error)
    alike = [result is v for v in (x, box, things)]
    return repr(result), alike, repr((x, box, things)), rng.random(), capsys.readouterr().out


@pytest.mark.parametrize("tier", ["numpy", "auto"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_calls(function, tier, capsys):
    captured = tm.tensor(function)
    with tm.config.using(tier=tier), warnings.catch_warnings(action="ignore"):
        for seed in (0, 0, 1, 2, 0):
            assert outcome(captured, seed, capsys) == outcome(function, seed, capsys)


def test_other_generators_and_one_twice(capsys):
    def two(first, second):
        return [first.normal(), second.normal(), first.random()]

    captured = tm.tensor(two)
    for made in (np.random.default_rng, np.random.RandomState):
        for _ in range(2):
            assert captured(made(1), made(2)) == two(made(1), made(2))
            both, beside = made(3), made(3)
            assert captured(both, both) == two(beside, beside)


def test_objects_with_one(capsys):
    def step(state, log):
        state.place += state.rng.normal()
        log.append(state.place)
        return len(log)

    captured = tm.tensor(step)

    def run(function):
        state, log = SimpleNamespace(place=0.0, rng=np.random.default_rng(3)), []
        return [function(state, log) for _ in range(3)], [float(v) for v in log], float(state.place), state.rng.random()

    assert run(captured) == run(step)


def test_a_program_is_kept():
    def plain(rng, box):
        box[0] = rng.normal()

    captured = tm.tensor(plain)
    with warnings.catch_warnings(action="error", category=tm.RecaptureWarning):
        for seed in range(20):
            box = [0.0]
            captured(np.random.default_rng(seed), box)
            assert box == [np.random.default_rng(seed).normal()]
