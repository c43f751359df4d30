"""Numbers that a cell names itself are inputs of what follows in it, and after the cell they are what Python has."""

import math

import numpy as np
import pytest

import tensormagic as tm
from tests.notebook.conftest import Notebook

TINY = {
    "literal": "x = 1e-18",
    "signed": "x = +1e-18",
    "computed": "x = 10.0**-18",
    "float64": "x = np.float64(1e-18)",
    "of a text": "x = float('1e-18')",
    "annotated": "x: float = 1e-18",
    "a tuple": "n, x = 3, 1e-18",
    "two names": "x = z = 1e-18",
    "from another": "small = 1e-9\nx = small * small",
}
TEXTS = {
    "np.log(1 + x)": 1e-18,
    "math.log(1 + x)": 1e-18,
    "np.exp(x) - 1": 1e-18,
    "(1 - np.cos(x)) / x**2": 0.5,
    "np.sqrt(1 + x) - 1": 5e-19,
    "log_of(x)": 1e-18,
    "np.log(one)": 1e-18,
}


@pytest.fixture
def imported(notebook: Notebook) -> Notebook:
    notebook.ok("import math\nimport numpy as np\nlog_of = lambda v: np.log(1 + v)")
    return notebook


@pytest.mark.parametrize("made", TINY.values(), ids=TINY)
@pytest.mark.parametrize("text", TEXTS)
def test_they_keep_their_digits(imported: Notebook, made: str, text: str):
    imported.ok(f"%%tensor\n{made}\none = 1 + x\ny = {text}")
    assert float(imported["y"]) == pytest.approx(TEXTS[text], rel=1e-12, abs=0)


@pytest.mark.parametrize("text", TEXTS)
def test_at_exact_they_are_pythons(imported: Notebook, text: str):
    imported.ok(f"%%tensor --math exact\nx = 1e-9\none = 1 + x\ny = {text}")
    space = {"np": np, "math": math, "x": 1e-9, "one": 1 + 1e-9, "log_of": lambda v: np.log(1 + v)}
    assert float(imported["y"]) == float(eval(text, space))


@pytest.mark.parametrize("made", ["x = 1.5", "x = np.float64(1.5)", "x = np.float32(1.5)", "x = 1.5 + 2j", "x = 3 / 2"])
def test_after_the_cell_they_are_what_python_has(imported: Notebook, made: str):
    imported.ok(f"%%tensor\n{made}\ny = np.sin(x)\nz = x\nL = [x]")
    expected = eval(made.removeprefix("x = "), {"np": np})
    assert type(imported["x"]) is type(expected)
    assert imported["x"] == expected
    assert imported["z"] is imported["x"]


ASKED = [
    "print(f'{x:.3f}', '%.2f' % x, str(x), repr(x), type(x), isinstance(x, float), [x], (x,), {x: 1})",
    "print({x: 'a', 2.5: 'b'}[1.5], x in {1.5}, hash(x) == hash(1.5), sorted([x, 1.0]), max(x, 1), min(x, 2))",
    "print(round(x), int(x), bool(x), divmod(x, 1), x.is_integer(), x.hex(), x.as_integer_ratio(), x // 1, x % 1)",
    "print(np.arange(0, x, 0.5), np.linspace(0, x, 4), np.zeros(int(2 * x)), np.full(2, x), list(range(int(x))))",
    "import json\nprint(json.dumps({'rate': x, 'all': [x, x]}))",
    "from decimal import Decimal\nfrom fractions import Fraction\nprint(Decimal(x), Fraction(x), complex(x))",
    "try:\n    if x > 0:\n        raise ValueError('above')\nexcept ValueError as error:\n    print('caught', error)",
    "try:\n    y = 1 / (x - 1.5)\nexcept ZeroDivisionError as error:\n    print('caught', error)",
    "match x:\n    case 1.5:\n        print('that')\n    case float():\n        print('another')",
    "class Ball:\n    g = x\n    def weight(self, m): return m * self.g\nprint(Ball().weight(2), Ball.g, type(Ball.g))",
    "def f(v, rate=x): return v * rate\nprint(f(2), f.__defaults__)",
    "def f(v):\n    global x\n    x = v\nf(2.0)\nprint(x)",
    "def f(n): return x if n == 0 else f(n - 1) * x\nprint(f(3))",
    "from scipy.optimize import brentq\nprint(round(brentq(lambda v: v * v - x, 0, 2), 9))",
    "a, b = 0.0, 2.0\nwhile b - a > x / 1e9:\n    m = (a + b) / 2\n    a, b = (m, b) if m * m < 2 else (a, m)\nprint(round(m, 8))",
    "L = []\nfor i in range(30):\n    L.append(i * x)\nprint(L[-1], len(L), sum(L))",
    "del x\ntry:\n    x\nexcept NameError as error:\n    print(error)",
]


