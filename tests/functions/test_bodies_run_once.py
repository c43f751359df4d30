"""What a call changes in objects is changed once, however often the body is captured: by variations, against Python itself."""

from __future__ import annotations

import itertools
import linecache
import math
from collections import Counter, defaultdict, deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError

CHANGES = {
    "a counter": "self.n += 1",
    "a list and a counter": "self.log.append(float(self.n)); self.n = self.n + 2",
    "a dictionary": "self.d['k'] = self.d.get('k', 0) + 1",
    "a set": "self.s.add(len(self.s))",
    "a deque": "self.q.append(len(self.q))",
    "an attribute of the class": "type(self).total += 1",
    "a global name": "global G; G += 1",
    "a stack": "self.stack.pop()",
    "a rate": "self.n += 1; self.lr *= 0.5",
    "a slot": "self.slotted.c += 1",
    "a namespace": "self.space.c += 1",
    "elements of an array": "self.W += 1",
    "an element of a list": "self.log[0] += 1",
    "a default dictionary": "self.numbers['a'] += 1",
    "a Counter": "self.counter['a'] += 1",
}
USES = {
    "one array": "return (self.W * x).sum()",
    "two arrays": "return (self.W * x).sum() + (self.b * x).sum()",
    "a number": "return (self.W * x).sum() * self.lr",
    "none": "return x.sum()",
    "a result that may be complex": "return np.linalg.eigvals(np.outer(x, self.W) - np.array([[0, 9, 0], [-9, 0, 0], [0, 0, x[0]]])).sum()",
    "a global array": "return (A * x).sum()",
    "a generator": "return (self.W * x).sum() + self.rng.normal()",
    "a branch": "return x * 2 if (self.W * x).sum() > 1 else x + self.lr",
}


FAILS = {  # at the second call, on its data
    "a singular matrix": "y = y + np.linalg.inv(x[0] * np.eye(2))[0, 0]",
    "an error of the user's": "if np.any(x < 0): raise ValueError('negative')",
    "an assertion": "assert x.sum() > 0, 'too small'",
    "an index": "y = y + x[int(4 * (x[0] < 0))]",
    "a square root": "y = y + math.sqrt(x[0] - 0.5)",
}


@pytest.mark.parametrize("fails", FAILS)
@pytest.mark.parametrize("change", sorted(CHANGES.keys() - {"a global name"}))
def test_what_follows_an_error_of_the_data_is_not_done(change: str, fails: str) -> None:
    """What comes before the line that fails is changed, and what comes after it is not: as Python has it, and so on."""
    use = f"y = (self.W * x).sum()\n        {FAILS[fails]}\n        {CHANGES[change]}\n        return y"
    (plain, space), (model, other) = _model(CHANGES[change], use), _model(CHANGES[change], use)
    space["math"] = other["math"] = math
    step = tm.tensor(model.step)
    for first in (1.0, -1.0, 2.0, 0.0, 0.0, 3.0):
        x = np.array([first, 1.5, -1.0]) if first > 0 else np.array([first, -1.5, -1.0])
        expected, found = _ended(plain.step, x.copy()), _ended(step, x.copy())
        assert found == expected
        assert _state(model, other) == _state(plain, space)


def _ended(step: Any, x: Any) -> Any:
    try:
        return float(step(x))
    except CaptureError:
        raise
    except (ValueError, AssertionError, IndexError) as error:
        return str(error).splitlines()[0]


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
def test_arrays_that_are_one_and_then_are_not() -> None:
    """One array that two places hold is stored into once; as soon as it is two, both are what they are."""
    pair = [np.zeros(2)] * 2
    table = dict.fromkeys("ab", pair[0])

    def step(x: Any) -> Any:
        pair[0][0] += x
        table["a"] -= x
        return pair[1] * 1 + table["b"]

    captured = tm.tensor(step)
    assert captured(1.0).tolist() == [0.0, -2.0]
    pair[0] = np.full(2, 50.0)
    assert captured(1.0).tolist() == [-2.0, -4.0]
    assert pair[0].tolist() == [51.0, 50.0]
    table["a"] = np.zeros(2)
    assert captured(1.0).tolist() == [-2.0, -4.0]
    pair[1] = pair[0]
    assert captured(1.0).tolist() == [53.0 - 1.0, 50.0 - 2.0]  # Python runs that call
    assert pair[0].tolist() == [53.0, 50.0]


