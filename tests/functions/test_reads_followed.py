"""A captured function follows what it has read: call, change, call, against Python."""

from __future__ import annotations

import functools
import itertools
import linecache
import random
import sys
import time
import types
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.functions.calls import specialised
from tensormagic.ir.errors import CaptureError, GuardError
from tests.functions import state_programs as states

pytestmark = pytest.mark.usefixtures("by_numpy")
X = np.arange(3.0)
EACH = 50  # programs of a seed
FACTOR = 2
RATE = 0.5
norm, total, largest = np.linalg.norm, np.sum, np.max


class Model:
    """An object of the user's."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.layers = [1.0, 2.0]

    def step(self, x: Any) -> Any:
        """What reads attributes, a list and a global."""
        return x * self.rate + self.layers[0] * FACTOR


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", range(10))
def test_drawn_programs(seed):
    rng = random.Random(seed)
    found = {p.told: states.fault(p) for p in (states.draw(rng) for _ in range(EACH))}
    different = {told: fault for told, fault in found.items() if fault and not fault.startswith("refused")}
    assert not different
    assert sum(map(bool, found.values())) <= EACH // 10  # refused by name


def traced(function: Any, *args: Any) -> int:
    """How often two calls trace a function."""
    count = 0

    def body(*given: Any) -> Any:
        nonlocal count
        count += 1
        return inner(*given)

    inner, function.body = function.body, body
    function(*args)
    function(*args)
    function.body = inner
    return count


def test_what_is_followed_is_not_traced_again():
    model = Model(0.5)
    f = tm.tensor(lambda x: model.step(x))
    assert traced(f, X) == 1
    model.rate = 0.25
    np.testing.assert_array_equal(f(X), X * 0.25 + 2)
    assert traced(f, X) == 0
    model.rate = 0.5  # as it was: the program is there
    assert traced(f, X) == 0
    np.testing.assert_array_equal(f(X), X * 0.5 + 2)


def test_functions_of_numpy_under_names_of_their_own_are_followed(monkeypatch):
    def f(x):
        return norm(x) * total(x) + largest(x)

    made = tm.tensor(f)
    assert traced(made, X) == 1
    assert traced(made, X) == 0
    np.testing.assert_array_equal(tm.compile(f, X)(X), f(X))
    np.testing.assert_array_equal(tm.compile(np.linalg.inv, "float64[n, n]")(np.eye(2) * 2), np.eye(2) / 2)
    monkeypatch.setitem(globals(), "total", np.prod)
    np.testing.assert_array_equal(made(X + 1), f(X + 1))


def test_what_no_code_names_is_not_followed():
    model = Model(0.5)
    f = tm.tensor(lambda x: x * model.rate)
    f(X)
    model.history = [1.0]
    model.count = 3
    assert traced(f, X) == 0


def test_a_float_that_a_helper_reads_is_an_input(monkeypatch):
    def helper(x):
        return x * RATE

    f = tm.tensor(lambda x: helper(x))
    f(X)
    monkeypatch.setitem(globals(), "RATE", 0.25)
    assert traced(f, X) == 0
    np.testing.assert_array_equal(f(X), X * 0.25)


def test_a_body_runs_once_a_call():
    calls = itertools.count()
    f = tm.tensor(lambda x: x + next(calls) + RATE)
    assert [float(f(X)[0]) for _ in range(4)] == [0.5, 1.5, 2.5, 3.5]


def test_clocks_and_generators_go_on():
    f = tm.tensor(lambda x: x + time.perf_counter())
    assert f(X)[0] < f(X)[0]
    rng, same = random.Random(1), random.Random(1)
    g = tm.tensor(lambda x: x + rng.random())
    assert [g(X)[0] for _ in range(3)] == [same.random() for _ in range(3)]


def test_what_the_function_changes_itself():
    seen: list[int] = []

    def f(x):
        seen.append(len(seen))
        return x + len(seen)

    g = tm.tensor(f)
    assert [g(X)[0] for _ in range(3)] == [1, 2, 3]
    assert seen == [0, 1, 2]


def test_arguments_of_equal_keys_and_classes():
    f = tm.tensor(lambda x, d: x * (2 if type(next(iter(d))) is bool else 3))
    assert [f(X, {1: 0})[1], f(X, {True: 0})[1], f(X, {1.0: 0})[1]] == [3, 2, 3]


def test_a_dataclass_with_more_than_its_fields():
    @dataclass
    class Settings:
        rate: float

    one = Settings(2.0)
    one.extra = 3.0  # type: ignore[attr-defined]
    f = tm.tensor(lambda x, s: x * s.rate * s.extra)
    np.testing.assert_array_equal(f(X, one), X * 6)
    one.extra = 4.0  # type: ignore[attr-defined]
    np.testing.assert_array_equal(f(X, one), X * 8)


def test_a_dataclass_with_a_text_of_its_own_is_followed():
    @dataclass
    class Settings:
        rate: float

    one = Settings(2.0)
    g = tm.tensor(lambda x: x * one.rate)
    np.testing.assert_array_equal(g(X), X * 2)
    assert [r.why for kept in g._kinds.values() for _, r in kept] == [""]
    one.rate = 4.0
    np.testing.assert_array_equal(g(X), X * 4)


def test_elements_of_arrays_in_objects():
    model = types.SimpleNamespace(w=np.ones(3), big=np.ones(1000))
    f = tm.tensor(lambda x: x @ model.w + float(model.w[0]) + model.big.sum())
    assert f(X) == 1004
    model.w[0] = 5
    assert f(X) == 1008
    model.big[0] = 0
    assert f(X) == 1007


def test_compiled_says_what_has_changed():
    model = Model(0.5)
    f = tm.compile(lambda x: x * model.rate, "float64[n]")
    np.testing.assert_array_equal(f(X), X * 0.5)
    model.rate = 0.25
    with pytest.raises(GuardError, match=r"model\.rate, which <lambda> reads, has changed since"):
        f(X)
    model.rate = 0.5
    np.testing.assert_array_equal(f(X), X * 0.5)


def test_compiled_reads_arrays_and_floats_at_each_call(monkeypatch):
    w = np.ones(3)
    f = tm.compile(lambda x: x * w * RATE, "float64[n]")
    w[0:] = 4.0
    np.testing.assert_array_equal(f(X), X * 2)
    monkeypatch.setitem(globals(), "RATE", 0.25)
    np.testing.assert_array_equal(f(X), X)


def test_compiled_refuses_what_cannot_be_checked():
    with pytest.raises(CaptureError, match=r"reads time\.perf_counter, and"):
        tm.compile(lambda x: x + time.perf_counter(), "float64[n]")


class Noisy:
    """An object whose operators Python calls by itself."""

    def __add__(self, other):
        return other + np.random.normal()  # noqa: NPY002 (what it is about)

    def __mul__(self, other):
        return other * np.random.default_rng().normal()


def test_generators_of_a_seed_are_compiled_and_states_outside_are_refused():
    def seeded(x, seed):
        return x + np.random.default_rng(seed).normal(size=3)

    made = tm.compile(seeded, "float64[n]", "int64")
    for seed in (3, 4):
        np.testing.assert_array_equal(made(X, seed), seeded(X, seed))
        np.testing.assert_array_equal(tm.submit(seeded, X, seed).result(60), seeded(X, seed))
    rng, noisy, function = np.random.default_rng(0), Noisy(), tm.tensor(seeded)
    before = rng.bit_generator.state
    for draws in (lambda x: x + rng.normal(), lambda x: x + np.random.normal(), lambda x: noisy + x):  # noqa: NPY002 (as above)
        for call in (lambda f=draws: tm.compile(f, "float64[n]"), lambda f=draws: tm.submit(f, X)):
            with pytest.raises(CaptureError, match=r"draws from (rng|np\.random), whose state"):
                call()
    with pytest.raises(CaptureError, match="without a seed"):
        tm.compile(lambda x: x + np.random.default_rng().normal(), "float64[n]")
    with pytest.raises(CaptureError, match="without a seed"):
        tm.compile(lambda x: noisy * x, "float64[n]")
    assert rng.bit_generator.state == before
    np.testing.assert_array_equal(function(X, 6), seeded(X, 6))
    for function in (lambda x: noisy * x, lambda x: x + np.random.default_rng().normal()):
        with pytest.raises(CaptureError, match="without a seed"):
            tm.tensor(function).graph(X)


def test_compiled_for_one_constant():
    f = tm.compile(lambda x, k: x * k, "float64[n]", 3)
    np.testing.assert_array_equal(f(X, 3), X * 3)
    with pytest.raises(GuardError, match="value 2 is 4 where 3 was compiled for"):
        f(X, 4)


def test_equal_callables_are_told_apart():
    class Scale:
        def __init__(self, k: int) -> None:
            self.k = k

        def __call__(self, x: Any) -> Any:
            return x * self.k

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Scale)

        def __hash__(self) -> int:
            return 1

    assert [tm.jvp(Scale(k), (2.0,), (1.0,))[1] for k in (2, 3)] == [2.0, 3.0]
    assert [tm.vjp(Scale(k), 2.0)[1](1.0)[0] for k in (2, 3)] == [2.0, 3.0]
    f = tm.tensor(lambda x, s: s(x))
    assert [f(2.0, Scale(k)) for k in (2, 3)] == [4.0, 6.0]


def test_signature_of_a_changed_function():
    def f(x, k=2.0):
        return x * k

    g = tm.tensor(f)
    assert g(3.0) == 6
    f.__defaults__ = (4.0,)
    assert g(3.0) == 12
    f.__code__ = (lambda x, k=2.0: x + k).__code__
    assert g(3.0) == 7


def test_partials_and_lists_of_functions():
    functions = [functools.partial(lambda k, x: x * k, 2)]
    f = tm.tensor(lambda x: functions[0](x))
    assert f(3.0) == 6
    functions[0] = functools.partial(lambda k, x: x * k, 3)
    assert f(3.0) == 9


def test_what_has_no_hash_is_read_as_it_is():
    class Own:
        def __hash__(self) -> int:
            raise ValueError("no hash")

    for value in (memoryview(np.arange(2.0)), Own(), [1]):
        assert tm.tensor(lambda x, value=value: (x * 2, value is None))(X)[1] is False
        assert tm.tensor(lambda x: x * 2 if value is None else x * 3)(X).tolist() == [0.0, 3.0, 6.0]  # noqa: B023 (called here)


@pytest.mark.parametrize(
    "first", ["np.random.default_rng(0).normal(size=3)", "np.random.normal(size=3)", "np.loadtxt(['1', '2', '3'])"]
)
@pytest.mark.parametrize("method", ["return self.W * x", "return self.twice(x).sum()"])
def test_what_makes_objects_is_not_read_by_methods(first: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class whose ``__init__`` draws numbers or reads files: its methods do not run that, and are captured once."""
    text = f"class Model:\n    def __init__(self):\n        self.W = {first}\n"
    text += f"    def twice(self, x):\n        return self.W * x * 2\n    def step(self, x):\n        {method}\n"
    space: dict[str, Any] = {"np": np, "__name__": "made"}
    linecache.cache["<made>"] = len(text), None, text.splitlines(keepends=True), "<made>"
    exec(compile(text, "<made>", "exec"), space)
    plain, model = space["Model"](), space["Model"]()
    model.W = plain.W.copy()
    step, traces = tm.tensor(space["Model"].step), list[int]()
    original = specialised.trace
    monkeypatch.setattr(specialised, "trace", lambda *args: [traces.append(1), original(*args)][1])
    for k in range(8):
        x = np.arange(3.0) + k
        np.testing.assert_array_equal(step(model, x), plain.step(x))
        if k == 3:
            traces.clear()
    assert not traces


