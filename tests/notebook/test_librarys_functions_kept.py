"""Functions of NumPy and SciPy that a cell keeps: afterwards they are the libraries' own, wherever they stand."""

import numpy as np
import pytest
import scipy.stats as st

KEPT = {
    "a name": ("f = np.random.normal", "f"),
    "a list": ("fs = [np.random.normal, np.sin]", "fs[0]"),
    "a tuple in a list": ("fs = [('normal', np.random.normal)]", "fs[0][1]"),
    "a dictionary": ("fs = {'n': {'of': np.random.normal}}", "fs['n']['of']"),
    "an attribute": ("class C: pass\nc = C()\nc.draw = np.random.normal", "c.draw"),
    "an attribute, set by __init__": (
        "class C:\n    def __init__(self, draw): self.draw = draw\nc = C(np.random.normal)",
        "c.draw",
    ),
    "a default": ("def f(draw=np.random.normal): return draw", "f()"),
    "a default by name": ("def f(*, draw=np.random.normal): return draw", "f()"),
    "a list that a loop fills": ("fs = []\nfor n in ['normal', 'uniform']: fs.append(getattr(np.random, n))", "fs[0]"),
    "a comprehension": ("fs = [f for f in (np.random.normal, np.random.rand)]", "fs[0]"),
    "by a function": ("def chosen(): return [np.random.normal]\nfs = chosen()", "fs[0]"),
    "under a condition on data": ("fs = [np.random.normal if x.sum() > 0 else np.random.rand]", "fs[0]"),
}
OTHERS = {
    "np.random.seed": lambda: np.random.seed,
    "np.random.default_rng": lambda: np.random.default_rng,
    "np.random.RandomState": lambda: np.random.RandomState,
    "np.vectorize": lambda: np.vectorize,
    "np.mean": lambda: np.mean,
    "np.linalg.norm": lambda: np.linalg.norm,
    "st.norm.pdf": lambda: st.norm.pdf,
    "st.norm": lambda: st.norm,
}


@pytest.fixture
def cells(notebook):
    notebook.ok("import numpy as np, scipy.stats as st\nx = np.arange(3.0)\nnp.random.seed(4)")
    return notebook


@pytest.mark.parametrize(("text", "read"), KEPT.values(), ids=KEPT)
def test_what_draws_is_numpys_own_after_the_cell(cells, text, read):
    cells.ok(f"%%tensor\n{text}")
    kept = cells.ok(read).value
    assert kept == np.random.normal
    np.random.seed(4)  # noqa: NPY002
    wanted = np.random.normal(1.0, 2.0), np.random.normal(0.0, 1.0, 3)  # noqa: NPY002
    np.random.seed(4)  # noqa: NPY002
    found = cells.ok(f"({read})(1.0, 2.0), ({read})(0.0, 1.0, 3)").value
    assert type(found[0]) is float
    assert found[0] == wanted[0]
    np.testing.assert_array_equal(found[1], wanted[1])


@pytest.mark.parametrize(("text", "read"), KEPT.values(), ids=KEPT)
def test_a_later_cell_draws_by_it_as_python_does(cells, text, read):
    cells.ok(f"%%tensor\n{text}")
    np.random.seed(7)  # noqa: NPY002
    wanted = [np.random.normal(), *np.random.normal(0.0, 1.0, 3), np.random.rand()]  # noqa: NPY002
    np.random.seed(7)  # noqa: NPY002
    cells.ok(f"%%tensor\na = ({read})()\nb = ({read})(0.0, 1.0, 3)\nc = np.random.rand()")
    found = cells.ok("[float(a), *map(float, b), float(c)]").value
    assert found == [float(w) for w in wanted]


@pytest.mark.parametrize(("text", "own"), OTHERS.items(), ids=OTHERS)
def test_other_functions_of_libraries(cells, text, own):
    cells.ok(f"%%tensor\nkept = [{text}]\nheld = {{'f': ({text}, 1)}}")
    assert cells["kept"][0] == own()
    assert cells["held"]["f"][0] == own()


def test_what_no_cell_hands_back_still_draws(cells):
    """A partial call and a set keep the function that captured code has seen: outside of cells that is NumPy's."""
    cells.ok("%%tensor\nfrom functools import partial\np = partial(np.random.normal, 1.0)\ns = {np.random.rand}")
    np.random.seed(2)  # noqa: NPY002
    wanted = np.random.normal(1.0), np.random.rand()  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    assert cells.ok("p(), [f() for f in s][0]").value == wanted
