"""Warnings of a notebook's cells: their lines as all else names them, no errors, and Python's own text for those of files."""

from __future__ import annotations

import sys
import warnings

import pytest


@pytest.fixture
def stderr(monkeypatch):
    """What warnings write, as text: those that a test has seen are shown again."""
    warnings.simplefilter("always")
    return lambda text, where, line: warnings.formatwarning(text, RuntimeWarning, where, line)


@pytest.mark.parametrize("cell", ["In[3]", "In[12]", "In[4000]"])
def test_a_cell_is_named_by_its_line_and_no_error(notebook, stderr, cell):
    assert stderr("old", cell, 2) == f"{cell} line 2: RuntimeWarning (no error): old\n"


@pytest.mark.parametrize("where", ["cell.py", "/tmp/In[3].py", "In[3] ", "<string>", "In[x]"])
def test_files_keep_pythons_text(notebook, stderr, where):
    assert stderr("old", where, 2).startswith(f"{where}:2: RuntimeWarning: old")


def test_pythons_text_is_back_when_the_extension_goes(notebook, stderr):
    notebook.shell.run_line_magic("unload_ext", "tensormagic")
    assert stderr("old", "In[3]", 2).startswith("In[3]:2: RuntimeWarning: old")
    notebook.shell.run_line_magic("load_ext", "tensormagic")
    assert "no error" in stderr("old", "In[3]", 2)


def test_one_that_came_in_between_stays(notebook, stderr, monkeypatch):
    others = lambda *_: "mine"  # noqa: E731
    monkeypatch.setattr(warnings, "formatwarning", others)
    notebook.shell.run_line_magic("unload_ext", "tensormagic")
    assert warnings.formatwarning is others
    notebook.shell.run_line_magic("load_ext", "tensormagic")
    assert stderr("old", "a.py", 1) == "mine"
    notebook.shell.run_line_magic("unload_ext", "tensormagic")
    assert warnings.formatwarning is others
    notebook.shell.run_line_magic("load_ext", "tensormagic")
    monkeypatch.undo()
    assert sys.modules["warnings"] is warnings


@pytest.mark.parametrize("cells", [0, 1, 2, 5])
@pytest.mark.parametrize("where", ["a.py", "<string>", "In[3]"])
def test_after_any_number_of_cells_a_warning_is_written_once(notebook, stderr, cells, where):
    for _ in range(cells):
        notebook.ok("1 + 1")
    assert stderr("old", where, 2).count("old") == 1


@pytest.mark.parametrize("where", ["a.py", "In[3]"])
@pytest.mark.parametrize(
    "form", ["lambda *a: 'mine: ' + kept(*a)", "functools.partial(lambda f, *a: 'mine: ' + f(*a), kept)"]
)
def test_a_function_of_a_cell_that_calls_the_one_before_ends(notebook, stderr, form, where):
    python = warnings.formatwarning
    try:
        notebook.ok(f"import functools, warnings\nkept = warnings.formatwarning\nwarnings.formatwarning = {form}")
        for _ in range(3):
            notebook.ok("1 + 1")
        assert stderr("old", where, 2).count("old") == 1
        notebook.ok("warnings.formatwarning = kept")
        notebook.ok("1 + 1")
        assert "mine" not in stderr("old", where, 2)
    finally:
        warnings.formatwarning = python


@pytest.mark.parametrize(
    ("start", "back"),
    [
        ("np.zeros(3)", "np.zeros(3)"),
        ("np.ones((2, 2))", "np.ones((2, 2))"),
        ("np.array([1.0, 2.5])", "np.array([1.0, 2.5])"),
        ("np.float64(0.25)", "0.25"),
        ("1.5", "1.5"),
        ("np.linspace(0, 1, 30)", "what it was at the start"),
    ],
)
def test_a_stale_gradient_tells_what_to_set_a_variable_back_to(notebook, start, back):
    notebook.ok(f"w = {start}")
    notebook.ok("%%tensor --grad w\nnp.sum((w - 3) ** 2)")
    with pytest.warns(UserWarning, match="belongs to the w") as found:
        notebook.ok("for k in range(3):\n    w = w - 0.1 * grad_w")
    assert f"set w back to {back}, run it again" in str(found[0].message)
