# tests named elsewhere

"""The options' table: one declaration for reading, help and completion."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from IPython.core.error import UsageError

from tensormagic.notebook.magic import TensorMagics
from tensormagic.notebook.options import CHOICES, OPTIONS, Options, read

PARSER = TensorMagics.tensor.parser


def options(line: str, **defaults: object) -> Options:
    return read(PARSER, line, defaults)


def test_none_is_the_default():
    assert options("") == Options()


def test_every_spelling():
    assert options("f --grad a,b").grad == ("a", "b")
    assert options("--grad a, b f") == options("f --grad=a,b")
    assert options("-n f") == options("--name f") == options("f")
    assert options("-i a -o b,c") == options("--input a --output b,c")
    assert options("-q -f") == options("--quiet --force")
    assert options("-a").show == ("graph", "annotate")
    assert options("-t").show == ("graph", "speed")
    assert options("--show code,profile -a").show == ("code", "profile", "annotate")
    assert options("--show none").show == ()
    assert options("--show none --time").show == ("speed",)
    assert options("--check --plain --verbose --of loss") == Options(check=True, plain=True, verbose=True, of="loss")
    assert options("--device auto --math real --dtype float32") == Options(math="real", device="auto", dtype="float32")


def test_defaults_are_overridden():
    assert options("", show="none", math="exact", quiet=True) == Options(show=(), math="exact", quiet=True)
    assert options("--show code --math real", show="none", math="exact") == Options(show=("code",), math="real")


@pytest.mark.parametrize("option", sorted(CHOICES))
def test_wrong_values_are_refused(option):
    with pytest.raises(UsageError, match="must be one of"):
        options(f"{option} nothing")


def test_the_help_lists_every_option(notebook):
    text = notebook.ok("get_ipython().find_line_magic('tensor').__doc__").value
    for spelling in OPTIONS:
        assert spelling in text
    assert "%%tensor objective --grad w,b" in text
    for asked in ("%%tensor?", "%tensor?"):
        told = notebook.ok(asked).out
        assert "--grad <A,B>" in told
        assert "Example::" in told


@pytest.mark.parametrize("there", [True, False])
def test_help_offers_what_does_something_on_this_machine(notebook, monkeypatch, there):
    monkeypatch.setattr("tensormagic.notebook.options.is_there", lambda: there)
    monkeypatch.setattr("tensormagic.notebook.options.is_installed", lambda _package: there)
    told = notebook.ok("%%tensor?").out
    listed = re.findall(r"^  (?:-\w, |-\w \S+, )?(--\w+)", told, re.MULTILINE)
    every = [o for o in OPTIONS if o.startswith("--")]
    assert listed == (
        every if there else [o for o in every if o not in {"--device", "--transfers", "--exclusive", "--against"}]
    )
    assert "objective(w=..., b=...)" in told


def test_config_holds_the_defaults(notebook):
    assert "TensorMagics.show" in notebook.ok("%config TensorMagics").out
    notebook.ok("%config TensorMagics.show = 'none'")
    assert "image/svg+xml" not in notebook.ok("%%tensor\nw.sum()").data
    assert "image/svg+xml" in notebook.ok("%%tensor --show graph\nw.sum()").data
    notebook.ok("%config TensorMagics.dtype = 'float32'")
    assert notebook.ok("%%tensor\nw.sum()").value.dtype == "float32"


def test_the_page_of_options_names_every_choice():
    page = (Path(__file__).parents[2] / "docs" / "options.md").read_text()
    for option, choices in CHOICES.items():
        assert option in page
        missing = [choice for choice in choices if not re.search(rf"`[^`\n]*\b{choice}\b", page)]
        assert not missing, (
            f"docs/options.md does not name these choices of {option}, in backticks: {', '.join(missing)}"
        )
