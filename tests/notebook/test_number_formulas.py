"""Formulas of Python's numbers in captured code: accurate forms where a rule has one, and else what Python computes."""

import math

import numpy as np
import pytest

import tensormagic as tm
from tests.notebook.conftest import Notebook

FORMULAS = {  # of a small x
    "np.log(1 + x)": 1e-9 - 0.5e-18,
    "math.log(1 + x)": 1e-9 - 0.5e-18,
    "np.exp(x) - 1": 1e-9 + 0.5e-18,
    "math.exp(x) - 1": 1e-9 + 0.5e-18,
    "1 - np.exp(-x)": 1e-9 - 0.5e-18,
    "(1 - np.cos(x)) / x**2": 0.5,
    "np.sqrt(1 + x) - 1": 5e-10 - 0.125e-18,
    "math.sqrt(1 + x) - math.sqrt(1 - x)": 1e-9,
    "float(np.log(1 + x))": 1e-9 - 0.5e-18,
    "2 * (np.exp(x) - 1) * k": 6e-9 + 3e-18,
    "1 / (x + 1) - 1": -1e-9 + 1e-18,
    "np.log(np.cosh(x))": 0.5e-18,
}
PLACES = {
    "a loop over a list": "for x in [1.0, 1e-9]:\n    y = {}",
    "a loop over a list with a name": "xs = [1.0, 1e-9]\nfor x in xs:\n    y = {}",
    "a counted loop": "for n in range(8, 10):\n    x = 10.0**-n\n    y = {}",
    "a loop with a counter": "for _, x in enumerate([1.0, 1e-9]):\n    y = {}",
    "while": "x = 1.0\nwhile x > 1e-9:\n    x = 1e-9\n    y = {}",
    "a list": "y = [{} for x in [1.0, 1e-9]][-1]",
    "a function": "def f(x):\n    return {}\ny = f(1e-9)",
    "a lambda": "y = (lambda x: {})(1e-9)",
    "a local name": "def f():\n    x = 1e-9\n    return {}\ny = f()",
    "a default": "def f(x=1e-9):\n    return {}\ny = f()",
    "map": "def f(x):\n    return {}\ny = list(map(f, [1.0, 1e-9]))[-1]",
    "a function in a loop": "def f(x):\n    return {}\nfor v in [1.0, 1e-9]:\n    y = f(v)",
    "a branch": "if k > 2:\n    x = 1e-9\ny = {}",
    "a method": "class A:\n    def f(self, x):\n        return {}\ny = A().f(1e-9)",
    "a walrus": "(x := 1e-9)\ny = {}",
    "a pair": "x, z = (1e-9, 2.0)\ny = {}",
    "a method's loop": "total = 0\nfor x in [1e-9]:\n    total = total + 1\n    y = {}\nprint(total)",
}


@pytest.fixture
def imported(notebook: Notebook) -> Notebook:
    notebook.ok("import math\nimport numpy as np\nk = 3")
    return notebook


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("text", FORMULAS)
def test_digits_are_kept_wherever_the_numbers_come_from(imported: Notebook, text: str, place: str):
    imported.ok(f"%%tensor\n{place.format(text)}")
    assert float(imported["y"]) == pytest.approx(FORMULAS[text], rel=1e-14, abs=0)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("text", ["np.log(1 + x)", "math.exp(x) - 1", "(1 - np.cos(x)) / x**2"])
def test_at_exact_it_is_pythons_value_and_class(imported: Notebook, text: str, place: str):
    imported.ok(place.format(text))
    plain = imported["y"]
    imported.ok(f"%%tensor --math exact\n{place.format(text)}")
    assert float(imported["y"]) == float(plain)


@pytest.mark.parametrize("operand", ["1e-9", "np.float64(1e-9)", "np.float32(1e-4)", "3", "np.float64(0.5)"])
@pytest.mark.parametrize("text", ["np.log(1 + x)", "math.log(1 + x)", "np.exp(x) - 1", "math.exp(x) - 1"])
def test_the_class_is_that_of_the_written_formula(imported: Notebook, text: str, operand: str):
    cell = f"def f(x):\n    return {text}\ny = f({operand})"
    imported.ok(cell)
    plain = imported["y"]
    imported.ok(f"%%tensor\n{cell}")
    assert type(imported["y"]) is type(plain)
    assert float(imported["y"]) == pytest.approx(float(plain), rel=1e-3)


RAISING = {
    "math.log(x - 1)": 0.5,
    "math.sqrt(x - 1) + 1": 0.5,
    "math.exp(x) - 1": 1e4,
    "math.log(1 + x)": -1.0,
    "1 / x + math.exp(x) - 1": 0.0,
    "(math.exp(x) - 1) / x": 0.0,
    "math.exp(x) - missing": 1.0,
    "np.exp(x) - 'a'": 1.0,
    "math.exp(x) - k(x)": 1.0,
}


