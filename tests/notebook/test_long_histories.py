"""Cells that read what earlier cells have computed in many steps: pictures begin at what a cell reads, with the notebook's names."""

from __future__ import annotations

import numpy as np
import pytest

FIT = "model = A * np.exp(-k * t)\nloss = np.sum((model - data) ** 2)\nloss"


@pytest.fixture(params=[30, 200])
def stepped(notebook, request):
    """A notebook whose parameters come from steps that an ordinary cell has taken with a gradient."""
    notebook["t"] = np.linspace(0, 3, 20)
    notebook["data"] = 3 * np.exp(-0.4 * notebook["t"])
    notebook.ok("A, k = 2.0, 0.3")
    notebook.ok(f"%%tensor -q --grad A,k\n{FIT}")
    notebook.ok(
        "import warnings\nwith warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n"
        f"    for i in range({request.param}):\n        A -= 0.001 * grad_A\n        k -= 0.001 * grad_k"
    )
    return notebook


def test_backpropagation_begins_at_what_the_cell_reads(stepped):
    shown = "\n".join(d.get("text/plain", "") for d in stepped.ok(f"%%tensor --show backprop\n{FIT}").displays)
    assert "at most" not in shown
    rows = [line.split()[0] for line in shown.splitlines() if " input " in line]
    assert rows == ["A", "k", "t", "data"]


def test_formulas_leave_out_what_another_cell_has_made_of_many_steps(stepped):
    stepped.ok(f"%%tensor -q\n{FIT}")
    formula = str(stepped["loss"].formula("loss"))
    assert "…" not in formula
    assert "′" in formula.splitlines()[-1]
    assert r"A'" in stepped["loss"].formula("loss").latex.rpartition(r"\text{")[0]
    assert "computed in In[" in formula
    assert [line.partition(" =")[0] for line in formula.splitlines()[:2]] == ["loss", "model"]


def test_a_formula_of_a_few_steps_is_whole(notebook):
    notebook["x"] = 1.5
    notebook.ok("%%tensor -q\nh = np.exp(x) * 2\nh")
    notebook.ok("%%tensor -q\ng = np.sin(h) + x\ng")
    assert "h = 2 * exp(x)" in str(notebook["g"].formula("g"))


def test_inputs_of_a_long_graph_have_the_names_that_cells_gave_them(stepped):
    stepped.ok(f"%%tensor -q\n{FIT}\n")
    value = stepped["loss"]
    float(value)
    from tensormagic.notebook.pictures.adaptor import portrait

    names = portrait({"loss": value.node}, {}, "").graph.names
    assert not [n for n in names if n.startswith("value")]
    assert {"t", "data"} <= set(names)


def test_a_container_that_a_cell_ends_in_shows_values(stepped):
    stepped.ok("v = 2 * t")
    stepped.ok("%%tensor -q\nu = v * A\nu")
    assert "Tensor" in repr((stepped["u"],))
    assert "not computed" in repr((stepped["u"],))
    pair, table = stepped.ok("A, u[1:3]").data["text/plain"], stepped.ok("{'k': [k]}").data["text/plain"]
    assert "not computed" not in pair + table
    assert pair.startswith(f"({float(stepped['A'])!r}, array([")
    assert table == f"{{'k': [{float(stepped['k'])!r}]}}"


def test_an_error_in_a_container_is_told_at_its_line(notebook):
    notebook["M"] = np.zeros((2, 2))
    notebook.ok("%%tensor -q\nN = np.linalg.inv(M) + 1")
    ran = notebook("[N]")
    assert "LinAlgError" in ran.out or "Singular" in ran.out or ran.error is not None


def test_a_live_view_has_all_of_its_points_and_moves_from_the_value(stepped):
    stepped.ok("%%tensor --live k=0:1\nnp.sum((A * np.exp(-k * t) - data) ** 2)")
    (view,) = [v for views in stepped.shell._tensormagic.magics.views._live.values() for v in views]
    assert view._shown.values.shape == (121,)
    a, k = float(stepped["A"]), float(stepped["k"])
    assert view.k == pytest.approx(k)
    assert view.value == pytest.approx(np.sum((a * np.exp(-k * stepped["t"]) - stepped["data"]) ** 2))


def test_a_live_cell_that_makes_functions_runs_in_the_notebook(stepped):
    stepped.ok("def half(v):\n    return v / 2 * A")
    stepped.ok("%%tensor --live k=0:1\ndef twice(v):\n    return 2 * half(v)\nnp.sum(twice(np.exp(-k * t)))")
    (view,) = [v for views in stepped.shell._tensormagic.magics.views._live.values() for v in views]
    assert view.value == pytest.approx(float(stepped["A"]) * np.sum(np.exp(-float(stepped["k"]) * stepped["t"])))
