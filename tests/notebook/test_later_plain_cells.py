"""Plain cells that use what captured cells have left: numbers are of the class that they have in NumPy and Python."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from tests.notebook.sameness import difference, form

START = """
import copy, functools, json, math, numbers, pickle, random
from dataclasses import dataclass
from fractions import Fraction
import numpy as np
x = np.arange(6.0)
@functools.singledispatch
def told(v): return "object"
told.register(float, lambda v: f"float {v}")
told.register(int, lambda v: "int")
told.register(numbers.Integral, lambda v: "integral")
told.register(np.bool_, lambda v: "truth")
def matched(v):
    match v:
        case bool() | np.bool_(): return "truth"
        case np.floating(): return "NumPy's"
        case float(): return "Python's"
        case int() | np.integer(): return "whole"
        case complex(): return "complex"
        case [float(a), *rest]: return f"{a} and {matched(rest)}"
        case {"loss": float(a)}: return a
    return "none"
@dataclass
class Row:
    loss: float
class Encoder(json.JSONEncoder):
    def default(self, o):
        if isinstance(o, np.integer): return int(o)
        if isinstance(o, np.bool_): return bool(o)
        return super().default(o)
"""
CAPTURED = """
m, f, n, b = x.mean(), float(x.sum()), x.argmax(), x.any()
s, c = np.float32(m), complex(f)
h = [v * m for v in x[:3]]
d = {"loss": m, "row": [f, (m, n)]}
r = Row(m)
"""
PLAIN = """[[isinstance(v, k) for v in (m, f, n, b, s, c)] for k in (float, int, bool, complex, np.floating, np.integer, numbers.Real)]
[np.isscalar(v) for v in (m, f, n, b, s, c)], [v.__class__ for v in (m, f, n, b, s, c)], isinstance(m, (list, tuple))
[told(v) for v in (m, f, n, b, s)]
[matched(v) for v in (m, f, n, b, s, c, h, d, [f])]
print(h, d, r, (m, f), {n: b}, [s, c], {m})
repr([m, f, n, b, s, c]), str(h), f"{h} {m} {m!r} {f:.2f} {r}", "%s %r" % (d, f)
json.dumps(d["loss"]), json.dumps([f, m, h]), json.dumps({"a": m, "b": [f]}, indent=1)
json.dumps(n)
json.dumps({"n": n, "b": b, "m": m}, cls=Encoder), json.dumps(n, default=int)
Fraction(f), Fraction(m), Fraction(m) + 1
random.Random(f).random(), random.Random(int(n)).random()
{m: 1, f: 2}[2.5], 2.5 in {m, f}, [m, f].index(15.0), {m, 2.5, float(m)} == {2.5}, sorted([f, m, 3]), max(h), m in h
copy.deepcopy(d)["row"][1][0], pickle.loads(pickle.dumps((m, f, n, b)))
round(m, 1), range(n), [0] * n, x[n], np.zeros(n), math.floor(m), divmod(f, 4), "ab" * n, abs(f)"""


@pytest.mark.parametrize("line", PLAIN.splitlines())
def test_numbers_are_of_the_class_that_python_gives(notebook: Any, line: str) -> None:
    found = []
    for magic in ("", "%%tensor -q\n"):
        notebook.ok(START)
        notebook.ok(magic + CAPTURED)
        notebook["got"] = None
        ran = notebook(f"got = ({line})")
        found.append((form(notebook["got"]), ran.out if ran.error is None else "", repr(ran.error)))
    assert list(difference(found[0][0], found[1][0])) == []
    assert found[0][1:] == found[1][1:]


def test_a_lazy_number_stays_one(notebook: Any) -> None:
    notebook.ok(START)
    notebook.ok("%%tensor -q\ny = x * 2\nz = (y ** 2).sum()")
    assert notebook.ok("isinstance(z, tm.Tensor), type(z) is tm.Tensor, isinstance(z, float), isinstance(y, np.ndarray)").value == (
        True, True, True, True,
    )  # fmt: skip
    np.testing.assert_array_equal(notebook.ok("z.grad('x')").value, 8 * notebook["x"])
    assert notebook.ok("json.dumps(y, cls=Encoder)").value == json.dumps([0.0, 2.0, 4.0, 6.0, 8.0, 10.0])
    assert isinstance(notebook("json.dumps(y)").error, TypeError)


def test_what_json_does_is_given_back(notebook: Any) -> None:
    notebook.ok("%unload_ext tensormagic")
    assert json.JSONEncoder.default.__module__ == "json.encoder"
    notebook.ok("%load_ext tensormagic")


@pytest.mark.parametrize(
    ("cell", "column"),
    [
        ("t = pd.DataFrame({'x': x, 'm': m})", "t['m']"),
        ("t = pd.DataFrame({'x': x}); t['m'] = m", "t['m']"),
        ("t = pd.Series(h)", "t"),
        ("t = pd.DataFrame([d, d])", "t['loss']"),
    ],
)
def test_lazy_numbers_in_tables_are_told(notebook: Any, cell: str, column: str) -> None:
    pytest.importorskip("pandas")
    notebook.ok(f"{START}\nimport pandas as pd")
    notebook.ok(f"%%tensor -q\n{CAPTURED}")
    with pytest.warns(UserWarning, match=f"{re.escape(column)} holds lazy numbers"):
        notebook.ok(cell)
    notebook.ok(f"{column} = {column}.astype(float)")
    assert notebook.ok(f"str({column}.dtype)").value == "float64"
    notebook.ok(f"%%tensor -q\n{cell}")  # which pandas gets values in


OF_ARRAYS = """
import functools
import numpy as np
x = np.arange(3.0)
def matched(v):
    match v:
        case np.ndarray(): return "array"
        case float(): return "float"
        case list(): return "list"
    return "none"
@functools.singledispatch
def told(v): return "object"
told.register(np.ndarray, lambda v: "array")
class Teller:
    @functools.singledispatchmethod
    def told(self, v): return "object"
    @told.register
    def _(self, v: np.ndarray): return "array"
def norm(v):
    if isinstance(v, np.ndarray):
        return float(np.sqrt((v ** 2).sum()))
    return "no array"
"""
ASKED = """[isinstance(v, np.ndarray) for v in (y, z, c, d["y"])], isinstance(y, (list, tuple)), isinstance(y, float | np.ndarray)
[matched(v) for v in (y, z, c, [y])], [told(v) for v in (y, z, c)], Teller().told(y)
norm(y), norm(c), norm([y]), list(map(norm, (y, z)))
y.__class__ is np.ndarray, issubclass(y.__class__, np.ndarray), [*filter(lambda v: isinstance(v, np.ndarray), (y, 1))]
"""


@pytest.mark.parametrize("question", ASKED.splitlines())
def test_arrays_are_of_numpys_class(notebook, question):
    cell = "y, z = x * 2, x[1:]\nc = np.sort(x) + 1\nd = {'y': x + 1}"
    notebook.ok(OF_ARRAYS)
    notebook.ok(cell)
    wanted = form(notebook.ok(question).value)
    notebook.ok(f"%%tensor\n{cell}")
    assert list(difference(wanted, form(notebook.ok(question).value))) == []


def test_a_column_is_of_the_class_of_pandas(notebook):
    pytest.importorskip("pandas")
    notebook.ok("import pandas as pd\nimport numpy as np\ns = pd.Series([1.0, 2.0])\nw = np.arange(2.0)")
    notebook.ok("%%tensor\nt = s * w")
    assert notebook.ok("isinstance(t, pd.Series), isinstance(t, np.ndarray)").value == (True, False)