@pytest.mark.parametrize("text", ASKED)
def test_they_do_what_numbers_do(imported: Notebook, text: str):
    plain = imported.ok(f"x = 1.5\n{text}").out
    assert plain
    assert imported.ok(f"%%tensor\nx = 1.5\n{text}").out.startswith(plain)


def test_gradients_with_respect_to_them(imported: Notebook):
    imported.ok("%%tensor --grad x\nx = 3.0\ny = x**2")
    assert float(imported["grad_x"]) == 6.0


@pytest.mark.parametrize("made", ["w = 2.0", "w = np.float64(2.0)", "w = z = 2.0", "w, z = 2.0, 3.0"])
@pytest.mark.parametrize("apart", [False, True], ids=["the same cell", "an earlier cell"])
def test_gradients_of_a_value_with_respect_to_a_number(imported: Notebook, made: str, apart: bool):
    between = "\n%%tensor\n" if apart else "\n"
    for cell in f"%%tensor\n{made}{between}y = 4 * w**3".split("%%tensor\n")[1:]:
        imported.ok(f"%%tensor\n{cell}")
    assert float(imported.ok("y.grad(w)").value) == 48.0
    assert float(imported.ok("y.grad('w')").value) == 48.0


def test_gradients_with_respect_to_numbers_that_are_alike(imported: Notebook):
    imported.ok("%%tensor\na = 2.0\nb = 2.0\ny = a * b**2")
    assert float(imported.ok("y.grad('b')").value) == 8.0
    error = imported("y.grad(a)").error
    assert isinstance(error, tm.DifferentiationError)
    assert "several inputs have this value" in str(error)
    imported.ok("a, b = float('2'), float('2')")
    imported.ok("%%tensor\ny = a * b**2")
    assert [float(imported.ok(f"y.grad({name})").value) for name in "ab"] == [4.0, 8.0]


def test_gradients_with_respect_to_what_was_not_read_are_refused(imported: Notebook):
    imported.ok("w, v = 2.0, 3.0")
    imported.ok("%%tensor\ny = w**2")
    for wrt in ("v", "5.0", "2"):
        error = imported(f"y.grad({wrt})").error
        assert isinstance(error, tm.DifferentiationError)
        assert "it depends on w" in str(error)
    imported.ok("w = 7.0")
    assert isinstance(imported("y.grad(w)").error, tm.DifferentiationError)


def test_another_number_takes_the_same_graph(imported: Notebook):
    imported.ok("%%tensor\nrate = 0.5\ny = np.sin(rate * np.arange(3.0))")
    imported.ok("%%tensor\nrate = 0.25\ny = np.sin(rate * np.arange(3.0))")
    np.testing.assert_allclose(np.asarray(imported["y"]), np.sin(0.25 * np.arange(3.0)))


def test_many_elements_of_a_list_that_nobody_reads_cost_little(imported: Notebook):
    from tensormagic.capture.values import live_values

    imported.ok("%%tensor\nstep = 0.5\nx, L = 1.0, []\nfor i in range(2000):\n    x += step\n    L.append(x)")
    before = len(live_values.held())
    assert before < 2000
    assert float(imported["L"][1999]) == 1001.0
    assert len(live_values.held()) == before + 1
