"""Numbers that iterations ask for which Python runs: a graph of the same form, over other values, is closed once."""

import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session

START = "import numpy as np\nq = np.sin(np.arange(120.0)).reshape(40, 3); g = []; f = []"


@pytest.fixture
def closings(monkeypatch):
    """What was closed beside what a form was known for."""
    found = []
    close_over = session.close_over
    monkeypatch.setattr(
        session, "close_over", lambda *args, **options: found.append(args) or close_over(*args, **options)
    )
    return found


def both(notebook, cell, name="h"):
    """What a cell gives in ``name``, plainly and captured."""
    found = []
    for magic in ("", "%%tensor --quiet\n"):
        assert notebook(START).error is None
        ran = notebook(magic + cell)
        assert ran.error is None, ran.error
        value = notebook(f"[float(v) for v in {name}]").value
        found.append(value)
    return found


def test_one_graph_for_all_rows(notebook, closings):
    plain, captured = both(
        notebook,
        """
h = []
for p in q:
    d = [np.sum((p - c) ** 2) for c in q[:2]]
    g.append(p) if int(np.argmin(d)) else f.append(p)
    h.append(len(g))
""",
    )
    assert plain == captured
    assert len(closings) <= 3


def test_a_row_that_is_stored_into_is_read_as_it_is_now(notebook):
    plain, captured = both(
        notebook,
        """
h = []
for k in range(39):
    p = q[k + 1]
    if int(10 * (p @ q[k] + p.sum())) % 2:
        q[k + 1] = 2 * q[k]
        g.append(k)
    h.append(q[k + 1].sum() + len(g))
""",
    )
    np.testing.assert_allclose(captured, plain, rtol=1e-14)


def test_roundings_that_rules_absorb_stay_absorbed(notebook):
    cell = """
h = []
for k in range(40):
    u = np.exp(-40.0 - q[k, 0] ** 2)
    v = np.log(1 + u)
    g.append(k) if int(1e20 * v) % 2 else f.append(k)
    h.append(v + len(g) * 0)
"""
    with tm.config.using(math="stable"):
        notebook(START)
        assert notebook("%%tensor --quiet\n" + cell).error is None
    rows = np.sin(np.arange(120.0)).reshape(40, 3)[:, 0]
    np.testing.assert_allclose([float(v) for v in notebook("h").value], np.log1p(np.exp(-40 - rows**2)), rtol=1e-15)


def test_a_warning_names_the_line_that_is_computed(notebook):
    notebook(START)
    cell = """w = np.array([1.0, 2, 3, 0, 5])
for k in range(5):
    g.append(int((abs(q[k]) / w[0]).sum()))
    g.append(int((abs(q[k]) / w[k]).sum() > 0))"""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        notebook("%%tensor --quiet --math exact\n" + cell)
    assert [(str(w.message), w.lineno) for w in found] == [("divide by zero encountered in divide", 5)]