MAKING = {
    "its class": "return type(self)(x).v",
    "the class, by its attribute": "return self.__class__(x).v",
    "a class method": "return self.made(x).v",
    "the name": "return Made(x).v",
    "a copy with another value": "return dataclasses.replace(self, v=x).w",
}


@pytest.mark.parametrize("how", MAKING)
def test_what_makes_objects_is_read_where_it_runs(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that makes an object of its class follows what making it reads."""
    text = f"""import dataclasses
rate = 2.0
offset = [1.0]
@dataclasses.dataclass
class Made:
    v: object
    w: object = 0.0
    def __post_init__(self):
        self.v = self.v * rate + offset[0]
        self.w = self.v
    @classmethod
    def made(cls, x):
        return cls(x)
    def step(self, x):
        {MAKING[how]}
"""
    space: dict[str, Any] = {"np": np, "__name__": "made"}
    monkeypatch.setitem(sys.modules, "made", types.ModuleType("made"))  # where a dataclass looks
    linecache.cache["<making>"] = len(text), None, text.splitlines(keepends=True), "<making>"
    exec(compile(text, "<making>", "exec"), space)
    made = space["Made"](np.ones(2))
    step = tm.tensor(space["Made"].step)
    for k in range(6):
        space["rate"], space["offset"][0] = 2.0 + k // 2, 1.0 + k // 3
        np.testing.assert_array_equal(step(made, np.arange(2.0)), space["Made"].step(made, np.arange(2.0)))
