"""Numbers in cells: whether two are one object Python says, powers of complex ones are as in Python, and texts show objects as they are."""

import pytest

import tensormagic as tm
from tests.notebook.conftest import Notebook


def test_whether_two_numbers_are_one_object_python_says(notebook: Notebook) -> None:
    notebook.ok("a, t = 1.5, 2.0")
    with pytest.warns(tm.PlainRunWarning, match="`is` between two numbers"):
        notebook.ok("%%tensor\nx = a if t > 0 else 2.5\nsame = x is a")
    assert notebook["same"] is True
    ran = notebook("%%tensor --grad a\nx = a if t > 0 else 2.5\nsame = x is a\nx")
    assert isinstance(ran.error, tm.CaptureError)
    assert "`is` between two numbers" in str(ran.error)
    notebook.ok("%%tensor\nk = None\nif t > 0:\n    k = a\nnone, own = k is None, a is a")
    assert not notebook["none"]
    assert notebook["own"]


def test_powers_of_complex_numbers(notebook: Notebook) -> None:
    notebook.ok("z, big = 1 + 2j, 1e308 + 1e308j")
    notebook.ok("%%tensor\nw = z ** 2\nv = [z ** k for k in range(3)]")
    z = 1 + 2j
    assert complex(notebook["w"]) == z**2
    assert [complex(v) for v in notebook["v"]] == [z**k for k in range(3)]


def test_texts_of_namespaces_are_of_what_they_hold_now(notebook: Notebook) -> None:
    notebook.ok("import types\no = types.SimpleNamespace(k=1)\ns = 1.0")
    notebook.ok("@tm.tensor\ndef told(s):\n    return s * len('%s' % o)")
    for k in (1, 20, 300, 20):
        notebook.ok(f"o.k = {k}")
        notebook.ok("%%tensor\nlength, called = s * len('%s' % o), told(s)")
        assert float(notebook["length"]) == float(notebook["called"]) == len(f"namespace(k={k})")
