"""Live views of cells: what they are made of, whom they follow, and when they go."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

pytest.importorskip("anywidget")

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tensormagic.notebook.widgets.live import LiveView
from tests.notebook.live_views import WIDGET, unpacked, widgets


def live_of(notebook):
    *_, view = [
        v for views in notebook.shell._tensormagic.magics.views._live.values() for v in views if isinstance(v, LiveView)
    ]
    return view


def first_value(view):
    """The value at the low end of the only slider; how many points there are depends on how fast they are computed."""
    return unpacked(view._sweep)[view._picture["counts"][0]]


def test_a_cell_with_sliders(notebook):
    notebook["scale"] = 2.0
    ran = notebook.ok("%%tensor --live a=0:10\nloss = np.sin(a * scale)")
    view = live_of(notebook)
    assert ran.data[WIDGET]["model_id"] == view.model_id
    assert ran.data["text/plain"].endswith(f"loss = {view.text.removeprefix('loss = ')}")
    assert "image/svg+xml" in ran.data
    assert float(notebook["loss"]) == np.sin(5.0 * 2)
    assert "a" not in notebook
    view.a = 1.0
    assert view.value == np.sin(2.0)
    assert view.gradient == {"a": pytest.approx(2 * np.cos(2.0))}
    assert float(notebook["loss"]) == np.sin(10.0)


def test_the_notebooks_own_parameter_changes_by_keep_alone(notebook):
    notebook["a"] = 3.0
    notebook.ok("%%tensor --live a=0:10,b=-1:1:0.5\na**2 + b")
    view = live_of(notebook)
    assert (view.a, view.b) == (3.0, 0.0)
    view.a, view.b = 4.0, 0.5
    assert (notebook["a"], notebook["b"]) == (3.0, 0.0)
    view._kept += 1
    assert (notebook["a"], notebook["b"]) == (4.0, 0.5)
    assert type(notebook["a"]) is float


def test_a_small_vector_of_the_notebook(notebook):
    notebook["v"] = np.array([0.5, 2.0])
    notebook.ok("%%tensor --live v=-1:1\nnp.sum(v**2)")
    view = live_of(notebook)
    assert view.v == [0.5, 1.0]
    assert view._picture["panels"][0]["kind"] == "contour"
    view._kept += 1
    np.testing.assert_array_equal(notebook["v"], [0.5, 1.0])


def test_it_follows_what_the_notebook_rebinds_and_stores(notebook):
    notebook["scale"] = 2.0
    notebook["data"] = np.ones(3)
    notebook.ok("%%tensor --live a=0:1\na * scale + np.sum(data)")
    view = live_of(notebook)
    view.a = 0.5
    assert view.value == 4.0
    before = view._sweep
    notebook.ok("other = 3")
    assert view._sweep is before
    notebook.ok("scale = 4.0")
    assert view.value == 5.0
    assert first_value(view) == 3.0
    notebook.ok("data[0] = 2")
    assert view.value == 6.0
    notebook.ok("del scale")
    assert "scale" in view._problem
    notebook.ok("scale = 1.0")
    assert (view.value, view._problem) == (4.5, "")


def test_it_moves_where_the_notebook_rebinds_its_parameter(notebook):
    notebook["a"], notebook["v"] = 3.0, np.array([0.5, 0.25])
    notebook.ok("%%tensor --live a=0:10,v=-1:1,c=0:4\na * np.sum(v) + c")
    view = live_of(notebook)
    notebook.ok("a = 7")
    assert (view.a, view.value) == (7.0, 7 * 0.75 + 2)
    notebook.ok("v[0] = -0.5")
    assert view.v == [-0.5, 0.25]
    notebook.ok("c = 1.0")
    assert (view.c, view.value) == (1.0, 7 * -0.25 + 1)
    view.a = 2.0
    notebook.ok("other = 1")
    assert view.a == 2.0
    notebook.ok("a = 30.0")
    assert (view.a, view._note) == (10.0, "a of the notebook is outside the range here")
    notebook.ok("a = 'x'")
    assert (view.a, view._note) == (10.0, "a of the notebook has changed: this view moves its old value")
    notebook.ok("a = 1.0")
    assert (view.a, view._note) == (1.0, "")


def test_what_the_cell_binds_is_not_followed(notebook):
    notebook["a"] = 3.0
    notebook.ok("%%tensor --live a=0:10\na = a * 2\na")
    assert live_of(notebook).a == 3.0
    assert live_of(notebook).value == 6.0


def test_it_follows_containers_objects_and_helpers(notebook):
    notebook.ok("class Box: pass\nbox = Box(); box.size = 2.0\nparts = {'k': [1.0, 2.0]}\ndef helper(v): return v + 1")
    notebook.ok("%%tensor --live a=0:1\nhelper(a) + parts['k'][0] + box.size")
    view = live_of(notebook)
    assert view.value == 4.5
    notebook.ok("parts['k'][0] = 5.0")
    assert (view.value, first_value(view)) == (8.5, 8.0)
    notebook.ok("box.size = 3.0")
    assert (view.value, first_value(view)) == (9.5, 9.0)
    notebook.ok("def helper(v): return v + 2")
    assert (view.value, first_value(view)) == (10.5, 10.0)


def test_a_line_with_sliders_and_a_name(notebook):
    notebook.ok("%tensor --live a=0:10 a**2 + b")
    assert live_of(notebook).value == 25.0
    notebook.ok("%%tensor cost --live a=0:10 --grad a\na**3")
    assert live_of(notebook).value == 125.0
    assert (notebook["cost"](2.0), float(notebook["grad_a"])) == (8.0, 75.0)


def test_a_view_of_a_function_follows_too(notebook):
    notebook.ok("scale = 2.0\ndef f(a): return a * scale\nview = tm.live(f, a=(0, 1))")
    notebook.ok("scale = 6.0")
    assert notebook["view"].value == 3.0
    notebook.ok("%%tensor -q cost\nnp.sum(w) + b * scale")
    notebook.ok("again = tm.live(cost, b=(-1, 1))")
    assert (notebook["again"].b, notebook["again"].value, notebook["again"].gradient) == (0.0, 0.0, {"b": 6.0})
    notebook.ok("b = 0.5")
    assert (notebook["again"].b, notebook["again"].value) == (0.5, 3.0)


def test_a_closed_view_is_freed_and_its_result_still_has_words(notebook):
    notebook.ok("%%tensor --live a=0:10\na**2")
    gone = weakref.ref(live_of(notebook))
    report = notebook["_"].report
    assert repr(report) == "a ** 2 = 25 at a = 5 · slope in a = 10"
    live_of(notebook).close()
    notebook.shell._tensormagic.magics.views.close()
    gc.collect()
    assert gone() is None
    assert report.bundle() == ({"text/plain": repr(report)}, {})
    assert repr(report).startswith("25")


def test_it_closes_when_its_cell_runs_again(notebook):
    before = widgets()
    notebook["a"] = 1.0
    cell = "%%tensor --live a=0:10\na**2"
    notebook.ok(cell)
    first = widgets() - before
    notebook.ok(cell)
    second = widgets() - before
    assert len(second) == len(first)
    assert not first & second
    notebook.ok("tm.live(lambda a: a, a=(0, 1))")
    count = len(widgets())
    notebook.ok("tm.live(lambda a: a, a=(0, 1))")
    assert len(widgets()) == count
    notebook.shell.run_line_magic("unload_ext", "tensormagic")
    assert widgets() == before
    notebook.shell.run_line_magic("load_ext", "tensormagic")


def test_a_failing_cell_shows_no_view_and_binds_nothing(notebook):
    before = widgets()
    ran = notebook("%%tensor --live a=0:10\na * np.ones((1, 1, 3))")
    assert isinstance(ran.error, TypeError)
    assert "a real number, vector or matrix" in ran.out
    assert "a" not in notebook
    ran = notebook("%%tensor --live a=0:10\nX[0] = a\nnp.sum(X)")
    assert isinstance(ran.error, CaptureError)
    assert "a" not in notebook
    assert widgets() == before


def test_quiet_makes_no_view_and_other_panels_are_shown(notebook):
    before = widgets()
    assert notebook.ok("%%tensor -q --live a=0:10\na**2").displays == []
    assert widgets() == before
    ran = notebook.ok("%%tensor --live a=0:10 --show code\na**2")
    assert WIDGET in ran.data
    assert len(ran.displays) == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--live a", "--live a needs a range, as in --live a=0:10"),
        ("--live a=1", "--live takes A=START:STOP"),
        ("--live a=0:x", "takes numbers, as in a=0:10"),
        ("--live a=0:1,a=0:2", "two ranges for a"),
        ("--live 2=0:1", "'2' is not a name for a variable"),
        ("--live q=0:1", "the cell does not read q"),
        ("--live a=3:1", "not from 3 to 1"),
        ("--live a=0:1 --plain", "cannot be combined with --plain"),
        ("--live X=0:1", "at most 64 numbers, but X has 120"),
        ("--live name=0:1", "name is str"),
    ],
)
def test_options_that_are_refused(notebook, options, told):
    notebook["name"] = "n"
    ran = notebook(f"%%tensor {options}\nlen(name) * X[0, 0] * a")
    assert type(ran.error).__name__ == "UsageError", ran.out
    assert told in str(ran.error)


def test_a_plain_session_has_no_live_views(notebook, monkeypatch):
    monkeypatch.setattr(tm.config, "plain", True)
    assert "cannot be combined with --plain" in str(notebook("%%tensor --live a=0:1\na").error)


def test_two_options_are_both_meant(notebook):
    notebook.ok("%%tensor --live a=0:1 --live c=0:2:1\na * c")
    view = live_of(notebook)
    assert (view.a, view.c, type(view.c)) == (0.5, 1, int)


def test_a_range_is_widened_to_where_the_variable_is_and_a_vector_is_drawn_over_another(notebook):
    notebook.ok("a, tt = 12.5, np.linspace(0, 6, 50)")
    view = notebook.ok("%%tensor --live a=0:10,x=tt\nnp.sin(a * tt)").value.report._view()
    assert view.a == 12.5
    assert [(s["low"], s["high"]) for s in view._scene["spans"]] == [(0, 12.5)]
    (line, *_) = view._picture["panels"]
    assert line["x"] == [0.0, 6.0]
    assert line["at"][-1] == 6.0
    assert {"tt", "with a larger a"} <= {shape.get("text") for shape in line["shapes"]}
    for wrong, told in (("x=tt", "needs a range"), ("a=0:1,x=nobody", "no variable nobody"), ("a=0:1,x=a", "vector")):
        assert told in str(notebook(f"%%tensor --live {wrong}\nnp.sin(a * tt)").error)


def test_gradients_of_the_cells_own_run_are_told_beside_the_sliders(notebook):
    notebook["U"] = 3.0
    ran = notebook.ok("%%tensor --live a=0:2 --grad U\nnp.sum(U * U * a)")
    assert ran.data["text/plain"].splitlines()[1:] == ["in the notebook, which sliders do not change: grad_U = 6"]
    assert live_of(notebook)._scene["told"] == "in the notebook, which sliders do not change: grad_U = 6"


def test_a_curve_is_drawn_over_the_array_that_it_goes_along(notebook):
    notebook.ok("a, tt, other = 2.0, np.linspace(0, 6, 50), np.linspace(1, 0, 50)")
    cell = "%%tensor --live a=0:5\n"
    view = notebook.ok(f"{cell}np.sin(a * tt) * other").value.report._view()
    (axis,) = [s["text"] for s in view._panels[0].shapes if s.get("text") in {"tt", "element"}]
    assert axis == "tt"
    assert view._panels[0].x == (0.0, 6.0)
    notebook.ok("later = tt + 1.0")
    view = notebook.ok(f"{cell}np.sin(a * tt) * later").value.report._view()  # which of two nobody knows
    assert "element" in {s.get("text") for s in view._panels[0].shapes}
