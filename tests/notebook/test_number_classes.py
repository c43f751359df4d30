"""Numbers of a data-dependent class: 0, which is Python's, or the np.float64 that a loop found."""

import pytest

from tests.functions.test_by_class import converting
from tests.notebook.sameness import difference, form

START = """
import numpy as np
x = np.array([-1.0, -2.0, -3.0] * 12)
y = np.array([1.0, 5.0, 2.0] * 12)
k = np.array([3, 1, 2] * 12)
def top(a, t):
    m = 0
    for v in a:
        if v > t: m = v
    return m
"""
CELLS = {
    "best = 0\nfor v in x:\n  if v > best: best = v": "best",
    "best = 0\nfor v in y:\n  if v > best: best = v": "best",
    "best = 0.0\nfor v in x:\n  if v > best: best = v": "best",
    "s = 0\nfor v in x:\n  if v > 0: s += v\ns = s // 2": "s",
    "s = 0\ni = 0\nwhile i < len(x) and x[i] > 0:\n  s = s + x[i]\n  i += 1": "s, i",
    "b, j = 0, -1\nfor i, v in enumerate(x):\n  if v > b:\n    b = v; j = i": "b, j",
    "b = 0\nfor v in k:\n  if v > 9: b = v": "b",
    "m = 0\nfor v in x: m = max(m, v)": "m",
    "r = 0\nfor v in x:\n  if v > 3:\n    r = v\n    break": "r",
    "a = b = 0\nfor v in y:\n  if v > 3: a = v\n  elif v > 100: b = v": "a, b",
    "m = 0\nfor v in y:\n  if v > 3: m = v\n  elif v > 1: m = 0": "m",
    "m = 0\nfor v in y:\n  if v > 3: m = v\n  else: m = 1": "m",
    "m, q = 0, 1\nfor v in x:\n  if v > 0: m = v\n  q = q * (m + 1)": "m, q",
    "m, q = 0, 1\nfor v, i in zip(y, k):\n  if v > 4: m = v\n  q = m * i": "m, q",
    "m, q = 0, 1\nfor v, i in zip(x, k):\n  if v > 4: m = v\n  q = m * i": "m, q",
    "m = 0\nfor i in range(36):\n  for j in range(36):\n    if x[i] * y[j] > m: m = x[i] * y[j]": "m",
    "tot = 0\nfor r in range(36):\n  m = 0\n  for v in y:\n    if v > r * 3 + 9: m = v\n  tot += m": "tot, m",
    "L = [0, 0]\nfor v in y:\n  if v > 4: L[0] = v": "L",
    "n = 10\nfor v in x:\n  if v > 0: n = n / 2": "n",
    "out = [top(x, 0), top(y, 0), top(y, 9)]": "out",
}


@pytest.mark.parametrize("cell", CELLS)
def test_a_number_after_a_loop_is_of_the_class_that_it_has_in_python(notebook, cell):
    space: dict[str, object] = {}
    exec(f"{START}\n{cell}", space)
    shown = f"repr([{CELLS[cell]}])"
    notebook.ok(START)
    notebook.ok(f"%%tensor -q\n{cell}\ntold = {shown}")
    assert notebook.ok("told").value == eval(shown, space)


def test_derivatives_go_through_the_number(notebook):
    notebook.ok("import numpy as np\nx = np.array([1.0, 5.0, 2.0] * 12)")
    notebook.ok("%%tensor -q --grad x\nbest = 0\nfor v in x:\n  if v > best: best = v\nbest * best")
    assert notebook.ok("grad_x[:4].tolist()").value == [0.0, 10.0, 0.0, 0.0]
    assert notebook.ok("grad_x[4:].tolist()").value == [0.0] * 32


@pytest.mark.share(4)
@pytest.mark.parametrize("seed", range(1000, 1200))
@pytest.mark.filterwarnings("ignore")
def test_iterations_change_the_class_of_a_number(notebook, seed):
    start = f"import numpy as np, math\nx = np.array([[1.5, 2, 4], [-1, 0.5, 7]][{seed % 2}]).astype({('f8', 'f4', 'i8')[seed % 3]!r})"
    cell = converting(seed)
    space: dict[str, object] = {}
    exec(start, space)
    try:
        exec(cell, space)
    except (TypeError, ValueError, ZeroDivisionError):
        return
    notebook.ok(start)
    notebook.ok(f"%%tensor -q --math exact\n{cell}")
    found = notebook.shell.user_ns
    assert [d for n in "st" for d in difference(form(space[n]), form(found[n]), n)] == [], cell


