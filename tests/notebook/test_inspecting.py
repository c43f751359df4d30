"""What Shift-Tab and `?` say of lazy values, in any IPython kernel."""

# tests named elsewhere

from __future__ import annotations

import copy
import re

import numpy as np
import pytest

from tensormagic import session
from tensormagic.notebook.display import inspecting

CELL = "%%tensor --grad w,b --quiet\nz = X @ w + b\nloss = np.mean(np.log(1 + np.exp(-y * z)))\nloss"


def told(notebook, name: str, detail: int = 0) -> dict[str, str]:
    found = notebook.shell.object_inspect_mime(name, detail)
    return {kind: re.sub(r"\x1b\[[\d;]*m", "", text) for kind, text in found.items()}


def test_type_place_formula_and_gradients(notebook):
    notebook.ok(CELL)
    text = told(notebook, "loss")["text/plain"]
    assert re.search(r"Type:\s+Tensor", text)
    for line in (
        "lazy float64 · from In[1] line 3",
        "not computed yet",
        "loss = 1/n * sum_{i<n} log(1 + exp(-y[i] * z[i]))",
        "z = X @ w + b",
        "d loss/d w = -X.T @ (1/n * σ(-y * z) * y)",
        "d loss/d b = -(sum_{i<n} 1/n * σ(-y[i] * z[i]) * y[i])",
    ):
        assert line in text.splitlines()


def test_pages_get_it_typeset(notebook):
    notebook.ok(CELL)
    made = told(notebook, "loss")["text/markdown"]
    assert made.startswith("**loss** · lazy float64 · from In\\[1\\] line 3\n\nnot computed yet\n\n$\\displaystyle")
    assert r"\frac{\partial\,\mathrm{loss}}{\partial\,w} &= -X^{\top}" in made


def test_nothing_is_computed(notebook):
    notebook.ok(CELL)
    told(notebook, "loss")
    told(notebook, "loss", 1)
    assert not session.is_computed(notebook["loss"].node)


def test_a_value_that_is_there_is_shown(notebook):
    notebook.ok(CELL.replace("--quiet", "--show none"))
    assert "0.6931471806" in told(notebook, "loss")["text/plain"].splitlines()


def test_gradients_that_nobody_asked_for_are_those_of_the_inputs(notebook):
    notebook.ok("%%tensor --quiet\ns = (w * w).sum()")
    assert "d s/d w = 2 * w" in told(notebook, "s")["text/plain"]


def test_an_array_has_no_gradient_there(notebook):
    notebook.ok("%%tensor --quiet\nv = X @ w")
    text = told(notebook, "v")["text/plain"]
    assert "lazy float64[40] · from In[1] line 2" in text
    assert "v = X @ w" in text
    assert "d v" not in text


def test_it_says_what_has_changed(notebook):
    notebook.ok("w = np.ones(3)")
    notebook.ok(CELL)
    notebook.ok("w = np.zeros(3)")
    assert "computed for w of In[1]; w is now from In[3]" in told(notebook, "loss")["text/plain"]


def test_other_objects_are_left_to_ipython(notebook):
    found = told(notebook, "X")
    assert "text/markdown" not in found
    assert "ndarray" in found["text/plain"]
    assert "String form:" in found["text/plain"]
    assert "Docstring:" in told(notebook, "np.sum")["text/plain"]


def test_the_question_mark(notebook):
    notebook.ok(CELL)
    assert "loss = 1/n * sum" in notebook.ok("loss?").out


def test_a_graph_too_long_for_a_formula_is_told_without(notebook, monkeypatch):
    monkeypatch.setattr(inspecting, "MOST_NODES", 10)
    notebook.ok("%%tensor --quiet\nv = w\n" + "v = np.sin(v) + 1.5\n" * 10 + "v = v.sum()")
    text = told(notebook, "v")["text/plain"]
    assert "lazy float64" in text
    assert "v =" not in text


def test_a_new_inspector_gets_it_too(notebook):
    notebook.ok(CELL)
    shell = notebook.shell
    before = shell.inspector
    shell.inspector = copy.copy(before)
    vars(shell.inspector).pop("info")
    notebook.ok("1")
    assert "loss = 1/n * sum" in told(notebook, "loss")["text/plain"]
    notebook.shell.run_line_magic("unload_ext", "tensormagic")
    assert "info" not in vars(before)
    assert "info" not in vars(shell.inspector)
    shell.inspector = before
    notebook.shell.run_line_magic("load_ext", "tensormagic")


def test_unloading_leaves_nothing(notebook):
    inspector = notebook.shell.inspector
    inspector.mime_hooks = {**inspector.mime_hooks, "text/x-mine": lambda data: "mine"}
    notebook.shell.run_line_magic("unload_ext", "tensormagic")
    assert list(inspector.mime_hooks) == ["text/x-mine"]
    assert "info" not in vars(inspector)
    assert "completions" not in vars(notebook.shell.Completer)
    inspector.mime_hooks = {}
    notebook.shell.run_line_magic("load_ext", "tensormagic")


@pytest.mark.parametrize("name", ["<b>x</b>", "$x$", "a|b`c", "x" * 1000])
def test_hostile_columns_stay_text(notebook, name):
    import pandas as pd

    notebook["df"] = pd.DataFrame({name: np.ones(4)})
    notebook.ok(f"%%tensor --quiet\ns = df[{name!r}].sum()")
    made = told(notebook, "s")["text/markdown"]
    assert "<b>" not in made
    assert len(made) < 2000
    assert made.count("$") - made.count("\\$") == 2


def methods_of(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))]


METHODS = [
    (make, name)
    for make, kind in (("np.arange(3.0) + w[:3]", np.ndarray), ("w @ w", np.float64))
    for name in methods_of(kind)
    if hasattr(np.ndarray, name)  # not what Python's floats have
]


@pytest.mark.parametrize(("make", "name"), METHODS)
def test_a_method_is_told_as_numpys(notebook, make, name):
    notebook.ok(f"%%tensor --quiet\nv = {make}")
    lazy = notebook["v"]
    found = [told(notebook, f"v.{name}", detail) for detail in (0, 1)]
    assert not session.is_computed(lazy.node)
    notebook.ok(f"v = {make}")
    assert found == [told(notebook, f"v.{name}", detail) for detail in (0, 1)]


def test_pdb_is_turned_on_and_off_within_a_cell(notebook):
    for wanted in (True, False):
        notebook.ok("%%tensor --quiet\nv = w + 1\n%pdb")
        assert notebook.shell.call_pdb == wanted
    np.testing.assert_array_equal(notebook["v"], notebook["w"] + 1)
