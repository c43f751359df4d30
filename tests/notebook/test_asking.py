"""Plain cells that ask lazy values again and again go on with arrays, and lazy values are there again behind them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture import limits
from tensormagic.ir.errors import ConstantGradientWarning

START = """
import numpy as np
from types import SimpleNamespace
x = np.linspace(1.0, 2.0, 5)
kinds = []
class Model:
    def __init__(self, x):
        self.x = x
    def sum(self, k):
        kinds.append(type(self.x))
        return float((self.x * k).sum())
"""
LAZY = """%%tensor -q
y = np.exp(x)
m = y.mean()
"""
HELD = {  # what defines `f`, which has the lazy array
    "a name": "def f(k):\n    kinds.append(type(y))\n    return float((y * k).sum())",
    "a default": "def f(k, y=y):\n    kinds.append(type(y))\n    return float((y * k).sum())",
    "a default by name": "def f(k, *, y=y):\n    kinds.append(type(y))\n    return float((y * k).sum())",
    "a closure": (
        "def made(y):\n    def f(k):\n        kinds.append(type(y))\n        return float((y * k).sum())\n    return f\nf = made(y)"
    ),
    "an attribute": "f = Model(y).sum",
    "an object that is called": "class Called(Model):\n    __call__ = Model.sum\nf = Called(y)",
    "a list": "held = [y, 1]\ndef f(k):\n    kinds.append(type(held[0]))\n    return float((held[0] * k).sum())",
    "a dictionary": "held = {'y': y}\ndef f(k):\n    kinds.append(type(held['y']))\n    return float((held['y'] * k).sum())",
    "a clock beside": "import time\ndef f(k):\n    kinds.append(type(y))\n    return time.time() * 0 + float((y * k).sum())",
    "a tuple": "held = y, (y, 2)\ndef f(k):\n    kinds.append(type(held[1][0]))\n    return float((held[1][0] * k).sum())",
}
LOOP = "total = 0.0\nfor k in range(6):\n    total += f(k)"


@pytest.fixture
def asking(notebook, monkeypatch):
    """A notebook in which what is asked for has taken long at once."""
    notebook.ok(START)
    notebook.ok(LAZY)
    monkeypatch.setattr(limits, "PATIENCE", 0.0)
    return notebook


@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize("magic", ["", "%%time\n"])
def test_what_is_asked_again_and_again_is_an_array(asking, name, magic):
    asking.ok(HELD[name])
    asking.ok(magic + LOOP)
    lazy = asking["kinds"].count(tm.Tensor)
    assert asking["kinds"] == [tm.Tensor] * lazy + [np.ndarray] * (6 - lazy)
    assert lazy == limits.REPEATS + 1
    np.testing.assert_allclose(asking["total"], np.exp(asking["x"]).sum() * 15)
    asking.ok("kinds.clear(); f(1)")
    assert asking["kinds"] == [tm.Tensor]  # in the next cell


@pytest.mark.parametrize("name", [n for n in HELD if n != "a clock beside"])  # which a second run would show
def test_captured_cells_that_are_given_up_have_arrays_wherever_they_stand(asking, name):
    asking.ok(HELD[name])
    with pytest.warns(tm.PlainRunWarning, match="was run as ordinary Python"):
        asking.ok(f"%%tensor -q\n{LOOP}\n    print(total)")
    assert asking["kinds"] == [np.ndarray] * 6
    asking.ok("kinds.clear(); f(1)")
    assert asking["kinds"] == [tm.Tensor]


def test_what_is_stored_then_is_seen_in_the_lazy_array(asking):
    asking.ok("part = y[1:]\nfor k in range(6):\n    y[k % 5] = float(y[0]) + k\nkinds.append(type(y))")
    assert (asking["kinds"], type(asking["y"]), type(asking["part"])) == ([np.ndarray], tm.Tensor, tm.Tensor)
    expected = np.exp(asking["x"])
    for k in range(6):
        expected[k % 5] = expected[0] + k
    np.testing.assert_allclose(np.asarray(asking["y"]), expected)
    np.testing.assert_allclose(np.asarray(asking["part"]), expected[1:])


@pytest.mark.parametrize("magic", ["", "%%tensor -q\n"])
@pytest.mark.parametrize("change", ["y.shape = (5, -1)", "y.dtype = np.int64", "y.flags.writeable = False"])
def test_an_array_that_gets_another_shape_is_that_array_from_then_on(asking, change, magic):
    asking.ok("z = np.asarray(y)[:]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tm.PlainRunWarning)
        asking.ok(f"{magic}for k in range(6):\n    print(float(y[k % 5]))\ny = y[:]" if magic else "0")
        asking.ok(f"{magic}for k in range(6):\n    kinds.append(float(y[k % 5]))\n{change}")
    expected = np.exp(asking["x"])
    exec(change, {"y": expected, "np": np})
    found = np.asarray(asking["y"])
    assert (found.shape, found.dtype, found.flags.writeable) == (
        expected.shape,
        expected.dtype,
        expected.flags.writeable,
    )
    assert found.tobytes() == expected.tobytes()


def test_what_the_cell_binds_stays(asking):
    asking.ok("z = y * 2\nfor k in range(6):\n    float(z[k % 5])\nz, m = z + 1, 3.0\nu = y * 1")
    assert (type(asking["z"]), asking["m"], type(asking["u"])) == (np.ndarray, 3.0, np.ndarray)
    assert type(asking["y"]) is tm.Tensor
    with pytest.warns(ConstantGradientWarning, match="u was computed here from numbers of lazy values"):
        asking.ok("%%tensor -q --grad x\nloss = (u * x).sum()\nloss")


def test_what_a_cell_that_fails_had_is_there_again(asking):
    assert isinstance(asking("for k in range(6):\n    float(y[k])").error, IndexError)
    assert type(asking["y"]) is tm.Tensor


KEPT = {  # cells that use what lazy values alone have
    "a gradient": "for k in range(6):\n    g = (y * k).sum().grad(x).numpy()\n    kinds.append(type(y))",
    "a function with a gradient": (
        "def slope(k):\n    return (y * k).sum().grad(x)\nfor k in range(6):\n    float(slope(k)[0])\n    kinds.append(type(y))"
    ),
    "the package": "for k in range(6):\n    float(y[k % 5])\n    kinds.append(tm.Tensor)\n    assert type(y) is tm.Tensor",
    "the shell": "for k in range(6):\n    float(y[k % 5])\n    kinds.append(type(get_ipython().user_ns['y']))",
    "places that ask once": "\n".join(f"float(y[{k}])\nkinds.append(type(y))" for k in (0, 1, 2, 3, 4, 0)),
}


@pytest.mark.parametrize("name", KEPT)
def test_cells_that_need_lazy_values_keep_them(asking, name):
    asking.ok("%%tensor -q\ny = np.exp(x)")
    asking.ok(KEPT[name])
    assert asking["kinds"] == [tm.Tensor] * 6


def test_a_little_time_is_no_matter(asking, monkeypatch):
    monkeypatch.setattr(limits, "PATIENCE", 1e6)
    asking.ok(HELD["a name"])
    asking.ok(LOOP)
    assert asking["kinds"] == [tm.Tensor] * 6
