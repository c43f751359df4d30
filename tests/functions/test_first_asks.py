"""The first call asks rules only where what was lost may show: a short run is run again sooner than that (decision 0438)."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.staging.analysis.ordinary import ordinary
from tensormagic.functions.calls import first_call

X = np.array([1.5, 2.0, 3.0])
SHOWS_NOTHING = {
    "an iteration to a fixed point": """
        t = x[0]
        for k in range(6):
            t = t - (t * t - 2) / (2 * t)
        return t""",
    "a softmax": "e = np.exp(x / 3 - x[2] / 3.0000001); return e / np.sum(e)",
    "a stencil": """
        u = np.ones(40)
        for k in range(3):
            u[1:-1] = u[1:-1] + x[0] * (u[2:] - u[1:-1] - u[1:-1] + u[:-2])
        return u""",
    "a count": """
        k, z, c = 0, 0.0, x[0] - 1.2
        while k < 40 and z * z - c * c < 4.0:
            z = z * z - c * c + c
            k += 1
        return k""",
    "a branch": """
        y = x * 2
        if x[0] / 3 - x[0] / 3.0000003 > -1:
            y = y + 1
        return y""",
    "what a function stores": "y = np.zeros(3); fill(y, x); return y",
}
SHOWS = {
    "roots": "return np.sqrt(x + 1e14) - np.sqrt(x + 1e14 - 1)",
    "a loop": "t = 0.0\nfor k in range(3):\n    t = t + (np.sqrt(x[k] + 1e14) - np.sqrt(x[k] + 1e14 - 1))\nreturn t",
    "a store": "y = np.zeros(3)\ny[:] = np.sqrt(x + 1e14) - np.sqrt(x + 1e14 - 1)\nreturn y",
    "a branch": "return 1.0 if np.sqrt(x[0] + 1e17) - np.sqrt(x[0] + 1e17 - 100.0) > 1e-7 else 2.0",
    "a function": "return apart(x + 1e14, x + 1e14 - 1)",
}
FILL = "def fill(y, x):\n    for k in range(3):\n        y[k] = x[k] + (x[k] * 3e-7 - x[k] * 3e-7 / 3 * 3) * 1e-9\n"
APART = "def apart(a, b):\n    return np.sqrt(a) - np.sqrt(b)\n"


pytestmark = pytest.mark.usefixtures("first_calls")


@pytest.fixture
def asked(monkeypatch) -> list[bool]:
    found: list[bool] = []
    own = first_call._Rules._fire
    monkeypatch.setattr(
        first_call._Rules, "_fire", lambda self, shorts: (found.append(own(self, shorts)), found[-1])[1]
    )
    return found


def of(body: str, path: Any, head: str = "x") -> Any:
    """A function of a body, in a file of its own."""
    body = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    path.write_text(f"import numpy as np\n{FILL}{APART}def f({head}):\n{body}\n")
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    return space["f"]


@pytest.mark.parametrize("name", SHOWS_NOTHING)
def test_what_shows_nothing_asks_no_rules(name, tmp_path, asked):
    function = of(SHOWS_NOTHING[name], tmp_path / "given.py")
    found = ordinary(function)
    assert found is not None
    assert found.looks
    np.testing.assert_array_equal(first_call.result_of(function, (X.copy(),)), function(X.copy()))  # to the last bit
    assert asked == []


@pytest.mark.parametrize("name", SHOWS)
def test_what_shows_asks_them_and_is_captured(name, tmp_path, asked):
    function = of(SHOWS[name], tmp_path / "given.py")
    assert first_call.result_of(function, (X.copy(),)) is first_call.NOT
    assert asked
    exact = of(SHOWS[name], tmp_path / "longer.py")(X.astype(np.longdouble))
    np.testing.assert_allclose(
        tm.tensor(function)(X.copy()), exact.astype(float) if hasattr(exact, "astype") else exact, rtol=1e-3
    )


def test_a_run_that_takes_longer_than_to_ask_asks_first(tmp_path, monkeypatch, asked):
    shaken: list[bool] = []
    own = first_call._stands
    monkeypatch.setattr(first_call, "_stands", lambda *a: (shaken.append(own(*a)), shaken[-1])[1])
    function = of(SHOWS_NOTHING["a softmax"], tmp_path / "given.py")
    np.testing.assert_array_equal(first_call.result_of(function, (X.copy(),)), function(X.copy()))
    assert (shaken, asked) == ([True], [])
    shaken.clear()
    monkeypatch.setattr(first_call, "_ASKED", 0.0)
    np.testing.assert_array_equal(first_call.result_of(function, (X.copy(),)), function(X.copy()))
    assert shaken == []
    assert asked == [False]


def test_a_loop_that_may_end_soon_does_not_count_as_a_long_one(tmp_path, asked):
    body = "k, z = 0, 0.0\nwhile k < most and z * z - x * x < 4.0:\n    z = z * z - x * x + 1.0\n    k += 1\nreturn k"
    function = of(body, tmp_path / "given.py", "x, most")
    assert first_call.result_of(function, (0.3, 10**6)) == function(0.3, 10**6)
    assert asked == []
