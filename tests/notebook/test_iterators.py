"""``zip``, ``enumerate``, ``reversed``, ``itertools.product`` and NumPy's iterators over places: what is taken from them is gone."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import PlainRunWarning

X = np.arange(1.0, 13.0).reshape(4, 3)
LONG = np.linspace(0.5, 2.0, 60)
START = (
    "import itertools\nimport numpy as np\nX = np.arange(1.0, 13.0).reshape(4, 3)\nLONG = np.linspace(0.5, 2.0, 60)\n"
)

MADE = {
    "zip": "zip(X, X[::-1])",
    "enumerate": "enumerate(X * 1)",
    "reversed": "reversed(X + 1)",
    "product": "itertools.product(X[0], range(2))",
    "ndindex": "np.ndindex(2, 3)",
    "ndenumerate": "np.ndenumerate(X * 2)",
    "of a zip": "enumerate(zip(X, X[::-1]))",
    "long": "zip(LONG, LONG * 2)",
}
USES = {
    "twice a list": "first, second = len(list(z)), len(list(z))",
    "next, and the rest": "next(z)\nfirst, second = len(list(z)), next(z, 7)",
    "next three times": "next(z), next(z), next(z)\nfirst, second = len([v for v in z]), len(list(z))",
    "a loop, and again": "first = second = 0\nfor _ in z:\n    first = first + 1\nfor _ in z:\n    second = second + 1",
    "a loop that ends early": "first = 0\nfor _ in z:\n    first = first + 1\n    if first == 3:\n        break\nsecond = len(list(z))",
    "a comprehension, and again": "first, second = len([v for v in z]), [v for v in z]",
    "a generator": "g = (v for v in z)\nnext(g)\nfirst, second = len(list(g)), len(list(z))",
    "starred": "a, *first = z\nfirst, second = len(first), tuple(z)",
    "truth": "first, second = bool(z), bool(list(z))",
    "the one after": "second = [v for v in z][-1]\nfirst = list(z)",
    "length": "try:\n    first = len(z)\nexcept TypeError as error:\n    first = 'no length'\nsecond = len(list(z))",
}


def plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value), [plain(v) for v in value]
    value = value.numpy() if hasattr(value, "numpy") else value
    return type(value), np.asarray(value).tolist() if isinstance(value, np.ndarray | np.generic) else value


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("made", MADE)
def test_a_cell_takes_what_python_takes(notebook: Any, made: str, use: str):
    cell = f"z = {MADE[made]}\n{USES[use]}\n"
    space: dict[str, Any] = {}
    exec(START + cell, space)
    notebook.ok(START)
    notebook.ok(f"%%tensor -q\n{cell}")
    for name in ("first", "second"):
        assert plain(notebook[name]) == plain(space[name])
    left = "rest = len(list(z))"
    exec(left, space)
    notebook.ok(left)  # in a cell of its own, by Python
    assert notebook["rest"] == space["rest"]
    assert type(notebook["z"]) is type(space["z"])


@pytest.mark.parametrize("use", [u for u in USES if u != "length"])
@pytest.mark.parametrize("made", MADE)
def test_a_function_takes_what_python_takes(made: str, use: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    lines = f"z = {MADE[made]}\n{USES[use]}\nreturn first, second, len(list(z))".splitlines()
    space: dict[str, Any] = {"np": np, "itertools": itertools, "LONG": LONG}
    exec("def f(X):\n" + "".join(f"    {line}\n" for line in lines), space)
    want = space["f"](X)
    f = tm.tensor(space["f"])
    for _ in range(2):
        found = f(X)
        for a, b in zip(found, want, strict=True):
            assert plain(a) == plain(b)


def over_places(a):
    out = np.zeros_like(a)
    for i, j in np.ndindex(a.shape):
        out[i, j] = np.sin(a[i, j]) * i - j
    return out


def over_pairs(a):
    total = 0.0
    for i, j in itertools.product(range(len(a)), range(a.shape[1])):
        total += a[i, j] * (i - j)
    return total


def over_three(a):
    total = 0.0
    for i, j, k in np.ndindex(2, 3, 3):
        total += a[i, j] * a[j, k]
    return total


def over_elements(a):
    total = 0.0
    for (i, j), v in np.ndenumerate(a):
        total += v * v * (i + 2 * j)
    return total


def over_a_grid(a):
    best = 0.0
    for u, v in itertools.product(a[0], a[:, 0]):
        best = max(best, u * v)
    return best


@pytest.mark.parametrize("function", [over_places, over_pairs, over_three, over_elements, over_a_grid])
def test_places_are_gone_over_by_one_loop(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    large = np.random.default_rng(0).normal(size=(40, 30)) + 3
    want, f = function(large), tm.tensor(function)
    for _ in range(2):
        found = f(large)
        np.testing.assert_allclose(found, want, rtol=1e-12)
        assert type(found) is type(want)
    assert len(f.graph(large).nodes) < 60
    slope = tm.grad(lambda a: np.sum(function(a) * 1.0))(large)
    for place in [(0, 0), (1, 2), (39, 29)]:
        step = np.zeros_like(large)
        step[place] = 1e-6
        expected = (np.sum(function(large + step)) - np.sum(function(large - step))) / 2e-6
        np.testing.assert_allclose(slope[place], expected, rtol=1e-4, atol=1e-5)


def test_what_is_left_after_a_loop_that_data_end_is_not_known(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")

    def f(x):
        z = enumerate(x)
        for _, v in z:
            if v > 1:
                break
        return len(list(z))

    with pytest.raises(
        tm.CaptureError, match=r"the position of the enumerate object is not known after a loop that may end early"
    ):
        tm.tensor(f).graph(LONG)
    with pytest.warns(PlainRunWarning):
        assert tm.tensor(f)(LONG) == f(LONG)


def test_a_cell_with_a_large_grid_is_one_loop(notebook: Any):
    notebook.ok(START)
    cell = "mesh = np.zeros((200, 200))\nfor place, v in np.ndenumerate(mesh):\n    mesh[place] = v + place[0] - place[1]\n"
    notebook.ok(f"%%tensor -q\n{cell}")
    np.testing.assert_array_equal(notebook["mesh"].numpy(), np.subtract.outer(np.arange(200.0), np.arange(200.0)))
