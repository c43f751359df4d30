"""The reference leaves nothing out: every option, magic, setting, command, name and error that there is stands on its page."""

# tests named elsewhere

import argparse
import dataclasses
import inspect
import re
from pathlib import Path

import pytest

import tensormagic as tm
from tensormagic import cli
from tensormagic.capture.hooks import hooks
from tensormagic.config import Config
from tensormagic.notebook.magic import TensorMagics

DOCS = Path(__file__).parents[2] / "docs"
OPTIONS = (DOCS / "options.md").read_text(encoding="utf-8")


def spelled(text, words):
    """The words that a page has nowhere as code, in backticks or in an example."""
    code = " ".join(re.findall(r"`[^`\n]+`|^```i?python\n.*?^```", text, re.MULTILINE | re.DOTALL))
    return [word for word in words if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", code)]


def untold(parser):
    """The options of a parser of which the page has no spelling."""
    found = [action.option_strings for action in (parser._actions if parser else ()) if action.dest != "help"]
    return [spellings for spellings in found if spellings and len(spelled(OPTIONS, spellings)) == len(spellings)]


def magics(notebook):
    """The magics of the package, by name."""
    found = {}
    for kind, sign in (("line", "%"), ("cell", "%%")):
        for name, magic in notebook.shell.magics_manager.magics[kind].items():
            if name.startswith("tensor") or name == "rewrite":
                found[sign + name] = magic
    return found


def test_every_magic_and_every_option_of_it_is_on_the_page(notebook):
    there = magics(notebook)
    assert {"%%tensor", "%tensor", "%%rewrite", "%tensor_formula"} <= set(there)
    assert spelled(OPTIONS, there) == []
    for name, magic in there.items():
        assert untold(magic.parser if hasattr(magic, "parser") else None) == [], name


def test_every_default_of_an_option_can_be_set_and_the_page_says_how():
    assert spelled(OPTIONS, ["%config TensorMagics", "%config TensorMagics.math"]) == []
    assert set(TensorMagics.class_own_traits(config=True)) >= {"math", "show", "quiet", "verbose"}


def test_every_setting_is_on_the_page_with_its_variable():
    fields = [field.name for field in dataclasses.fields(Config)]
    assert spelled(OPTIONS, [f"tm.config.{name}" for name in fields]) == []
    assert spelled(OPTIONS, [f"TENSORMAGIC_{name.upper()}" for name in fields]) == []


def test_every_command_is_on_the_page_with_its_options(monkeypatch):
    made = {}
    add = argparse._SubParsersAction.add_parser

    def kept(self, name, **more):
        made[name] = add(self, name, **more)
        return made[name]

    monkeypatch.setattr(argparse._SubParsersAction, "add_parser", kept)
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert {"demo", "lab", "export", "doctor"} <= set(made)
    assert spelled(OPTIONS, [f"tensormagic {name}" for name in made]) == []
    assert [name for name, parser in made.items() if untold(parser)] == []


def test_every_public_name_is_on_the_page_of_the_api():
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    assert [name for name in tm.__all__ if not re.search(rf"(::|tm\.|\.){name}\b|: {name}$", text, re.MULTILINE)] == []


QUIET = {"to_host"}  # what raises nothing of its own


def public_functions():
    """The functions that `import tensormagic as tm` gives."""
    return [name for name in tm.__all__ if inspect.isfunction(getattr(tm, name))]


@pytest.mark.parametrize("name", public_functions())
def test_every_public_function_says_what_it_takes_gives_and_raises_and_has_an_example(name):
    function = getattr(tm, name)
    text = inspect.getdoc(function) or ""
    gives = inspect.signature(function).return_annotation not in (None, "None")
    wanted = ["Parameters", *["Returns"] * gives, *["Raises"] * (name not in QUIET), "Examples"]
    assert [section for section in wanted if f"{section}\n{'-' * len(section)}\n" not in text] == []
    taken = text.partition("Parameters\n")[2].partition("\n\n")[0]
    parameters = [p for p in inspect.signature(function).parameters if p not in ("args", "ranges")]
    assert [p for p in parameters if not re.search(rf"^[\w*, ]*\b{p}\b", taken, re.MULTILINE)] == []


METHODS = {  # of lazy values and functions, by what they have besides a first line
    "numpy": ("Returns", "Raises"),
    "item": ("Parameters", "Returns", "Raises"),
    "tolist": ("Returns", "Raises"),
    "code": ("Parameters", "Returns", "Raises"),
    "explain": ("Parameters", "Returns"),
    "time": ("Parameters", "Returns"),
    "graph": (),
    "optimized": (),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_lazy_values_say_what_they_give_and_have_an_example(name):
    found = hooks.methods.get(name) or getattr(tm.Tensor, name)
    text = inspect.getdoc(found) or ""
    assert [s for s in (*METHODS[name], "Examples") if f"{s}\n{'-' * len(s)}\n" not in text] == []


def test_every_public_error_and_warning_is_explained():
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    kinds = [
        name for name in tm.__all__ if isinstance(vars(tm).get(name), type) and issubclass(vars(tm)[name], Exception)
    ]
    assert len(kinds) > 10
    assert spelled(text, set(kinds) - {"TensorError"}) == []
    assert "tm.TensorError" in text


def test_every_page_is_in_the_contents_and_the_decisions_are_last():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    trees = re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL)
    listed = {line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")}
    pages = {page.stem for page in DOCS.glob("*.md")} - {"index"}
    assert pages - listed == set()
    assert trees[-1].split()[-1] == "decisions/*"
    notebooks = {f"tutorials/{path.stem}" for path in DOCS.parent.glob("notebooks/*.ipynb")}
    assert notebooks <= listed
    assert trees[0].split()[-len(listed & set(trees[0].split())) :][0] == "tutorial"