@pytest.mark.parametrize("text", RAISING)
def test_errors_are_pythons(imported: Notebook, text: str):
    cell = f"def f(x):\n    return {text}\nfor _ in range(2):\n    y = f({RAISING[text]!r})"
    plain = imported(cell).error
    captured = imported(f"%%tensor\n{cell}").error
    assert plain is not None
    assert type(captured) is type(plain)
    assert str(captured) == str(plain)


@pytest.mark.parametrize(("text", "x"), [("np.log(1 + x)", -1.0), ("np.exp(x) - 1", 1e4), ("np.log(1 + x)", -2.0)])
def test_what_is_no_number_is_numpys_with_its_warning(imported: Notebook, text: str, x: float):
    cell = (
        f"def f(x):\n    return {text}\nimport warnings\nwith warnings.catch_warnings(record=True) as told:\n"
        f"    warnings.simplefilter('always')\n    y = f({x})"
    )
    imported.ok(cell)
    plain, told = imported["y"], [str(w.message) for w in imported["told"]]
    imported.ok(f"%%tensor\n{cell}")
    assert str(imported["y"]) == str(plain)
    assert [str(w.message) for w in imported["told"]] == told
    assert len(told) == 1


def test_functions_of_ones_own_are_called_once(imported: Notebook):
    cell = "%%tensor\nseen = []\ndef log(v):\n    seen.append(v)\n    return v\ndef f(x):\n    return log(1 + x) - 1\ny = f(2.0)"
    imported.ok(cell)
    assert imported["y"] == 2.0
    assert imported["seen"] == [3.0]


def test_another_function_under_the_same_name(imported: Notebook):
    imported.ok("%%tensor\nfrom math import log\ndef f(x):\n    return log(1 + x)\ny = f(1e-18)")
    assert imported["y"] == 1e-18
    imported.ok("%%tensor\nlog = lambda v: 10 * v\ndef f(x):\n    return log(1 + x)\ny = f(1.0)")
    assert imported["y"] == 20.0
    imported.ok("%%tensor\nfrom numpy import log\ndef f(x):\n    return log(1 + x)\ny = f(1e-18)")
    assert imported["y"] == 1e-18


def test_functions_whose_defaults_are_functions(imported: Notebook):
    imported.ok("%%tensor\ndef f(x, *, g=lambda x: -x):\n    return np.log(1 + x)\nfor v in [1e-18]:\n    y = f(v)")
    assert imported["y"] == 1e-18
    imported.ok("%%tensor\nf = lambda x, *, made=lambda x: -x: np.log(1 + x)\nfor v in [1e-18]:\n    y = f(v)")
    assert imported["y"] == 1e-18


def test_numbers_that_stand_in_the_formula(imported: Notebook):
    imported.ok("%%tensor\ny = np.log(1 + 1e-18)")
    assert float(imported["y"]) == 1e-18


def test_large_whole_numbers_are_pythons(imported: Notebook):
    cell = "def f(n):\n    return math.sqrt(n * n + 1) - n\ny = [f(10**8), f(2**60), f(10**20)]"
    imported.ok(cell)
    plain = imported["y"]
    imported.ok(f"%%tensor\n{cell}")
    assert imported["y"][0] == pytest.approx(5e-9, rel=1e-12)
    assert imported["y"][1:] == plain[1:]


def test_the_cell_says_that_digits_were_kept(imported: Notebook):
    assert "more accurate" in str(imported.ok("%%tensor\ny = [np.log(1 + x) for x in [1e-18]]").displays)
    assert "more accurate" not in str(imported.ok("%%tensor\ny = [np.sin(1 + x) for x in [1e-18]]").displays)


def test_in_captured_functions():
    @tm.tensor
    def mean_slope(a: float) -> float:
        total = 0.0
        for h in [1e-8, 1e-9]:
            total = total + a * ((1 - math.cos(h)) / h**2)
        return total / 2

    assert [mean_slope(2.0), mean_slope(2.0)] == pytest.approx([1.0, 1.0], rel=1e-12)
    assert tm.grad(mean_slope)(2.0) == pytest.approx(0.5, rel=1e-12)
    np.testing.assert_allclose(mean_slope(np.arange(3.0)), np.arange(3.0) / 2, rtol=1e-12)


@pytest.mark.parametrize(
    "made", ["z = 1 + x\n    return np.log(z)", "o = SimpleNamespace(x=x)\n    return np.log(1 + o.x)"]
)
def test_digits_lost_over_two_statements_are_pythons(imported: Notebook, made: str):
    imported.ok("from types import SimpleNamespace")
    imported.ok(f"%%tensor\ndef f(x):\n    {made}\ny = [f(x) for x in [1e-18, 2e-18]]")
    assert imported["y"] == [0.0, 0.0]
