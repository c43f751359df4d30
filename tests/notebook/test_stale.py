"""What is said of a value whose inputs have changed since."""

from __future__ import annotations

import re

import pytest

CELL = "%%tensor --show none\nloss = (X @ w + b).sum()\nloss"


def line(notebook) -> str:
    return notebook.ok("loss").data["text/plain"].splitlines()[0]


@pytest.mark.parametrize(
    "change",
    ["w = w + 1", "w += 1", "w[0] = 5", "np.add(w, 1, out=w)", "%%tensor --show none\nw = w * 2", "w = 3.0 * w; del b"],
)
def test_it_names_the_cells(notebook, change):
    notebook.ok("w = np.ones(3); b = 0.5")
    notebook.ok(CELL)
    assert "computed for" not in line(notebook)
    notebook.ok(change)
    assert line(notebook).endswith(" · computed for w of In[1]; w is now from In[4]")


def test_several_are_all_named(notebook):
    notebook.ok("w = np.ones(3); b = 0.5")
    notebook.ok(CELL)
    notebook.ok("w = np.zeros(3)")
    notebook.ok("b = 1.5")
    text = line(notebook)
    assert "computed for w of In[1]; w is now from In[3]" in text
    assert "computed for b of In[1]; b is now from In[4]" in text


def test_the_picture_says_it_too(notebook):
    notebook.ok("w = np.ones(3)")
    notebook.ok(CELL.replace(" --show none", ""))
    notebook.ok("w = np.zeros(3)")
    picture = notebook.ok("loss").data["image/svg+xml"]
    assert "computed for w of In[1]; w is now from In[3]" in " ".join(re.sub("<[^>]*>", " ", picture).split())


@pytest.mark.parametrize("same", ["w = np.ones(3)", "w = w.copy()", "w[0] = 1.0", "v = w + 1"])
def test_an_equal_value_is_no_change(notebook, same):
    notebook.ok("w = np.ones(3)")
    notebook.ok(CELL)
    notebook.ok(same)
    assert "computed for" not in line(notebook)


def test_the_cell_itself_may_bind_what_it_reads(notebook):
    notebook.ok("%%tensor --show none\nw = w + 1.0\nloss = (X @ w).sum()\nloss")
    assert "computed for" not in line(notebook)


def test_variables_from_before_the_extension(notebook):
    notebook.ok(CELL)
    notebook.ok("w = w + 1")
    assert "computed for an earlier w; w is now from In[2]" in line(notebook)


def test_a_change_that_no_cell_shows(notebook):
    notebook.ok("w = np.ones(3)\nalias = [w]\ndef change(): alias[0][:] = 7")
    notebook.ok(CELL)
    notebook.ok("change()")
    assert line(notebook).endswith("computed for an earlier w; w has changed since")


def test_run_again_it_is_fresh(notebook):
    notebook.ok("w = np.ones(3)")
    notebook.ok(CELL)
    notebook.ok("w = np.zeros(3)")
    notebook.ok(CELL)
    assert "computed for" not in line(notebook)


def test_lazy_variables_between(notebook):
    notebook.ok("%%tensor --show none\nz = X @ w")
    notebook.ok("%%tensor --show none\nloss = z.sum()\nloss")
    notebook.ok("z = 3")
    assert "computed for z of In[1]; z is now from In[3]" in line(notebook)


def test_what_came_into_it_by_a_variable_of_now_is_of_now(notebook):
    """c is what it was made of m; the m that is given is another."""
    notebook.ok("m, c = 0.0, 0.0")
    notebook.ok("%%tensor cost --grad m,c\nnp.mean((m * X[:, 0] + c - y) ** 2)")
    notebook.ok("m -= 0.5 * grad_m\nc -= 0.5 * grad_c")
    assert "computed for" not in notebook.ok("cost(m=1.0)").data["text/plain"]
    assert "computed for" not in notebook.ok("%%tensor\ntm.grad(cost)(m=1.0)").data["text/plain"]
    assert "computed for" not in notebook.ok("tm.grad(cost)(m=1.0) * 2").data["text/plain"]
    notebook.ok("%%tensor -q\nz = m * X")
    notebook.ok("m = 7.0")
    assert "m is now from In[8]" in notebook.ok("z").data["text/plain"]


def test_a_value_of_what_a_variable_is_now_says_nothing_of_what_it_was(notebook):
    notebook.ok("%%tensor objective --grad w\nnp.sum(X @ w + b) ** 2")
    notebook.ok("w = w - 0.1 * grad_w")
    assert "computed for" not in notebook.ok("objective()").data["text/plain"]
    notebook.ok("later = objective() + 1")
    assert "computed for" not in notebook.ok("later").data["text/plain"]
    notebook.ok("w = np.ones(3)")
    assert "; w is now from In[6]" in notebook.ok("later").data["text/plain"]


@pytest.mark.parametrize("new", ["3", "True", "None", "'a'", "4"])
def test_a_number_that_becomes_something_else_is_told(notebook, new):
    notebook.ok("k, x = 1.5, np.arange(3.0)")
    notebook.ok("%%tensor\ntotal = np.sum(k * x**2)\ntotal")
    notebook.ok(f"k = {new}")
    assert "computed for k of In[1]; k is now from In[3]" in notebook.ok("total").data["text/plain"]


def test_a_whole_number_that_equals_a_float_is_no_change(notebook):
    notebook.ok("k, x = 2.0, np.arange(3.0)")
    notebook.ok("%%tensor\ntotal = np.sum(k * x)\ntotal")
    notebook.ok("k = 2")
    assert "computed for" not in notebook.ok("total").data["text/plain"]
