"""Views of lazy values follow the notebook's variables that these were computed from."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

pytest.importorskip("anywidget")

from tests.notebook.live_views import unpacked

LOSS = "%%tensor -q\nz = X @ w + b\nloss = np.mean(np.log(1 + np.exp(-y * z)))"


def loss(notebook, **moved):
    X, y, w, b = (moved.get(n, notebook[n]) for n in ("X", "y", "w", "b"))
    return np.mean(np.log(1 + np.exp(-y * (X @ w + b))))


@pytest.fixture
def live(notebook):
    notebook.ok(LOSS)
    notebook.ok("view = tm.live(loss, b=(-2, 2))")
    yield notebook["view"]
    notebook["view"].close()


def test_a_live_view_of_a_value_follows_its_inputs(notebook, live):
    assert live.value == pytest.approx(np.log(2))
    swept = live._sweep
    notebook.ok("other = 1")
    assert live._sweep is swept
    live.b = 1.0
    notebook.ok("w = np.array([0.5, -1.0, 2.0])")
    assert live.value == pytest.approx(loss(notebook, b=1.0), rel=1e-12)
    low = unpacked(live._sweep)[live._picture["counts"][0]]
    assert low == pytest.approx(loss(notebook, b=-2.0), rel=1e-12)
    notebook.ok("w[1] = 3.0")
    assert live.value == pytest.approx(loss(notebook, b=1.0), rel=1e-12)
    step = 1e-6
    slope = (loss(notebook, b=1 + step) - loss(notebook, b=1 - step)) / (2 * step)
    assert live.gradient["b"] == pytest.approx(slope, rel=1e-6)


def test_it_moves_where_the_notebook_rebinds_what_is_moved(notebook, live):
    notebook.ok("b = 1.5")
    assert (live.b, live.value) == (1.5, pytest.approx(loss(notebook)))
    notebook.ok("b = 5.0")
    assert (live.b, live._note) == (2.0, "b of the notebook is outside the range here")


def test_it_follows_to_other_sizes(notebook, live):
    notebook.ok("X = X[:25]")
    assert "value cannot be computed from y [40] and X [25, 3] and w [3]" in live._problem
    notebook.ok("y = y[:25]")
    assert (live.value, live._problem) == (pytest.approx(loss(notebook)), "")


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("w = np.array([1, 2, 3])", "w is int64[3], but value was computed from float64[3]"),
        ("w = w.astype(np.float32)", "w is float32[3], but value"),
        ("w = np.ones((3, 2))", "w is float64[3, 2], but value"),
        ("w = [1, 2, 3]", "w is int64[3], but value was computed from float64[3]"),
        ("w = ['a', 'b', 'c']", "w is an array of strings"),
        ("w = [[1.0], 2.0]", "w is list, but value was computed from float64[3]"),
        ("w = 'text'", "w is str, but value was computed from float64[3]"),
        ("del w", "w, which value was computed from, no longer exists"),
    ],
)
def test_what_the_value_was_not_computed_from_is_told(notebook, live, cell, told):
    notebook.ok(cell)
    assert told in live._problem
    notebook.ok("w = np.ones(3)")
    assert (live.value, live._problem) == (pytest.approx(loss(notebook, b=live.b)), "")


def test_lazy_values_and_numbers_are_followed(notebook, live):
    notebook.ok("%%tensor -q\nw = np.arange(3.0) * 2")
    assert live.value == pytest.approx(loss(notebook, w=np.arange(3.0) * 2), rel=1e-12)
    notebook["a"], notebook["c"] = 2.0, np.float64(3.0)
    notebook.ok("%%tensor -q\np = a * c ** 2")
    notebook.ok("mine = tm.live(p, c=(0, 4))")
    notebook.ok("a = np.float64(5.0)\nc = 2.0")
    assert notebook["mine"].value == 20.0
    notebook.ok("x = tm.tensor(np.ones(2))")
    notebook.ok("%%tensor -q\nq = (x * a).sum()")
    notebook.ok("yours = tm.live(q, a=(0, 4))")
    notebook.ok("x = tm.tensor(np.full(2, 7.0))")
    assert notebook["yours"].value == 14 * notebook["yours"].a


def test_lists_tables_attributes_and_items_are_followed(notebook):
    notebook.ok(
        "import pandas as pd\nfrom types import SimpleNamespace\nxs, data = [1.0, 2.0], SimpleNamespace(size=np.ones(2))\n"
        "parts, series, a = {'k': 3.0}, pd.Series([1.0, 1.0]), 1.0"
    )
    notebook.ok("%%tensor -q\ns = np.sum(np.array(xs) * data.size * series * parts['k']) * a")
    notebook.ok("view = tm.live(s, a=(0, 2))\npasses = tm.backprop(s)")
    view, passes = notebook["view"], notebook["passes"]
    assert view.value == 9.0
    for cell, expected in [
        ("xs[0] = 4.0", 18.0),
        ("data.size = np.array([1.0, 2.0])", 24.0),
        ("parts['k'] = 1.0", 8.0),
        ("series = pd.Series([2.0, 0.0])", 8.0),
        ("xs = [3.0, 1.0]", 6.0),
    ]:
        notebook.ok(cell)
        assert (view.value, view._problem) == (expected, "")
        assert float([*passes.values.values()][-1]) == expected
    notebook.ok("del parts['k']")
    assert "parts['k'], which value was computed from, no longer exists" in view._problem


def test_inputs_that_were_bound_anew_before_stay_what_they_were(notebook):
    notebook["w"] = np.array([1.0, 0.0, 0.0])
    notebook.ok(LOSS)
    first = loss(notebook)
    notebook.ok("w = np.ones(3)\nview = tm.live(loss, b=(-1, 1))")
    assert notebook["view"].value == pytest.approx(first)
    notebook.ok("w = np.zeros(3)")
    assert notebook["view"].value == pytest.approx(first)
    notebook.ok("y = -y")
    assert notebook["view"].value == pytest.approx(loss(notebook, w=np.array([1.0, 0.0, 0.0])))


def test_what_a_cell_binds_anew_is_no_input(notebook):
    notebook.ok("%%tensor -q\nw = w + 1.0\ns = (w * b).sum()")
    notebook.ok("view = tm.live(s, b=(0, 2))")
    notebook.ok("w = np.full(3, 9.0)")
    assert notebook["view"].value == 3 * notebook["view"].b


def test_what_is_moved_keeps_its_dtype_and_whole_numbers_move_between(notebook):
    notebook["v"], notebook["k"] = np.array([0.5, 2.0], np.float32), np.array([1, 2])
    notebook.ok("%%tensor -q\nthirds = np.sum(v / 3)\nhalves = np.sum(k * 0.5)")
    notebook.ok("a = tm.live(thirds, v=(-9, 9))\nc = tm.live(halves, k=(0, 4))")
    view = notebook["a"]
    view.v = [0.1, 0.7]
    assert view.value == float(np.sum(np.array([0.1, 0.7], np.float32) / np.float32(3)))
    notebook["c"].k = [1.5, 2.0]
    assert notebook["c"].value == 1.75
    assert notebook["c"].gradient["k"].tolist() == [0.5, 0.5]
    notebook.ok("k = np.array([3, 4])")
    assert (notebook["c"].k, notebook["c"].value) == ([3.0, 4.0], 3.5)


def test_sizes_that_depend_on_data_follow(notebook):
    notebook["w"] = np.array([1.0, -1.0, 2.0])
    notebook.ok("%%tensor -q\ns = (w[w > 0] * b).sum() / w[w > 0].size")
    notebook.ok("view = tm.live(s, b=(0, 2))")
    notebook["view"].b = 1.0
    assert notebook["view"].value == 1.5
    notebook.ok("w = np.array([1.0, 2.0, 6.0, -1.0])")
    assert notebook["view"].value == 3.0


def test_backprop_of_a_value_follows(notebook):
    notebook.ok(LOSS)
    notebook.ok("view = tm.backprop(loss)")
    view = notebook["view"]
    scene = view._scene
    notebook.ok("other = 1")
    assert view._scene is scene
    notebook.ok("w = np.array([0.5, -1.0, 2.0])\nb = 0.25")
    assert view.point == [0.25]
    weight = -notebook["y"] / (1 + np.exp(notebook["y"] * (notebook["X"] @ notebook["w"] + 0.25))) / 40
    np.testing.assert_allclose(view.adjoints["w"], notebook["X"].T @ weight, rtol=1e-12)
    notebook.ok("w = 3")
    assert "w" in view._problem
    notebook.ok("w = np.zeros(3)")
    assert view._problem == ""
    assert float(view.values["b"]) == 0.25


def test_backprop_of_a_cell_follows_until_it_is_closed(notebook):
    shown = notebook.ok(LOSS.replace("-q", "--show backprop")).displays[0]
    views = [v for found in notebook.shell._tensormagic.magics.views._live.values() for v in found]
    (view,) = [v for v in views if type(v).__name__ == "BackpropView"]
    assert "backprop of loss = 0.69315" in shown["text/plain"]
    notebook.ok("w[0] = 1.0")
    assert float([*view.values.values()][-1]) == pytest.approx(loss(notebook), rel=1e-12)
    assert view.text.startswith(f"backprop of loss = {loss(notebook):.5g}")
    gone = weakref.ref(view._renew)
    view.close()
    notebook.ok("w[0] = 2.0")
    del view
    gc.collect()
    assert gone() is None
