"""``np.asarray`` of a lazy array in plain code: one memory, as in NumPy, whoever stores into it, and derivatives where nobody did."""

import gc
import random
import re
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.stores.lent import Lent
from tensormagic.ir.errors import ConstantGradientWarning
from tests.notebook.conftest import Notebook

START = "import numpy as np\nx = np.linspace(0.0, 2.0, 8).reshape(4, 2) * 3 + 1"
LENDING = [
    "a = np.asarray(x)",
    "b = np.asanyarray(x)[1:]",
    "b = np.asarray(x[1:])",
    "c = np.asarray(x.T)",
    "c = np.asarray(x[:, 0])",
    "d = np.asarray(x.ravel())",
]
STORING = [
    "a[0] = {n}",
    "a += {n}",
    "b[-1, 0] *= {n}",
    "b[b > {n}] = 0.5",
    "c[0] -= {n}",
    "d[::2] = {n}",
    "x[2] = {n}",
    "x *= {n}",
    "x[:, 1] += x[:, 0]",
    "y[1] = {n}",
    "for i in range(3): y[i] = y[i] + i",
    "if x.sum() > {n}: x[0, 0] = {n}",
]
READING = [
    "y = x[:3]",
    "z = x * 2 + 1",
    "z = y.sum() + x[-1]",
    "del a; a = np.asarray(x)",
    "z = (np.sin(x) * z).mean(axis=0)",
]
NAMES = "abcdqxyz"
FUNCTIONS = """
def stored(k):
    x[0] = k
    return x.sum()

def added(k):
    x[1:, 0] += k * y[0, 0]
    return x.max() - k

def chosen(k):
    if k > 1:
        x[-1] *= 0.5
    for i in range(2):
        y[i, 1] = k + i
    return y.mean()

def through(k):
    return stored(k) + added(k + 1)

def failing(k):
    x[2, 0] = k
    return x[2][int(k)]

def sorting(k):
    x.sort(axis=0)
    return np.cumsum(x[:, 0] + k)

def given(v, k):
    v[0] = k
    return v.sum() + x[0, 0]
"""
CALLING = [
    "z = stored({n}) * x",
    "q = added({n})",
    "q = chosen({n}); q = chosen(q)",
    "q = through({n})",
    "q = failing({n})",
    "q = sorting({n})",
    "q = stored(x.sum() / 9)",
    "q = chosen(y[0, 1])",
    "q = given(x[1:], {n})",
    "q = given(y, {n})",
    "for i in range(3): q = stored(i * {n})",
    "q = held.step({n})",
    "d = held.ys",
]
OBJECT = """
class Held:
    def __init__(self, ys):
        self.ys = np.asarray(ys)

    def step(self, k):
        self.ys[1] *= k
        return self.ys.sum() + x[0, 0]

held = Held(x)
"""


def drawn(seed: int) -> list[tuple[bool, str]]:
    """Cells, each with whether it is captured."""
    rng = random.Random(seed)
    cells = [
        (True, "y = x[:]; z = x.sum(axis=0)\na, b, c, d = (None,) * 4"),
        (False, "\n".join(LENDING[:1] + LENDING[2:3])),
    ]
    cells.append((False, rng.choice(LENDING[3:5]) + "\n" + LENDING[5]))
    for _ in range(8):
        lines = [rng.choice(rng.choice((LENDING, STORING, STORING, READING))) for _ in range(rng.randint(1, 3))]
        cells.append((rng.random() < 0.4, "\n".join(line.format(n=rng.choice((0.25, 1.5, 3.0))) for line in lines)))
    return cells


def with_calls(seed: int) -> list[tuple[bool, str]]:
    """The same, with calls of captured functions that store into the lazy array, under names of the notebook and by an object."""
    rng = random.Random(seed)
    taken = "\n".join(f"{n} = staged({n})" for n in re.findall(r"^def (\w+)", FUNCTIONS, re.MULTILINE))
    cells = [
        (True, f"y = {rng.choice(('x[:]', 'x + 1', 'x'))}; z = x.sum(axis=0)\na, b, c, d = (None,) * 4; q = 0.0"),
        (False, FUNCTIONS + taken + OBJECT + "Held.step = staged(Held.step)"),
        (False, rng.choice(("a = np.asarray(x)", "b = np.asarray(x[1:])", "c = np.asarray(x.T)", "a = b = c = None"))),
    ]
    for _ in range(8):
        lines = [rng.choice(rng.choice((LENDING, STORING, CALLING, CALLING))) for _ in range(rng.randint(1, 2))]
        cells.append((rng.random() < 0.3, "\n".join(line.format(n=rng.choice((0.25, 1.5, 3.0))) for line in lines)))
    return cells


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize("seed", range(24))
def test_programs_that_store_on_both_sides(notebook: Notebook, seed: int):
    compare(notebook, drawn(seed))


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize("seed", [*range(12), 225])
def test_programs_that_call_functions_which_store(notebook: Notebook, seed: int):
    compare(notebook, with_calls(seed))


