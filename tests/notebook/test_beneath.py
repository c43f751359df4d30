"""What a cell shows that ends in no graph: numbers and arrays have the one line, other objects keep their look and have a line below."""

from __future__ import annotations

import numpy as np
import pytest

SETUP = """import dataclasses, fractions
import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp
from scipy.optimize import minimize
y = np.array([1.0, 2.0, 4.0])
@dataclasses.dataclass
class Fit:
    slope: float
"""
NONE = "a number of Python's own, no graph"
MADE = "no graph: graphs are of numbers and arrays"


@pytest.fixture
def there(notebook):
    notebook.ok(SETUP)
    return notebook


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("s = 1.0\nfor k in range(10):\n    s = 0.5 * (s + 2 / s)\ns", f"1.414213562 · float · {NONE}"),
        ("len(y) > 2", f"True · bool · {NONE}"),
        ("total = 0\nwhile total < 7:\n    total += 2\ntotal", f"8 · int · {NONE}"),
        ("if len(y) == 3:\n    c = 1j\nelse:\n    c = 0j\nc", f"0+1j · complex · {NONE}"),
        ("def half(k):\n    return k / 2\nhalf(3)", f"1.5 · float · {NONE}"),
        ("len(y), 2.5", "len(y) = 3\n[1] = 2.5 · numbers of Python's own, no graph"),
        ("y.shape", "[0] = 3 · numbers of Python's own, no graph"),
    ],
)
def test_numbers_have_the_line_that_lazy_values_have(there, cell, line):
    ran = there.ok(f"%%tensor\n{cell}")
    assert ran.data["text/plain"] == line
    assert 'class="tm-line"' in ran.data["text/html"]
    assert not isinstance(ran.value, str)


def test_an_array_that_python_made_has_no_graph_of_its_own(there):
    cell = "%%tensor\nk = 0.1 * y[0]\nsol = solve_ivp(lambda t, u: -k * u, (0, 4), [2.0])\nsol.y[:, -1]"
    line = there.ok(cell).data["text/plain"].splitlines()[0]
    assert line.endswith(" · float64[1] · a plain array; the graph is of k")
    assert np.isclose(there["_"][0], 2 * np.exp(-0.4), rtol=1e-3)


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("solve_ivp(lambda t, u: -u, (0, 4), [2.0])", f"OdeResult of scipy, {MADE}"),
        ("k = 3 * y[0]\nsolve_ivp(lambda t, u: -k * u, (0, 1), [2.0])", "OdeResult of scipy; the graph is of k"),
        ("minimize(lambda v: (v[0] - 1) ** 2, [0.0])", f"OptimizeResult of scipy, {MADE}"),
        ("for k in range(2):\n    v = fractions.Fraction(k, 3)\nv", f"Fraction of fractions, {MADE}"),
        ("Fit(2.0)", f"Fit, {MADE}"),
    ],
)  # fmt: skip
def test_other_objects_say_what_was_returned_and_captured(there, cell, line):
    shown = there.ok(f"%%tensor\n{cell}").data["text/plain"]
    there.ok(f"plain = ({cell.splitlines()[-1]})" if "\n" not in cell else "plain = None")
    assert shown.endswith(f"\n\nan object, {line}")
    assert len(shown.splitlines()) > 2


@pytest.mark.parametrize(
    ("cell", "held"),
    [
        ("np.array([y, None], dtype=object)", "objects"),
        ("pd.DataFrame({'a': [1.0], 's': ['x']}).values", "objects"),
        ("np.array(['a', 'b'])", "texts"),
        ("np.array([b'a'])", "texts"),
        ("np.array(['2026-11-30'], dtype='M8[D]')", "dates"),
        ("np.zeros(2, dtype=[('a', float)])", "records"),
    ],
)
def test_arrays_that_no_graph_holds_say_what_they_hold(there, cell, held):
    """They were an *ndarray of numpy*, where *graphs are of arrays*."""
    shown = [data["text/plain"] for data in there.ok(f"%%tensor\n{cell}").displays]
    assert shown[-1].endswith(f"\n\nan array of {held}, no graph: graphs are of numbers")
    assert sum("no graph" in text for text in shown) == 1


def test_a_table_keeps_its_page_and_has_the_line_below(there):
    data = there.ok("%%tensor\npd.DataFrame({'a': y * 2})").data
    assert "<table" in data["text/html"].partition('class="tm-line"')[0]
    assert "an object, DataFrame of pandas" in data["text/html"].partition('class="tm-line"')[2]


@pytest.mark.parametrize("cell", ["'a text'", "[1, 2]", "{'a': 1}", "range(3)", "None", "list(map(Fit, (1, 2)))"])
def test_texts_and_containers_of_python_are_shown_as_ever(there, cell):
    there.ok(f"w = {cell}")
    ours, pythons = there.ok(f"%%tensor\n{cell}").displays, there.ok("w").displays
    assert [d["text/plain"] for d in ours] == [d["text/plain"] for d in pythons]


def test_a_cell_without_the_magic_shows_what_python_shows(there):
    there.ok("%tensor_default on")
    try:
        assert there.ok("solve_ivp(lambda t, u: -u, (0, 4), [2.0])").data["text/plain"].count("an object") == 0
        assert there.ok("1.5 + 2").data["text/plain"] == "3.5"
    finally:
        there.ok("%tensor_default off")
