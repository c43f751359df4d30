"""Completion in captured cells."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%%tensor --gr", ["--grad"]),
        ("%%tensor --d", ["--device", "--dtype"]),
        ("%%tensor --math ", ["exact", "stable", "real"]),
        ("%%tensor f --math s", ["stable"]),
        ("%%tensor --show graph,co", ["code"]),
        ("%%tensor --show=pro", ["profile"]),
        ("%%tensor --dtype float6", ["float64"]),
        ("%%tensor --device ", ["cpu", "gpu", "auto"]),
    ],
)
def test_options_and_their_values(notebook, text, expected):
    assert sorted(notebook.completions(text)) == sorted(expected)


def test_all_options(notebook):
    assert {"-n", "--name", "--grad", "--live", "--check", "-q"} <= set(notebook.completions("%%tensor "))


def test_names(notebook):
    assert offered(notebook, "%%tensor --grad ", "z = X @ w\nloss = z.sum()") == ["X", "loss", "w", "z"]
    assert offered(notebook, "%%tensor --grad w,l", "z = X @ w\nloss = z.sum()") == ["loss"]
    assert offered(notebook, "%%tensor -o ", "z = X @ w\ndef f(v): return v") == ["f", "z"]
    assert "loss_of_this" in notebook.completions("%%tensor\nloss_of_this = X @ w\nlo")
    assert "X" in notebook.completions("%%tensor\nX")


def offered(notebook, line: str, body: str) -> list[str]:
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        return sorted(c.text for c in notebook.shell.Completer.completions(f"{line}\n{body}", len(line)))


def test_other_cells_are_left_alone(notebook):
    notebook["zebra"] = 1
    assert "zebra" in notebook.completions("zeb")
    assert not [c for c in notebook.completions("%%time --gr") if c == "--grad"]
