"""The widget of both passes: its state, pages, and how cells and values show it."""

from __future__ import annotations

import base64

import ipywidgets
import numpy as np
import pytest
import traitlets

import tensormagic as tm
from tensormagic.notebook.widgets.backprop import SCRIPT, STYLE, BackpropView

WIDGET = "application/vnd.jupyter.widget-view+json"
CELL = "z = X @ w + b\nloss = np.mean(np.log(1 + np.exp(-y * z)))\nloss"


def widgets() -> set[str]:
    return set(ipywidgets.widgets.widget._instances)


def unpacked(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), "<f8")


@pytest.fixture
def view(monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    made = tm.backprop(lambda x, w: np.sin(x * w) * x, 2.0, 0.5)
    yield made
    made.close()


def test_values_and_adjoints_follow_the_point(view):
    view.point = [1.0, 0.25]
    gradient = tm.grad(lambda x, w: np.sin(x * w) * x, (0, 1))(1.0, 0.25)
    assert [float(view.adjoints[name]) for name in "xw"] == pytest.approx(gradient, rel=1e-12)
    assert float(view.values["x × w"]) == 0.25
    exact = unpacked(view._exact)
    assert exact[:2].tolist() == [1.0, 0.25]
    assert exact[2] == 1.0
    assert view._problem == ""


def test_equal_headings_are_counted():
    def twice(first_of_two_inputs, second_of_two_inputs):
        return np.sin(np.tanh(first_of_two_inputs)) * np.sin(np.tanh(second_of_two_inputs))

    view = tm.backprop(twice, 1.0, 2.0)
    assert len(view.adjoints) == 7
    assert float(view.values["sin(·)"]) == np.sin(np.tanh(1.0))
    assert float(view.values["sin(·) (2)"]) == np.sin(np.tanh(2.0))
    view.close()


def test_traits_stay_in_their_ranges(view):
    view.point = [100.0, -100.0]
    assert view.point == [4.0, -0.5]
    view.step = 99
    assert view.step == view.steps == 10
    view.step = -1
    assert view.step == 0
    view.selected = 77
    assert view.selected == -1
    for wrong in ([1.0], [np.nan, 0.0]):
        with pytest.raises(traitlets.TraitError, match="one number for each of the 2 sliders"):
            view.point = wrong


def test_rays_go_through_the_point_where_the_sliders_rest(view):
    assert view._star["base"] == [2.0, 0.5]
    view.point = [1.0, 0.25]
    assert view._star["base"] == [2.0, 0.5]
    view._rest += 1
    assert view._star["base"] == [1.0, 0.25]
    first = unpacked(view._star["data"])[0]
    assert first == 0.0


def test_what_fails_at_a_point_is_told_and_the_sliders_go_on():
    view = tm.backprop(lambda x: np.linalg.inv(np.eye(2) * x).sum(), 1.0, x=(-1, 1, 0.5))
    view.point = [0.0]
    assert "singular" in view._problem.lower()
    view.point = [0.5]
    assert view._problem == ""
    view.close()


def test_pages_and_pictures_need_no_kernel(view, tmp_path):
    view.to_html(tmp_path / "view.html")
    page = (tmp_path / "view.html").read_text(encoding="utf-8")
    assert '"live":false' in page
    data, _ = view.bundle()
    assert {WIDGET, "text/plain", "image/svg+xml"} <= set(data)
    assert data["image/svg+xml"] in page
    view.close()
    data, _ = view.bundle()
    assert set(data) == {"text/plain", "image/svg+xml"}


def test_the_module_is_small_and_asks_for_nothing():
    assert len(SCRIPT.encode()) < 60_000
    assert "import " not in SCRIPT.replace("important", "")
    assert "http" not in SCRIPT.replace("http://www.w3.org/2000/svg", "")
    assert "url(" not in STYLE
    assert STYLE.count(".tm-backprop button {") == 1
    assert ".tm-view" not in STYLE


def test_a_cell_shows_both_passes_of_its_value(notebook):
    ran = notebook.ok(f"%%tensor --show backprop --grad w,b\n{CELL}")
    shown = ran.displays[0]
    assert {WIDGET, "text/plain", "image/svg+xml"} <= set(shown)
    lines = shown["text/plain"].splitlines()
    assert lines[0] == "backprop of loss = 0.69315: 12 nodes"
    assert lines[-1].split()[:6] == ["loss", "=", "mean(log(1", "+", "exp(−y", "×"]
    assert float(np.asarray(notebook["grad_b"])) == pytest.approx(0.1)
    assert next(line for line in lines if line.startswith("b ")).split() == ["b", "input", "0", "0.1"]
    assert ran.displays[1]["text/plain"].startswith("0.6931471806")


def test_a_cell_may_show_the_graph_too_and_ranges_of_live_are_taken(notebook):
    ran = notebook.ok(f"%%tensor --show backprop,graph --live b=0:3\n{CELL}")
    assert len([shown for shown in ran.displays if WIDGET in shown]) == 2
    made = [w for w in ipywidgets.widgets.widget._instances.values() if type(w).__name__ == "BackpropView"]
    assert [s["high"] for s in made[-1]._scene["sliders"]] == [3.0]
    assert made[-1]._scene["lines"][0] == ["In[1] line 1", "%%tensor --show backprop,graph --live b=0:3"]


def test_what_has_no_passes_is_a_sentence(notebook):
    shown = notebook.ok("%%tensor --show backprop\nX @ w").displays[0]
    assert set(shown) == {"text/plain"}
    assert "one real number, but value is float64[40]" in shown["text/plain"]
    notebook["n"] = 3
    assert (
        "end it with an expression for one number"
        in notebook.ok("%%tensor --show backprop\nn").displays[0]["text/plain"]
    )


def test_an_array_that_the_cell_makes_itself(notebook):
    made = "t = np.linspace(-1, 1, 4)\nnp.sum(t**2)"
    told = notebook.ok(f"%%tensor --show backprop\n{made}").displays[0]["text/plain"]
    assert "from no variable that was there before" in told
    assert "--grad x" in told
    shown = notebook.ok(f"%%tensor --show backprop --grad t\n{made}").displays[0]["text/plain"]
    assert "3 nodes" in shown
    assert "input" in shown


def test_widgets_close_when_their_cell_runs_again(notebook):
    before = widgets()
    notebook.ok(f"%%tensor --show backprop\n{CELL}")
    count = len(widgets())
    for _ in range(3):
        notebook.ok(f"%%tensor --show backprop\n{CELL}")
    assert len(widgets()) == count
    notebook.ok("v = loss.backprop()\nNone")
    notebook.ok("v = loss.backprop()\nNone")
    notebook["v"].close()
    notebook.shell.run_line_magic("reload_ext", "tensormagic")
    assert widgets() == before


def test_functions_of_the_notebook_are_shown_with_their_lines(notebook):
    notebook.ok("def f(a):\n    c = np.sin(a)\n    return c * a * scale")
    notebook["scale"] = 2.0
    notebook.ok("v = tm.backprop(f, 2.0)")
    view = notebook["v"]
    assert [s["name"] for s in view._scene["sliders"]] == ["a", "scale"]
    assert view._scene["lines"] == [["In[1] line 2", "c = np.sin(a)"], ["In[1] line 3", "return c * a * scale"]]
    assert float(view.adjoints["a"]) == pytest.approx(2 * (np.sin(2) + 2 * np.cos(2)))
    notebook.ok("%%tensor cost -q\ne = X @ w - y\ne @ e")
    notebook.ok("v = tm.backprop(cost, w=(0, 1)) if False else tm.backprop(cost)")
    np.testing.assert_allclose(notebook["v"].adjoints["w"], -2 * notebook["X"].T @ notebook["y"], rtol=1e-12)


def test_a_view_follows_the_variables_that_its_function_reads(notebook):
    notebook.ok("scale, v = 2.0, np.ones(2)\ndef f(a):\n    return np.sum(np.sin(a * v)) * scale")
    notebook.ok("view = tm.backprop(f, 2.0)")
    view = notebook["view"]
    scene = view._scene
    notebook.ok("other = 1")
    assert view._scene is scene
    view.point = [1.0, 2.0]
    notebook.ok("scale = 3.0")
    assert view.point == [1.0, 3.0]
    assert float(view.adjoints["a"]) == pytest.approx(6 * np.cos(1.0))
    notebook.ok("v = np.array([1.0, 2.0, 3.0])")
    k = np.array([1.0, 2.0, 3.0])
    assert float(view.adjoints["a"]) == pytest.approx(3 * np.sum(k * np.cos(k)))
    assert unpacked(view._exact)[:2].tolist() == [1.0, 3.0]
    notebook.ok("v = 'text'")
    assert view._problem != ""
    notebook.ok("v = np.ones(2)")
    assert view._problem == ""
    view.close()
    notebook.ok("scale = 4.0")


def test_a_lazy_value_takes_ranges_and_no_arguments():
    value = tm.tensor(np.array([1.0, 2.0])).sum()
    with pytest.raises(TypeError, match="takes no arguments, but 1 were given"):
        tm.backprop(value, 3.0)
    with pytest.raises(TypeError, match="q is no floating number among the inputs of value; there are: none"):
        value.backprop(q=(0, 1))


# variables that an earlier cell has computed --------------------------------------------------------------------------------

STEP = "%%tensor\nw = w - 0.1 * np.mean((w * x - y) * x)\nw"
LOSS = "%%tensor --grad w --show backprop\nloss = np.mean((w * x - y) ** 2)\nloss"


def shown(notebook):
    """The view of the last cell."""
    views = notebook.shell._tensormagic.magics.views
    return [view for made in views._live.values() for view in made if isinstance(view, BackpropView)][-1]


def test_a_computed_variable_is_where_backpropagation_ends(notebook):
    notebook.ok("x = np.linspace(0, 1, 5); y = 3 * x; w = 1.0")
    notebook.ok(STEP)
    notebook.ok(LOSS)
    view = shown(notebook)
    assert view.adjoints["w"] == pytest.approx(float(notebook["grad_w"]), rel=1e-12)
    assert view.values["w"] == pytest.approx(float(notebook["w"]))
    nodes = len(view.values)
    notebook.ok(STEP)  # the variable is another lazy value: its history is no part of the picture
    assert len(view.values) == nodes
    assert view.values["w"] == pytest.approx(float(notebook["w"]))
    value = float(notebook["w"])
    x = np.linspace(0, 1, 5)
    assert view.adjoints["w"] == pytest.approx(float(np.mean(2 * (value * x - 3 * x) * x)))
    notebook.ok("w = np.array(0.5)[()]")
    assert view.values["w"] == 0.5