def _model(change: str, use: str) -> tuple[Any, dict[str, Any]]:
    text = f"""import numpy as np
G, A = 0, np.array([1.0, 2.0, 3.0])
class Slotted:
    __slots__ = ("c",)
class Base:
    total = 0
class Model(Base):
    def step(self, x):
        {change}
        {use}
"""
    name = f"<once {change} {use}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    space: dict[str, Any] = {"__name__": "once"}
    exec(compile(text, name, "exec"), space)
    model = space["Model"]()
    model.n, model.lr, model.log, model.d, model.s, model.q = 0, 1.0, [0.0], {}, set(), deque()
    model.stack, model.W, model.b, model.slotted = (
        list(range(9)),
        np.array([1.0, 2.0, 3.0]),
        np.ones(3),
        space["Slotted"](),
    )
    model.slotted.c, model.space, model.rng = 0, SimpleNamespace(c=0), np.random.default_rng(0)
    model.numbers, model.counter = defaultdict(int), Counter()
    return model, space


def _state(model: Any, space: dict[str, Any]) -> Any:
    return (
        model.n, float(model.lr), [*map(float, model.log)], dict(model.d), set(model.s), list(model.q), type(model).total,
        space["G"], list(model.stack), model.slotted.c, model.space.c, np.asarray(model.W).tolist(), dict(model.numbers),
        dict(model.counter),
    )  # fmt: skip


def _calls(change: str, use: str, *, captured: bool) -> tuple[list[Any], list[Any], bool]:
    """What five calls give, the state after each, and whether the last one was refused."""
    model, space = _model(change, use)
    step = tm.tensor(model.step) if captured else model.step
    results: list[Any] = []
    states = [_state(model, space)]
    for k in range(5):
        if k == 3:
            model.W = model.W * 2.0
        try:
            results.append(np.asarray(step(np.array([1.0, 2.0, 3.0]) + k % 3)).round(9).tolist())
        except CaptureError:
            return results, [*states, _state(model, space)], True
        states.append(_state(model, space))
    return results, states, False


@pytest.mark.parametrize(("change", "use"), list(itertools.product(CHANGES, USES)))
def test_what_a_call_changes_is_changed_once(change: str, use: str) -> None:
    expected, then, _ = _calls(CHANGES[change], USES[use], captured=False)
    results, states, refused = _calls(CHANGES[change], USES[use], captured=True)
    if refused:  # and nothing has changed by it
        assert states[-1] == states[-2]
        states = states[:-1]
    assert results == expected[: len(results)]
    assert states == then[: len(states)]


def test_most_of_them_are_captured() -> None:
    found = [_calls(CHANGES[c], USES[u], captured=True)[2] for c, u in itertools.product(list(CHANGES)[:5], USES)]
    assert sum(found) <= len(found) // 4


class Rates:
    def __init__(self) -> None:
        self.rates, self.table, self.n = [0.1, 0.2], {"a": 0.5}, 0

    def step(self, x: Any) -> Any:
        if x.ndim == 2:
            self.n += 1
            self.rates.append(0.0)
            self.table["b"] = 1.0
            return iter([x * self.rates[0]])
        return (x * self.rates[0]).sum() + self.rates[1] * self.table["a"]


def test_a_refused_call_leaves_numbers_that_are_inputs() -> None:
    model = Rates()
    step = tm.tensor(model.step)
    for _ in range(4):
        assert step(np.ones(3)) == pytest.approx(3 * model.rates[0] + model.rates[1] * model.table["a"])
        model.rates[0] += 0.5
        model.rates[1] *= 2
        model.table["a"] += 1
    then = [*model.rates], {**model.table}
    with pytest.raises(CaptureError, match="iterator"):
        tm.grad(model.step)(np.ones((2, 2)))
    assert (model.rates, model.table, model.n) == (*then, 0)


