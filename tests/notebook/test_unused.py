"""A line of a cell that is there for its error alone raises it, and the cell changes nothing."""

import numpy as np
import pytest

START = """
import numpy as np
x = np.arange(3.0)
k = np.array([0, 1, 9])
A = np.zeros((2, 2))
s = np.zeros(1)
def solved(a):
    np.linalg.solve(a, x[:2])
    return a + 1
"""
FAILING = [
    ("np.linalg.inv(A)", np.linalg.LinAlgError, "Singular matrix"),
    ("q = np.linalg.cholesky(A - np.eye(2))\nq = 3", np.linalg.LinAlgError, "Matrix is not positive definite"),
    ("x[k]", IndexError, "index 9 is out of bounds for axis 0 with size 3"),
    ("z = x * 2\nz[k[2]]", IndexError, "index 9 is out of bounds for axis 0 with size 3"),
    ("solved(A)", np.linalg.LinAlgError, "Singular matrix"),
    ("q = [np.linalg.inv(A)]\ndel q", np.linalg.LinAlgError, "Singular matrix"),
    ("int(x[0] * np.nan)", ValueError, "cannot convert float NaN to integer"),
    ("x[x > 0] + x[x > -1]", ValueError, ""),
]


@pytest.mark.parametrize(("line", "kind", "text"), FAILING, ids=[c[0].replace("\n", "; ") for c in FAILING])
def test_what_is_not_used_raises_its_error(notebook, line, kind, text):
    notebook.ok(START)
    plain = notebook(line).error
    assert isinstance(plain, kind)
    assert text in str(plain)
    notebook.ok(START)
    ran = notebook(f"%%tensor\ns += 1\n{line}\nunbound = 2")
    assert isinstance(ran.error, kind)
    assert text in str(ran.error)
    assert line.splitlines()[-1 if "z[" in line else 0] in ran.out or "solve" in ran.out
    assert notebook.ok("s.tolist()").value == [0.0]
    assert "unbound" not in notebook


def test_a_cell_in_the_background_fails_by_it(notebook):
    notebook.ok(START)
    notebook("%%tensor --async\nnp.linalg.inv(A)\nr = x * 2\nr")
    assert isinstance(notebook("_.result()").error, np.linalg.LinAlgError)


def test_what_somebody_still_has_waits_until_it_is_asked_for(notebook):
    notebook.ok(START)
    notebook.ok("%%tensor\nclass O: pass\no = O()\no.i = np.linalg.inv(A)\nd = {'i': np.linalg.inv(A * 2)}")
    for held in ("o.i", "d['i']"):
        assert isinstance(notebook(f"print({held})").error, np.linalg.LinAlgError)


def test_what_a_try_has_caught_is_not_raised_again(notebook):
    notebook.ok(START)
    ran = notebook.ok("%%tensor\ntry:\n    np.linalg.inv(A)\nexcept np.linalg.LinAlgError as e:\n    told = str(e)")
    assert ran.error is None
    assert notebook["told"] == "Singular matrix"


def test_a_long_chain_of_what_no_expression_gives_is_looked_at_once(notebook, monkeypatch):
    """A generator's state after each draw is one: 3,000 of them are deeper than Python's stack."""
    monkeypatch.setattr("tensormagic.capture.limits.MANY", 10**5)
    notebook.ok("rng, seen = np.random.default_rng(4), {}")
    notebook.ok("%%tensor -q\nfor k in range(3000):\n    seen[f'{k % 7}'] = rng.random()\nlast = seen['3'] + 1")
    want = np.random.default_rng(4).random(3000)
    assert float(notebook["last"]) == want[[k for k in range(3000) if k % 7 == 3][-1]] + 1
