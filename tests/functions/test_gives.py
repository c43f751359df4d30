"""What calls give of what was there, what they change in it, and what they raise: as Python, by drawn programs and by hand."""

from __future__ import annotations

import collections
import dataclasses
import linecache
import random
import warnings
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, ConstantGradientWarning
from tests.functions import object_programs as objects


@pytest.mark.parametrize("seed", range(3))
def test_drawn_programs_leave_what_python_leaves(seed: int) -> None:
    rng = random.Random(seed)
    refused = 0
    for _ in range(60):
        told, text = objects.draw(rng)
        fault = objects.fault(text)
        refused += fault.startswith("refused")
        assert not fault or fault.startswith("refused"), f"{told}: {fault}\n{text}"
    assert refused < 10


VIEWS = "x, x[1:-1], x[::2], x[len(x) // 2 :], x.reshape(-1, 1), x[:, None], np.atleast_2d(x), x[::-1], np.ravel(x)"
VIEWS += ", np.broadcast_to(x, (2, len(x)))"


def _function(text: str) -> Any:
    """The function ``f`` of a text that has its source."""
    name = f"<gives {len(_TEXTS)}>"
    _TEXTS.append(text)
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    space: dict[str, Any] = {"np": np}
    exec(compile(text, name, "exec"), space)
    return space["f"]


_TEXTS: list[str] = []


def test_parts_of_arguments_are_numpys_views_for_every_size() -> None:
    function = _function(f"def f(x):\n    return {VIEWS}\n")
    captured = tm.tensor(function)
    for n in (4, 6, 7, 4):
        x = np.arange(float(n))
        for ours, pythons in zip(captured(x), function(x), strict=True):
            assert ours is x if pythons is x else np.shares_memory(ours, x)
            assert [s for s, m in zip(ours.strides, ours.shape, strict=True) if m > 1] == [
                s for s, m in zip(pythons.strides, pythons.shape, strict=True) if m > 1
            ]
            assert ours.flags.writeable == pythons.flags.writeable
            np.testing.assert_array_equal(ours, pythons)


BESIDE = {
    "prints": "print('seen', x[0])",
    "raises": "if x.sum() > 1e9: raise ValueError('large')",
    "asserts": "assert x[0] < 1e9, 'large'",
    "fails beside": "np.linalg.inv(x[0] * np.eye(2) + 3 * np.eye(2))",
    "draws": "x[0] += rng.random()",
    "prints in a loop": "for v in x:\n        print(v)",
}