def test_a_refused_call_leaves_no_new_attributes() -> None:
    """What an object did not have before a call that is refused it does not have after it, at a first call and at a later one."""

    class Model:
        def __init__(self) -> None:
            self.w, self.steps = np.ones(2), 0

        def step(self, x: Any, bad: bool) -> Any:
            self.note = "begun"
            self.history = [x.shape]
            if bad:
                return iter([x])
            self.steps += 1
            return (self.w * x).sum()

    step, model = tm.tensor(Model.step), Model()
    with pytest.raises(CaptureError, match="iterator"):
        tm.grad(lambda x: Model.step(model, x, True))(np.ones(2))
    assert vars(model).keys() == {"w", "steps"}
    assert step(model, np.ones(2), False) == 2.0
    assert (model.note, model.history, model.steps) == ("begun", [(2,)], 1)
    del model.note
    with pytest.raises(CaptureError, match="iterator"):
        tm.grad(lambda x: Model.step(model, x, True))(np.ones(2))
    assert vars(model).keys() == {"w", "steps", "history"}


def test_what_is_printed_before_a_call_fails_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The call that is Python's, since it has failed, prints nothing again."""
    state = {"n": 0}

    def step(x: Any) -> Any:
        state["n"] += 1
        print("call", state["n"], x.sum())
        found = np.linalg.inv(x)
        state["n"] += 1
        return found

    captured = tm.tensor(step)
    captured(np.eye(2))
    with pytest.raises(np.linalg.LinAlgError):
        captured(np.zeros((2, 2)))
    assert state == {"n": 3}
    assert capsys.readouterr().out == "call 1 2.0\ncall 3 0.0\n"


READ_BY_HELPERS = {
    "the module's generator": "np.random.rand()",
    "a generator": "noise()",
    "an array that is stored into": "stored()",
    "a closure's generator": "closed()",
    "a closure's array": "counted()",
}
TAKEN = {
    "an iterator": "next(iterator)",
    "a generator": "next(generator)",
    "a count": "next(count)",
    "a draw of Python's": "random.random()",
    "a draw of an object's": "own.random()",
    "a text": "file.write('a')",
    "a queue": "float(queue.put(1) or queue.qsize())",
    "a bytearray": "float(data.append(1) or len(data))",
}
HELPERS = """
import itertools, queue as queues, random
import io
rng, array = np.random.default_rng(1), np.zeros(3)
random.seed(1); np.random.seed(1)
iterator, generator, count = iter([1.0, 2.0, 3.0, 4.0, 5.0]), (2.0 * k for k in range(9)), itertools.count()
own, file, queue, data = random.Random(4), io.StringIO(), queues.Queue(), bytearray()
def noise(): return rng.normal()
def stored():
    array[0] += 1
    return array[0]
def closure():
    rng, array = np.random.default_rng(2), np.ones(2)
    def draw(): return rng.normal()
    def add():
        array[:] *= 2
        return array.sum()
    return draw, add
closed, counted = closure()
"""


@pytest.mark.parametrize("taken", TAKEN)
@pytest.mark.parametrize("read", READ_BY_HELPERS)
def test_what_a_helper_reads_does_not_run_the_body_again(read: str, taken: str) -> None:
    """What an iterator gives, Python draws or a file is written is there once, though a generator or an array is found on the way."""
    text = f"{HELPERS}def f(x):\n    a = {TAKEN[taken]}\n    return x * a + {READ_BY_HELPERS[read]}\n"

    def seen(wrap: Any) -> list[Any]:
        space: dict[str, Any] = {"np": np, "__name__": "__main__"}
        linecache.cache[f"<{read} {taken}>"] = (len(text), None, text.splitlines(True), f"<{read} {taken}>")
        exec(compile(text, f"<{read} {taken}>", "exec"), space)
        f = wrap(space["f"])
        found = [float(f(k + 1.0)) for k in range(3)]
        rest = [next(space[n]) for n in ("iterator", "generator", "count")]
        return [
            *found,
            *rest,
            space["file"].getvalue(),
            space["queue"].qsize(),
            len(space["data"]),
            list(space["array"]),
        ]

    assert seen(tm.tensor) == seen(lambda f: f)

    def once(f: Any) -> Any:
        return lambda x: tm.value_and_grad(f)(x)[0]

    assert seen(once) == seen(lambda f: f)
