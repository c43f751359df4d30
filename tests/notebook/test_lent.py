"""``np.asarray`` of a lazy array in plain code: one memory, as in NumPy, whoever stores into it, and derivatives where nobody did."""

import gc
import random

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.stores.lent import Lent
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
NAMES = "abcdxyz"


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


@pytest.mark.parametrize("seed", range(24))
def test_programs_that_store_on_both_sides(notebook: Notebook, seed: int):
    space: dict[str, object] = {}
    exec(START, space)
    notebook.ok("%%tensor\n" + START)
    for captured, cell in drawn(seed):
        failed: str = ""
        try:
            exec(cell, space)
        except (IndexError, TypeError, ValueError) as error:
            failed = type(error).__name__
        ran = notebook("%%tensor\n" + cell if captured else cell)
        if failed:
            assert type(ran.error).__name__ == failed
            return
        if isinstance(ran.error, tm.TensorError):  # refused, by a sentence
            return
        assert ran.error is None, (cell, ran.out)
        for name in NAMES:
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