STEPS = [
    "x - np.sin(x) / 2",
    "(x + np.cos(x)) * 0.5",
    "x * 1.0 - 0.1",
    "np.exp(-x) + x / 4",
    "x / 2 + abs(np.tanh(x))",
    "max(x - np.sqrt(x), 0.1)",
    "x * x * 0.5 - np.sin(x) * 0.3 + 0.4",
]
LOOPS = {
    "for": "for k in range(1, 30):\n    x = {s}",
    "left by break": "for k in range(1, 200):\n    x = {s}\n    if np.abs(x - 0.3) < 0.2:\n        break",
    "while": "k = 0\nwhile x > 0.35 and k < 40:\n    x = {s}\n    k += 1",
    "in a function": "def g(f, x0):\n    x = x0\n    for k in range(1, 30):\n        x = f(x)\n    return x\nx = g(lambda x: {s}, x)",
}


@pytest.mark.parametrize("begins", ["x0", "0.9", "np.float64(0.9)"])
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("step", STEPS)
def test_a_number_that_numpys_functions_make_is_numpys(notebook, step, loop, begins):
    classes = []
    for magic in ("", "%%tensor --quiet\n"):
        notebook.ok("import numpy as np\nx0 = 0.9")
        notebook.ok(f"{magic}x = {begins}\n{LOOPS[loop].format(s=step)}")
        x = notebook["x"]
        classes.append((type(x.numpy() if hasattr(x, "node") else x).__name__, round(float(x), 8)))
    assert classes[0] == classes[1]


WITH_CLASSES = {
    "methods of floats": "r = float.hex(a), float.is_integer(b), float.as_integer_ratio(a)",
    "methods of integers": "r = int.bit_length(n), int.to_bytes(n, 2, 'big'), int.conjugate(n)",
    "methods of NumPy's": "r = np.float64.conjugate(b), complex.conjugate(complex(a, 1))",
    "operators": "r = float.__mul__(a, 2.0), int.__add__(n, 2)",
    "parts of integers": "r = n.numerator, k.sum().numerator, k.sum().denominator, (n > 2).numerator",
    "fractions": "r = str(Fraction(1, 2) * n), str(Fraction(n, 3) + int(k.sum()))",
    "texts compared": "r = b == 'a', b != 'a', 'a' == b, a == 'a', b != None",
}
BESIDE = {"a": "a", "b": "b", "n": "n", "NumPy's integer": "k.sum()", "a sum": "int(k.sum())"}
OTHERS = ["'a' + V", "V + 'a'", "V - 'a'", "None - V", "V / None", "{} | V", "[1.0] + V", "V + b'a'", "V - {1}"]
NUMBERS_BEFORE = "from fractions import Fraction\na, n, k = 2.5, 3, np.arange(4)\nb = np.float64(1.5)"


def outcomes(notebook, text: str) -> list:
    found = []
    for magic in ("", "%%tensor -q\n"):
        notebook.ok(NUMBERS_BEFORE)
        notebook.ok(f"{magic}a = a * 1\nb = b * 1\nn = n * 1\n{text}")
        found.append(form(notebook["r"]))
    return found


@pytest.mark.parametrize("name", WITH_CLASSES)
def test_numbers_have_the_methods_of_their_classes(notebook, name):
    assert [*difference(*outcomes(notebook, WITH_CLASSES[name]))] == []


@pytest.mark.parametrize("value", BESIDE)
@pytest.mark.parametrize("other", OTHERS)
def test_errors_beside_no_numbers_name_the_class_of_the_number(notebook, value, other):
    text = (
        f"try: r = {other.replace('V', BESIDE[value])}\nexcept TypeError as error: r = type(error).__name__, str(error)"
    )
    assert [*difference(*outcomes(notebook, text))] == []


def test_an_error_of_an_axis_says_which_also_in_plain_cells(notebook):
    notebook.ok("%%tensor -q\nz = X * 2")
    for name in ("X", "z"):
        notebook.ok(
            f"try: {name}.sum(axis=5)\nexcept np.exceptions.AxisError as error: r = error.axis, error.ndim, str(error)"
        )
        assert notebook["r"] == (5, 2, "axis 5 is out of bounds for array of dimension 2")
