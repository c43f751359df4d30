"""Completion in captured cells."""

from __future__ import annotations

import pytest

from tensormagic.notebook import options
from tensormagic.notebook.options import CHOICES, OPTIONS, SHOWN


@pytest.fixture(autouse=True)
def card(monkeypatch):
    """A GPU and all packages, so that all options do something."""
    monkeypatch.setattr(options, "is_there", lambda: True)
    monkeypatch.setattr(options, "is_installed", lambda _: True)


def test_what_does_nothing_here_is_not_offered(notebook, monkeypatch):
    monkeypatch.setattr(options, "is_there", lambda: False)
    assert notebook.completions("%%tensor --d") == ["--dtype"]
    assert not {"--transfers", "--exclusive"} & set(notebook.completions("%%tensor --"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%%tensor --gr", ["--grad"]),
        ("%%tensor --d", ["--device", "--dtype"]),
        ("%%tensor --math ", ["exact", "stable", "real"]),
        ("%%tensor f --math s", ["stable"]),
        ("%%tensor --show graph,co", [name for name in SHOWN if name.startswith("co")]),
        ("%%tensor --show=pro", [name for name in SHOWN if name.startswith("pro")]),
        ("%%tensor --against jax,py", ["pytensor"]),
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


def test_every_option_completes(notebook):
    for option in OPTIONS:
        assert option in notebook.completions(f"%%tensor {option}")


def test_every_value_completes(notebook):
    for option, values in CHOICES.items():
        for line in (f"%%tensor f {option} ", f"%%tensor {option}=", f"%tensor {option} "):
            assert sorted(notebook.completions(line)) == sorted(values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%%rewrite --math ", ["exact", "real", "stable"]),
        ("%tensor_cache --", ["--clear"]),
        ("%tensor_formula lo", ["loss"]),
        ("%tensor_formula loss --", ["--wrt"]),
        ("%tensor_formula loss --wrt ", ["X", "w"]),
        ("%tensor_formula loss --wrt X,", ["X", "w"]),
        ("%tensor_graph ", ["loss"]),
        ("%tensor_nan l", ["loss"]),
    ],
)
def test_the_other_magics(notebook, text, expected):
    notebook.ok("%%tensor --quiet\nloss = (X @ w).sum()")
    assert sorted(notebook.completions(text)) == sorted(expected)


def kinds(notebook, text: str) -> dict[str, str]:
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        return {c.text.rpartition(".")[2]: c.type for c in notebook.shell.Completer.completions(text, len(text))}


def test_names_have_types_in_captured_cells(notebook):
    notebook.ok("%%tensor --quiet\nloss = (X @ w).sum()")
    notebook["name"] = "text"
    assert kinds(notebook, "%%tensor\nq = X")["X"] == "float64[40, 3]"
    assert kinds(notebook, "# first\n%%tensor --grad w\nq = np.exp(lo")["loss"] == "lazy float64"
    assert kinds(notebook, "%%tensor\nq = b")["b"] == "float"
    assert "[" not in kinds(notebook, "%%tensor\nq = na")["name"]
    assert kinds(notebook, "q = X")["X"] != "float64[40, 3]"


@pytest.mark.parametrize("jedi", [False, True])
def test_attributes_of_lazy_values(notebook, monkeypatch, jedi):
    from tensormagic import session

    monkeypatch.setattr(notebook.shell.Completer, "use_jedi", jedi)
    notebook.ok("%%tensor --quiet\nloss = (X @ w).sum()")
    for before in ("", "%%tensor\nq = 1 + "):
        found = kinds(notebook, f"{before}loss.")
        assert {"mean", "grad", "formula", "explain", "to_html"} <= {
            n for n, kind in found.items() if kind == "function"
        }
        assert {"shape", "dtype", "T", "graph"} <= {n for n, kind in found.items() if kind == "property"}
    assert not session.is_computed(notebook["loss"].node)


@pytest.mark.parametrize("there", [(), ("torch",), ("jax", "torch")])
def test_packages_that_are_not_installed_are_not_offered(notebook, monkeypatch, there):
    monkeypatch.setattr(options, "is_installed", there.__contains__)
    assert ("--against" in notebook.completions("%%tensor --a")) is bool(there)
    assert {"jax", "pytensor", "torch"} & set(offered(notebook, "%%tensor --against ", "w + 1")) == set(there)
