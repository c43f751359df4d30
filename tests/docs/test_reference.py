"""The reference leaves nothing out: every option, magic, setting, command, name and error that there is stands on its page."""

# tests named elsewhere

import argparse
import dataclasses
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
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


def test_every_option_of_installing_the_kernel_is_on_its_page(monkeypatch):
    from tensormagic_kernel import install

    made = []
    add = argparse.ArgumentParser.add_mutually_exclusive_group

    def kept(self, **more):
        made.append(self)
        return add(self, **more)

    monkeypatch.setattr(argparse.ArgumentParser, "add_mutually_exclusive_group", kept)
    with pytest.raises(SystemExit):
        install.main(["--help"])
    options = [s for action in made[0]._actions for s in action.option_strings if action.dest != "help"]
    assert len(options) == 3
    assert spelled((DOCS / "kernel.md").read_text(encoding="utf-8"), options) == []


def test_the_setting_that_loads_the_extension_without_typing_it_does(tmp_path):
    (line,) = re.findall(
        r"^    (c\.\w+\.extensions = .*)$", (DOCS / "kernel.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    (tmp_path / "profile_default").mkdir()
    (tmp_path / "profile_default" / "ipython_config.py").write_text(f"c = get_config()\n{line}\n", encoding="utf-8")
    asked = "print('tensor' in get_ipython().magics_manager.magics['cell'])"
    ran = subprocess.run(
        [sys.executable, "-m", "IPython", "-c", asked],
        env={**os.environ, "IPYTHONDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.endswith("True\n"), ran.stdout + ran.stderr


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


SOURCES = {  # of what is taken from a paper or a book
    "check_grads": "Squire",
    "checkpoint": "Griewank",
    "hessian": "Coleman",
    "hvp": "Pearlmutter",
    "jacobian": "Curtis",
    "linearize": "linearize once",
    "vjp": "linearize once",
}


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_taken_from_a_paper_names_it(name):
    told = (inspect.getdoc(getattr(tm, name)) or "").partition("References\n----------\n")[2].partition("\n\n")[0]
    assert SOURCES[name] in told


@pytest.mark.parametrize("name", ["Compiled", "Function", "Tensor", "config", "rules"])
def test_every_public_class_has_an_example(name):
    assert "Examples\n--------\n" in (inspect.getdoc(getattr(tm, name)) or "")


MEMBERS = {  # of what functions give, by what makes one: those that pages name
    "tm.tensor([1.0, 2.0]).sum()": "numpy item tolist code explain time graph optimized formula grad backprop to_html",
    "tm.tensor(np.sin)": "graph",
    'tm.compile(np.sin, "float64[n]")': "run save export_c code kernels memory cost",
    "tm.live(lambda a: a**2, a=(0.0, 1.0))": "value gradient history text choose descend link to_html",
    "tm.backprop(np.sin, 1.0)": "values adjoints steps text to_html",
    "tm.submit(np.sin, 1.0)": "cancel cancelled exception progress",
    "tm.tensor([1.0]).sum().formula()": "latex",
    "tm.rules": "add remove",
    "tm.config": "using",
}
NOTHING_OF_ITS_OWN = {
    "explain",
    "time",
    "cancel",
    "cancelled",
    "link",
    "to_html",
}  # these raise what Python does, or nothing
PLAIN = {
    "value",
    "text",
    "steps",
    "kernels",
    "code",
    "memory",
    "cost",
    "graph",
    "optimized",
}  # attributes: one line, or the class has more


def documented(made, name):
    """The text of a member, and its signature where it is called."""
    found = hooks.methods.get(name) if isinstance(made, tm.Tensor) else None
    found = found or inspect.getattr_static(type(made), name)
    called = found if inspect.isfunction(found) else None
    return inspect.getdoc(found) or "", called and inspect.signature(called)


@pytest.mark.parametrize(
    ("made", "name"), [(made, name) for made, names in MEMBERS.items() for name in names.split()], ids=lambda text: text
)
def test_members_say_what_they_take_give_and_raise_and_have_an_example(made, name):
    owner = eval(made, {"tm": tm, "np": np})
    try:
        text, signature = documented(owner, name)
    finally:
        if hasattr(owner, "close"):
            owner.close()
    assert text
    wanted = [] if name in PLAIN else ["Examples"]
    if signature is not None:
        taken = [p for p in list(signature.parameters)[1:] if p not in ("args", "options")]
        wanted += ["Parameters"] * bool(taken) + ["Raises"] * (name not in NOTHING_OF_ITS_OWN)
        gives = signature.return_annotation not in (None, "None")
        wanted += [("Yields" if "Generator" in str(signature.return_annotation) else "Returns")] * gives
        told = text.partition("Parameters\n")[2].partition("\n\n")[0]
        assert [p for p in taken if not re.search(rf"^[\w*, ]*\b{p}\b", told, re.MULTILINE)] == []
    heads = re.findall(r"^([A-Z]\w+)\n-{4,}$", text, re.MULTILINE)
    assert [section for section in wanted if section not in heads] == []
    assert len(heads) == len(set(heads))


def test_members_are_on_the_page_of_the_api():
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"\w+", " ".join(re.findall(r"(?::members:|automethod::)(.*)$", text, re.MULTILINE))))
    assert {name for names in MEMBERS.values() for name in names.split()} - listed - PLAIN == set()


def test_every_attribute_of_lazy_values_says_what_it_is():
    """Those of NumPy's arrays too: in a line at least, which may be NumPy's name for it."""
    value = tm.tensor(np.ones((2, 2)))
    names = [name for name in dir(value) if not name.startswith("_")]
    assert len(names) > 60
    silent = []
    for name in names:
        found = hooks.methods.get(name) or inspect.getattr_static(tm.Tensor, name)
        text = inspect.getdoc(found) or getattr(np.ndarray, name, found).__doc__
        silent += [name] * (not text)
    assert silent == []


@pytest.mark.parametrize(
    "name", [n for n in tm.__all__ if isinstance(vars(tm).get(n), type) and issubclass(vars(tm)[n], Exception)]
)
def test_errors_say_when_they_are_raised(name):
    kind = getattr(tm, name)
    text = inspect.getdoc(kind) or ""
    assert len(text.split()) >= 4
    elsewhere = {
        "TensorError",
        "TransferError",
        "DeviceError",
        "HiddenTransferWarning",
        "RecaptureWarning",
        "StaleGradientWarning",
    }
    assert ("Examples\n--------\n" in text) == (name not in elsewhere)  # these need a GPU, a notebook or time


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
