"""`%tensor_default`: which cells it captures, which it leaves, and what remembers it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.notebook import extension


@pytest.fixture
def captured(notebook):
    notebook.ok("%tensor_default on")
    return notebook


def test_cells_are_captured(captured):
    captured.ok("z = X @ w + b\nloss = z.sum()")
    assert isinstance(captured["loss"], tm.Tensor)
    assert captured.ok("loss").data["text/plain"].startswith("0 · float64")


def test_an_assignment_shows_nothing(captured):
    ran = captured.ok("n = X * 2")
    assert ran.value is None
    assert not ran.displays
    assert captured.ok("'text'").value == "text"


def test_lines_are_the_users(captured):
    ran = captured("# a comment\n\nq = X @ np.ones(4)")
    assert isinstance(ran.error, tm.ShapeError)
    assert "Cell In[2], line 3" in ran.out
    assert "q = X @ np.ones(4)" in ran.out
    assert "line 1" in captured.ok("s = w.sum()\ns").data["text/plain"]


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        ("%%time\ns = X.sum()", "s"),
        ("%%tensor --plain\ns = X.sum()", "s"),
        ("%precision 3\ns = X.sum()", "s"),
        ("s = X.sum()\n%precision", "s"),
        ("!true\ns = X.sum()", "s"),
        ("s = X.sum()\nnp.sum?", "s"),
        ("import asyncio\nawait asyncio.sleep(0)\ns = X.sum()", "s"),
        ("get_ipython().run_cell('s = X.sum()')", "s"),
    ],
)
def test_cells_with_other_magics_stay_as_they_are(captured, cell, name):
    captured.ok(cell)
    assert isinstance(captured[name], np.floating)


def test_what_tools_run_silently_stays_as_it_is(captured):
    captured.shell.run_cell("s = X.sum()", silent=True)
    assert isinstance(captured["s"], np.floating)


@pytest.mark.parametrize("cell", ["", "# nothing", "\n\n"])
def test_cells_without_code(captured, cell):
    assert captured.ok(cell).value is None


def test_errors_of_syntax_are_pythons(captured):
    ran = captured("x = = 1")
    assert isinstance(ran.error, SyntaxError)
    assert "invalid syntax" in ran.out


def test_a_marked_cell_has_its_own_lines(captured):
    captured.ok("s = w.sum()\ns")
    assert "line 2" in captured.ok("%%tensor\ns = w.sum()\ns").data["text/plain"]


def test_a_console_does_not_wait_for_more(captured):
    assert captured.shell.check_complete("x = 1")[0] == "complete"


def test_off_and_which(captured):
    assert "are captured" in captured.ok("%tensor_default").data["text/plain"]
    assert "run as they are written" in captured.ok("%tensor_default off").data["text/plain"]
    captured.ok("s = X.sum()")
    assert isinstance(captured["s"], np.floating)
    assert "%tensor_default takes on or off, not 'maybe'" in captured("%tensor_default maybe").out


def test_completion(notebook):
    assert notebook.completions("%tensor_default o") == ["off", "on"]


def loaded_in(notebook, monkeypatch: pytest.MonkeyPatch, path: Path) -> bool:
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    extension.load(notebook.shell)
    notebook.ok("s = X.sum()")
    return isinstance(notebook["s"], tm.Tensor)


def test_the_metadata_of_the_notebook_restores_it(notebook, monkeypatch, tmp_path):
    file = tmp_path / "one.ipynb"
    file.write_text(json.dumps({"cells": [], "metadata": {"tensormagic": {"default": True}}, "nbformat": 4}))
    monkeypatch.setenv("JPY_SESSION_NAME", str(file))
    extension.load(notebook.shell)
    first = notebook.ok("s = X.sum()")
    assert isinstance(notebook["s"], tm.Tensor)
    assert first.displays[0]["text/plain"].startswith("This notebook has %tensor_default on.")
    assert not notebook.ok("t = X.sum()").displays


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[]",
        '{"metadata": []}',
        '{"metadata": {"tensormagic": null}}',
        '{"metadata": {"tensormagic": {"default": "yes"}}}',
        '{"metadata": {"tensormagic": {"default": false}}}',
    ],
)
def test_other_metadata_does_not(notebook, monkeypatch, tmp_path, text):
    (tmp_path / "one.ipynb").write_text(text)
    assert not loaded_in(notebook, monkeypatch, tmp_path / "one.ipynb")


def test_neither_do_other_files(notebook, monkeypatch, tmp_path):
    (tmp_path / "one.json").write_text('{"metadata": {"tensormagic": {"default": true}}}')
    assert not loaded_in(notebook, monkeypatch, tmp_path / "one.json")
    assert not loaded_in(notebook, monkeypatch, tmp_path / "missing.ipynb")