def compare(notebook: Notebook, cells: list[tuple[bool, str]]) -> None:
    """Run cells as a notebook, and as Python, until one raises or is refused."""
    space: dict[str, Any] = {"staged": lambda function: function}
    notebook["staged"] = tm.tensor
    exec(START, space)
    notebook.ok("%%tensor\n" + START)
    for captured, cell in cells:
        failed: type[Exception] | None = None
        try:
            exec(cell, space)
        except (IndexError, TypeError, ValueError) as error:
            failed = type(error)
        ran = notebook("%%tensor\n" + cell if captured else cell)
        if isinstance(ran.error, tm.CaptureError):  # refused, by a sentence
            return
        if failed is not None:
            assert isinstance(ran.error, failed)
            if captured:  # which is taken back
                return
            ran.result.error_in_exec = None
        assert ran.error is None, (cell, ran.out)
        for name in NAMES:
            if name not in space:
                continue
            found, expected = notebook[name], space[name]
            assert (found is None) == (expected is None), (cell, name)
            if expected is not None:
                np.testing.assert_allclose(np.array(found), expected, rtol=1e-12, err_msg=f"{name} after {cell!r}")


def test_who_only_reads_loses_nothing(notebook: Notebook):
    notebook.ok("%%tensor\nimport numpy as np\nw = np.arange(3.0)\nz = w * w")
    notebook.ok("a = np.asarray(z)\ntotal = float(a.sum())")
    notebook.ok("%%tensor\ns = (z * 2).sum()")
    notebook.ok("slope = s.grad(w)")
    np.testing.assert_array_equal(np.asarray(notebook["slope"]), 4 * np.arange(3.0))


def test_memory_that_nobody_has_any_more_is_let_go(notebook: Notebook):
    notebook.ok("%%tensor\nimport numpy as np\nz = np.arange(3.0) * 2")
    notebook.ok("a = np.asarray(z)\na[0] = 7.0")
    assert type(notebook["z"].place.buffer) is Lent
    notebook.ok("del a")
    gc.collect()
    notebook.ok("q = float(z.sum())\nr = float(z.sum())")
    assert notebook["q"] == notebook["r"] == 13.0
    assert type(notebook["z"].place.buffer) is not Lent


def test_a_cell_that_fails_takes_its_stores_back(notebook: Notebook):
    notebook.ok("%%tensor\nimport numpy as np\nz = np.arange(3.0) * 2")
    notebook.ok("a = np.asarray(z)")
    ran = notebook("%%tensor\nz[0] = 9.0\nz[10]")
    assert isinstance(ran.error, IndexError)
    np.testing.assert_array_equal(notebook["a"], [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(np.array(notebook["z"]), [0.0, 2.0, 4.0])


@pytest.mark.parametrize("derivative", ["slope = (z * z).sum().grad(w)", "%%tensor --grad w\n(z * z).sum()"])
@pytest.mark.parametrize(
    "stored",
    ["a[0] = 5.0", "a *= 2", "a[1] = w[1] * 7", "np.multiply(w, 3, out=a)", "twice(a)", "held = [a]\nheld[0] += 1"],
)
@pytest.mark.parametrize("variable", ["%%tensor\nw = np.arange(3.0) + 1", "w = tm.tensor(np.arange(3.0) + 1)"])
def test_gradients_through_what_plain_code_has_stored_are_told(
    notebook: Notebook, variable: str, stored: str, derivative: str
):
    notebook.ok(variable)
    notebook.ok("%%tensor\nz = w * 2")
    notebook.ok("def twice(v):\n    v *= 2\n\na = np.asarray(z)")
    notebook.ok(stored)
    with pytest.warns(ConstantGradientWarning) as told:
        notebook.ok(derivative)
    found = [t for t in told if "given to plain code here" in str(t.message)]
    assert [t.lineno for t in found] == [4]
    assert "depends on w:" in str(found[0].message) or "differentiated by" in str(found[0].message)


@pytest.mark.parametrize("calls", ["r = f(5.0)", "r = f(5.0); r = f(6.0)", "r = f(5.0)\nr = f(r)"])
def test_gradients_through_what_functions_have_stored_are_told(notebook: Notebook, calls: str):
    notebook.ok("%%tensor\nw = np.arange(3.0) + 1\nz = w * 2")
    notebook.ok("@tm.tensor\ndef f(k):\n    z[0] = k * np.sin(k)\n    return z.sum()")
    notebook.ok(calls)
    with pytest.warns(
        ConstantGradientWarning, match="with what depends on w: a later gradient takes the numbers in it as they are"
    ):
        notebook.ok("%%tensor --grad w\n(z * w).sum()")
    np.testing.assert_allclose(np.asarray(notebook["grad_w"]), np.asarray(notebook["z"]))