@pytest.mark.parametrize("line", BESIDE.values(), ids=BESIDE)
def test_what_was_there_is_itself_whatever_the_function_does_beside(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Checks and prints that results had to wait for made copies of arguments, of lists, and of what shares memory."""
    head = f"rng = np.random.default_rng(0)\ndef f(x, pair):\n    {line}\n"
    text = f"{head}    y = x + pair[1]\n    return x, x[1:], [x.T], pair, pair[0], y, y[1:]\n"
    function, told = _function(text), []
    for body in (function, tm.tensor(function)):
        x, pair = np.arange(4.0), [np.ones(2), 3.0]
        for _ in range(3):
            whole, part, (turned,), given, one, y, rest = body(x, pair)
            assert whole is x
            assert given is pair
            assert one is pair[0]
            assert np.shares_memory(part, x)
            assert np.shares_memory(turned, x)
            assert np.shares_memory(rest, y)
            assert not np.shares_memory(y, x)
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]


@pytest.mark.parametrize("line", [BESIDE["raises"], BESIDE["asserts"]], ids=["raises", "asserts"])
def test_what_is_given_back_as_itself_waits_for_checks(line: str) -> None:
    captured = tm.tensor(_function(f"def f(x):\n    {line}\n    return x, x[1:]\n"))
    captured(np.ones(3))
    for _ in range(2):
        with pytest.raises((ValueError, AssertionError), match="large"):
            captured(np.full(3, 1e10))
        with pytest.raises((ValueError, AssertionError), match="large"):
            tm.vmap(captured)(np.full((2, 3), 1e10))
    summed = tm.tensor(_function(f"def f(x):\n    {line}\n    return x.sum()\n"))
    np.testing.assert_array_equal(tm.grad(summed)(np.ones(3)), np.ones(3))
    with pytest.raises((ValueError, AssertionError), match="large"):
        tm.grad(summed)(np.full(3, 1e10))


def test_what_occurs_twice_in_a_result_is_one() -> None:
    @tm.tensor
    def given(x: Any) -> Any:
        y, pair = x * 2, [x]
        part = y[1:]
        return y, {"y": y}, part, part, pair, (pair,)

    y, table, part, again, pair, (same,) = given(np.ones(3))
    assert table["y"] is y
    assert part is again
    assert part.base is y
    assert pair is same


@dataclasses.dataclass
class Parameters:
    w: Any
    b: float = 0.0
    losses: list[float] = dataclasses.field(default_factory=list)


def _updated(p: Any, g: Any) -> Any:
    p.w, p.b = p.w - g, p.b - float(g.sum())
    p.losses.append(p.b)
    return p


def _dictionary(p: Any, g: Any) -> Any:
    for name in p:
        p[name] = p[name] - g
    p["last"] = g
    return p


def _listed(p: Any, g: Any) -> Any:
    p[0], p[1] = p[1], p[0] - g
    p.insert(0, g.sum())
    return p


@pytest.mark.parametrize(
    ("make", "update"),
    [
        (lambda: Parameters(np.ones(2)), _updated),
        (lambda: {"w": np.ones(2), "b": 0.5}, _dictionary),
        (lambda: collections.OrderedDict(w=np.ones(2)), _dictionary),
        (lambda: [np.ones(2), np.zeros(2)], _listed),
    ],
)
def test_containers_of_the_caller_are_changed(make: Any, update: Any) -> None:
    expected, given, captured = make(), make(), tm.tensor(update)
    for k in range(3):
        g = np.arange(2.0) + k
        assert captured(given, g) is given
        update(expected, g)
        assert repr(given) == repr(expected)


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
def test_a_container_that_is_given_twice_and_changed_is_changed_by_python() -> None:
    @tm.tensor
    def grown(a: Any, b: Any, x: Any) -> Any:
        a.append(x)
        return len(b)

    assert grown([], [], 1.0) == 0
    one: list[Any] = []
    assert grown(one, one, 1.0) == 1
    assert one == [1.0]


class Fit:
    def __init__(self, w: Any, loss: float) -> None:
        self.w, self.loss, self.both = w, loss, [w, w[1:]]


def test_objects_that_a_call_makes_hold_arrays_and_numbers() -> None:
    fitted = tm.tensor(lambda x: Fit(x * 2, float(x.sum())))(np.ones(3))
    assert type(fitted.loss) is float
    kept = tm.tensor(lambda x: Fit(x, 1.0))(x := np.ones(3))
    assert kept.w is x
    assert kept.both[0] is x
    assert kept.both[1].base is x


Z = {"z": np.ones(3)}


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.zeros_like(Z["z"]) + x,
        lambda x: np.zeros_like(Z["z"]) @ x,
        lambda x: np.where(x > 0, np.ones_like(Z["z"]), 0),
        lambda x: np.vstack([x, np.zeros_like(Z["z"])]),
        lambda x: [np.add(Z["z"], x), x.sum()][1],
    ],
)
@pytest.mark.parametrize("of", ["itself", "its gradient"])
def test_sizes_of_arrays_that_are_not_read_have_to_fit(function: Any, of: str) -> None:
    """Where only the size of an array matters, or what it was used for does not."""
    call = tm.tensor(function) if of == "itself" else tm.grad(lambda x: np.sum(function(x)))
    with warnings.catch_warnings(action="ignore", category=ConstantGradientWarning):
        call(np.arange(1.0, 4.0))
    for n in (2, 4):
        with pytest.raises(ValueError, match=r"size|shape|dimension"):
            call(np.arange(1.0, n + 1))


@pytest.mark.parametrize(
    "line",
    [
        "np.linalg.cholesky(A)",
        "L = np.linalg.inv(A)",
        "A[int(A[0, 0])]",
        "int(A[0, 0])",
        "A[2]",
        "w, v = np.linalg.eigh(A)",
        "A[:, 0].max()",
    ],
)
def test_what_is_not_used_raises_its_error(line: str) -> None:
    plain = _function(f"def f(A):\n    {line}\n    return A.sum()\n")
    captured = tm.tensor(plain)
    for matrix in (np.eye(3), -3 * np.eye(3), np.full((3, 3), np.nan), np.zeros((3, 3)), np.eye(2), np.eye(3)):
        expected = _outcome(plain, matrix)
        found = _outcome(captured, matrix)
        assert found == expected or np.isnan([found, expected]).all()


def _outcome(function: Any, *args: Any) -> Any:
    try:
        with np.errstate(all="ignore"):
            return float(function(*args))
    except CaptureError:
        raise
    except Exception as error:  # noqa: BLE001 (as Python's)
        return next(k.__name__ for k in type(error).__mro__ if k.__module__.partition(".")[0] != "tensormagic")


CLASSES = {
    "best": "best, at = 0, -1\n    for k, v in enumerate(x):\n        if v > best: best, at = v, k\n    return best, at, [best]",
    "sum": "n, s = 0, 0\n    for v in x:\n        if v > 0: n += 1; s = s + v\n    return n, s",
    "clamped": "return max(0, min(x[0], 1)), max(1, 2.0), min(1, 2.0), max(x[0], 1)",
    "running": "run = top = 0\n    for v in x:\n        run = max(0, run + v)\n        top = max(top, run)\n    return run, top",
    "branch": "r = 0 if x[0] > 1 else x[1]\n    return r, {'r': r}",
    "nested": "m = 0\n    for a in x:\n        for b in x:\n            if a * b > 3:\n                m = a * b\n    return m",
}


@pytest.mark.parametrize("name", CLASSES)
def test_numbers_are_of_the_class_that_data_say(name: str) -> None:
    plain = _function(f"def f(x):\n    {CLASSES[name]}\n")
    captured = tm.tensor(plain)
    for x in (np.array([1.0, 5.0, 2.0]), -np.ones(3), np.full(3, 0.5), np.array([1, 2, 3]), -np.ones(3, int)):
        assert repr(captured(x)) == repr(plain(x))


class Stopping:
    def __init__(self) -> None:
        self.best, self.bad, self.w, self.kept = np.inf, 0, np.zeros(2), np.ones(2)

    def see(self, x: Any) -> Any:
        loss = (x**2).mean()
        self.w = self.w - 0.1 * x
        if loss < self.best:
            self.best, self.bad, self.kept = loss, 0, self.w.copy()
        else:
            self.bad += 1
        return self.bad > 1


def test_numbers_that_a_call_keeps_are_of_the_class_that_data_say() -> None:
    expected, model = Stopping(), Stopping()
    see = tm.tensor(model.see)
    for size in (np.nan, 1.0, 2.0, 0.5, 3.0, 3.0):
        assert bool(see(np.full(2, size))) == bool(expected.see(np.full(2, size)))
        assert repr(vars(model)) == repr(vars(expected))
